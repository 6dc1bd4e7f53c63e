/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DECIDE_OVERRIDE_H
#define DECIDE_OVERRIDE_H 1

/* What overrides change of an order.
 *
 * What is pinned goes first, what is paused goes last, and what is excluded
 * after that, where it is served: nobody's place depends on it.  Inside of
 * these the order stays.  Pure computation on what decide.h has made; see
 * overrides.h for what the words mean. */

#include <stdbool.h>
#include <stddef.h>

#include "controller/model/overrides.h"

struct cluster;
struct decide_place;
struct decide_problem;
struct order_result;
struct policy;

/* The smaller goes first; what nobody overrides has 0. */
int decide_override_class(enum override_kind);

/* Sorts 'r->order' by the classes of its entries.  Returns true if that
 * changed it, in which case all else in 'r' is of the old order. */
bool decide_override_order(const struct decide_problem *,
                           struct order_result *r);

/* Corrects the levels of the 'n' sorted 'places'. */
void decide_override_levels(const struct policy *, struct decide_place *places,
                            size_t n);

/* True if some live job is pinned. */
bool decide_override_pins(const struct cluster *);

#endif /* controller/decide/decide-override.h */
