/* SPDX-License-Identifier: Apache-2.0 */

#ifndef IMPROVE_H
#define IMPROVE_H 1

/* A better order from a good one, within a budget.
 *
 *
 * Motivation
 * ==========
 *
 * The primal-dual permutation looks at one port at a time, from the last stage
 * to the first, and never back; a rule such as "smallest bottleneck first"
 * never looks at two stages together.  Either is a few per cent from the best
 * order.  So the best of several starts is taken and stages are moved within
 * it, one at a time, to where the sum of weighted completion times falls most,
 * until no move helps or the budget is used up.  What comes out is never worse
 * than any of the starts, as estimated.
 *
 * A move is cheap because a stage that passes its neighbours one by one
 * changes the end of one of them and its own at each step: one sweep of the
 * ports of those two.  A stage looks at the IMPROVE_WINDOW places before and
 * behind it.
 *
 *
 * Usage
 * =====
 *
 *    struct improver improver;
 *    improver_init(&improver);
 *    improver_begin(&improver, op);
 *    improver_offer(&improver, an_order);        // One or more times.
 *    improver_run(&improver, moves, seconds);
 *    ...improver.order, improver.cost...
 *    improver_uninit(&improver);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * An improver owns its memory and uses it again for the next problem; it keeps
 * a reference to the problem from begin to run.  Without a limit on the
 * seconds, what it finds depends only on its input. */

#include <stddef.h>

struct order_problem;

#define IMPROVE_WINDOW 20

struct improver {
    const struct order_problem *op;
    int *order;                 /* The best so far: stage at each rank. */
    double cost;                /* Weighted sum of ends in that order: a stage
                                 * ends when the last of its ports has served
                                 * it and all before it, and not before it
                                 * would alone.  INFINITY without an offer. */
    double *alone;              /* Of each stage: its earliest end. */
    double *end;                /* Of each stage, in 'order'. */
    double *load;               /* Of each port: seconds of those before. */
    size_t allocated_stages, allocated_ports;
};

void improver_init(struct improver *);
void improver_uninit(struct improver *);

void improver_begin(struct improver *, const struct order_problem *);
void improver_offer(struct improver *, const int *order);
long improver_run(struct improver *, long moves, double seconds);

#endif /* order/improve.h */
