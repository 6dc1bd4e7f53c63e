/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRAFFIC_H
#define TRAFFIC_H 1

/* Traffic as the shim counts it, as differences.
 *
 * The shim counts by slot since its own start; the agent reports counters that
 * belong to jobs and never decrease.  Meanwhile the shim can restart (its
 * counters begin at 0), the agent can restart (the first values are only the
 * starting point), and a slot can be given to another job.
 *
 *    traffic_add_stats(tr, stats, slots, n, on_slot_traffic, aux);
 *
 * Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

/* Counters since the agent started, over all shims.  They never decrease. */
struct traffic_totals {
    uint64_t tx_bytes, rx_bytes;
    uint64_t ip_bytes;          /* Sent IP traffic, which can carry a DSCP. */
    uint64_t default_bytes;     /* Part of 'ip_bytes' in the default class. */
    uint64_t level_bytes[SHIM_N_LEVELS];        /* Sent by jobs. */
    uint64_t level_dropped[SHIM_N_LEVELS];      /* Packets of jobs. */
};

struct traffic_slot {
    bool seen;                  /* The values below are of this shim. */
    uint64_t tx_bytes, rx_bytes, dropped;
};

/* All 0 at the start. */
struct traffic {
    uint64_t boot_id;           /* Identifies the shim that 'last' is from; 0
                                 * before the first statistics. */
    bool old;                   /* That shim may have started before this
                                 * agent. */
    struct traffic_totals total;        /* Reported to the controller. */
    struct traffic_totals last; /* Last values of the shim's counters. */
    struct traffic_slot slots[SHIM_MAX_SLOTS];  /* Last values by slot. */
};

typedef void traffic_func(uint16_t slot, uint64_t tx_bytes, uint64_t rx_bytes,
                          void *aux);

void traffic_add_stats(struct traffic *, const struct shim_stats *,
                       const struct shim_slot_stats *, size_t n,
                       traffic_func *, void *aux);

#endif /* agent/actuate/traffic.h */
