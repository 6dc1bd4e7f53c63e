/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ROUTES_H
#define ROUTES_H 1

/* Which way traffic takes through the switches.
 *
 *
 * Motivation
 * ==========
 *
 * Between two leaves there are as many shortest paths as there are spines.
 * Flows that are spread over them by a hash share one by bad luck while
 * another is idle, which few large flows never make good.  So the large ones,
 * which the order knows, get a path each, the least loaded one, and the hash
 * is for the rest.  A path that works is kept: to move one reorders its
 * packets.
 *
 *
 * Usage
 * =====
 *
 *    struct routes *r = routes_create(topology);
 *
 *    routes_set_up(r, link, false);              // Once it is known.
 *    n = routes_next(r, leaf, other_leaf, ports, MAX);
 *    routes_place(r, demands, n_demands);        // The first matters most.
 *    paths = routes_paths(r, &n_paths);
 *    routes_destroy(r);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The topology must stay.  Paths live until the next call that takes a
 * non-const struct.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/southbound/topology/topology.h"

#define ROUTES_MAX_HOPS 8
#define ROUTES_MAX_PATHS 1024

struct routes;

/* What one host still has to send to another in one class. */
struct route_demand {
    int src, dst;               /* Hosts of the topology. */
    uint8_t dscp;
    double bits;
};

/* A way of its own. */
struct route_path {
    struct route_demand demand;
    size_t n_hops;
    struct {
        int link;
        struct topology_port out;       /* Where it leaves a switch. */
    } hops[ROUTES_MAX_HOPS];
};

struct routes *routes_create(const struct topology *);
void routes_destroy(struct routes *);

/* Links are up until something else is said.  Returns true if that changed
 * anything. */
bool routes_set_up(struct routes *, size_t link, bool up);
size_t routes_n_down(const struct routes *);

/* Stores the ports by which 'from' reaches 'to' on a shortest way, 'max' at
 * most, in 'ports' and returns how many there are. */
size_t routes_next(const struct routes *, int from, int to, uint32_t *ports,
                   size_t max);

void routes_place(struct routes *, const struct route_demand *, size_t n);
const struct route_path *routes_paths(const struct routes *, size_t *np);

#endif /* controller/southbound/topology/routes.h */
