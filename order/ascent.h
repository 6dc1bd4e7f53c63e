/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ASCENT_H
#define ASCENT_H 1

/* The bound of the linear program, without a solver for linear programs.
 *
 *
 * Motivation
 * ==========
 *
 * The program over completion times (permute.c) is what schedulers are
 * compared with, and the primal-dual reaches it within two per cent or
 * twenty, depending on releases.  Its dual can be climbed instead: split each
 * stage's weight over its ports, and over its own earliest end, in any way;
 * every port alone then has an easy optimum, and the sum of these is a lower
 * bound.  The best split gives the optimum of the program.
 *
 * On one port the optimum serves what has been released by weight per second,
 * the largest first, and counts a stage with the mean of the times at which it
 * is served plus half of its seconds (Goemans 1997).  Without releases that is
 * Smith's rule.
 *
 * The split moves, by multiplicative weights, to where a stage ends late
 * against its other ports.  Every split is feasible, so the best value met is
 * a bound whenever one stops; a few hundred rounds come within half a per cent
 * of the optimum, a few thousand within a quarter of one.
 *
 *
 * Usage
 * =====
 *
 *    double bound = ascent_bound(op, 2000);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Pure computation; a round costs about a sort of each port's stages. */

struct order_problem;

/* Returns a lower bound on the weighted sum of the completion times of any
 * schedule of 'op', the best of 'rounds' (at least 1). */
double ascent_bound(const struct order_problem *, int rounds);

#endif /* order/ascent.h */
