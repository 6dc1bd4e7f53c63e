/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ROUTES_H
#define ROUTES_H 1

/* Chooses paths through the switches.
 *
 * Two leaves have as many shortest paths as there are spines.  A hash that
 * distributes flows may put two large flows on one path while another is idle.
 * So the large flows, which the order knows, get explicit paths with the least
 * load, and the hash distributes the rest.  A working path is kept even if
 * another one has become better, because moving a flow reorders its packets.
 *
 *    struct routes *r = routes_create(topology);
 *
 *    routes_set_up(r, link, false);              // The link is down.
 *    n = routes_next(r, leaf, other_leaf, ports, MAX);
 *    n_demands = routes_find_elephants(cluster, topology, policy, &demands);
 *    routes_place(r, demands, n_demands);        // By priority.
 *    paths = routes_paths(r, &n_paths);
 *    routes_destroy(r);
 *
 * The topology must outlive the routes.  Paths are valid until the next call
 * that takes a non-const struct.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/southbound/topology/topology.h"

#define ROUTES_MAX_HOPS 8
#define ROUTES_MAX_PATHS 1024
#define ROUTES_MAX_NEXT 64      /* Links of a switch that share the traffic to
                                 * one switch. */

/* Minimum traffic of an elephant, in seconds of the slower host's link. */
#define ELEPHANT_SECONDS 1.0

struct cluster;
struct policy;
struct routes;

/* Traffic of one DSCP value from one host to another. */
struct route_demand {
    int src, dst;               /* Indexes of hosts of the topology. */
    uint8_t dscp;
    double bits;                /* Remaining. */
};

struct route_hop {
    int link;                   /* Index in the topology. */
    struct topology_port out;   /* Port that leads to 'link'. */
};

/* The hops of a switch that lead to another one on a shortest path.  Traffic
 * without an explicit path is distributed over them evenly. */
struct route_next {
    size_t n;
    struct route_hop hops[ROUTES_MAX_NEXT];
};

/* An explicit path. */
struct route_path {
    struct route_demand demand;
    size_t n_hops;
    struct route_hop hops[ROUTES_MAX_HOPS];
};

struct routes *routes_create(const struct topology *);
void routes_destroy(struct routes *);

/* Sets the state of a link, which is initially up.  Returns true if it has
 * changed. */
bool routes_set_up(struct routes *, size_t link, bool up);
size_t routes_n_down(const struct routes *);

/* Stores the ports of 'from' that lead to 'to' on a shortest path, at most
 * 'max', in 'ports'.  Returns their number. */
size_t routes_next(const struct routes *, int from, int to, uint32_t *ports,
                   size_t max);

/* Stores the next hops of each switch toward switch 'to' in 'next', which has
 * an element for each switch. */
void routes_next_to(const struct routes *, int to, struct route_next *next);

void routes_place(struct routes *, const struct route_demand *, size_t n);
const struct route_path *routes_paths(const struct routes *, size_t *np);

/* Finds the host pairs with so much traffic that they need a path of their
 * own.  Stores them, by the rank of their jobs, in '*demandsp', which the
 * caller frees.  Returns their number.
 *
 * The bytes of a pair are those of iteration-traffic.h.  Jobs of one level
 * between the same hosts are added up, because a switch distinguishes traffic
 * by DSCP only. */
size_t routes_find_elephants(const struct cluster *, const struct topology *,
                             const struct policy *,
                             struct route_demand **demandsp);

#endif /* controller/southbound/topology/routes.h */
