/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ASCENT_H
#define ASCENT_H 1

/* Lower bound of the linear program over completion times, without a solver.
 *
 * Schedulers are compared with the linear program of permute.c.  The
 * primal-dual permutation reaches its value within 2 % to 20 %, depending on
 * releases.  Its dual can be climbed instead: split each stage's weight over
 * its ports and its isolated end.  Each port alone then has a simple optimum,
 * and the sum of these optima is a lower bound.  The best split reaches the
 * optimum of the program.
 *
 * The optimum of a port serves the released stages by weight per second, the
 * largest first.  A stage counts with the mean time at which it is served plus
 * half of its seconds (Goemans 1997).  Without releases that is Smith's rule.
 *
 * Multiplicative weights move the split to the ports on which a stage ends
 * late.  Every split is feasible, so the best value found is a bound after any
 * number of rounds.  A few hundred rounds come within 0.5 % of the optimum, a
 * few thousand within 0.25 %.
 *
 *    double bound = ascent_bound(op, 2000);
 *
 * Pure computation.  A round costs about a sort of each port's stages. */

struct order_problem;

/* Returns a lower bound on the weighted sum of completion times, the best of
 * 'rounds' (at least 1). */
double ascent_bound(const struct order_problem *, int rounds);

#endif /* order/primal-dual/ascent.h */
