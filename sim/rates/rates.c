/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/rates/rates.h"

#include "order/problem/memory.h"

struct rates *
rates_create(const struct rates_class *class, const struct paths *paths)
{
    struct rates *r = class->create(paths);

    r->class = class;
    r->paths = paths;
    return r;
}

void
rates_destroy(struct rates *r)
{
    if (r) {
        r->class->destroy(r);
    }
}

void
rates_show(const struct path *path, double rate, struct sim_flow *f)
{
    f->n_ports = path->n_ports;
    memcpy(f->ports, path->ports, sizeof f->ports);
    f->rate = rate;
}

size_t
rates_list(const struct rates *r, const struct node_heap *heap,
           struct sim_flow **flows, size_t *allocated)
{
    *flows = order_grow(*flows, heap->n, allocated, sizeof **flows);
    for (size_t i = 0; i < heap->n; i++) {
        const struct flow *flow = flow_of(heap->nodes[i]);

        rates_show(rates_path(r, flow), flow->rate, &(*flows)[i]);
    }
    return heap->n;
}
