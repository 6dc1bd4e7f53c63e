/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LEASE_H
#define LEASE_H 1

/* For how long the controller's order holds.
 *
 *
 * Motivation
 * ==========
 *
 * A host follows an order only as long as somebody alive stands behind it.
 * Two things say so: a change of the host's wanted row, and a notification on
 * the telemetry stream.  They come on different ways, from controllers that
 * may not know that another has taken over.  So both carry the generation of
 * their controller, the agent never goes back to an older one, and a
 * notification holds only the order of its own generation.
 *
 *
 * Usage
 * =====
 *
 *    if (lease_row(&lease, row->generation, row->lease_ms, now)) {
 *        ...take over the row...
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

/* What a peer may ask for, whatever it asks for. */
#define LEASE_MIN_MS 100
#define LEASE_MAX_MS 600000

struct lease {
    int64_t newest;             /* Generation, the highest that was seen. */
    int64_t row;                /* Generation of the row, -1 without one. */
    int64_t held;               /* Generation that 'until' is for. */
    long long until;            /* Time, on the clock of 'now'. */
};

void lease_init(struct lease *);
bool lease_row(struct lease *, int64_t generation, int64_t ms, long long now);
bool lease_notify(struct lease *, int64_t generation, int64_t ms,
                  long long now);

/* The time at which the order ends to hold, 0 if it does not hold at all. */
long long lease_until(const struct lease *);

#endif /* agent/lease.h */
