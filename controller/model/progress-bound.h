/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PROGRESS_BOUND_H
#define PROGRESS_BOUND_H 1

/* Decides whether a job can have done the iterations that it reports.
 *
 * A stage needs nothing more when its jobs have reached its iterations, so one
 * report of 10^9 iterations would end it in the order.  A job reports for
 * itself, but a report may be wrong, and the host that passes it on may be in
 * other hands.  Iterations move bytes, and other hosts count the bytes: those
 * that the reporting host has counted itself prove nothing.
 *
 * After its first report, a job can have done as many more iterations as the
 * traffic of other hosts since then can have carried, PROGRESS_BOUND_FACTOR
 * times over: the
 * bytes of an iteration are an average, and iterations differ.  While the
 * bytes of an iteration are unknown, it has at least PROGRESS_BOUND_BYTES: two
 * small packets with their acknowledgements.  Beyond that a job has a credit.
 * It covers reports that arrive before the bytes, and iterations without
 * traffic:
 *
 *    traffic of other hosts     credit                     grows by, a second
 *    seen                       PROGRESS_BOUND_SEEN        a tenth of that
 *    not seen (one host; RDMA;  PROGRESS_BOUND_UNSEEN      all of that
 *    peers without an agent)
 *
 * Reports that a host repeats after it was disconnected may be far ahead of
 * the bytes that were counted: then the job has as many more iterations as it
 * does at twice its pace, progress_bound_gap().
 *
 * A job that goes on from another one's checkpoint jumps.  The jump does not
 * count, and the steps after it do, from where the job was: the report that
 * was refused is the new place to count from (demand_progress()).
 *
 * A first report may be of a resumed job, and a controller that has started
 * later sees old jobs.  It may have any number up to the iterations of its
 * stage, and more by the same rule since the job began.
 *
 *    progress_bound_init(&b, began);
 *    if (progress_bound_admits(&b, iteration, &facts, time_msec())) {
 *        ...the report counts...
 *    }
 *
 * Plain data.  Main thread only. */

#include <stdbool.h>
#include <stdint.h>

#define PROGRESS_BOUND_FACTOR 4
#define PROGRESS_BOUND_BYTES 256
#define PROGRESS_BOUND_SEEN 100
#define PROGRESS_BOUND_UNSEEN 1000

struct progress_bound {
    int64_t iteration;          /* Largest one admitted, -1 before the
                                 * first. */
    double credit;              /* Iterations, at least 0. */
    int64_t at;                 /* time_msec() of the last check. */
    uint64_t n_refused;         /* Reports. */
    int64_t refused;            /* Iteration of the last refused report, -1
                                 * before the first. */
    int64_t refused_at;         /* time_msec() when it was refused. */
};

struct progress_bound_facts {
    int64_t target;             /* Iterations of the job's stage, -1 without a
                                 * stage: then a first report may have any
                                 * number. */
    bool seen;                  /* Other hosts, with an agent now, have moved
                                 * bytes of the job. */
    double bytes;               /* That they have moved since 'iteration' of
                                 * the bound, in all before the first. */
    double per_iteration;       /* Theirs in an iteration, 0 if unknown. */
};

void progress_bound_init(struct progress_bound *, int64_t began);
bool progress_bound_admits(struct progress_bound *, int64_t iteration,
                           const struct progress_bound_facts *, int64_t now);

/* Some of the traffic since the last report may not have been counted.
 * 'period' is the shortest time of an iteration in seconds, 0 if unknown. */
void progress_bound_gap(struct progress_bound *, double period, int64_t now);

#endif /* controller/model/progress-bound.h */
