/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PERMUTE_AWAKE_H
#define PERMUTE_AWAKE_H 1

/* Which stages the permutation has to look at.
 *
 *
 * Motivation
 * ==========
 *
 * The permutation places the large stages first, from the last rank on, and
 * charges all others on the port.  Most of those are far from being placed,
 * and what they are charged matters only when they come near.
 *
 * Let Y_p be the sum of all prices at port p so far.  A stage of weight w that
 * needs d_p seconds of each port and is not placed has
 *
 *     w - sum_p d_p Y_p
 *
 * of its weight left.  Take any a_p > 0, and Y so large that Y_p + price is at
 * most a_p Y on all ports.  A stage with Y sum_p d_p a_p < w has more left
 * than d_p times any of these prices, so it is not the cheapest on any port:
 * it sleeps.  As Y rises, stages wake up by falling sum_p d_p a_p / w, find
 * out what they have left from all Y_p at once, and join the lists of their
 * ports.  The closer a_p is to how Y_p will be, the longer they sleep; prices
 * add up where loads are large, and the square of a port's load at the start
 * was found to be near.
 *
 *
 * Usage
 * =====
 *
 *    awake_start(&a, op, &load);
 *    do {
 *        awake_list(&a, port, &list);
 *        ...look for the lowest price in 'list'...
 *    } while (awake_raise(&a, port, price));
 *    ...charge all in 'list'...
 *    a.prices[port] += price;
 *    a.left[stage] = INFINITY;       ...the one that is placed...
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The caller owns the struct, which keeps its memory between uses.  The
 * problem must not change in between. */

#include <stdbool.h>
#include <stddef.h>

#include "order/order.h"
#include "order/permute-kernel.h"
#include "order/radix.h"

/* What is read of a stage again and again, close together. */
struct awake_stage {
    const struct order_demand *demands;
    size_t n_demands;
    double weight;
};

struct awake {
    const struct order_problem *op;
    const struct permute_kernel *kernel;

    struct awake_stage *stages; /* All of them. */
    double *left;               /* Of each stage: share of its weight that it
                                 * has not paid, if it is awake; INFINITY once
                                 * it is placed.  One more is always placed,
                                 * to fill up lists. */
    double *prices;             /* Of each port: Y_p, weight per second. */
    double *scale;              /* Of each port: 1 / a_p, 1 or more, but for
                                 * ports without demand. */
    double highest;             /* Y: at least all 'prices' times 'scale', but
                                 * for those */
    double passed;              /* in awake_pass(). */
    struct radix_item *items, *spare;   /* For sorting. */
    const struct radix_item *sleepers;  /* The stages by falling
                                         * sum_p d_p a_p / w, see
                                         * permute-awake.c. */
    size_t n_woken;             /* So many of 'sleepers' are awake. */

    size_t *first, *end;        /* Of each port: awake stages in the next
                                 * three arrays. */
    int *stage;
    double *inverse, *share;    /* As in struct permute_list. */
    size_t allocated_stages, allocated_ports, allocated_demands;
};

struct port_load;

/* Zeroed memory is an initialized struct. */
void awake_uninit(struct awake *);
void awake_start(struct awake *, const struct order_problem *,
                 struct port_load *);

void awake_list(struct awake *, int port, struct permute_list *);
void awake_tidy(struct awake *, int port, struct permute_list *);
void awake_pass(struct awake *, int port);
bool awake_raise(struct awake *, int port, double price);
bool awake_wake_next(struct awake *);
double awake_left(const struct awake *, int stage);

#endif /* order/permute-awake.h */
