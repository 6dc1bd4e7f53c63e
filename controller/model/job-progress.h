/* SPDX-License-Identifier: Apache-2.0 */

#ifndef JOB_PROGRESS_H
#define JOB_PROGRESS_H 1

/* Pace of a job, and growth of its metric.
 *
 * Some orders need two things that only progress reports contain: the time per
 * iteration without competitors, and how the job's metric grows.
 *
 * A job is hardly ever observed without competitors.  The shortest measured
 * period is the best estimate; it may be too long, because others delayed the
 * job even then, so it proves no bound.  For a job that has always waited it
 * is far too long.  'first_period' is therefore measured separately, only
 * while no other job had priority: it predicts when the job ends.
 *
 * A metric is a loss, for which less is better, if its name contains "loss",
 * "error" or "perplexity".  For all others, more is better.
 *
 *    job_progress_init(&p, began);
 *    job_progress_wait(&p, waits);
 *    job_progress_pace(&p, iteration, time_msec());
 *    job_progress_sample(&p, &last, "loss", iteration, 0.41, now);
 *    ...p.period...
 *    job_progress_score(&p, policy, iteration, left, later, now, &traits);
 *
 * Owns the metric's name.  Main thread only.  All times are time_msec(): a
 * change of the wall clock must not change a measurement. */

#include <stdbool.h>
#include <stdint.h>

#include "order/problem/progress-curve.h"

struct order_traits;
struct policy;

struct job_progress {
    double period;              /* Shortest measured seconds per iteration; 0
                                 * if unknown. */
    double first_period;        /* Shortest period measured while no other job
                                 * had priority; 0 if unknown. */
    bool waits;                 /* Another job has priority now. */
    bool waited;                /* Another job had priority during the running
                                 * measurement. */
    int64_t last;               /* Last iteration, -1 if none. */
    int64_t mark_iteration;     /* Iteration at the start of the running
                                 * measurement, -1 if none runs. */
    int64_t mark_at;            /* time_msec() at its start; 0 if the iteration
                                 * may have ended long before its report. */

    char *metric;               /* Name, NULL before the first sample. */
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
                        int64_t iteration, int64_t left, double later,
                        int64_t now, struct order_traits *);

#endif /* controller/model/job-progress.h */
