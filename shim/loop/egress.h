/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_EGRESS_H
#define SHIM_EGRESS_H 1

/* From a classified frame to the uplink: queueing, pacing, sending.
 *
 * The uplink is paced to its capacity, so that frames wait here, in the order
 * of their jobs (see rank-queue.h), and not in the network.
 *
 * At most two frames leave at once, so that no queue grows at the first
 * switch. A loop that slept too long catches up with what it missed while
 * frames were waiting, up to 'late_ns'.
 *
 * Control frames of a job are policed to its share, see control-share.h.
 *
 * A frame that finds empty queues and a free uplink goes straight to the port:
 * it would be the next anyway.
 *
 * A frame that waits while its job's level changes leaves with the DSCP of the
 * new level.  With the old DSCP it would wait again at the switch, where later
 * frames of its flow would overtake it: TCP takes that for a loss.
 *
 *    egress_push_burst(e, frames, verdicts, n, now);
 *    ...
 *    egress_send(e, now);
 *    ...idle until egress_until_due(e, now)...
 *
 * A flow that congestion control paces gets a queue of its own, so that it
 * does not delay other flows of its job:
 *
 *    verdict.queue = egress_flow_queue(e, verdict.slot);
 *    rank_queues_flow_rate(egress_queues(e), now, verdict.queue, 30000000);
 *
 * Pushed frames belong to the egress; port and slots stay the caller's.  One
 * thread pushes and sends; the control thread sets and reads.  Nothing is
 * allocated after the start. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct egress;
struct job_slots;
struct port;
struct rank_queues;
struct rte_mbuf;
struct verdict;

struct egress_config {
    struct port *uplink;
    struct job_slots *slots;
    uint64_t rate_bps;          /* Rate of the uplink, bit/s. */
    uint32_t mtu;
    uint64_t late_ns;           /* Lateness that pacing compensates. */
    bool tag;                   /* Frames leave with their slot's DSCP. */
};

uint32_t egress_pool_packets(uint64_t rate_bps, uint32_t mtu);

struct egress *egress_create(const struct egress_config *);
void egress_destroy(struct egress *);

/* The forwarding thread. */
void egress_push_burst(struct egress *, struct rte_mbuf **,
                       struct verdict *, uint32_t n, uint64_t now);
void egress_push(struct egress *, struct rte_mbuf *, const struct verdict *);
bool egress_send(struct egress *, uint64_t now);
uint64_t egress_until_due(const struct egress *, uint64_t now);
bool egress_is_empty(const struct egress *);

/* The forwarding thread: a queue for a flow of job slot 'slot', or 0, the
 * job's common queue, if none is free. */
uint16_t egress_flow_queue(struct egress *, uint16_t slot);

/* The forwarding thread: all queues. */
struct rank_queues *egress_queues(struct egress *);

/* The control thread. */
void egress_set_rate(struct egress *, uint64_t bps);
uint64_t egress_rate(const struct egress *);
void egress_set_min_share(struct egress *, uint32_t share);
uint32_t egress_min_share(const struct egress *);

/* Sets the members of 'stats' that the egress counts. */
void egress_stats(const struct egress *, struct shim_stats *);

#endif /* shim/loop/egress.h */
