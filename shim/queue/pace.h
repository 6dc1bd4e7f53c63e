/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PACE_H
#define SHIM_PACE_H 1

/* A token bucket: when the next frame may leave.
 *
 * The uplink must get exactly its capacity: above it a queue grows in the
 * network, which does not know jobs; below it capacity is lost.  The bucket is
 * stored as the time at which it will be full, so that it needs no refilling
 * and the time of the next frame is known.
 *
 * A frame may leave while the bucket is not empty, and may leave a debt: so
 * when the next frame is due does not depend on its length.  A bucket as deep
 * as the longest frame sends at most two frames at once; a deeper one would
 * send its whole depth after every pause.
 *
 * A thread that sleeps wakes up late, and a shallow bucket would lose what the
 * link could have carried meanwhile.  So a bucket may be overfull while
 * packets are waiting, see pace_forget(), but not after a pause.
 *
 * A changed rate keeps the debt in bytes.  When the debt was discarded,
 * thousands of changes per second let a flow limited to 3 Mbit/s send 40.
 *
 *    pace_set_rate(&pace, now, 50000000, 9018);
 *    ...
 *    pace_forget(&pace, now, was_waiting ? 500000 : 0);
 *    while (pace_due(&pace) <= now) {
 *        pace_take(&pace, length);
 *        ...send...
 *    }
 *
 * One thread.  Times are nanoseconds of any clock that does not go back. */

#include <stdint.h>

#define PACE_SHIFT 28           /* Fractions of a nanosecond. */
#define PACE_MAX_NS (UINT64_C(1) << 35) /* A longer credit is no limit. */

struct pace {
    uint64_t bps;               /* Bits per second, 0 before the first rate. */
    uint64_t full;              /* When the bucket is full, nanoseconds. */
    uint64_t part;              /* Fraction of 'full', in 2^-28 ns. */
    uint64_t cost;              /* Time of a byte, in 2^-28 ns. */
    uint64_t depth;             /* Nanoseconds to fill it from empty. */
};

/* Sets the rate from 'now' on, 'bps' > 0.  'pace' must be zeroed before the
 * first call; the bucket is then full.  A debt keeps its bytes, so that a rate
 * that changes often is kept as well.  The cost of a byte is rounded up: the
 * rate is never above 'bps', and less than a millionth below it. */
static inline void
pace_set_rate(struct pace *pace, uint64_t now, uint64_t bps,
              uint64_t depth_bytes)
{
    unsigned __int128 byte = (unsigned __int128) 8000000000u << PACE_SHIFT;
    uint64_t old = pace->cost;

    pace->bps = bps;
    pace->cost = (byte + bps - 1) / bps;
    pace->part = 0;
    pace->depth = depth_bytes * pace->cost >> PACE_SHIFT;
    if (pace->full > now && old) {
        unsigned __int128 debt = pace->full - now;

        pace->full = now + debt * pace->cost / old;
    }
}

/* Returns when the next frame may leave, 0 if at any time. */
static inline uint64_t
pace_due(const struct pace *pace)
{
    return pace->full > pace->depth ? pace->full - pace->depth : 0;
}

/* Returns how many bytes may leave at 'now': a frame may as long as the frames
 * before it have less.  Equivalent to pace_due() before each frame. */
static inline uint64_t
pace_allowance(const struct pace *pace, uint64_t now)
{
    uint64_t end = now + pace->depth + 1;
    uint64_t ns = end > pace->full ? end - pace->full : 0;
    uint64_t credit;

    if (ns >= PACE_MAX_NS || !pace->cost) {
        return ns ? UINT64_MAX : 0;
    }
    credit = ns << PACE_SHIFT;
    return (credit > pace->part
            ? (credit - pace->part - 1) / pace->cost + 1 : 0);
}

/* Takes frames with 'length' bytes altogether out of the bucket. */
static inline void
pace_take(struct pace *pace, uint32_t length)
{
    uint64_t sum = pace->part + length * pace->cost;

    pace->full += sum >> PACE_SHIFT;
    pace->part = sum & ((UINT64_C(1) << PACE_SHIFT) - 1);
}

/* Limits the bucket at 'now' to its depth and what 'late' nanoseconds add. */
static inline void
pace_forget(struct pace *pace, uint64_t now, uint64_t late)
{
    if (pace->full + late < now) {
        pace->full = now - late;
        pace->part = 0;
    }
}

#endif /* shim/queue/pace.h */
