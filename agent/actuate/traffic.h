/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRAFFIC_H
#define TRAFFIC_H 1

/* The shim's counters as differences.
 *
 *
 * Motivation
 * ==========
 *
 * The shim counts from when it started, by slot; the agent tells the
 * controller counters that never fall and belong to jobs.  In between, a shim
 * may restart (its counters begin at 0), an agent may restart (the first look
 * is only a mark), and a slot may change hands.
 *
 *
 * Usage
 * =====
 *
 *    traffic_take(tr, stats, slots, n, add_to_job, aux);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

/* Since the agent started, over all shims.  Never fall. */
struct traffic_totals {
    uint64_t tx_bytes, rx_bytes;
    uint64_t ip_bytes;          /* Sent, that can carry a tag. */
    uint64_t default_bytes;     /* Of these, sent without one. */
    uint64_t level_bytes[SHIM_N_LEVELS];        /* Of jobs, */
    uint64_t level_dropped[SHIM_N_LEVELS];      /* and packets of theirs. */
};

struct traffic {
    uint64_t boot_id;           /* Of the shim that 'last' is from, 0 before
                                 * the first. */
    bool old;                   /* That shim may be older than this agent. */
    struct traffic_totals total;
    struct traffic_totals last;
    struct {
        bool seen;              /* By this agent, of that shim. */
        uint64_t tx_bytes, rx_bytes, dropped;
    } slots[SHIM_MAX_SLOTS];    /* Last values. */
};

typedef void traffic_func(uint16_t slot, uint64_t tx_bytes, uint64_t rx_bytes,
                          void *aux);

void traffic_init(struct traffic *);
void traffic_take(struct traffic *, const struct shim_stats *,
                  const struct shim_slot_stats *, size_t n,
                  traffic_func *, void *aux);

#endif /* agent/actuate/traffic.h */
