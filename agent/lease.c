/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/lease.h"

void
lease_init(struct lease *lease)
{
    lease->newest = lease->row = lease->held = -1;
    lease->until = 0;
}

static bool
hold(struct lease *lease, int64_t generation, int64_t ms, long long now)
{
    if (generation < 0 || generation < lease->newest) {
        return false;
    }
    lease->newest = lease->held = generation;
    ms = ms < LEASE_MIN_MS ? LEASE_MIN_MS : ms;
    lease->until = now + (ms > LEASE_MAX_MS ? LEASE_MAX_MS : ms);
    return true;
}

/* Handles a new or changed row of 'generation' whose order is valid for 'ms'.
 * Returns false if the row must be ignored, because a newer generation has
 * been seen. */
bool
lease_row(struct lease *lease, int64_t generation, int64_t ms, long long now)
{
    if (!hold(lease, generation, ms, now)) {
        return false;
    }
    lease->row = generation;
    return true;
}

/* Handles a notification that the order of 'generation' is valid for 'ms'.
 * Returns false if it must be ignored, because a newer generation has been
 * seen. */
bool
lease_notify(struct lease *lease, int64_t generation, int64_t ms,
             long long now)
{
    return hold(lease, generation, ms, now);
}

long long
lease_until(const struct lease *lease)
{
    return lease->row >= 0 && lease->row == lease->held ? lease->until : 0;
}
