/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_GROWTH_H
#define SIM_GROWTH_H 1

/* Rates of one unit, of what others leave.
 *
 *
 * Motivation
 * ==========
 *
 * A unit is done when the last of its flows is, so what it gets should let all
 * of them end together: its flows grow in proportion to what they have left
 * until one of their ports is full.  Those on that port stay at that, the
 * others grow on, until every flow has a full port.
 *
 *
 * Usage
 * =====
 *
 *    growth_init(&g, &paths);
 *    for (...each port of the unit...) {
 *        growth_set_left(&g, port, left);
 *    }
 *    growth_run(&g, member, now);
 *    ...member->moving, and growth_left(&g, port) for the next...
 *    growth_uninit(&g);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Part of rates-fill.c.  Memory is kept from run to run. */

#include <stddef.h>

#include "sim/rates/member.h"
#include "sim/fabric/paths.h"

struct grower;

struct hop {
    double left;                /* Bytes per second nobody has been given. */
    double load;                /* Bytes of the growers on it, */
    double exact;               /* and when they were last added up. */
    size_t first;               /* Of them, see growth.c. */
};

struct growth {
    const struct paths *paths;
    const double *capacity;
    struct hop *hops;           /* Of each port. */
    size_t n_growers, allocated_growers;
    struct grower *growers;
    int *used;                  /* Ports of growers. */
    int n_used;
};

void growth_init(struct growth *, const struct paths *);
void growth_uninit(struct growth *);

static inline void
growth_set_left(struct growth *g, int port, double left)
{
    g->hops[port].left = left;
}

static inline double
growth_left(const struct growth *g, int port)
{
    return g->hops[port].left;
}

void growth_run(struct growth *, struct member *, double now);

#endif /* sim/rates/growth.h */
