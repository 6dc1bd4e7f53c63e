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
 * Pure computation; no state. */

#include <stdbool.h>

struct order_problem;

bool hysteresis_apply(const struct order_problem *, const int *old_rank,
                      double tolerance, int *order);
double hysteresis_estimate(const struct order_problem *, const int *order,
                           double *completion);

#endif /* controller/decide/hysteresis.h */
