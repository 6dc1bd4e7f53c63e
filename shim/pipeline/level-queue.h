/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_LEVEL_QUEUE_H
#define SHIM_LEVEL_QUEUE_H 1

/* The queues before the uplink: priority with a floor, FIFO in each level.
 *
 *
 * Motivation
 * ==========
 *
 * The uplink is paced to its capacity, so packets wait here and not in the
 * network, and who waits is decided by the level: the highest one that has
 * packets is served.
 *
 * A TCP connection that nothing of leaves for seconds doubles its
 * retransmission time-out again and again, and then sleeps on for as long when
 * the link has long been idle.  So each level that waits has a floor: as many
 * bytes as it is guarded for go while those of the highest level do.  Unless
 * told otherwise, one byte goes for each LEVEL_QUEUE_FLOOR of the highest
 * level, and all that wait share it.  With a guard, each has that share of the
 * uplink, or all levels equal ones if those would be more than all of it.
 *
 * Each level is bounded in bytes, so that a sender of a low level finds out
 * (its packets are dropped at the tail) instead of filling the memory, and in
 * packets, so that a flood of small ones does not use up the packet buffers of
 * the others.
 *
 *
 * Usage
 * =====
 *
 *    struct level_queues *lq = level_queues_create(n_packets, max_bytes);
 *
 *    if (!level_queues_push(lq, level, &item)) {
 *        ...drop it...
 *    }
 *    while ((item = level_queues_first(lq)) && ...it may go now...) {
 *        ...send item->packet...
 *        level_queues_pop(lq);
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The packets stay the caller's.  One thread, except for
 * level_queues_bytes(), which any thread may call. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/control/protocol.h"

#define LEVEL_QUEUE_FLOOR 20    /* A floor of 1/21 of the uplink. */

struct queue_item {
    void *packet;
    uint32_t length;            /* Bytes of the frame. */
    uint16_t slot;              /* Of its job, 0 if none. */
    bool is_ip;
    bool is_default;            /* See struct treatment. */
};

struct level_queues;

struct level_queues *level_queues_create(uint32_t max_packets,
                                         uint64_t max_bytes);
void level_queues_destroy(struct level_queues *);

void level_queues_set_guard(struct level_queues *, uint32_t share);
void level_queues_set_limit(struct level_queues *, uint8_t level,
                            uint64_t max_bytes);
bool level_queues_push(struct level_queues *, uint8_t level,
                       const struct queue_item *);
const struct queue_item *level_queues_first(const struct level_queues *);
void level_queues_pop(struct level_queues *);
uint64_t level_queues_bytes(const struct level_queues *);

#endif /* shim/pipeline/level-queue.h */
