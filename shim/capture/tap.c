/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/capture/tap.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "shim/clock/counter.h"

_Static_assert(sizeof(struct shim_captured) % 8 == 0,
               "records are aligned to 8 bytes");

struct tap *
tap_create(size_t size)
{
    struct tap *t = allocate_lines(sizeof *t);

    memset(t, 0, sizeof *t);
    t->size = size;
    t->ring = allocate(1, size);
    return t;
}

void
tap_destroy(struct tap *t)
{
    if (t) {
        free(t->ring);
        free(t);
    }
}

void
tap_start(struct tap *t, const struct shim_capture *what)
{
    tap_stop(t);
    STORE(&t->head, LOAD(&t->tail));
    t->dropped_before = LOAD(&t->dropped);
    STORE(&t->snap, what->snap);
    STORE(&t->wanted, what->all ? TAP_ALL : what->slot + 1u);
}

void
tap_stop(struct tap *t)
{
    STORE(&t->wanted, 0);
}

/* Copies a frame into the ring, or counts it as dropped.  A record does not
 * wrap around: one of size 0 skips the rest of the ring. */
void
tap_put(struct tap *t, uint16_t slot, bool to_host, const uint8_t *data,
        uint32_t captured, uint32_t length, uint64_t now)
{
    uint32_t snap = LOAD(&t->snap), dropped = t->dropped;
    struct shim_captured record = {
        .length = length, .captured = captured < snap ? captured : snap,
        .time = now, .slot = slot, .to_host = to_host
    };
    size_t at = t->tail & (t->size - 1), skip = 0;
    uint64_t used = t->tail - LOAD(&t->head);

    record.size = sizeof record + (record.captured + 7u) / 8 * 8;
    if (t->size - at < record.size) {
        skip = t->size - at;
    }
    if (t->size - used < skip + record.size) {
        STORE(&t->dropped, dropped + 1);
        return;
    }
    record.dropped = dropped;
    if (skip) {
        memset(t->ring + at, 0, sizeof record.size);
        at = 0;
    }
    memcpy(t->ring + at, &record, sizeof record);
    memcpy(t->ring + at + sizeof record, data, record.captured);
    memset(t->ring + at + sizeof record + record.captured, 0,
           record.size - sizeof record - record.captured);
    STORE(&t->tail, t->tail + skip + record.size);
}

/* Returns true if the frame of 'record' is part of this capture: frames of the
 * previous one may have been added while it ended. */
static bool
is_wanted(const struct tap *t, const struct shim_captured *record)
{
    return t->wanted == TAP_ALL || t->wanted == record->slot + 1u;
}

size_t
tap_take(struct tap *t, void *buffer, size_t max)
{
    uint64_t head = t->head, tail = LOAD(&t->tail);
    size_t n = 0;

    while (head != tail) {
        size_t at = head & (t->size - 1);
        struct shim_captured record;

        memcpy(&record.size, t->ring + at, sizeof record.size);
        if (!record.size) {
            head += t->size - at;
            continue;
        }
        memcpy(&record, t->ring + at, sizeof record);
        if (n + record.size > max) {
            break;
        }
        if (is_wanted(t, &record)) {
            record.dropped -= t->dropped_before;
            memcpy((char *) buffer + n, &record, sizeof record);
            memcpy((char *) buffer + n + sizeof record,
                   t->ring + at + sizeof record, record.size - sizeof record);
            n += record.size;
        }
        head += record.size;
    }
    STORE(&t->head, head);
    return n;
}
