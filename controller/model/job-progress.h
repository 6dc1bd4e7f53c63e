/* SPDX-License-Identifier: Apache-2.0 */

#ifndef JOB_PROGRESS_H
#define JOB_PROGRESS_H 1

/* How fast a job goes, and how it learns.
 *
 *
 * Motivation
 * ==========
 *
 * An order that looks at more than bytes needs two things of a job that only
 * its reports tell: the seconds from iteration to iteration when nobody is in
 * its way, and how its metric grows.
 *
 * Nobody ever sees a job alone.  The shortest time that an iteration has taken
 * is the best that is known: it may be too long, by what others held it up
 * even then, so it is no bound on anything.  Of a job that has always waited
 * it is far too long, which is told apart: what was measured while nobody went
 * before the job is what foresees its end.
 *
 * A metric is a loss, of which less is better, if its name has "loss", "error"
 * or "perplexity" in it; of all others more is better.
 *
 *
 * Usage
 * =====
 *
 *    job_progress_init(&p, began);
 *    job_progress_wait(&p, ...somebody goes before it...);
 *    job_progress_pace(&p, iteration, time_msec());
 *    job_progress_sample(&p, &last, "loss", iteration, 0.41, now);
 *    ...p.period...
 *    job_progress_score(&p, policy, iteration, now, &traits);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Owns the metric's name.  Main thread only.  Times are those of
 * time_msec(): what is measured must not change when somebody sets the
 * clock. */

#include <stdbool.h>
#include <stdint.h>

#include "order/problem/progress-curve.h"

struct order_traits;
struct policy;

struct job_progress {
    double period;              /* Seconds from iteration to iteration, the
                                 * shortest measured; 0 if not known. */
    double first_period;        /* The same while nobody went before it. */
    bool waits;                 /* Somebody does now, ... */
    bool waited;                /* ... or did in the running measurement. */
    int64_t told;               /* The last iteration, -1 if none was. */
    int64_t mark_iteration;     /* Where the running measurement began, -1 if
                                 * none runs, */
    int64_t mark_at;            /* and when that was, 0 if the iteration may
                                 * have been told long after its end. */

    char *metric;               /* That the curve is of, NULL before the first
                                 * sample. */
    double value;               /* Of the last sample. */
    struct progress_curve curve;
};

void job_progress_init(struct job_progress *, int64_t began);
void job_progress_uninit(struct job_progress *);

void job_progress_pause(struct job_progress *);
void job_progress_wait(struct job_progress *, bool waits);
void job_progress_pace(struct job_progress *, int64_t iteration, int64_t now);
bool job_progress_sample(struct job_progress *, int64_t *last,
                         const char *metric, int64_t iteration, double value,
                         int64_t now);
void job_progress_score(struct job_progress *, const struct policy *,
                        int64_t iteration, int64_t now,
                        struct order_traits *);

#endif /* controller/model/job-progress.h */
