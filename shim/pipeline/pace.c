/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/pace.h"

/* Sets the rate from 'now' on, 'bps' > 0.  'pace' must be zeroed before the
 * first call; the bucket is then full.  What a slower rate has left of debt is
 * forgotten but for a bucket of it.  The cost of a byte is rounded up, so that
 * the rate is never above 'bps', and less than a millionth below it. */
void
pace_set_rate(struct pace *pace, uint64_t now, uint64_t bps,
              uint64_t depth_bytes)
{
    unsigned __int128 byte = (unsigned __int128) 8000000000u << PACE_SHIFT;

    pace->bps = bps;
    pace->cost = (byte + bps - 1) / bps;
    pace->part = 0;
    pace->depth = depth_bytes * pace->cost >> PACE_SHIFT;
    if (pace->full > now + pace->depth) {
        pace->full = now + pace->depth;
    }
}
