/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DECIDE_OVERRIDE_H
#define DECIDE_OVERRIDE_H 1

/* Applies overrides (overrides.h) to an order.
 *
 * Pinned entries are first, idle ones (inactive.h) behind all others, then
 * paused ones, and excluded ones after these, so that no other rank depends on
 * them.  Inside each class the order does not
 * change.  Pure computation. */

#include <stdbool.h>
#include <stddef.h>

#include "controller/model/overrides.h"

struct cluster;
struct decide_job;
struct decide_problem;
struct job_assignment;
struct order_result;
struct policy;

/* Returns the class of a job: smaller ones are first, 0 is no override. */
int decide_override_class(const struct decide_job *);

/* Sorts 'r->order' by class.  Returns true if that changed it; then the other
 * members of 'r' still belong to the previous order. */
bool decide_override_order(const struct decide_problem *,
                           struct order_result *r);

/* Sets the levels of 'n' sorted jobs that have an override. */
void decide_override_levels(const struct policy *, struct job_assignment *,
                            size_t n);

/* Returns true if a live job is pinned. */
bool decide_override_pins(const struct cluster *);

#endif /* controller/decide/decide-override.h */
