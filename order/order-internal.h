/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ORDER_INTERNAL_H
#define ORDER_INTERNAL_H 1

/* How the orders behind order_compute() fill in a result.
 *
 *
 * Motivation
 * ==========
 *
 * What differs from one order to the next is who goes before whom, and for
 * some, who shares a level.  Ranks, levels and estimates follow from that in
 * the same way for all of them.
 *
 *
 * Usage
 * =====
 *
 * An order by rank finds a permutation and leaves the rest to
 * order_result_ranked(); one that shares sets its levels by
 * order_result_shared().
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Part of the order, used by its own files only.  The result has room for the
 * problem's stages; its 'gained' is 0 and its limits are INFINITY. */

#include "order/one-port.h"
#include "order/order.h"

/* Takes 'order' as the result's. */
void order_result_set_order(struct order_result *, const int *order);

/* Sets the levels of a result that has its order, as the options say. */
void order_result_set_levels(const struct order_options *,
                             const struct order_problem *,
                             struct order_result *);

/* Estimates when each stage ends and the weighted sum of that, if each port
 * serves by ranks (ONE_PORT_RANK) or by levels, shared equally among the
 * stages of a level (ONE_PORT_SHARE). */
void order_result_estimate(const struct order_problem *, enum one_port_rule,
                           struct order_result *);

/* All of that for stages that go strictly by 'order'. */
void order_result_ranked(const struct order_options *,
                         const struct order_problem *, const int *order,
                         struct order_result *);

/* The same if the stages of a group share: 'group' of each rank is 0 for the
 * first and never falls.  Groups beyond the levels share the last one. */
void order_result_shared(const struct order_options *,
                         const struct order_problem *, const int *order,
                         const int *group, struct order_result *);

/* ORDER_STAGE, which others begin with. */
void order_compute_stage(const struct order_options *,
                         const struct order_problem *, struct order_result *);

#endif /* order/order-internal.h */
