/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ROUTES_H
#define ROUTES_H 1

/* Finds the shortest paths through the switches, over the links that are up.
 *
 * Two leaves have as many shortest paths as there are spines.  A hash in each
 * switch distributes flows over them.
 *
 *    struct routes *r = routes_create(topology);
 *
 *    routes_set_up(r, link, false);              // The link is down.
 *    routes_next(r, leaf, other_leaf, &next);
 *    routes_destroy(r);
 *
 * The topology must outlive the routes.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/southbound/topology/topology.h"

#define ROUTES_MAX_NEXT 64      /* Links of a switch that share the traffic to
                                 * one switch. */

struct routes;

struct route_hop {
    int link;                   /* Index in the topology. */
    struct topology_port out;   /* Port that leads to 'link'. */
};

/* The hops of a switch that lead to another one on a shortest path, over which
 * it distributes traffic evenly. */
struct route_next {
    size_t n;
    struct route_hop hops[ROUTES_MAX_NEXT];
};

struct routes *routes_create(const struct topology *);
void routes_destroy(struct routes *);

/* Sets the state of a link, which is initially up.  Returns true if it has
 * changed. */
bool routes_set_up(struct routes *, size_t link, bool up);
size_t routes_n_down(const struct routes *);

/* Stores the hops of switch 'from' toward switch 'to'. */
void routes_next(const struct routes *, int from, int to, struct route_next *);

#endif /* controller/southbound/topology/routes.h */
