/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RESULTS_H
#define RESULTS_H 1

/* What a simulation says about an order, from more than one side.
 *
 *
 * Motivation
 * ==========
 *
 * An order that has the best mean may still let one stage starve, or finish
 * stages early whose jobs say little.  So beside the completion times of
 * stages stand those of cojobs and jobs, the time to a useful accuracy, how
 * evenly the network was shared and who lost most against fair sharing.
 *
 *
 * Usage
 * =====
 *
 *    struct results results;
 *    simulate(workload, &options, &result);
 *    results_compute(workload, &result, fair, &results);
 *    ...results.jct.p95...
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain numbers, computed from what is only read. */

#include <stddef.h>

struct sim_result;
struct workload;

/* Of 'n' times in seconds, all NAN if there are none.  Percentiles are nearest
 * ranks. */
struct results_times {
    size_t n;
    double mean, p50, p95, p99, max;
};

struct results {
    struct results_times sct;   /* Stages, from begin to end. */
    struct results_times cct;   /* Cojobs, from arrival to the last stage's
                                 * end; of a trace: coflows. */
    struct results_times jct;   /* Jobs, from the first to the last rung. */
    struct results_times early; /* Jobs that got there, from their begin to
                                 * 0.9 of their last metric. */

    /* Of rho, a stage's completion time over what it takes alone; NAN if no
     * stage's time alone is known. */
    double jain;                /* Jain's index, 1 / n to 1: all alike. */
    double rho_max;

    double worst;               /* The most that a stage's completion time is
                                 * of that under fair sharing; NAN if that is
                                 * not known. */
};

/* 'fair' is the result of the same workload under fair sharing, or NULL. */
void results_compute(const struct workload *, const struct sim_result *,
                     const struct sim_result *fair, struct results *);

#endif /* sim/run/results.h */
