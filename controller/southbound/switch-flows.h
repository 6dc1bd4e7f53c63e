/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SWITCH_FLOWS_H
#define SWITCH_FLOWS_H 1

/* The flows that a policy and a topology make of a switch.
 *
 * Each level of the policy, the control level and the default level have a
 * DSCP value and a queue, by the numbers of docs/interfaces.md: queue 0 is the
 * control level's, 7 the default's.
 *
 * A switch of no topology goes on forwarding as it did: "DSCP -> queue, then
 * as always".  A switch of a topology is told what to do with each host's
 * traffic, since a fabric with more than one way has loops: table 0 chooses
 * the queue, table 1 the port, by the IP address that an IP packet or an ARP
 * request is for.  What is for no host that is known is dropped.
 *
 * Main thread only. */

#include <stdbool.h>

struct flow_table;
struct policy;
struct routes;
struct topology;

/* Returns the flows of a switch that nothing else is known of. */
struct flow_table *switch_flows_alone(const struct policy *);

/* Returns the flows of switch 'sw' of the topology.  With 'probes', what comes
 * in by a link to another switch to find out where the link goes (lldp.h) is
 * sent to the controller; what hosts send never is. */
struct flow_table *switch_flows(const struct policy *,
                                const struct topology *,
                                const struct routes *, int sw, bool probes);

#endif /* controller/southbound/switch-flows.h */
