/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HYSTERESIS_H
#define HYSTERESIS_H 1

/* Keeps an order from flapping between stages that are about equal.
 *
 * 'old_rank' has the rank of each stage in the order before, or -1 for a stage
 * that was not in it.  If the old order, with new stages where 'order' has
 * them, has an estimate that is worse by no more than 'tolerance' (0.02: 2 %),
 * it stays.  Otherwise only the swaps that matter are made: two neighbours in
 * 'order' that were the other way round are put back as long as the estimate
 * does not become worse by more than 'tolerance' in all.  Pure computation; no
 * state. */

#include <stdbool.h>

struct order_problem;

bool hysteresis_apply(const struct order_problem *, const int *old_rank,
                      double tolerance, int *order);
double hysteresis_estimate(const struct order_problem *, const int *order,
                           double *completion);

#endif /* controller/decide/hysteresis.h */
