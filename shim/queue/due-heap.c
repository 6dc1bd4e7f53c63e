/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/queue/due-heap.h"

#include <stdlib.h>

#include "base/memory.h"

#define CHILDREN 4

/* Makes a heap for the indexes below 'n_indexes'. */
void
due_heap_init(struct due_heap *heap, uint32_t n_indexes)
{
    heap->nodes = allocate(n_indexes, sizeof *heap->nodes);
    heap->at = allocate(n_indexes, sizeof *heap->at);
    heap->n = 0;
}

void
due_heap_uninit(struct due_heap *heap)
{
    free(heap->nodes);
    free(heap->at);
}

static void
put_node(struct due_heap *heap, uint32_t i, struct due due)
{
    heap->nodes[i] = due;
    heap->at[due.index] = i + 1;
}

/* Inserts 'due' between node 'i', which is free, and the root. */
static void
sift_up(struct due_heap *heap, uint32_t i, struct due due)
{
    while (i) {
        uint32_t parent = (i - 1) / CHILDREN;

        if (heap->nodes[parent].time <= due.time) {
            break;
        }
        put_node(heap, i, heap->nodes[parent]);
        i = parent;
    }
    put_node(heap, i, due);
}

/* Inserts 'due' between node 'i', which is free, and the leaves. */
static void
sift_down(struct due_heap *heap, uint32_t i, struct due due)
{
    for (;;) {
        uint32_t child = i * CHILDREN + 1, end = child + CHILDREN;
        uint32_t least = child;

        if (child >= heap->n) {
            break;
        }
        end = end < heap->n ? end : heap->n;
        while (++child < end) {
            if (heap->nodes[child].time < heap->nodes[least].time) {
                least = child;
            }
        }
        if (heap->nodes[least].time >= due.time) {
            break;
        }
        put_node(heap, i, heap->nodes[least]);
        i = least;
    }
    put_node(heap, i, due);
}

void
due_heap_add(struct due_heap *heap, uint64_t time, uint32_t index)
{
    sift_up(heap, heap->n++, (struct due) { time, index });
}

/* Removes 'index', if it is in the heap. */
void
due_heap_remove(struct due_heap *heap, uint32_t index)
{
    uint32_t i = heap->at[index];
    struct due last;

    if (!i--) {
        return;
    }
    heap->at[index] = 0;
    last = heap->nodes[--heap->n];
    if (i == heap->n) {
        return;
    }
    if (i && heap->nodes[(i - 1) / CHILDREN].time > last.time) {
        sift_up(heap, i, last);
    } else {
        sift_down(heap, i, last);
    }
}

/* Removes the earliest entry and returns its index. */
uint32_t
due_heap_pop(struct due_heap *heap)
{
    uint32_t index = heap->nodes[0].index;

    due_heap_remove(heap, index);
    return index;
}
