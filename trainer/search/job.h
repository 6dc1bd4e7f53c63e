/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SEARCH_JOB_H
#define SEARCH_JOB_H 1

/* One job of a search: its processes, and how far they are.
 *
 *
 * Motivation
 * ==========
 *
 * A job's servers start first, since its workers need their ports; its workers
 * connect, get their first weights and wait.  From then on they are told how
 * far to go.  A job is as far as the last of its workers, and has failed as
 * soon as one of its processes ends without being told to.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The search owns its jobs, reads their members and calls these functions;
 * nothing here waits.  One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/search/spec.h"

struct child;
struct pollfd;
struct search_hosts;

enum job_state {
    JOB_SERVERS,                /* Its servers start. */
    JOB_WORKERS,                /* Its workers start. */
    JOB_READY,                  /* All workers wait. */
    JOB_RUNNING,                /* On the way to 'target'. */
    JOB_ENDING,                 /* Told to end. */
    JOB_GONE,                   /* No process is left. */
};

/* How processes are started; the same for all jobs. */
struct job_programs {
    const char *trainer;        /* Path of stagecoach-trainer. */
    const char *wrapper;        /* Path of stagecoach, whose "run" starts the
                                 * trainer; NULL to start it directly. */
};

struct job {
    const struct search_spec *spec;
    const struct search_hosts *hosts;
    const struct job_programs *programs;
    char name[32];              /* "t0". */
    struct search_trial trial;

    enum job_state state;
    bool failed;
    char *error;                /* Why, if it failed to start. */
    int64_t deadline_ms;        /* Of starting, or of the next signal. */
    int signal;                 /* Sent last. */

    int n_servers, n_children;  /* Servers come first. */
    struct job_process *processes;
    int64_t target;             /* Iterations. */

    /* As rank 0 says. */
    int64_t iteration;
    double loss, accuracy;      /* NAN if not known. */
    bool has_news;              /* Since the search looked last. */
    int64_t bytes;              /* That all workers sent and received, known
                                 * when they have ended in good order. */
};

void job_init(struct job *, const struct search_spec *,
              const struct search_hosts *, const struct job_programs *,
              int index);
void job_uninit(struct job *);

void job_start(struct job *);
void job_run_until(struct job *, int64_t iterations);
void job_stop(struct job *);                    /* In good order. */
void job_kill(struct job *, int grace_ms);      /* By signals. */

/* Takes what the processes say and do; sends signals that are due.  Afterwards
 * 'state', 'failed' and 'has_news' say what has changed. */
void job_run(struct job *);

/* True if all workers have reached the target. */
bool job_has_reached(const struct job *);

/* Fills in what to poll for, job_n_fds() elements. */
int job_n_fds(const struct job *);
void job_poll_fds(const struct job *, struct pollfd *);

int64_t job_monotonic_ms(void);

#endif /* trainer/search/job.h */
