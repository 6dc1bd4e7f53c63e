/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_DUE_HEAP_H
#define SHIM_DUE_HEAP_H 1

/* A priority queue by time.
 *
 * The next packet of a paced flow may be due in a microsecond or in a second.
 * A timing wheel has a horizon: an entry beyond it once went into the last
 * slot, so that a flow limited to 300 Mbit/s sent 2,828.  A heap has no
 * horizon, is exact, and with four children to a node is six levels deep for
 * 4,096 flows.
 *
 *    due_heap_add(&heap, due, index);
 *    while (heap.n && due_heap_first(&heap) <= now) {
 *        index = due_heap_pop(&heap);
 *    }
 *
 * An index may be in the heap once.  One thread. */

#include <stdint.h>

struct due_heap {
    struct due {
        uint64_t time;
        uint32_t index;
    } *nodes;
    uint32_t *at;               /* By index: its node + 1, or 0. */
    uint32_t n;                 /* Number of nodes. */
};

void due_heap_init(struct due_heap *, uint32_t n_indexes);
void due_heap_uninit(struct due_heap *);

void due_heap_add(struct due_heap *, uint64_t time, uint32_t index);
uint32_t due_heap_pop(struct due_heap *);
void due_heap_remove(struct due_heap *, uint32_t index);

/* Returns the earliest time; the heap must not be empty. */
static inline uint64_t
due_heap_first(const struct due_heap *heap)
{
    return heap->nodes[0].time;
}

#endif /* shim/queue/due-heap.h */
