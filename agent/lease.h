/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LEASE_H
#define LEASE_H 1

/* Validity of the controller's order.
 *
 *
 * Motivation
 * ==========
 *
 * A host follows an order only while a controller confirms it: by a change of
 * the host's row in Host_Wanted, or by a notification on the telemetry stream.
 * These arrive on different connections, possibly from a controller that has
 * not noticed its replacement.  Both therefore carry the generation of their
 * controller.  The agent ignores generations older than the newest one seen,
 * and a notification extends only the order of its own generation.
 *
 *
 * Usage
 * =====
 *
 *    if (lease_row(&lease, generation, lease_ms, now)) {
 *        ...apply the row...
 *    }
 *    lease_notify(&lease, generation, lease_ms, now);
 *    state = lease_until(&lease) > now ? "ordered" : "fair";
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data. */

#include <stdbool.h>
#include <stdint.h>

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
bool lease_row(struct lease *, int64_t generation, int64_t ms, long long now);
bool lease_notify(struct lease *, int64_t generation, int64_t ms,
                  long long now);

/* Returns the end of the lease, 0 if there is none. */
long long lease_until(const struct lease *);

#endif /* agent/lease.h */
