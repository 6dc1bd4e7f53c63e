/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SWITCH_FLOWS_H
#define SWITCH_FLOWS_H 1

/* Computes the flows of a switch from the policy and the topology.
 *
 * Each level of the policy, the control level and default traffic have a DSCP
 * value and a queue (docs/interfaces.md): queue 0 is the control level's, 7
 * the default.
 *
 * A switch outside the topology selects the queue by DSCP and then forwards
 * NORMAL.  A switch of the topology needs routes, because a fabric with
 * several paths has loops: table 0 selects the queue, table 1 the output port,
 * by the destination of an IP packet or ARP request.  Traffic to unknown hosts
 * is dropped.
 *
 * Main thread only. */

#include <stdbool.h>

struct flow_table;
struct policy;
struct routes;
struct topology;

/* Returns the flows of a switch outside the topology. */
struct flow_table *switch_flows_alone(const struct policy *);

/* Returns the flows of switch 'sw' of the topology.  With 'probes', probes
 * (link-check.h) from links to other switches are sent to the controller;
 * probes from hosts are not. */
struct flow_table *switch_flows(const struct policy *,
                                const struct topology *,
                                const struct routes *, int sw, bool probes);

#endif /* controller/southbound/switch-flows.h */
