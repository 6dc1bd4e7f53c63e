/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RESULTS_H
#define RESULTS_H 1

/* Metrics of a simulation.
 *
 * An order with the best mean may let one stage starve, or finish stages early
 * that are of little use.  The results therefore have the completion times of
 * stages, cojobs and jobs, the time to a useful accuracy, the fairness, and
 * the largest loss of a stage compared with the plain network.
 *
 *    struct results results;
 *    simulate(workload, &options, &result);
 *    results_compute(workload, &result, plain, &results);
 *    ...results.jct.p95...
 *
 * Plain numbers; the inputs are only read. */

#include <stddef.h>

struct sim_result;
struct workload;

/* Statistics of 'n' times in seconds; NAN for 'n' 0.  Percentiles are nearest
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
    struct results_times early; /* Jobs, from their begin until they reach 0.9
                                 * of their last metric; only those that do. */

    /* Time from the arrival of a search until a trial is within 1 % of the
     * search's best metric at last, of those with metrics, and seconds for
     * which trials hold their devices: in all, and until then. */
    struct results_times target;
    double device_s, device_s_to_target;

    /* Slowdown: completion time of a stage divided by its isolated time; NAN
     * if no isolated time is known. */
    double jain;                /* Jain's fairness index of the slowdowns,
                                 * 1 / n to 1. */
    double rho_max;             /* Largest slowdown. */

    double worst; /* Largest ratio of a stage's completion time
                   * to that in the plain network; NAN if
                   * unknown. */
};

/* 'plain' is the result of the same workload in the plain network, or NULL. */
void results_compute(const struct workload *, const struct sim_result *,
                     const struct sim_result *plain, struct results *);

#endif /* sim/run/results.h */
