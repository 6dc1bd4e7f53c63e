/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STAGE_TRIALS_H
#define STAGE_TRIALS_H 1

/* Trials of a stage that judges them one by one, see order/problem/trials.h.
 *
 * Such a search, or one of its brackets, is one stage as long as it has
 * trials.  Each announcement has those that run now, so that trials come and
 * go and the stage stays.  The search judges; the controller follows by what
 * trials report, to know with which metrics others have been at a rung.
 *
 *    stage_trials_set(&stage->trials, iterations, n);  // Each announcement.
 *    ...stage_put_job(stage, job)...
 *    stage_trials_announced(stage);
 *    stage_trials_note(job, iteration);                // Each report.
 *    ...stage_target(stage, job)...
 *
 * A search may learn its rungs late.  Those that stay keep their metrics.  A
 * controller that restarts knows the metrics of trials that arrive later.
 *
 * Owns its rungs.  Main thread only. */

#include <stddef.h>
#include <stdint.h>

#include "order/problem/trials.h"

struct job;
struct stage;

struct stage_trials {
    double eta;      /* One in so many passes a rung; 0: all jobs of the stage
                      * are judged together, and the rest is unused. */
    int order;       /* The owner's choice, an enum order_trials, or -1 for the
                      * policy's. */
    int64_t to_come; /* Trials that have not begun. */
    int64_t known;   /* Those that had begun or were to come when the stage
                      * was first known, 0 before. */
    int64_t begun;   /* Those that had begun then. */
    struct trial_rung *rungs;
    size_t n; /* Of 'rungs', at least 1. */
};

void stage_trials_set(struct stage_trials *, const int64_t *iterations,
                      size_t n);
void stage_trials_uninit(struct stage_trials *);

/* Sets what the announcement of an asynchronous 'stage' has of its trials to
 * come, and what the search had hidden: trials that it did not announce at
 * first, see order/problem/announcement.h. */
void stage_trials_announced(struct stage *);

/* 'job' has reported its metric after 'iteration'.  Of several rungs that this
 * passes the last counts. */
void stage_trials_note(struct job *, int64_t iteration);

/* Returns the rung of an asynchronous stage to which 'job' is on its way. */
const struct trial_rung *stage_next_rung(const struct stage *,
                                         const struct job *);

/* Returns the iteration that 'job' must reach next. */
int64_t stage_target(const struct stage *, const struct job *);

/* Returns the iterations that 'job' is expected to do after this one. */
double stage_iterations_after(const struct stage *, const struct job *);

/* Returns the iterations, done or not, of all jobs that have begun in the
 * stage, as far as they are expected. */
double stage_iterations(const struct stage *);

/* Returns those that the trials of an asynchronous stage have done. */
double stage_trials_done(const struct stage *);

/* Returns those that are left of an asynchronous stage, with those of the
 * trials to come; 0 of another one. */
double stage_trials_left(const struct stage *);

/* Returns those of the trials to come. */
double stage_trials_later(const struct stage_trials *);

#endif /* controller/model/stage-trials.h */
