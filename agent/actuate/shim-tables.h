/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_TABLES_H
#define SHIM_TABLES_H 1

/* Installed and desired slots of the shim or the kernel, and their traffic.
 *
 * Two tables have to become equal: the desired rows, by the name of the job,
 * and the installed ones.  Agent and shim restart independently, so the agent
 * never assumes what the shim has: after each connect it adopts the shim's
 * list, numbers of slots included, and from then on sends only differences.
 *
 *    slot_table_want(st, "asha/t0", &row, true);
 *    slot_table_adopt(st, rows, n);              // From SHIM_SLOT_LIST.
 *    slot_table_changes(st, &slot_changes);      // To SLOT_SET, SLOT_CLEAR.
 *
 * The shim counts by slot since its own start; the agent reports counters that
 * belong to jobs and never decrease.  Meanwhile the shim can restart (its
 * counters begin at 0), the agent can restart (the first values are only the
 * starting point), and a slot can be given to another job.
 *
 *    traffic_add_stats(tr, stats, slots, n, on_slot_traffic, aux);
 *
 * Names are copied.  Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "openvswitch/shash.h"
#include "wire/shim-protocol.h"

struct slot_job;

struct slot_table {
    struct shash jobs; /* Contains struct slot_job, by name. */

    /* By number: the job, and the row of the shim; 'slot' is 0 without a
     * row. */
    struct slot_job *owners[SHIM_MAX_SLOTS];
    struct shim_slot installed[SHIM_MAX_SLOTS];
    uint16_t last;              /* Given out last, so that a number is reused
                                 * as late as possible. */
};

/* Rows to set and numbers to clear. */
struct slot_changes {
    struct shim_slot set[SHIM_MAX_SLOTS];
    uint16_t clear[SHIM_MAX_SLOTS];
    size_t n_set, n_clear;
};

void slot_table_init(struct slot_table *);
void slot_table_uninit(struct slot_table *);

void slot_table_want(struct slot_table *, const char *job,
                     const struct shim_slot *, bool decided);
void slot_table_unwant(struct slot_table *, const char *name);

void slot_table_adopt(struct slot_table *, const struct shim_slot *, size_t n);
void slot_table_changes(struct slot_table *, struct slot_changes *);

uint16_t slot_table_number(const struct slot_table *, const char *name);
const char *slot_table_name(const struct slot_table *, uint16_t slot);
uint64_t *slot_table_next_bin(struct slot_table *, uint16_t slot);

/* Counters since the agent started, over all shims.  They never decrease. */
struct traffic_totals {
    uint64_t tx_bytes, rx_bytes;
    uint64_t ip_bytes;      /* Sent IP traffic, which can carry a DSCP. */
    uint64_t default_bytes; /* Part of 'ip_bytes' in the default class. */
    uint64_t level_bytes[SHIM_N_LEVELS];   /* Sent by jobs. */
    uint64_t level_dropped[SHIM_N_LEVELS]; /* Packets of jobs. */
};

struct traffic_slot {
    bool seen; /* The values below are of this shim. */
    uint64_t tx_bytes, rx_bytes, dropped;
};

/* All 0 at the start. */
struct traffic {
    uint64_t boot_id;            /* Identifies the shim that 'last' is from; 0
                                  * before the first statistics. */
    bool old;                    /* That shim may have started before this
                                  * agent. */
    struct traffic_totals total; /* Reported to the controller. */
    struct traffic_totals last;  /* Last values of the shim's counters. */
    struct traffic_slot slots[SHIM_MAX_SLOTS]; /* Last values by slot. */
};

typedef void traffic_func(uint16_t slot, uint64_t tx_bytes, uint64_t rx_bytes,
                          void *aux);

void traffic_add_stats(struct traffic *, const struct shim_stats *,
                       const struct shim_slot_stats *, size_t n,
                       traffic_func *, void *aux);

#endif /* agent/actuate/shim-tables.h */
