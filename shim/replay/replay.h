/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_REPLAY_H
#define SHIM_REPLAY_H 1

/* The shim's pipeline on frames of a capture, in the capture's time.
 *
 *
 * Motivation
 * ==========
 *
 * What the data plane does to a packet should be seen without interfaces, root
 * and luck with the clock.  A replay puts frames into the same ports, tables
 * and queues that forward packets on a host, one after the other, and moves
 * time on by itself: to the next frame of the capture, or to when the pacer
 * lets a queued one go.  So the times at which frames leave are exact and
 * always the same.
 *
 * Rules (rules.h) stand for agent and controller.  A flow is known from its
 * first packet on, and the lease never ends.
 *
 * Each frame that goes in comes out or is counted: 'in' of the counts is the
 * sum of all that follow it.
 *
 *
 * Usage
 * =====
 *
 *    error = replay_create(rules, leave, aux, &r);
 *    while (...) {
 *        replay_frame(r, &frame);
 *    }
 *    replay_finish(r);
 *    replay_counts(r, &counts);
 *
 * replay_rewind() begins again, as if nothing had been before.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * DPDK must run (eal.h), and there is one replay in a process at a time.  The
 * rules stay the caller's.  One thread. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct capture_frame;
struct replay;
struct replay_rules;

/* A frame leaves, to the uplink or 'to_host'.  Its number is that with which
 * it went in. */
typedef void replay_leave_func(const struct capture_frame *, bool to_host,
                               void *aux);

struct replay_counts {
    uint64_t in;                /* Frames. */
    uint64_t sent;              /* To the uplink. */
    uint64_t delivered;         /* To the host. */
    uint64_t skipped;           /* Neither from nor to the host. */
    uint64_t too_long;          /* More than the rules' MTU has room for. */
    uint64_t queue_dropped;
    uint64_t port_dropped;      /* Of less than an Ethernet header. */
    uint64_t queued;            /* Still there: 0 after replay_finish(). */

    uint64_t reordered;         /* Frames that are older than one before. */
    uint64_t unclaimed;         /* Flows for which there was no room. */
    struct shim_stats shim;     /* As a shim's control socket has them. */
};

/* Bytes that eal_init_offline() should have for it. */
uint64_t replay_memory(const struct replay_rules *);

/* Returns NULL or a message. */
char *replay_create(const struct replay_rules *, replay_leave_func *,
                    void *aux, struct replay **);
char *replay_rewind(struct replay *, const struct replay_rules *);
void replay_destroy(struct replay *);

void replay_frame(struct replay *, const struct capture_frame *);
void replay_finish(struct replay *);

void replay_counts(const struct replay *, struct replay_counts *);
bool replay_job(const struct replay *, uint16_t slot,
                struct shim_slot_stats *);

#endif /* shim/replay/replay.h */
