/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_DUE_HEAP_H
#define SHIM_DUE_HEAP_H 1

/* What is due when, soonest first.
 *
 *
 * Motivation
 * ==========
 *
 * A paced flow's next packet may be due in a microsecond or in a second.  A
 * timing wheel has a horizon: what is due beyond it must be refused, or leaves
 * too early and the flow runs far above its rate.  A heap has none, is exact,
 * and with four children to a node it is six steps deep for 4,096 flows.
 *
 *
 * Usage
 * =====
 *
 *    due_heap_add(&heap, due, index);
 *    while (heap.n && due_heap_first(&heap) <= now) {
 *        index = due_heap_pop(&heap);
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * An index may be in the heap once.  One thread. */

#include <stdbool.h>
#include <stdint.h>

struct due_heap {
    struct due {
        uint64_t time;
        uint32_t index;
    } *nodes;
    uint32_t *at;               /* Of each index: its node + 1, or 0. */
    uint32_t n;                 /* Nodes. */
};

bool due_heap_init(struct due_heap *, uint32_t n_indexes);
void due_heap_uninit(struct due_heap *);

void due_heap_add(struct due_heap *, uint64_t time, uint32_t index);
uint32_t due_heap_pop(struct due_heap *);
void due_heap_remove(struct due_heap *, uint32_t index);

/* Returns when the first is due; there must be one. */
static inline uint64_t
due_heap_first(const struct due_heap *heap)
{
    return heap->nodes[0].time;
}

#endif /* shim/queue/due-heap.h */
