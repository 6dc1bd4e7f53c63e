/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ANNOUNCE_H
#define ANNOUNCE_H 1

/* What a search tells the world about its stages.
 *
 * A search runs the same with or without a controller, so it talks to this
 * table of functions and never waits for an answer.  The command line passes a
 * table that writes to the intent database; tests pass one that records;
 * NULL members are not called. */

#include <stddef.h>

/* One process of a job. */
struct announce_worker {
    const char *host;           /* As the cluster names it. */
    const char *role;           /* "worker" or "server". */
    int index;                  /* Among those of its role. */
};

struct announce_class {
    /* A search begins.  'weight' is 1 for an ordinary one. */
    void (*cojob_begin)(void *aux, const char *cojob, double weight);

    /* A job begins.  'model_bytes' is what one worker pushes, and pulls, in
     * one iteration: the prior of its demand until it is measured. */
    void (*job_begin)(void *aux, const char *cojob, const char *job,
                      const struct announce_worker *, size_t n,
                      long long model_bytes);

    /* The stage 'rung' begins: all of 'jobs' must reach 'iterations'. */
    void (*stage_begin)(void *aux, const char *cojob, int rung,
                        long long iterations,
                        const char *const *jobs, size_t n_jobs);
    void (*stage_end)(void *aux, const char *cojob, int rung);

    /* 'outcome' is "stopped" (by the search), "done" or "failed". */
    void (*job_end)(void *aux, const char *cojob, const char *job,
                    const char *outcome);
    void (*cojob_end)(void *aux, const char *cojob);
};

#endif /* wire/announce.h */
