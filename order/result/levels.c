/* SPDX-License-Identifier: Apache-2.0 */

#include "order/result/levels.h"

#include <assert.h>
#include <math.h>

#include "order/problem/problem.h"
#include "order/problem/scratch.h"

void
fold_init(struct fold *fold, int *next, int n_ports)
{
    fold->next = next;
    fold->deepest = 0;
    for (int p = 0; p < n_ports; p++) {
        next[p] = 0;
    }
}

static int
port_at(const int *ports, int i, int stride)
{
    return *(const int *) ((const char *) ports + (long) i * stride);
}

int
fold_depth(struct fold *fold, const int *ports, int n, int stride)
{
    int depth = 0;

    for (int i = 0; i < n; i++) {
        int next = fold->next[port_at(ports, i, stride)];

        depth = next > depth ? next : depth;
    }
    for (int i = 0; i < n; i++) {
        fold->next[port_at(ports, i, stride)] = depth + 1;
    }
    fold->deepest = depth > fold->deepest ? depth : fold->deepest;
    return depth;
}

int
fold_level(const struct fold *fold, int depth, int n_levels)
{
    if (fold->deepest < n_levels) {
        return depth;
    }
    return n_levels * sqrt(depth / (fold->deepest + 1.0));
}

void
levels_assign(const struct order_problem *op, const int *order,
              int n_levels, int *level)
{
    int *next = scratch_alloc(op->scratch, op->n_ports, sizeof *next);
    struct fold fold;

    assert(n_levels > 0);
    fold_init(&fold, next, op->n_ports);
    for (size_t k = 0; k < op->n_stages; k++) {
        const struct order_stage *stage = &op->stages[order[k]];
        const struct order_demand *d = stage->demands;

        level[order[k]] = fold_depth(&fold, d ? &d->port : NULL,
                                     stage->n_demands, sizeof *d);
    }
    for (size_t i = 0; i < op->n_stages; i++) {
        level[i] = fold_level(&fold, level[i], n_levels);
    }
    scratch_free(op->scratch, next);
}
