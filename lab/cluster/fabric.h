/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_FABRIC_H
#define LAB_FABRIC_H 1

/* The hosts' namespaces and links, and the switches between them.
 *
 *    host h0              node n0               fabric
 *    eth0 ---- veth ---- host  shim  uplink ---- veth ---- p0 -+
 *                                                              +- bridge br0
 *    eth0 ---- veth ---- host  shim  uplink ---- veth ---- p1 -+
 *
 * Two shims in one namespace would interfere, so each has a node namespace of
 * its own.  The fabric has its own namespace because a namespace can have only
 * one userspace datapath.  A data plane reads raw frames, so all offloads that
 * leave a checksum or a segment unfinished are disabled.
 *
 * Hosts without a shim have no nodes, under any policy.  Where the kernel
 * orders, a packet must reach the queues of the uplink with the socket that
 * sent it, and would lose it in a bridge.
 *
 *    host h0                                fabric
 *    eth0 --------------- veth -------------- p0 ---- bridge br0
 *
 * The port limits one direction of a link to its rate.  In the other the shim
 * or the agent limits the uplink, and without them ("plain", ACTUATOR_NONE) a
 * queue of the lab.
 *
 * Neither the userspace datapath of Open vSwitch nor a bridge has priority
 * queues, so the ports of the fabric use the kernel's: one HTB class for each
 * level, selected by the DSCP that the policy gives it.  Each class has a
 * guaranteed 1 % of the rate, so priority is strict for the other 92 %.  ARP
 * has the control level, so that a congested cluster does not lose its
 * neighbour entries.
 *
 * The kernel's datapath of Open vSwitch ("datapath") has queues.  With it the
 * fabric leaves its ports alone: the controller creates their queues through
 * the switch's database, and its flows select them (ovsdb-qos.h).
 *
 * With racks there are several bridges (leaf-spine.h).  The ports of the
 * cables between them are shaped in the same way, at their own rate.
 *
 * A scenario may give the ports one queue instead ("queues"), as a switch has
 * without a configuration.  Then only the hosts order the traffic: the sender
 * at the uplink, and the congestion control of the receiver's shim at the
 * downlink.
 *
 *    error = fabric_create(plan, policy);  // Namespaces, links, rates.
 *    ...start Open vSwitch...              // Unless the fabric is a bridge.
 *    error = fabric_join(plan);            // The ports into the bridge.
 *    fabric_destroy(plan);
 *
 * fabric_destroy() also removes the leftovers of an earlier lab of this
 * name. */

#include <stdbool.h>
#include <stdint.h>

#include "lab/cluster/plan.h"

struct policy;

char *fabric_create(const struct plan *, const struct policy *);
char *fabric_join(const struct plan *);

void fabric_destroy(const struct plan *);

/* Appends lines of "tc -batch" to 'commands' that give 'dev' the rate
 * 'rate_bps' for IP packets of up to 'mtu' bytes, and its queues. */
struct ds;
void fabric_put_shaping(struct ds *commands, const char *dev, int64_t rate_bps,
                        int mtu, enum port_queues, const struct policy *);

/* Returns the type of the datapath that Open vSwitch uses, "system" (the
 * kernel's) or "netdev", or NULL if the fabric has none; the caller frees. */
char *fabric_datapath(const struct plan *);

/* Returns one line about what chooses the queue of a packet in a fabric of
 * Open vSwitch with 'datapath' and with switches that are 'in_sync' with the
 * controller. */
const char *fabric_queues_to_string(const struct plan *, const char *datapath,
                                    bool in_sync);

/* Returns the name of TCP's congestion control between the hosts, or NULL; the
 * caller frees. */
char *fabric_congestion(const struct plan *);

/* Stores the bytes sent by all ports of the fabric, by level.  All are 0 if
 * the ports have no levels. */
char *fabric_level_bytes(const struct plan *, uint64_t bytes[8]);

#endif /* lab/cluster/fabric.h */
