/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FLUID_PRICES_H
#define FLUID_PRICES_H 1

/* A lower bound for any number of searches: ports have prices.
 *
 * Let a second of a port at time t cost price(t) >= 0, and each search end
 * where its weighted end and what its jobs pay are least together.  Each
 * schedule pays at least that for its searches, and at most the price of all
 * seconds of all ports.  So the least sum of all searches, less the price of
 * all ports, is a lower bound for all prices, and good prices are searched.
 *
 * Prices that never rise make that simple.  If a rung ends at E, the last
 * iteration of a job has moved all of its bytes by E, the one before it by E -
 * period, and so on.  So the job pays at least what the price is then, which
 * is at least the price from E - (iterations - 1) * period to E + period, and
 * the search finds the best end of each of its rungs, one after the other.
 * That holds for both forms.
 *
 * Prices that do not rise say that what a port has served until t takes at
 * most t, and not where it was idle before.  To know more of searches that
 * begin later, each group of searches has prices of its own from its begin on,
 * which the searches that began before it do not pay.
 *
 * Prices follow the subgradient, averaged, to a target a little above the best
 * value so far.
 *
 * A search may end early in one half of a mixture and late in the other, so
 * the bound is loose where searches exclude each other at different ports: it
 * is 0.85 to 0.92 of the optimum of the families "spread" and "one"
 * (tests/bench/search-families.h), and at one port all of it. */

#include <stdbool.h>

struct fluid;

/* Raises '*value' to a lower bound on the weighted sum of the times of
 * searches, but for rounding, and returns true.  Returns false if 'work'
 * multiplications are too few. */
bool prices_bound(const struct fluid *, double work, double *value);

#endif /* order/fluid/prices.h */
