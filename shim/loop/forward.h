/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_FORWARD_H
#define SHIM_FORWARD_H 1

/* What moves packets between the host and the uplink.
 *
 *
 * Motivation
 * ==========
 *
 *    host -> classify -> tag -> queue by rank -> pace -> uplink
 *    host <- count <- uplink
 *
 * One thread does all of it, a burst at a time, and never logs, allocates or
 * waits for another thread; with several, see lanes.h, the others do the first
 * two steps for some of the flows.  Time is an argument: the loop passes the
 * clock's, a replay that of its capture.
 *
 *
 * Usage
 * =====
 *
 *    f = forward_create(&config);
 *    for (;;) {
 *        if (!forward_turn(f, now)) {
 *            ...sleep until a frame comes or forward_until_due(f, now)...
 *        }
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The ports, tables and misses stay the caller's and must outlive it.
 * forward_turn() and forward_until_due() are for one thread, the others for
 * the control thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct bursts;
struct cc_config;
struct flow_table;
struct forward;
struct job_slots;
struct lane;
struct miss;
struct port;
struct tap;
struct shim_congestion;
struct wake;

struct forward_config {
    struct port *host, *uplink;
    struct flow_table *flows;
    struct job_slots *slots;
    struct miss *misses;
    struct bursts *bursts;      /* NULL: not counted. */
    struct tap *tap;            /* NULL: frames are not captured. */
    uint64_t rate_bps;          /* Of the uplink. */
    uint32_t mtu;
    uint64_t late_ns;           /* See struct egress_config. */
    bool tag;                   /* Write DSCPs. */
    bool vxlan;                 /* Look into tunnels. */

    /* Congestion control, NULL for none.  Its egress is filled in here. */
    const struct cc_config *cc;
    unsigned int n_lanes;       /* Up to LANES_MAX; 0 is 1. */
};

struct forward *forward_create(const struct forward_config *);
void forward_destroy(struct forward *);

bool forward_turn(struct forward *, uint64_t now);
uint64_t forward_until_due(const struct forward *, uint64_t now);

void forward_set_rate(struct forward *, uint64_t bps);
uint64_t forward_rate(const struct forward *);
void forward_set_guard(struct forward *, uint32_t share);
void forward_set_congestion(struct forward *, const struct shim_congestion *);

/* Returns a lane, from 1 on, that is to have a thread of its own, and what
 * those wake the thread of forward_turn() by, NULL if there are none. */
struct lane *forward_lane(struct forward *, unsigned int number);
struct wake *forward_wake(struct forward *);

/* While it ends it receives nothing, and sends what it has.  A change has
 * happened when forward_has_ended() says so, and not before should the next
 * one be made: after the end nothing that was there before is left to be
 * received, and congestion control rests. */
void forward_end(struct forward *, bool end);
bool forward_is_ending(const struct forward *);
bool forward_has_ended(const struct forward *);

/* Frees what arrived, and returns how many frames it was.  The thread of
 * forward_turn(); if a port has several queues, only before the others'
 * threads run. */
uint32_t forward_discard(struct forward *);

uint32_t forward_guard(const struct forward *);

/* What congestion control has learned, for another process: see
 * wire/shim-connections.h.  The first is for after the end and returns the bytes
 * of a body that it wrote, at most CC_HANDOVER_BYTES, 0 without congestion
 * control; the second for before the beginning. */
size_t forward_save(const struct forward *, void *body);
void forward_restore(struct forward *, const void *body);

/* Fills in what was counted here of 'stats'. */
void forward_stats(const struct forward *, struct shim_stats *);

#endif /* shim/loop/forward.h */
