/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/rates/flow-heap.h"

#include <assert.h>
#include <stdbool.h>

#include "order/problem/memory.h"
#include "sim/rates/unit.h"

static bool
is_before(const struct flow *a, const struct flow *b)
{
    return a->key != b->key ? a->key < b->key : a->seq < b->seq;
}

static void
put(struct flow_heap *h, size_t i, struct flow *flow)
{
    h->flows[i] = flow;
    flow->place = i;
}

/* Puts 'flow' at 'i' or above. */
static void
sift_up(struct flow_heap *h, size_t i, struct flow *flow)
{
    while (i && is_before(flow, h->flows[(i - 1) / 2])) {
        put(h, i, h->flows[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(h, i, flow);
}

/* Puts 'flow' at 'i' or below. */
static void
sift_down(struct flow_heap *h, size_t i, struct flow *flow)
{
    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < h->n
            && is_before(h->flows[child + 1], h->flows[child])) {
            child++;
        }
        if (child >= h->n || !is_before(h->flows[child], flow)) {
            break;
        }
        put(h, i, h->flows[child]);
        i = child;
    }
    put(h, i, flow);
}

void
flow_heap_push(struct flow_heap *h, struct flow *flow)
{
    h->flows = order_grow(h->flows, h->n + 1, &h->allocated, sizeof *h->flows);
    h->n++;
    sift_up(h, h->n - 1, flow);
}

void
flow_heap_remove(struct flow_heap *h, struct flow *flow)
{
    size_t i = flow->place;
    struct flow *last = h->flows[--h->n];

    assert(h->flows[i] == flow || i == h->n);
    if (i < h->n) {
        if (is_before(last, flow)) {
            sift_up(h, i, last);
        } else {
            sift_down(h, i, last);
        }
    }
}
