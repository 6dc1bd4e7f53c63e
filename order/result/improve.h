/* SPDX-License-Identifier: Apache-2.0 */

#ifndef IMPROVE_H
#define IMPROVE_H 1

/* Improves an order by local search, within a budget.
 *
 * The primal-dual permutation regards one port at a time, from the last stage
 * to the first.  A rule such as "smallest bottleneck first" never compares two
 * stages.  Either is a few per cent from the best order.  The local search
 * takes the best of several start orders and moves stages within it, one at a
 * time, to the rank at which the weighted sum of completion times is smallest,
 * until no move helps or the budget is used up.  Its estimate is never worse
 * than the estimate of a start.
 *
 * A move is cheap: if a stage passes a neighbor, only the ends of these two
 * stages change, which takes one sweep of their ports.  Each stage tries the
 * IMPROVE_WINDOW ranks before and after its own.
 *
 *    struct improver improver;
 *    improver_init(&improver);
 *    improver_begin(&improver, op);
 *    improver_offer(&improver, an_order);        // One or more times.
 *    improver_run(&improver, moves, seconds);
 *    ...improver.order, improver.cost...
 *    improver_uninit(&improver);
 *
 * An improver owns its memory and reuses it for the next problem.  It refers
 * to the problem from improver_begin() to improver_run().  Unless the limit of
 * seconds ends the search, the result depends only on the input. */

#include <stddef.h>

struct order_problem;

#define IMPROVE_WINDOW 20

struct improver {
    const struct order_problem *op;
    int *order;                 /* Best order so far: stage at each rank. */
    double cost;                /* Weighted sum of the ends in 'order'.  A
                                 * stage ends when each of its ports has served
                                 * it and all stages before it, but not before
                                 * its isolated end.  INFINITY before the first
                                 * offer. */
    double *isolated;           /* Earliest end of each stage. */
    double *end;                /* End of each stage in 'order'. */
    double *load;               /* Load of each port, seconds. */
    size_t allocated_stages, allocated_ports;
};

void improver_init(struct improver *);
void improver_uninit(struct improver *);

void improver_begin(struct improver *, const struct order_problem *);
void improver_offer(struct improver *, const int *order);
long improver_run(struct improver *, long moves, double seconds);

#endif /* order/result/improve.h */
