/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/bursts.h"

#include <stdlib.h>
#include <string.h>

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
