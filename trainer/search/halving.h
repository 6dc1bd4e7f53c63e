/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HALVING_H
#define HALVING_H 1

/* Successive halving: which jobs continue, and when.
 *
 * All jobs run until the iterations of the first rung; the best of them
 * continue to the next rung, and so on.  In a synchronous search no job
 * continues before the last job of the stage has arrived: the network is
 * scheduled for this barrier.  An asynchronous one judges each trial when it
 * arrives, against those of its bracket that were there before it
 * (order/problem/trials.h), and is one stage.  A failed job leaves the
 * ranking, and the search continues without it.
 *
 *    halving_init(&h, rungs, n_rungs, &method, n_jobs);
 *    while (!halving_is_over(&h)) {
 *        ...asynchronous: as long as a place is free, halving_begin(&h)...
 *        ...let running jobs run to halving_target(&h, job);
 *           halving_reached(&h, job, loss) or halving_failed(&h, job)...
 *        if (halving_stage_is_over(&h)) {
 *            n = halving_end_stage(&h, ranking);
 *            ...h.jobs[j].state is HALVING_RUNNING if job j continues...
 *        }
 *    }
 *    halving_uninit(&h);
 *
 * No I/O and no time.  The rungs must outlive the object.  One thread. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/rungs.h"

struct trial_rung;

enum halving_state {
    HALVING_WAITING, /* A trial that has not begun. */
    HALVING_RUNNING, /* Running until the target. */
    HALVING_REACHED, /* At the target, waits for the end of the
                      * stage. */
    HALVING_STOPPED, /* Ranked too low to continue. */
    HALVING_DONE,    /* Kept by the last rung. */
    HALVING_FAILED,
};

struct halving_job {
    enum halving_state state;
    int rung;                   /* Of an asynchronous search, to which it is on
                                 * its way, or the last where it was. */
    double loss;                /* Loss when it last reached a target. */
};

struct halving {
    const struct search_rung *rungs;
    struct search_method method;
    int n_rungs, rung;          /* Number of rungs, and the current one;
                                 * equal at the end of the search. */
    int n_jobs;
    struct halving_job *jobs;
    struct trial_rung *judged; /* Of an asynchronous search: of each bracket
                                * all rungs. */
};

void halving_init(struct halving *, const struct search_rung *, int n_rungs,
                  const struct search_method *, int n_jobs);
void halving_uninit(struct halving *);

/* Lets the next trial run.  Returns it, -1 if all have begun. */
int halving_begin(struct halving *);

/* Returns the iteration at which the current stage of 'job' ends. */
int64_t halving_target(const struct halving *, int job);

/* Stores the current rung and those after it in 'rungs', which has space for
 * all, as the running jobs can do them, and returns their number. */
int halving_rungs(const struct halving *, struct search_rung *rungs);

void halving_reached(struct halving *, int job, double loss);
void halving_failed(struct halving *, int job);

/* Returns the number of jobs of 'bracket', or of all if that is -1, in
 * 'state'. */
int halving_count(const struct halving *, enum halving_state, int bracket);

bool halving_stage_is_over(const struct halving *);

/* Ends the stage.  Stores the jobs that have reached the target in 'ranking',
 * which has space for all jobs, best first, and returns their number.  NaN is
 * the worst loss.  Of an asynchronous search, those that went furthest are
 * first. */
int halving_end_stage(struct halving *, int ranking[]);

/* Returns true after the end of the last stage, or if no job remains. */
bool halving_is_over(const struct halving *);

#endif /* trainer/search/halving.h */
