/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/classify/bursts.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(SHIM_MAX_BINS == BURST_N_BINS - 1, "see burst_train_bins()");
_Static_assert(SHIM_BIN_MS * 1000000 == BURST_BIN, "bins have one size");

/* Returns NULL without memory. */
struct bursts *
bursts_create(void)
{
    return calloc(1, sizeof(struct bursts));
}

void
bursts_destroy(struct bursts *b)
{
    free(b);
}

/* Forgets what 'slot' had, as the counting thread. */
void
bursts_begin_again(struct bursts *b, uint16_t slot)
{
    memset(b->trains[slot], 0, sizeof b->trains[slot]);
    __atomic_store_n(&b->reset[slot], 0, __ATOMIC_RELEASE);
}

/* The next packet of 'slot' is another job's first. */
void
bursts_reset(struct bursts *b, uint16_t slot)
{
    __atomic_store_n(&b->reset[slot], 1, __ATOMIC_RELEASE);
}

/* Stores in '*stats' what is known of 'slot' at 'now'; zeros if nothing. */
void
bursts_get(const struct bursts *b, uint16_t slot,
           enum bursts_direction direction, uint64_t now,
           struct shim_burst_stats *stats)
{
    struct burst_profile p;

    memset(stats, 0, sizeof *stats);
    if (!__atomic_load_n(&b->reset[slot], __ATOMIC_ACQUIRE)
        && burst_train_get(&b->trains[slot][direction], now, &p)) {
        *stats = (struct shim_burst_stats) {
            .period_ns = p.period_ns,
            .bytes = p.burst_bytes,
            .duty = p.duty,
            .regularity = p.regularity,
        };
    }
}

/* Stores in 'bins' what 'slot' moved in each bin from number 'since' on that
 * has ended before 'now', and the number of the first in '*firstp'.  Returns
 * how many there are. */
size_t
bursts_bins(const struct bursts *b, uint16_t slot, uint64_t now,
            uint64_t since, uint64_t *firstp,
            struct shim_bin bins[SHIM_MAX_BINS])
{
    uint32_t bytes[2][BURST_N_BINS];
    size_t n = 0;

    *firstp = now / BURST_BIN;
    if (!__atomic_load_n(&b->reset[slot], __ATOMIC_ACQUIRE)) {
        for (int i = BURSTS_TX; i <= BURSTS_RX; i++) {
            n = burst_train_bins(&b->trains[slot][i], now, since, bytes[i]);
        }
    }
    *firstp -= n;
    for (size_t i = 0; i < n; i++) {
        bins[i].tx = bytes[BURSTS_TX][i];
        bins[i].rx = bytes[BURSTS_RX][i];
    }
    return n;
}
