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
 * network, where nobody knows of jobs, below it capacity is lost.  The bucket
 * is kept as the time at which it would be full, so that it needs no refilling
 * and can say when to wake up.
 *
 * A frame may leave while the bucket is not empty, and may leave it in debt:
 * when the next one is due thus does not depend on which one that will be.  A
 * bucket as deep as the longest frame sends at most two of them at once.
 *
 * A thread that sleeps wakes up late, and with a shallow bucket what the link
 * could have carried meanwhile would be lost.  So a bucket may be overfull for
 * as long as something is waiting for it, see pace_forget(); after a pause it
 * is not.
 *
 *
 * Usage
 * =====
 *
 *    pace_set_rate(&pace, now, 50000000, 9018);
 *    ...
 *    pace_forget(&pace, now, was_waiting ? 500000 : 0);
 *    while (pace_due(&pace) <= now) {
 *        pace_take(&pace, length);
 *        ...send...
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * One thread.  Times are nanoseconds of any clock that does not go back. */

#include <stdbool.h>
#include <stdint.h>

#define PACE_SHIFT 28           /* Fractions of a nanosecond. */
#define PACE_MAX_NS (UINT64_C(1) << 35) /* More is no limit. */

struct pace {
    uint64_t bps;               /* Bits per second, 0 before the first rate. */
    uint64_t full;              /* When the bucket is full again... */
    uint64_t part;              /* ...and this much, in 2^-28 ns. */
    uint64_t cost;              /* Of a byte, in 2^-28 ns. */
    uint64_t depth;             /* Nanoseconds to fill it from empty. */
};

void pace_set_rate(struct pace *, uint64_t now, uint64_t bps,
                   uint64_t depth_bytes);

/* Returns when the next frame may leave, 0 for a long time ago. */
static inline uint64_t
pace_due(const struct pace *pace)
{
    return pace->full > pace->depth ? pace->full - pace->depth : 0;
}

/* Returns for how many bytes frames may leave at 'now': one may as long as
 * those before it have less.  The same as asking pace_due() before each. */
static inline uint64_t
pace_allowance(const struct pace *pace, uint64_t now)
{
    uint64_t end = now + pace->depth + 1;
    uint64_t ns = end > pace->full ? end - pace->full : 0;
    uint64_t room;

    if (ns >= PACE_MAX_NS || !pace->cost) {
        return ns ? UINT64_MAX : 0;
    }
    room = ns << PACE_SHIFT;
    return room > pace->part ? (room - pace->part - 1) / pace->cost + 1 : 0;
}

/* Takes a frame of 'length' bytes, or several that have so many, out of the
 * bucket. */
static inline void
pace_take(struct pace *pace, uint32_t length)
{
    uint64_t sum = pace->part + length * pace->cost;

    pace->full += sum >> PACE_SHIFT;
    pace->part = sum & ((UINT64_C(1) << PACE_SHIFT) - 1);
}

/* Lets the bucket at 'now' hold at most what it is deep, and what 'late'
 * nanoseconds bring. */
static inline void
pace_forget(struct pace *pace, uint64_t now, uint64_t late)
{
    if (pace->full + late < now) {
        pace->full = now - late;
        pace->part = 0;
    }
}

#endif /* shim/queue/pace.h */
