/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PACE_H
#define SHIM_PACE_H 1

/* A token bucket: when may the next frame leave?
 *
 *
 * Motivation
 * ==========
 *
 * The uplink must get exactly what it carries: above it a queue grows in the
 * network, where nobody knows of levels, below it capacity is lost.  The
 * bucket is kept as the time at which it would be full, so that it needs no
 * refilling and can say when to wake up.
 *
 *
 * Usage
 * =====
 *
 *    pace_set_rate(&pace, now, 50000000, 18028);
 *    due = pace_due(&pace, length);
 *    if (due <= now) {
 *        pace_take(&pace, now, length);
 *        ...send...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * One thread.  Times are nanoseconds of any clock that does not go back. */

#include <stdint.h>

struct pace {
    uint64_t bps;               /* Bits per second, > 0. */
    uint64_t full;              /* When the bucket is full again... */
    uint64_t part;              /* ...and this many 1/bps nanoseconds. */
    uint64_t depth;             /* Nanoseconds to fill it from empty. */
};

uint64_t pace_burst(uint64_t bps, uint32_t max_frame);
void pace_set_rate(struct pace *, uint64_t now, uint64_t bps,
                   uint64_t burst_bytes);
uint64_t pace_due(const struct pace *, uint32_t length);
void pace_take(struct pace *, uint64_t now, uint32_t length);

#endif /* shim/pipeline/pace.h */
