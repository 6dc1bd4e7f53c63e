/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_EGRESS_H
#define SHIM_EGRESS_H 1

/* From a classified frame to the uplink: who goes first, and when.
 *
 *
 * Motivation
 * ==========
 *
 * The uplink is paced to its capacity, so that frames wait here, where their
 * job's place in the order decides (see rank-queue.h), and not in the network,
 * where it does not.
 *
 * At most two frames leave at once, so that the uplink's pace is also that of
 * the first switch's buffer.  A loop that slept too long catches up with what
 * it missed while frames were waiting, up to 'late_ns'.
 *
 * A frame that finds nothing waiting and the uplink free goes straight to the
 * port: it would have been the next anyway.
 *
 * A frame that waits when its job's level changes leaves with the DSCP of the
 * new one.  With that of the old one it would wait once more, at the switch,
 * where the frames behind it overtake it: TCP takes that for a loss.
 *
 * When a flow becomes known, what waits of it goes to its job's queue, before
 * its next frame does: egress_claim().  An agent that finds a busy host would
 * else leave 400 ms of the uplink in the queue of all that is of no job, which
 * is served with what the floor leaves it: for 20 s and more, with a shell and
 * whatever is unknown behind it.
 *
 *
 * Usage
 * =====
 *
 *    egress_push_burst(e, frames, verdicts, n, now);
 *    ...
 *    egress_send(e, now);
 *    ...nothing to do until egress_until_due(e, now)...
 *
 * A flow that congestion control paces gets a queue of its own, so that its
 * pace does not hold up its job's others:
 *
 *    verdict.queue = egress_flow_queue(e, verdict.slot);
 *    egress_flow_rate(e, verdict.queue, 30000000);
 *    ...
 *    egress_flow_free(e, verdict.queue);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Frames that are pushed belong to the egress, port and slots stay the
 * caller's.  One thread pushes and sends; the control thread sets and reads.
 * Nothing is allocated after the start. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct classifier;
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
    uint64_t rate_bps;          /* Of the uplink. */
    uint32_t mtu;
    uint64_t late_ns;           /* That a loop which sleeps may come late. */
    bool tag;                   /* Frames leave with their slot's DSCP. */
};

uint32_t egress_pool_packets(uint64_t rate_bps, uint32_t mtu);

struct egress *egress_create(const struct egress_config *);
void egress_destroy(struct egress *);

/* The forwarding thread. */
void egress_push_burst(struct egress *, struct rte_mbuf **,
                       const struct verdict *, uint32_t n, uint64_t now);
void egress_push(struct egress *, struct rte_mbuf *, const struct verdict *);
uint32_t egress_claim(struct egress *, struct classifier *);
bool egress_send(struct egress *, uint64_t now);
uint64_t egress_until_due(const struct egress *, uint64_t now);
bool egress_is_empty(const struct egress *);

/* The same thread: queues of their own for flows of job slot 'slot'.
 * egress_flow_queue() returns 0, the job's common queue, when none is free.
 * What is in a queue that is freed still leaves.  A rate of 0 is no pace.  A
 * flow sends two frames at once, or one if its rate is less than a quarter of
 * the uplink's: many such may meet at a switch. */
uint16_t egress_flow_queue(struct egress *, uint16_t slot);
void egress_flow_free(struct egress *, uint16_t queue);
void egress_flow_rate(struct egress *, uint16_t queue, uint64_t bps);

/* The same thread: lets 'bytes' of the queue go, and hardly more before
 * egress_flow_rate(); egress_flow_started() says whether they have gone and
 * there is more. */
void egress_flow_start(struct egress *, uint16_t queue, uint32_t bytes);
bool egress_flow_started(const struct egress *, uint16_t queue);

/* The same thread: is nothing in the queue? */
bool egress_flow_empty(const struct egress *, uint16_t queue);

/* The control thread. */
void egress_set_rate(struct egress *, uint64_t bps);
uint64_t egress_rate(const struct egress *);
void egress_set_guard(struct egress *, uint32_t share);
uint32_t egress_guard(const struct egress *);

/* Fills in what was counted here of 'stats'. */
void egress_stats(const struct egress *, struct shim_stats *);

#endif /* shim/loop/egress.h */
