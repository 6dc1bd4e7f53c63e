/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/queue/pace.h"

/* Sets the rate from 'now' on, 'bps' > 0.  'pace' must be zeroed before the
 * first call; the bucket is then full.  A debt keeps its bytes, so that a rate
 * that changes often is kept as well.  The cost of a byte is rounded up: the
 * rate is never above 'bps', and less than a millionth below it. */
void
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
