/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WANTED_H
#define WANTED_H 1

/* Desired state of this host, and the time for which it is valid.
 *
 * A copy of the host's row of Host_Wanted: the order must survive a loss of
 * the database connection, and a row of a controller that has been replaced
 * must be ignored.
 *
 * A host follows an order only while a controller confirms it: by a change of
 * the host's row, or by a notification on the telemetry stream.  These arrive
 * on different connections, possibly from a controller that has not noticed
 * its replacement.  Both therefore carry the generation of their controller.
 * The agent ignores generations older than the newest one seen, and a
 * notification extends only the order of its own generation.
 *
 *    wanted_init(&wanted, idl, host);            // Before the IDL runs.
 *    if (wanted_run(&wanted, idl, &lease, now)) {
 *        ...wanted_get(&wanted, name, &row) for each job...
 *    }
 *    lease_notify(&lease, generation, lease_ms, now);
 *    state = lease_until(&lease) > now ? "ordered" : "fair";
 *
 * Main thread only. */

#include <stdbool.h>
#include <stdint.h>

#include "agent/actuate/actuator.h"
#include "openvswitch/shash.h"
#include "wire/membership.h"
#include "wire/shim-protocol.h"

struct ovsdb_idl;

/* Limits of a lease, whatever a controller requests. */
#define LEASE_MIN_MS 100
#define LEASE_MAX_MS 600000

struct lease {
    int64_t newest;             /* Highest generation seen. */
    int64_t row;                /* Generation of the row, -1 without one. */
    int64_t held;               /* Generation to which 'until' applies. */
    long long until;            /* End of the lease, on the clock of 'now'. */
};

void lease_init(struct lease *);

/* Handle a new or changed row, and a notification: the order of 'generation'
 * is valid for 'ms'.  Return false if they must be ignored, because a newer
 * generation has been seen. */
bool lease_row(struct lease *, int64_t generation, int64_t ms, long long now);
bool lease_notify(struct lease *, int64_t generation, int64_t ms,
                  long long now);

/* Returns the end of the lease, or 0. */
long long lease_until(const struct lease *);

#define WANTED_NO_DSCP UINT8_MAX

struct wanted {
    unsigned int idl_seqno; /* Sequence number of the last check. */

    /* Values of the row that was applied last. */
    bool present;               /* False before the first one. */
    int64_t version;
    int64_t generation;
    uint8_t dscp[SHIM_N_LEVELS];        /* DSCP of each level of the policy,
                                         * WANTED_NO_DSCP where it has none;
                                         * SHIM_LEVEL_DSCPS before the first
                                         * row. */
    struct actuator_wanted all;         /* Without 'until'; defaults where
                                         * the controller does not say. */
    bool trusts_environment;    /* Processes that are known by their
                                 * environment or ports only may have
                                 * priority: the policy's trust, true if the
                                 * database has no such column. */
    struct shash jobs;          /* Contains struct wanted_job, by name. */
};

void wanted_init(struct wanted *, struct ovsdb_idl *, const char *host);
void wanted_uninit(struct wanted *);

bool wanted_run(struct wanted *, const struct ovsdb_idl *, struct lease *,
                long long now);
bool wanted_get(const struct wanted *, const char *job, struct shim_slot *);

void wanted_get_default(const struct wanted *, struct shim_slot *);

/* Stores the owner of the job's cojob. */
void wanted_get_owner(const struct wanted *, const char *job,
                      struct membership_owner *);

#endif /* agent/wanted.h */
