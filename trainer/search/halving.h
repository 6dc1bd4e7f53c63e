/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HALVING_H
#define HALVING_H 1

/* Successive halving: who goes on, and when.
 *
 *
 * Motivation
 * ==========
 *
 * All jobs run to the first rung's iterations, the best 'keep' of them go on
 * to the next rung's, and so on.  Nobody goes on before the last job of the
 * stage is there: this barrier is what the network is scheduled for.  A job
 * that fails leaves the ranking; the search goes on without it.
 *
 *
 * Usage
 * =====
 *
 *    halving_init(&h, rungs, n_rungs, n_jobs);
 *    while (!halving_is_over(&h)) {
 *        ...let all jobs run to halving_target(&h);
 *           halving_reached(&h, job, loss) or halving_failed(&h, job)...
 *        if (halving_stage_is_over(&h)) {
 *            n = halving_end_stage(&h, ranking);
 *            ...h.jobs[j].state is HALVING_RUNNING for those who go on...
 *        }
 *    }
 *    halving_uninit(&h);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No input or output, no time.  The rungs must outlive it.  One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct search_rung;

enum halving_state {
    HALVING_RUNNING,            /* On the way to the target. */
    HALVING_REACHED,            /* There, waits for the stage's end. */
    HALVING_STOPPED,            /* Judged, does not go on. */
    HALVING_DONE,               /* Kept by the last rung. */
    HALVING_FAILED,
};

struct halving_job {
    enum halving_state state;
    double loss;                /* When it last reached a target. */
};

struct halving {
    const struct search_rung *rungs;
    int n_rungs, rung;          /* 'rung' is 'n_rungs' when all is over. */
    int n_jobs;
    struct halving_job *jobs;
};

void halving_init(struct halving *, const struct search_rung *, int n_rungs,
                  int n_jobs);
void halving_uninit(struct halving *);

int64_t halving_target(const struct halving *);
void halving_reached(struct halving *, int job, double loss);
void halving_failed(struct halving *, int job);

bool halving_stage_is_over(const struct halving *);

/* Judges those who have reached the target.  Stores them in 'ranking', which
 * has room for all jobs, best first, and returns how many they are.  A loss
 * that is not a number is the worst. */
int halving_end_stage(struct halving *, int ranking[]);

/* True after the last stage's end, or when no job is left. */
bool halving_is_over(const struct halving *);

#endif /* trainer/search/halving.h */
