/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SEARCH_JOB_H
#define SEARCH_JOB_H 1

/* One job of a search: a team, and what it reports.
 *
 * The progress of a job is that of its slowest worker; a job has failed as
 * soon as one of its processes ends by itself.
 *
 * The search owns its jobs, reads their members and calls these functions and
 * those of 'team', which never block.  One thread. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/search/launch.h"
#include "trainer/search/spec.h"
#include "trainer/search/team.h"

struct search_config;

struct job {
    const struct search_config *config;
    char name[32];              /* "t0". */
    struct search_trial trial;
    struct team *team;
    struct team_config team_config; /* Of the team, and what it has: */
    struct words of_servers, of_workers;
    const struct search_host **hosts;
    int n; /* Processes. */

    bool failed;
    char *error;                /* The reason, or NULL. */
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

/* The team keeps a pointer to the job, which must not move. */
void job_init(struct job *, const struct search_config *, int index);
void job_uninit(struct job *);

/* Sets the target.  A job that is starting trains when its workers are ready,
 * one that has reached its previous target continues. */
void job_run_until(struct job *, int64_t iterations);

/* Handles reports and ends of processes, and sends signals that are due.
 * Updates 'failed', 'error' and 'has_news'. */
void job_run(struct job *);

/* Returns true if all workers have reached the target. */
bool job_has_reached(const struct job *);

#endif /* trainer/search/job.h */
