/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CAPTURE_TAP_H
#define CAPTURE_TAP_H 1

/* From the loop to whoever captures: copies of frames.
 *
 *
 * Motivation
 * ==========
 *
 * A port of DPDK's has no tcpdump.  So the loop copies the frames that
 * somebody wants to see into a ring of fixed size and never waits: what does
 * not fit is lost to the capture, counted, and forwarded all the same.  While
 * nobody captures a frame costs one load.
 *
 * DPDK's own pcapng library is not used: it derives times from a clock that
 * it calibrates once, which in a process that runs for days ends up hours
 * off.
 *
 *
 * Usage
 * =====
 *
 *    tap_start(t, slot, snap);                   (control thread)
 *    tap_see(t, slot, to_host, data, captured, length, now);     (loop)
 *    size = tap_take(t, buffer, sizeof buffer);  (control thread)
 *    tap_stop(t);
 *
 * What is taken are whole records, struct shim_captured and its bytes.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * One thread sees, one takes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct tap {
    /* The control thread writes, the loop reads. */
    uint32_t wanted;            /* 0: nothing, else slot + 1 or TAP_ALL. */
    uint32_t snap;              /* Bytes of each frame. */
    uint64_t head;              /* Next byte to take. */

    /* The other way round. */
    uint64_t tail __attribute__((aligned(64)));         /* Next free byte. */
    uint32_t dropped;           /* Frames, since ever. */

    uint32_t dropped_before;    /* When the capture began. */
    size_t size;                /* Of 'ring', a power of 2. */
    uint8_t *ring;
};

#define TAP_ALL UINT32_MAX

struct tap *tap_create(size_t size);
void tap_destroy(struct tap *);

/* The control thread. */
void tap_start(struct tap *, const struct shim_capture *);
void tap_stop(struct tap *);
size_t tap_take(struct tap *, void *buffer, size_t max);

void tap_put(struct tap *, uint16_t slot, bool to_host, const uint8_t *data,
             uint32_t captured, uint32_t length, uint64_t now);

/* Any thread: does somebody capture?  No tap is fine. */
static inline bool
tap_is_on(const struct tap *t)
{
    return t && __atomic_load_n(&t->wanted, __ATOMIC_RELAXED);
}

/* The loop.  'captured' bytes of 'length' are at 'data'; no tap is fine. */
static inline void
tap_see(struct tap *t, uint16_t slot, bool to_host, const uint8_t *data,
        uint32_t captured, uint32_t length, uint64_t now)
{
    if (t) {
        uint32_t wanted = __atomic_load_n(&t->wanted, __ATOMIC_RELAXED);

        if (__builtin_expect(wanted != 0, 0)
            && (wanted == TAP_ALL || wanted == slot + 1u)) {
            tap_put(t, slot, to_host, data, captured, length, now);
        }
    }
}

#endif /* shim/capture/tap.h */
