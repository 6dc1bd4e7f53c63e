/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/run/event-queue.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "order/problem/memory.h"

void
event_queue_init(struct event_queue *q)
{
    memset(q, 0, sizeof *q);
}

void
event_queue_uninit(struct event_queue *q)
{
    free(q->heap);
}

static bool
is_before(const struct event *a, const struct event *b)
{
    return a->time != b->time ? a->time < b->time : a->seq < b->seq;
}

void
event_queue_push(struct event_queue *q, double time,
                 void (*run)(void *aux, void *arg), void *arg)
{
    struct event new = { time, q->seq++, run, arg };
    size_t i = q->n++;

    q->heap = order_grow(q->heap, q->n, &q->allocated, sizeof *q->heap);
    while (i && is_before(&new, &q->heap[(i - 1) / 2])) {
        q->heap[i] = q->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    q->heap[i] = new;
}

double
event_queue_next(const struct event_queue *q)
{
    return q->n ? q->heap[0].time : INFINITY;
}

struct event
event_queue_pop(struct event_queue *q)
{
    struct event first, last;
    size_t i = 0;

    assert(q->n);
    first = q->heap[0];
    last = q->heap[--q->n];
    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < q->n
            && is_before(&q->heap[child + 1], &q->heap[child])) {
            child++;
        }
        if (child >= q->n || !is_before(&q->heap[child], &last)) {
            break;
        }
        q->heap[i] = q->heap[child];
        i = child;
    }
    q->heap[i] = last;
    return first;
}
