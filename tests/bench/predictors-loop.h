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
    double seconds;             /* Mean seconds of an iteration. */
    double ideal;               /* The same with speeds known beforehand. */
    double manager_s;           /* Mean seconds of the manager per
                                 * iteration. */
    double moved;               /* Part of the iterations with new sizes. */
};

/* 'predictor' is a predictor's name, or NULL for a constant equal split. */
void loop_run(const char *predictor, uint64_t seed, int n_iterations,
              struct loop_result *);

#endif /* tests/bench/predictors-loop.h */
