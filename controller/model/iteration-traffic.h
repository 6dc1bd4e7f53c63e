/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ITERATION_TRAFFIC_H
#define ITERATION_TRAFFIC_H 1

/* Where the bytes of an iteration go: host pairs, and ports.
 *
 * Telemetry has the bytes of a job in an iteration by host and direction.
 * Host ports need no more.  A link of the fabric (fabric.h) carries the
 * traffic of some pairs only, and so does an explicit path (routes.h).
 *
 *    n = iteration_traffic_pairs(job, &pairs);
 *    free(pairs);
 *    n = iteration_traffic_demand(cluster, job, &demands);
 *    free(demands);
 *
 * Main thread only.
 *
 * In a cluster with a fabric, agents measure how a host's bytes are divided
 * among the remote addresses of its TCP connections (agent/links.h).  The tx
 * bytes of i are divided in the same way, if the connections to hosts of the
 * job explain at least half of what the host has sent for it since the agent
 * began.  Otherwise - at the beginning, over UDP or IPv6, with connections of
 * less than a second - they are estimated from the tx bytes of i, the rx bytes
 * of all hosts, and the formula that demand.h uses before anything is
 * measured:
 *
 *    w(i, j) = f(i, j) * rx(j) / sum over k of f(k, j)
 *    bytes(i, j) = tx(i) * w(i, j) / sum over k of w(i, k)
 *
 * f(i, j) is what the formula has i send to j: each worker exchanges the model
 * with all servers in equal parts, and peers pass it around a ring, in the
 * order of their index.  If the formula has no traffic of a host, f is 1
 * between it and each other host of the job.  If that holds for all of them,
 * this is a gravity model: the bytes that a host sends are distributed over
 * the others in proportion to the bytes that these receive.
 *
 * This is exact for rings and, whatever the sizes of their shards, for servers
 * on hosts without workers.  It is too small for peers that exchange with
 * peers chosen at random: traffic around a ring crosses a fabric least. */

#include <stddef.h>

struct cluster;
struct host;
struct job;
struct order_demand;

/* Traffic from one host of a job to another. */
struct traffic_pair {
    const struct host *src, *dst;
    double bytes;               /* Of one iteration, greater than 0. */
};

/* Stores the traffic of one iteration of 'job' in '*pairsp', which the caller
 * frees.  Returns the number of pairs. */
size_t iteration_traffic_pairs(const struct job *, struct traffic_pair **);

/* Stores the demand of one iteration of 'job' on ports of hosts and on links
 * of the cluster's fabric in '*demandsp', sorted by port; the caller frees.
 * Returns the number of ports. */
size_t iteration_traffic_demand(const struct cluster *, const struct job *,
                                struct order_demand **);

#endif /* controller/model/iteration-traffic.h */
