/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/rates/waiting.h"

#include <stdbool.h>

#include "order/problem/memory.h"

void
waiting_init(struct waiting *w, const struct paths *paths)
{
    memset(w, 0, sizeof *w);
    w->paths = paths;
    w->ports = order_alloc(paths->fabric->n_ports, sizeof *w->ports);
}

void
waiting_uninit(struct waiting *w)
{
    for (int p = 0; p < w->paths->fabric->n_ports; p++) {
        free(w->ports[p].heads);
        free(w->ports[p].lanes);
    }
    for (size_t i = 0; i < w->n_queues; i++) {
        free(w->queues[i].flows);
    }
    free(w->ports);
    free(w->queues);
}

static bool
is_before(const struct flow *a, const struct flow *b)
{
    return a->unit->rank != b->unit->rank ? a->unit->rank < b->unit->rank
        : a->seq < b->seq;
}

static void
set_first(struct waiting *w, uint32_t path, struct flow *flow)
{
    const int *ports = w->paths->paths[path].ports;
    struct waiting_queue *q = &w->queues[path];
    bool same = q->first == flow;

    q->first = flow;
    for (int k = 0; k < 2; k++) {
        struct waiting_port *port = &w->ports[ports[k]];
        struct waiting_lane *lane = &port->lanes[q->place[k]];

        port->heads[q->place[k]].rank = flow->unit->rank;
        if (!same) {
            lane->near = &flow->unit->bytes[flow->work[k]];
            lane->far = &flow->unit->bytes[flow->work[!k]];
            lane->lot = flow->seq * 2654435761;
        }
    }
}

/* Looks for the first flow of 'path' anew. */
static void
find_first(struct waiting *w, uint32_t path)
{
    const struct waiting_queue *q = &w->queues[path];
    size_t best = 0;
    int rank = q->flows[0].unit->rank;

    for (size_t i = 1; i < q->n; i++) {
        int r = q->flows[i].unit->rank;

        if (r < rank || (r == rank && q->flows[i].flow->seq
                                      < q->flows[best].flow->seq)) {
            best = i;
            rank = r;
        }
    }
    set_first(w, path, q->flows[best].flow);
}

/* Puts the queue of 'path' on the lists of its ports. */
static void
link_queue(struct waiting *w, uint32_t path)
{
    const int *ports = w->paths->paths[path].ports;

    for (int k = 0; k < 2; k++) {
        struct waiting_port *port = &w->ports[ports[k]];

        port->heads = order_grow(port->heads, port->n + 1,
                               &port->allocated_heads, sizeof *port->heads);
        port->lanes = order_grow(port->lanes, port->n + 1,
                               &port->allocated_lanes, sizeof *port->lanes);
        w->queues[path].place[k] = port->n;
        port->heads[port->n].other = ports[!k];
        port->lanes[port->n++].path = path;
    }
}

static void
unlink_queue(struct waiting *w, uint32_t path)
{
    const int *ports = w->paths->paths[path].ports;

    for (int k = 0; k < 2; k++) {
        struct waiting_port *port = &w->ports[ports[k]];
        size_t place = w->queues[path].place[k];

        port->n--;
        port->heads[place] = port->heads[port->n];
        port->lanes[place] = port->lanes[port->n];
        w->queues[port->lanes[place].path].place[k] = place;
    }
}

/* Makes room for the queues of paths that are new. */
static void
grow_queues(struct waiting *w)
{
    size_t n = w->paths->n;

    if (n > w->n_queues) {
        w->queues = order_grow(w->queues, n, &w->allocated_queues,
                             sizeof *w->queues);
        memset(&w->queues[w->n_queues], 0,
               (n - w->n_queues) * sizeof *w->queues);
        w->n_queues = n;
    }
}

void
waiting_add(struct waiting *w, struct flow *flow)
{
    struct waiting_queue *q;

    grow_queues(w);
    q = &w->queues[flow->path];
    q->flows = order_grow(q->flows, q->n + 1, &q->allocated, sizeof *q->flows);
    flow->place = q->n;
    q->flows[q->n++] = (struct waiting_flow) { flow, flow->unit };
    if (q->n == 1) {
        link_queue(w, flow->path);
        set_first(w, flow->path, flow);
    } else if (is_before(flow, q->first)) {
        set_first(w, flow->path, flow);
    }
}

void
waiting_remove(struct waiting *w, struct flow *flow)
{
    struct waiting_queue *q = &w->queues[flow->path];

    q->flows[flow->place] = q->flows[--q->n];
    q->flows[flow->place].flow->place = flow->place;
    if (!q->n) {
        q->first = NULL;
        unlink_queue(w, flow->path);
    } else if (q->first == flow) {
        find_first(w, flow->path);
    }
}

void
waiting_reorder(struct waiting *w, int port)
{
    for (size_t i = 0; i < w->ports[port].n; i++) {
        find_first(w, w->ports[port].lanes[i].path);
    }
}
