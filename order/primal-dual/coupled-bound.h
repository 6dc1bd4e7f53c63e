/* SPDX-License-Identifier: Apache-2.0 */

#ifndef COUPLED_BOUND_H
#define COUPLED_BOUND_H 1

/* Lower bound that couples the ports: all of them see one order of ends.
 *
 * The other lower bounds solve each port alone, so each port may serve the
 * stages in an order of its own.  A real schedule ends the stages in one
 * order.  This bound charges each pair of stages for one of its two orders,
 * the same on all ports.
 *
 * Take any schedule and number the stages by the times C at which they end,
 * ties by index.  Let before(t, s) be 1 if t has the smaller number, else 0.
 * At C_s, each port p has served s and all t with before(t, s) = 1.  It began
 * none of those that are released at r or later before r, so for all p and all
 * r up to the release of s
 *
 *     C_s >= r + seconds(p, s)
 *              + sum of seconds(p, t) before(t, s) over t released from r on.
 *
 * Also, C_s is at least the isolated end of s.  Split the weight of s over
 * these inequalities, and add them up.  Let cost(s, t) be the coefficient of
 * before(t, s) in the sum.  Exactly one of before(t, s) and before(s, t) is 1,
 * so each pair adds at least the smaller of cost(s, t) and cost(t, s) to the
 * constants.  Each split therefore gives a lower bound.
 *
 * Before the minimum is taken, cost(s, t) is summed over the ports; without
 * releases a split is therefore worth at least as much as in ascent.h.  The
 * value is concave in the split.  Multiplicative weights move the split of a
 * stage to the inequalities that say that it ends late, for the average of the
 * orders of the rounds so far, in which old rounds fade (Barahona and Anbil
 * 2000).  The best split reaches the linear ordering relaxation (Potts 1980)
 * without the inequalities that exclude cycles.  These would raise the bound
 * by at most 0.3 %, by a simplex method on 6 to 24 stages.  Published orders
 * based on such programs guarantee 3.415 times the optimum without releases
 * and 4.36 times with them (arXiv 2502.21197); this module only certifies.
 *
 *    double bound = coupled_bound(op, ORDER_COUPLED_WORK);
 *
 * Uses the memory of the problem, which it does not change otherwise.  A round
 * needs two multiplications for each stage, each of its ports, and each stage.
 * Releases need an exponential as well, if all of them differ. */

struct order_problem;

/* Returns a lower bound on the weighted sum of completion times, the best of
 * at most 100 rounds, as many as need about 'work' multiplications.
 * Returns 0 if these are fewer than 10 rounds, or if the problem has fewer
 * than 2 stages or more than 64. */
double coupled_bound(const struct order_problem *, double work);

#endif /* order/primal-dual/coupled-bound.h */
