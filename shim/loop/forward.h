/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_FORWARD_H
#define SHIM_FORWARD_H 1

/* The pipeline: moves packets between the host and the uplink.
 *
 *    host -> classify -> tag -> queue by rank -> pace -> uplink
 *    host <- count <- uplink
 *
 * One thread does all of it, a burst at a time, and never logs, allocates or
 * waits for another thread.  Time is an argument: the loop passes clock_now(),
 * a replay the time of its capture.
 *
 * Congestion control (shim/cc/) has no packet buffers, so that its tests and
 * fuzzers need no DPDK.  The pipeline passes it the frames of a burst, moves
 * their start as it requests, and sends its messages as packets.
 *
 *    f = forward_create(&config);
 *    for (;;) {
 *        if (!forward_poll(f, now)) {
 *            ...sleep until a frame arrives or its queues are due...
 *        }
 *    }
 *
 * The ports and tables stay the caller's and must outlive it.
 * forward_poll() is for one thread, the other functions for the control
 * thread. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct bursts;
struct cc;
struct cc_config;
struct egress;
struct flow_cache;
struct forward;
struct job_slots;
struct port;

struct forward_config {
    struct port *host, *uplink;
    struct flow_cache *flows;
    struct job_slots *slots;
    struct bursts *bursts;      /* NULL: not counted. */
    uint64_t rate_bps;          /* Rate of the uplink, bit/s. */
    uint32_t mtu;
    uint64_t late_ns;           /* See struct egress_config. */
    bool tag;                   /* Write DSCPs. */
    const struct prefix_list *tunnels;  /* See struct classifier; must outlive
                                         * the object. */
    const struct cc_config *cc; /* Congestion control, NULL for none; its
                                 * queues and callback are set here. */
};

struct forward *forward_create(const struct forward_config *);
void forward_destroy(struct forward *);

bool forward_poll(struct forward *, uint64_t now);

/* For egress_until_due(), egress_set_rate() and others. */
struct egress *forward_egress(struct forward *);

/* Congestion control, or NULL.  cc_save() may be called after the end,
 * cc_restore() before the first poll. */
struct cc *forward_cc(struct forward *);

/* Stops receiving while the queues still send, or starts again.
 * forward_has_ended() reports when the change has happened, before which the
 * next one must not be requested.  After the end no frame that arrived before
 * is left in the ports, and congestion control is stopped. */
void forward_end(struct forward *, bool end);
bool forward_is_ending(const struct forward *);
bool forward_has_ended(const struct forward *);

/* Frees the frames in the ports.  For the thread of forward_poll(). */
void forward_discard(struct forward *);

/* Sets the members of 'stats' that the pipeline counts. */
void forward_stats(const struct forward *, struct shim_stats *);

#endif /* shim/loop/forward.h */
