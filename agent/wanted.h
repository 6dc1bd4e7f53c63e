/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WANTED_H
#define WANTED_H 1

/* What the controller wants of this host.
 *
 *
 * Motivation
 * ==========
 *
 * The host's row of Host_Wanted, kept as a copy: the order has to survive the
 * database's going away, and a row of a controller that has been replaced must
 * not be taken over.
 *
 *
 * Usage
 * =====
 *
 *    wanted_init(&wanted, idl, host);            // Before the IDL runs.
 *    if (wanted_run(&wanted, idl, &lease, now)) {
 *        for each job: wanted_get(&wanted, name, &row);
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Main thread only. */

#include <stdbool.h>
#include <stdint.h>

#include "openvswitch/hmap.h"
#include "wire/shim-protocol.h"

struct lease;
struct ovsdb_idl;

struct wanted {
    char *host;
    unsigned int idl_seqno;     /* Of the last look. */
    char *text;                 /* The row as it was seen last, NULL before the
                                 * first. */

    /* Of the row that was taken over last. */
    bool present;               /* False before the first. */
    int64_t version;
    int64_t generation;
    uint8_t default_dscp;       /* 0 before the first. */
    struct shim_congestion congestion;  /* SHIM_CONGESTION_DEFAULT where the
                                         * controller does not say. */
    uint32_t min_share;         /* As in struct shim_min_share; the default
                                 * before the first row, and if it has
                                 * none. */
    struct hmap jobs;           /* Contains struct wanted_job, by name. */
};

void wanted_init(struct wanted *, struct ovsdb_idl *, const char *host);
void wanted_uninit(struct wanted *);

bool wanted_run(struct wanted *, const struct ovsdb_idl *, struct lease *,
                long long now);
bool wanted_get(const struct wanted *, const char *job, struct shim_slot *);

#endif /* agent/wanted.h */
