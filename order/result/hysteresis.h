/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HYSTERESIS_H
#define HYSTERESIS_H 1

/* Prevents an order from alternating between stages that are about equal.
 *
 * 'old_rank' has the previous rank of each stage, or -1.  If the estimate of
 * the previous order, with new stages inserted as in 'order', is worse by at
 * most 'tolerance' (0.02: 2 %), it is kept.  Otherwise only significant swaps
 * are made: neighbors in 'order' that were in the opposite order before are
 * swapped back while the estimate gets worse by at most 'tolerance' in total.
 *
 * 'times' is NULL, or has how often each stage of the problem is to be served
 * in all: relative to one long transfer each order of short iterations costs
 * nearly the same, so iterations count as all that their jobs have left.
 *
 * Pure computation; uses the problem's scratch memory. */

#include <stdbool.h>

struct order_problem;

/* Returns true if 'order' may have changed. */
bool hysteresis_apply(const struct order_problem *, const double *times,
                      const int *old_rank, double tolerance, int *order);

/* Returns the weighted sum of the stages' completion times if they are served
 * in 'order': a stage ends when all ports have served it and the stages before
 * it, and not before its isolated time.  Stores the completion times in
 * 'completion' unless that is NULL. */
double hysteresis_estimate(const struct order_problem *, const int *order,
                           double *completion);

#endif /* order/result/hysteresis.h */
