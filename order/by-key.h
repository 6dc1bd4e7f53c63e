/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BY_KEY_H
#define BY_KEY_H 1

/* Orders that look at each stage on its own.
 *
 *
 * Motivation
 * ==========
 *
 * Most of the published orders sort by a few numbers of each stage: when it
 * came, how much it has left.  They differ in the numbers only.
 *
 *
 * Usage
 * =====
 *
 *    static struct order_key
 *    key(const struct order_stage *stage, const struct order_options *options)
 *    {
 *        return (struct order_key) { { order_stage_arrived(stage) } };
 *    }
 *
 *    sort_by_key(op, options, key, order);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The caller's array is filled.  Nothing is kept. */

#include "order/order.h"

/* The smallest first: by the first number, then by the next ones, then by id.
 * What is not a number goes last. */
struct order_key {
    double by[4];
};

typedef struct order_key order_key_func(const struct order_stage *,
                                        const struct order_options *);

/* Fills 'order' (n_stages elements) with the stages by their keys. */
void sort_by_key(const struct order_problem *, const struct order_options *,
                 order_key_func *, int *order);

/* When the stage came, in seconds from the problem's time 0: < 0 for one that
 * waits already. */
double order_stage_arrived(const struct order_stage *);

/* True if the stage has sent 'bytes', but for rounding: who waits for that
 * moment must find it there. */
bool order_has_sent(const struct order_stage *, double bytes);

/* Seconds that the stage needs of the port of which it needs most. */
double order_stage_bottleneck(const struct order_stage *);

#endif /* order/by-key.h */
