/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WANTED_H
#define WANTED_H 1

/* Desired state of this host.
 *
 *
 * Motivation
 * ==========
 *
 * A copy of the host's row of Host_Wanted: the order must survive a loss of
 * the database connection, and a row of a controller that has been replaced
 * must be ignored.
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
    unsigned int idl_seqno;     /* Sequence number of the last check. */
    char *text;                 /* Last content of the row, NULL before the
                                 * first. */

    /* Values of the row that was applied last. */
    bool present;               /* False before the first one. */
    int64_t version;
    int64_t generation;
    uint8_t default_dscp;       /* 0 before the first row. */
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
