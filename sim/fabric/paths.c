/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/fabric/paths.h"

#include "order/problem/memory.h"

#define MIN_SLOTS 1024

void
paths_init(struct paths *p, const struct sim_fabric *fabric)
{
    *p = (struct paths){ .fabric = fabric,
                         .n_slots = MIN_SLOTS,
                         .slots = order_alloc(MIN_SLOTS, sizeof *p->slots) };
}

void
paths_uninit(struct paths *p)
{
    free(p->paths);
    free(p->slots);
}

/* Returns the slot of the path from 'src' to 'dst', or the free one where it
 * belongs. */
static uint32_t *
find_slot(const struct paths *p, int src, int dst)
{
    uint64_t hash = ((uint64_t) src << 32 | dst) * 0x9e3779b97f4a7c15;
    size_t i = (hash >> 32) & (p->n_slots - 1);

    while (p->slots[i]) {
        const struct path *path = &p->paths[p->slots[i] - 1];

        if (path->src == src && path->dst == dst) {
            break;
        }
        i = (i + 1) & (p->n_slots - 1);
    }
    return &p->slots[i];
}

static void
grow_slots(struct paths *p)
{
    free(p->slots);
    p->n_slots *= 2;
    p->slots = order_alloc(p->n_slots, sizeof *p->slots);
    for (size_t i = 0; i < p->n; i++) {
        *find_slot(p, p->paths[i].src, p->paths[i].dst) = i + 1;
    }
}

uint32_t
paths_find(struct paths *p, int src, int dst)
{
    uint32_t *slot = find_slot(p, src, dst);
    struct path *path;

    if (*slot) {
        return *slot - 1;
    }
    if (2 * p->n >= p->n_slots) {
        grow_slots(p);
        slot = find_slot(p, src, dst);
    }
    p->paths = order_grow(p->paths, p->n + 1, &p->allocated, sizeof *p->paths);
    path = &p->paths[p->n++];
    path->src = src;
    path->dst = dst;
    path->n_ports = sim_fabric_path(p->fabric, src, dst, path->ports);
    *slot = p->n;
    return p->n - 1;
}
