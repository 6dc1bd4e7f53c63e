/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_FORWARD_H
#define SHIM_FORWARD_H 1

/* The loop that moves packets between the host and the uplink.
 *
 *
 * Motivation
 * ==========
 *
 *    host -> classify -> tag -> queue by level -> pace -> uplink
 *    host <- count <- uplink
 *
 * One thread does all of it, a burst at a time, and never logs, allocates or
 * waits for another thread.  Several shims share few CPUs with the training
 * they serve, so a loop with nothing to do sleeps: a little longer each time,
 * from 10 us on, but never past the time when a paced packet is due, and then
 * until a frame arrives.
 *
 *
 * Usage
 * =====
 *
 *    f = forward_create(&config);
 *    ...another thread: forward_loop(f)...
 *    forward_pause(f);
 *    ...change a port...
 *    forward_resume(f);
 *    forward_stop(f);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The ports, tables and misses stay the caller's and must outlive it.
 * forward_loop() is for one thread; all other functions are for the control
 * thread. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/control/protocol.h"

struct flow_table;
struct forward;
struct job_slots;
struct miss;
struct port;

struct forward_config {
    struct port *host, *uplink;
    struct flow_table *flows;
    struct job_slots *slots;
    struct miss *misses;
    uint64_t rate_bps;          /* Of the uplink. */
    uint32_t mtu;
    bool tag;                   /* Write DSCPs. */
};

uint64_t forward_now(void);
uint32_t forward_queue_packets(uint64_t rate_bps, uint32_t mtu);
uint32_t forward_pool_packets(uint64_t rate_bps, uint32_t mtu);

struct forward *forward_create(const struct forward_config *);
void forward_destroy(struct forward *);

void forward_loop(struct forward *);
void forward_stop(struct forward *);
bool forward_pause(struct forward *);
void forward_resume(struct forward *);

void forward_set_rate(struct forward *, uint64_t bps);
uint64_t forward_rate(const struct forward *);
void forward_set_guard(struct forward *, uint32_t share);

/* Fills in what the loop knows of 'stats'. */
void forward_stats(struct forward *, struct shim_stats *);

#endif /* shim/pipeline/forward.h */
