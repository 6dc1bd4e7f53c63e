/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/pace.h"

static uint64_t
nanoseconds(uint64_t bytes, uint64_t bps)
{
    return bytes * 8 * 1000000000 / bps;
}

/* Returns the burst in bytes for a link of 'bps' whose frames have up to
 * 'max_frame' bytes: two frames, so that what is left of the bucket when the
 * next frame does not fit is not lost, and as much as the link sends in
 * 500 us, since a loop that sleeps comes late. */
uint64_t
pace_burst(uint64_t bps, uint32_t max_frame)
{
    return bps / 8 / 2000 + 2 * max_frame;
}

/* Sets the rate from 'now' on.  'pace' must be zeroed before the first call;
 * the bucket is then full.  What a slower rate has left of debt is forgotten.
 * 'burst_bytes' must be at least the longest frame, or that frame would never
 * be due. */
void
pace_set_rate(struct pace *pace, uint64_t now, uint64_t bps,
              uint64_t burst_bytes)
{
    pace->bps = bps;
    pace->part = 0;
    pace->depth = nanoseconds(burst_bytes, bps);
    if (pace->full > now + pace->depth) {
        pace->full = now + pace->depth;
    }
}

/* Returns when a frame of 'length' bytes may leave, 0 for a long time ago. */
uint64_t
pace_due(const struct pace *pace, uint32_t length)
{
    uint64_t full = pace->full + nanoseconds(length, pace->bps);

    return full > pace->depth ? full - pace->depth : 0;
}

/* Takes a frame of 'length' bytes that leaves at 'now' out of the bucket. */
void
pace_take(struct pace *pace, uint64_t now, uint32_t length)
{
    if (pace->full < now) {
        pace->full = now;
    }
    pace->full += nanoseconds(length, pace->bps);
    pace->part += length * UINT64_C(8000000000) % pace->bps;
    if (pace->part >= pace->bps) {
        pace->part -= pace->bps;
        pace->full++;
    }
}
