/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PREDICTORS_LOOP_H
#define PREDICTORS_LOOP_H 1

/* An emulated cluster with batches balanced by the batch-size manager, to
 * measure the effect of a predictor on the time of an iteration.
 *
 * Eight workers have the speeds 8:8:8:8:8:8:16:4.  Other programs use half of
 * the machines in steps, two machines have spikes, and the speed of two
 * drifts. */

#include <stdint.h>

struct loop_result {
    double seconds;             /* Of an iteration, mean. */
    double ideal;               /* If speeds were known beforehand. */
    double manager_s;           /* What the manager took of each, mean. */
    double moved;               /* Part of the iterations with new sizes. */
};

/* 'predictor' is a predictor's name, or NULL for an equal split that stays as
 * it is. */
void loop_run(const char *predictor, uint64_t seed, int n_iterations,
              struct loop_result *);

#endif /* tests/bench/predictors-loop.h */
