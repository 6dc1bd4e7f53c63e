/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_RANK_QUEUE_H
#define SHIM_RANK_QUEUE_H 1

/* The queues before the uplink: jobs in the controller's order, with a minimum
 * share for each level.
 *
 * The uplink is paced to its capacity, so packets wait here and not in the
 * network, and the controller's order decides which leave first: of all jobs
 * with a packet that may leave, the one with the lowest rank sends.  Jobs of
 * equal rank share by bytes (deficit round robin) for any number of flows.
 *
 *    control, up to 1 % of the uplink: a common queue and some of jobs
 *    class 0      job ... job      \  one class for each (rank, level) that a
 *    class 1      job              /  job has, see job_slots_classes()
 *    ...
 *    the last     unclassified packets, control beyond its 1 %, and without a
 *                 lease every job
 *
 * The level of a class, by which switches choose a queue, matters here only
 * for the minimum share of each level, see class-order.h.
 *
 * A job may have separate queues for paced flows, see job-queue.h.
 *
 * The bytes of each job are limited, so that tail drops slow down a sender
 * that is not served.  The packets of all queues are limited together: at the
 * limit the longest queue (to within a factor of two) loses its oldest packet,
 * so that a flood of one job does not cost another its packets.
 *
 * The uplink serves jobs by rank and not by level: jobs of one level can
 * differ by minutes.  The scheduler is our own, because rte_sched has strict
 * priority between only thirteen classes of one pipe and needs seven times the
 * time for it ("./test --bench shim-order"; with 16 pipes, which share the
 * link equally, it is as fast).
 *
 * A flow that has less than a quarter of the uplink sends one frame at a time,
 * another flow two: the pairs of frames of eight senders met at a switch as a
 * queue of 24 kB.  For a flow with most of the link, single frames made the
 * quickstart 5 % slower in the one run that was measured.
 *
 *    rq = rank_queues_create(n_packets, max_frame);
 *    rank_queues_set_classes(rq, classes);
 *    rank_queues_set_rate(rq, now, bps, max_job_bytes);
 *
 *    if (!rank_queues_push(rq, 0, false, &item, &loser)) {
 *        ...free loser.packet...
 *    }
 *    n_dropped = rank_queues_push_run(rq, 0, false, items, n, dropped);
 *    ...
 *    n = rank_queues_take(rq, now, &pace, items, 32);
 *    ...send items[].packet...
 *
 * The packets stay the caller's.  One thread, except for rank_queues_bytes()
 * and rank_queues_policed(), which any thread may call. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/classify/job-slot.h"
#include "shim/queue/packet-fifo.h"
#include "wire/shim-protocol.h"

#define RANK_QUEUE_CONTROL 100  /* Control gets 1/100 of the uplink. */
#define RANK_QUEUE_CONTROL_FRAMES 4     /* Longest burst of control. */

struct job_queues;
struct pace;
struct rank_queues;

struct rank_queues *rank_queues_create(uint32_t max_packets,
                                       uint32_t max_frame);
void rank_queues_destroy(struct rank_queues *);

void rank_queues_set_min_share(struct rank_queues *, uint32_t share);
void rank_queues_set_rate(struct rank_queues *, uint64_t now, uint64_t bps,
                          uint64_t max_job_bytes);
void rank_queues_set_classes(struct rank_queues *,
                             const job_class classes[SHIM_MAX_SLOTS]);

bool rank_queues_push(struct rank_queues *, uint16_t flow_queue, bool control,
                      const struct queue_item *, struct queue_item *dropped);
uint32_t rank_queues_push_run(struct rank_queues *, uint16_t flow_queue,
                              bool control, const struct queue_item *,
                              uint32_t n, struct queue_item *dropped);
uint32_t rank_queues_take(struct rank_queues *, uint64_t now, struct pace *,
                          struct queue_item *, uint32_t max);
bool rank_queues_drain(struct rank_queues *, struct queue_item *);

uint64_t rank_queues_due(const struct rank_queues *);

/* Store how many packets have joined the common queue of 'slot', and how many
 * have left it; both wrap around. */
void rank_queues_count(const struct rank_queues *, uint16_t slot,
                       uint32_t *joined, uint32_t *left);

/* The queues of flows, for job_queues_flow_new() and others.  Flow queues of
 * JOB_QUEUES_CONTROL are part of the control class, for packets of any job. */
struct job_queues *rank_queues_jobs(struct rank_queues *);
void rank_queues_flow_rate(struct rank_queues *, uint64_t now,
                           uint16_t flow_queue, uint64_t bps);

uint64_t rank_queues_bytes(const struct rank_queues *);
uint64_t rank_queues_policed(const struct rank_queues *);

#endif /* shim/queue/rank-queue.h */
