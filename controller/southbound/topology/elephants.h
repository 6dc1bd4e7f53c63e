/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ELEPHANTS_H
#define ELEPHANTS_H 1

/* Which traffic is so much that it gets a path of its own.
 *
 * The order knows what each job still has to move at each host, not who sends
 * to whom.  So what a job's hosts send is divided among its hosts by what they
 * receive, which is right for servers with workers and for rings of two, and
 * at least proportional for others.  Jobs of one level between the same hosts
 * are one: a switch tells them apart by DSCP alone.
 *
 * Main thread only. */

#include <stddef.h>

struct cluster;
struct policy;
struct route_demand;
struct topology;

/* What takes less is left to the hash: seconds of the slower host's link. */
#define ELEPHANT_SECONDS 1.0

/* Stores the elephants, those of the first jobs in the order first, in
 * '*demandsp', which the caller frees, and returns their number. */
size_t elephants_find(const struct cluster *, const struct topology *,
                      const struct policy *, struct route_demand **demandsp);

#endif /* controller/southbound/topology/elephants.h */
