/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LINK_PORTS_H
#define LINK_PORTS_H 1

/* The links of a topology as ports of the order.
 *
 * The order divides the capacity of links between switches as it does with
 * hosts' uplinks, if it knows which traffic they carry.  Both directions of
 * each link with a capacity are ports.  Traffic between two leaves, which are
 * switches with hosts, uses all shortest paths: each switch on the way
 * distributes it evenly over the links that lead closer.  Explicit paths
 * (routes.h) are not regarded, because they are chosen to balance the same
 * links.
 *
 * Links that always carry equal shares of the same traffic for equal times,
 * and that begin or end at the same switch, such as the uplinks of a leaf, are
 * one port.  The demand of a stage on each of them is the same, so that more
 * ports would only count its work several times.
 *
 *    fabric = link_ports_create(topology, routes);
 *    cluster_set_fabric(cluster, fabric);
 *
 * A port has the name "FROM>TO".  FROM and TO are names of switches: of one,
 * of two "A+B", of more "A+B+N", N others. */

struct fabric;
struct routes;
struct topology;

/* Returns the ports, which the caller owns, by the present routes. */
struct fabric *link_ports_create(const struct topology *,
                                 const struct routes *);

#endif /* controller/southbound/topology/link-ports.h */
