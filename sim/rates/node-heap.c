/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/rates/node-heap.h"

#include <assert.h>

#include "order/problem/memory.h"

static bool
is_before(const struct heap_node *a, const struct heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->seq < b->seq;
}

static void
put(struct node_heap *h, size_t i, struct heap_node *node)
{
    h->nodes[i] = node;
    node->place = i + 1;
}

/* Puts 'node' at 'i' or above. */
static void
sift_up(struct node_heap *h, size_t i, struct heap_node *node)
{
    while (i && is_before(node, h->nodes[(i - 1) / 2])) {
        put(h, i, h->nodes[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(h, i, node);
}

/* Puts 'node' at 'i' or below. */
static void
sift_down(struct node_heap *h, size_t i, struct heap_node *node)
{
    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < h->n
            && is_before(h->nodes[child + 1], h->nodes[child])) {
            child++;
        }
        if (child >= h->n || !is_before(h->nodes[child], node)) {
            break;
        }
        put(h, i, h->nodes[child]);
        i = child;
    }
    put(h, i, node);
}

void
node_heap_push(struct node_heap *h, struct heap_node *node)
{
    h->nodes = order_grow(h->nodes, h->n + 1, &h->allocated, sizeof *h->nodes);
    h->n++;
    sift_up(h, h->n - 1, node);
}

void
node_heap_remove(struct node_heap *h, struct heap_node *node)
{
    size_t i = node->place - 1;
    struct heap_node *last = h->nodes[--h->n];

    assert(h->nodes[i] == node || i == h->n);
    node->place = 0;
    if (i < h->n) {
        if (is_before(last, node)) {
            sift_up(h, i, last);
        } else {
            sift_down(h, i, last);
        }
    }
}
