/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ELEPHANTS_H
#define ELEPHANTS_H 1

/* Finds the host pairs with so much traffic that they need a path of their
 * own.
 *
 * The order knows the remaining bytes of each job at each host, but not their
 * destinations.  The bytes that a host sends are therefore distributed over
 * the job's other hosts in proportion to the bytes that these receive.  This
 * is exact for servers with workers and for rings of two.  Jobs of one level
 * between the same hosts are added up, because a switch distinguishes traffic
 * by DSCP only.
 *
 * Main thread only. */

#include <stddef.h>

struct cluster;
struct policy;
struct route_demand;
struct topology;

/* Minimum traffic of an elephant, in seconds of the slower host's link. */
#define ELEPHANT_SECONDS 1.0

/* Stores the elephants, by the rank of their jobs, in '*demandsp', which the
 * caller frees.  Returns their number. */
size_t elephants_find(const struct cluster *, const struct topology *,
                      const struct policy *, struct route_demand **demandsp);

#endif /* controller/southbound/topology/elephants.h */
