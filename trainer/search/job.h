/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SEARCH_JOB_H
#define SEARCH_JOB_H 1

/* One job of a search: its processes and their progress.
 *
 * The servers of a job start first, since its workers need their ports.
 * Peers, under a scheme without a server, all start first and then get the
 * ports.  The workers connect, get their initial weights and wait for each
 * other.  Then they receive iteration targets.  The progress of a job is that
 * of its slowest worker; a job has failed as soon as one of its processes ends
 * by itself.
 *
 * The search owns its jobs, reads their members and calls these functions,
 * which never block.  One thread. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/search/spec.h"

struct pollfd;
struct search_config;

enum job_state {
    JOB_SERVERS, /* Servers, or peers, are starting. */
    JOB_WORKERS, /* Workers are starting. */
    JOB_RUNNING, /* Running until 'target'. */
    JOB_ENDING,  /* Requested to end. */
    JOB_GONE,    /* All processes have ended. */
};

struct job {
    const struct search_config *config;
    const struct search_spec *spec;     /* Of 'config'. */
    char name[32];              /* "t0". */
    struct search_trial trial;
    char *token;                /* Secret of its processes: net/token.h. */

    enum job_state state;
    bool failed;
    char *error;                /* Reason of a failed start, else NULL. */
    int64_t deadline_ms;        /* Time limit of the start, or time of the
                                 * next signal. */
    int signal;                 /* Last signal sent. */

    int n_servers, n_children;  /* Servers come first. */
    struct job_process *processes;
    int64_t target;             /* Iteration target. */

    /* Last report of rank 0. */
    int64_t iteration;
    double loss, accuracy;      /* NAN if unknown. */
    bool has_news;              /* Reports have arrived since the search
                                 * last checked. */
    int64_t bytes;              /* Bytes that all workers have sent and
                                 * received; known after a regular end. */
    double exchange_s;          /* Seconds that all workers have spent in
                                 * exchanges without computing, likewise. */
};

void job_init(struct job *, const struct search_config *, int index);
void job_uninit(struct job *);

void job_start(struct job *);

/* Sets the target.  A job that is starting trains when its workers are ready,
 * one that has reached its previous target continues. */
void job_run_until(struct job *, int64_t iterations);
void job_stop(struct job *);    /* Requests a regular end. */
void job_kill(struct job *, int grace_ms);      /* Ends by signals. */

/* Handles reports and ends of processes, and sends signals that are due.
 * Updates 'state', 'failed' and 'has_news'. */
void job_run(struct job *);

/* Returns true if all workers have reached the target. */
bool job_has_reached(const struct job *);

/* Stores the descriptors to poll, 'n_children' elements. */
void job_poll_fds(const struct job *, struct pollfd *);

#endif /* trainer/search/job.h */
