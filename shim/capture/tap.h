/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CAPTURE_TAP_H
#define CAPTURE_TAP_H 1

/* The tap: passes copies of frames from the forwarding loop to a capture.
 *
 * tcpdump cannot capture on a DPDK port.  So the loop copies the frames of a
 * capture into a ring of fixed size.  It never waits: frames that do not fit
 * are counted, missing in the capture, and forwarded as usual.  Without a
 * capture, a frame costs one load.
 *
 * DPDK's pcapng library is not used: it derives times from a clock that it
 * calibrates once, which is hours wrong after some days.
 *
 *    tap_start(t, &capture);                             (control thread)
 *    tap_see(t, slot, to_host, data, captured, length, now);     (loop)
 *    size = tap_take(t, buffer, sizeof buffer);          (control thread)
 *    tap_stop(t);
 *
 * tap_take() returns whole records: struct shim_captured and its bytes.
 *
 * One thread writes, one reads. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

struct tap {
    /* Written by the control thread, read by the loop. */
    uint32_t wanted;            /* Frames: 0 none, slot + 1, or TAP_ALL. */
    uint32_t snap;              /* Bytes kept of each frame. */
    uint64_t head;              /* Next byte to read. */

    /* Written by the loop, read by the control thread. */
    uint64_t tail __attribute__((aligned(64)));         /* Next free byte. */
    uint32_t dropped;           /* Frames that did not fit, in all captures. */

    uint32_t dropped_before;    /* 'dropped' at the start of the capture. */
    size_t size;                /* Bytes of 'ring', a power of 2. */
    uint8_t *ring;
};

#define TAP_ALL UINT32_MAX

/* 'size' is a power of 2 and more than twice the longest frame. */
struct tap *tap_create(size_t size);
void tap_destroy(struct tap *);

/* The control thread.  tap_start() discards records of an earlier capture.
 * tap_take() moves records of up to 'max' bytes to 'buffer' and returns their
 * size. */
void tap_start(struct tap *, const struct shim_capture *);
void tap_stop(struct tap *);
size_t tap_take(struct tap *, void *buffer, size_t max);

void tap_put(struct tap *, uint16_t slot, bool to_host, const uint8_t *data,
             uint32_t captured, uint32_t length, uint64_t now);

/* Any thread: returns true during a capture.  The tap may be null. */
static inline bool
tap_is_on(const struct tap *t)
{
    return t && __atomic_load_n(&t->wanted, __ATOMIC_RELAXED);
}

/* The loop: captures a frame if it is wanted.  'data' has 'captured' of its
 * 'length' bytes.  The tap may be null. */
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
