/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_RANK_QUEUE_H
#define SHIM_RANK_QUEUE_H 1

/* The queues before the uplink: jobs in the controller's order, with a floor.
 *
 *
 * Motivation
 * ==========
 *
 * The uplink is paced to its capacity, so packets wait here and not in the
 * network, and who waits is decided by the order: of all jobs that have a
 * packet that may go, the one with the lowest rank sends it.  Jobs of equal
 * rank share by bytes (deficit round robin), whatever the number of their
 * flows.
 *
 *    control, up to 1 % of the uplink
 *    place 0      job ... job      \  one place for each (rank, level) that
 *    place 1      job              /  a job has, see job_slots_places()
 *    ...
 *    the last     all that is of no job, control beyond its 1 %, and without
 *                 lease every job
 *
 * The rank alone decides; the level of a place, of which a switch makes its
 * queues, is only used for the floor that each level has, see place-order.h.
 *
 * What waits and is nobody's may turn out to be a job's.  It must not stay
 * where it is: behind it is all else that is of no job, in the last place, and
 * its flow's next packets would overtake it.  rank_queues_claim() moves it.
 *
 * A job may have queues of their own for some of its flows, each with a pace,
 * see job-queue.h.
 *
 * Each job is bounded in bytes, so that a sender that is not served finds out
 * (its packets are dropped at the tail) instead of filling the memory.  All
 * together are bounded in packets; when there is no room, whichever queue is
 * the longest (to within a factor of two) loses the packet that has been in it
 * for longest, so that a flood of one job does not cost another its packets.
 *
 *
 * Usage
 * =====
 *
 *    rq = rank_queues_create(n_packets, max_frame);
 *    rank_queues_set_places(rq, places);
 *    rank_queues_set_rate(rq, now, bps, max_job_bytes);
 *
 *    if (!rank_queues_push(rq, 0, false, &item, &dropped)) {
 *        ...free dropped.packet...
 *    }
 *    n_dropped = rank_queues_push_run(rq, 0, false, items, n, dropped);
 *    ...
 *    n = rank_queues_take(rq, now, &pace, items, 32);
 *    ...send items[].packet...
 *    ...
 *    rank_queues_claim(rq, &(struct rank_claim) { find, drop, aux });
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The packets stay the caller's.  One thread, except for rank_queues_bytes()
 * and rank_queues_policed(), which any thread may call. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/shim-protocol.h"
#include "shim/classify/job-slot.h"
#include "shim/queue/packet-fifo.h"

#define RANK_QUEUE_CONTROL 100  /* Control may be 1/100 of the uplink... */
#define RANK_QUEUE_CONTROL_FRAMES 4     /* ...and this much at once. */

struct pace;
struct rank_queues;

/* Says whose packets are.  'find' gets up to RANK_CLAIM_BURST of no job, in
 * their order, and sets the slot of those that are of one; 'drop' gets those
 * for which there is no room there. */
#define RANK_CLAIM_BURST 64

struct rank_claim {
    void (*find)(void *aux, struct queue_item *, uint32_t n);
    void (*drop)(void *aux, const struct queue_item *);
    void *aux;
};

struct rank_queues *rank_queues_create(uint32_t max_packets,
                                       uint32_t max_frame);
void rank_queues_destroy(struct rank_queues *);

void rank_queues_set_guard(struct rank_queues *, uint32_t share);
void rank_queues_set_rate(struct rank_queues *, uint64_t now, uint64_t bps,
                          uint64_t max_job_bytes);
void rank_queues_set_late(struct rank_queues *, uint64_t ns);
void rank_queues_set_places(struct rank_queues *,
                            const job_place places[SHIM_MAX_SLOTS]);

bool rank_queues_push(struct rank_queues *, uint16_t flow_queue, bool control,
                      const struct queue_item *, struct queue_item *dropped);
uint32_t rank_queues_push_run(struct rank_queues *, uint16_t flow_queue,
                              bool control, const struct queue_item *,
                              uint32_t n, struct queue_item *dropped);
uint32_t rank_queues_take(struct rank_queues *, uint64_t now, struct pace *,
                          struct queue_item *, uint32_t max);
bool rank_queues_drain(struct rank_queues *, struct queue_item *);

/* Gives jobs what waits of theirs in slot 0's common queue.  Returns how many
 * packets it looked at. */
uint32_t rank_queues_claim(struct rank_queues *, const struct rank_claim *);

uint64_t rank_queues_due(const struct rank_queues *);

uint16_t rank_queues_flow_new(struct rank_queues *, uint16_t slot);
void rank_queues_flow_free(struct rank_queues *, uint16_t flow_queue);
void rank_queues_flow_start(struct rank_queues *, uint64_t now,
                            uint16_t flow_queue, uint32_t bytes);
bool rank_queues_flow_started(const struct rank_queues *, uint64_t now,
                              uint16_t flow_queue);
bool rank_queues_flow_empty(const struct rank_queues *, uint16_t flow_queue);
void rank_queues_flow_rate(struct rank_queues *, uint64_t now,
                           uint16_t flow_queue, uint64_t bps);

uint64_t rank_queues_bytes(const struct rank_queues *);
uint64_t rank_queues_policed(const struct rank_queues *);

#endif /* shim/queue/rank-queue.h */
