/* SPDX-License-Identifier: Apache-2.0 */

#ifndef UPLINK_QUEUES_H
#define UPLINK_QUEUES_H 1

/* Which priority puts a packet into which queue of an uplink.
 *
 * The kernel orders by what is at the uplink already: the traffic classes of
 * its card (mqprio, ets), the bands of fq (since 6.7), prio and pfifo_fast, or
 * of such queues below mq, and the classes of tc.h.  All select a queue
 * by the priority of the packet, each by a map of its own, so a priority is
 * chosen for each level such that the map gives a higher level an earlier
 * queue.  If there are fewer queues than levels, neighbouring levels share
 * one; the default level has the last one.  Of mqprio, the highest class is
 * taken for the first, as IEEE 802.1Q has it.
 *
 * An interface without queues, as of a VLAN or a bond, has those of the one
 * below it; of the ports of a bond, one counts.
 *
 *    error = uplink_queues_find(rs, ifindex, levels, &queues);
 *    if (queues.n) {
 *        ...packets of level 2 get queues.priority[2]...
 *    }
 *
 * No state, and changes nothing.  Blocks until the kernel replies, see
 * route-socket.h. */

#include <stdint.h>

#include "wire/shim-protocol.h"

struct route_socket;

struct uplink_queues {
    int n;         /* Queues that are used, 0 if priorities mean nothing. */
    char kind[16]; /* Of the qdisc, "" if 'n' is 0. */
    uint32_t priority[SHIM_N_LEVELS];
};

/* 'levels' has a bit for each level that the policy uses.  Returns 0 or a
 * positive errno. */
int uplink_queues_find(struct route_socket *, int ifindex, uint8_t levels,
                       struct uplink_queues *);

#endif /* agent/actuate/bpf/uplink-queues.h */
