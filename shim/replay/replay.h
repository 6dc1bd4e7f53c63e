/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_REPLAY_H
#define SHIM_REPLAY_H 1

/* A replay: the shim's pipeline on the frames of a capture, in its time.
 *
 * A replay shows what the data plane does to packets, without interfaces,
 * root, or a dependence on the clock.  It passes frames, one after the other,
 * to the same ports, tables and queues that forward packets on a host, and
 * advances the time itself: to the next frame of the capture, or to the time
 * at which the pacer sends a queued one.  So the times at which frames leave
 * are exact and reproducible.
 *
 * Rules (rules.h) replace agent and controller: a job's frames from the host
 * get its slot tag.  The lease never ends.
 *
 *    error = replay_create(rules, leave, aux, &r);
 *    while (...) {
 *        replay_frame(r, &frame);
 *    }
 *    replay_finish(r);
 *    replay_counts(r, &counts);
 *    replay_destroy(r);
 *
 * DPDK must be initialized (eal.h), and a process can have one replay at a
 * time.  The rules stay the caller's.  One thread. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct capture_frame;
struct replay;
struct replay_rules;

/* Called for each frame that leaves, to the uplink or to the host.  Its number
 * is the one that it had in the capture. */
typedef void replay_leave_func(const struct capture_frame *, bool to_host,
                               void *aux);

/* Numbers of frames.  'in' is the sum of the seven that follow it. */
struct replay_counts {
    uint64_t in;                /* Read from the capture. */
    uint64_t sent;              /* To the uplink. */
    uint64_t delivered;         /* To the host. */
    uint64_t skipped;           /* Neither from nor to the host. */
    uint64_t too_long;          /* Longer than the rules' MTU allows. */
    uint64_t queue_dropped;     /* The queue was full. */
    uint64_t port_dropped;      /* Shorter than an Ethernet header. */
    uint64_t queued;            /* Still queued: 0 after replay_finish(). */

    uint64_t reordered;         /* Older than the previous one. */
    struct shim_stats shim;     /* The shim's own counters. */
};

/* Returns the bytes of memory that eal_init_offline() must provide. */
uint64_t replay_memory(const struct replay_rules *);

/* Returns NULL or a message. */
char *replay_create(const struct replay_rules *, replay_leave_func *,
                    void *aux, struct replay **);
void replay_destroy(struct replay *);

/* Starts again with empty tables.  The rules must have the same rate and MTU,
 * since the packet buffers are kept. */
void replay_rewind(struct replay *, const struct replay_rules *);

/* Advances to the frame's time and receives the frame. */
void replay_frame(struct replay *, const struct capture_frame *);

/* Advances until all queued frames have left. */
void replay_finish(struct replay *);

void replay_counts(const struct replay *, struct replay_counts *);

/* Stores the counters of the job of 'slot'.  Returns false without one. */
bool replay_job(const struct replay *, uint16_t slot,
                struct shim_slot_stats *);

#endif /* shim/replay/replay.h */
