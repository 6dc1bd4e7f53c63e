/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_BURSTS_H
#define SHIM_BURSTS_H 1

/* The bursts of each job, in each direction; see burst-train.h.
 *
 *
 * Usage
 * =====
 *
 *    bursts_count(b, slot, BURSTS_TX, length, now);      (loop)
 *
 *    bursts_reset(b, slot);                              (control thread)
 *    bursts_get(b, slot, BURSTS_TX, now, &stats);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * One thread counts.  The control thread gets, and asks for a reset when a
 * slot changes hands; the counting thread does it at the slot's next packet,
 * and until then there is nothing to get. */

#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"
#include "shim/classify/burst-train.h"

enum bursts_direction {
    BURSTS_TX,                  /* Host to uplink. */
    BURSTS_RX,
};

struct bursts {
    uint8_t reset[SHIM_MAX_SLOTS];      /* Wanted; the loop clears it. */
    struct burst_train trains[SHIM_MAX_SLOTS][2];
};

struct bursts *bursts_create(void);
void bursts_destroy(struct bursts *);

void bursts_begin_again(struct bursts *, uint16_t slot);

/* Slot 0 is not counted: it is no job. */
static inline void
bursts_count(struct bursts *b, uint16_t slot, enum bursts_direction direction,
             uint32_t bytes, uint64_t now)
{
    if (!slot) {
        return;
    }
    if (__builtin_expect(__atomic_load_n(&b->reset[slot], __ATOMIC_ACQUIRE),
                         0)) {
        bursts_begin_again(b, slot);
    }
    burst_train_count(&b->trains[slot][direction], bytes, now);
}

/* The control thread. */
void bursts_reset(struct bursts *, uint16_t slot);
void bursts_get(const struct bursts *, uint16_t slot, enum bursts_direction,
                uint64_t now, struct shim_burst_stats *);
size_t bursts_bins(const struct bursts *, uint16_t slot, uint64_t now,
                   uint64_t since, uint64_t *firstp,
                   struct shim_bin bins[SHIM_MAX_BINS]);

#endif /* shim/classify/bursts.h */
