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
 *    egress_flow_rate(e, verdict.queue, 30000000);
 *    ...
 *    egress_flow_free(e, verdict.queue);
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
struct rte_mbuf;
struct tap;
struct verdict;

struct egress_config {
    struct port *uplink;
    struct job_slots *slots;
    struct tap *tap;            /* NULL: frames are not captured. */
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

/* The forwarding thread: separate queues for flows of job slot 'slot'.
 * egress_flow_queue() returns 0, the job's common queue, if none is free; the
 * other functions need a queue.
 * Packets in a freed queue still leave.  A rate of 0 is unpaced.  A flow sends
 * two frames at once, or one if its rate is below a quarter of the uplink's,
 * because many such flows may meet at a switch. */
uint16_t egress_flow_queue(struct egress *, uint16_t slot);
void egress_flow_free(struct egress *, uint16_t queue);
void egress_flow_rate(struct egress *, uint16_t queue, uint64_t bps);

/* The forwarding thread: lets 'bytes' of the queue leave unpaced, and few more
 * before egress_flow_rate().  egress_flow_started() returns true if they have
 * left and the queue has more. */
void egress_flow_start(struct egress *, uint16_t queue, uint32_t bytes);
bool egress_flow_started(const struct egress *, uint16_t queue);

bool egress_flow_empty(const struct egress *, uint16_t queue);

/* The forwarding thread: returns for how many nanoseconds a paced queue has
 * waited for the uplink, although its rate allows it to send a whole burst. */
uint64_t egress_flow_late(const struct egress *, uint16_t queue);

/* The control thread. */
void egress_set_rate(struct egress *, uint64_t bps);
uint64_t egress_rate(const struct egress *);
void egress_set_min_share(struct egress *, uint32_t share);
uint32_t egress_min_share(const struct egress *);

/* Sets the members of 'stats' that the egress counts. */
void egress_stats(const struct egress *, struct shim_stats *);

#endif /* shim/loop/egress.h */
