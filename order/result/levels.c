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

/* Returns the least depth of an element that needs 'n' ports. */
static int
fold_find(const struct fold *fold, const int *ports, int n, int stride)
{
    int depth = 0;

    for (int i = 0; i < n; i++) {
        int next = fold->next[port_at(ports, i, stride)];

        depth = next > depth ? next : depth;
    }
    return depth;
}

static void
fold_take(struct fold *fold, const int *ports, int n, int stride, int depth)
{
    for (int i = 0; i < n; i++) {
        fold->next[port_at(ports, i, stride)] = depth + 1;
    }
    fold->deepest = depth > fold->deepest ? depth : fold->deepest;
}

int
fold_depth(struct fold *fold, const int *ports, int n, int stride)
{
    int depth = fold_find(fold, ports, n, stride);

    fold_take(fold, ports, n, stride, depth);
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

static const int *
ports_of(const struct order_stage *stage)
{
    return stage->demands ? &stage->demands->port : NULL;
}

/* Returns the first place after those that have one level with place 'k'. */
static size_t
group_end(const struct order_problem *op, const int *order, size_t k)
{
    size_t group = op->stages[order[k]].traits.group;

    do {
        k++;
    } while (group && k < op->n_stages
             && op->stages[order[k]].traits.group == group);
    return k;
}

void
levels_assign(const struct order_problem *op, const int *order,
              int n_levels, int *level)
{
    int *next = scratch_alloc(op->scratch, op->n_ports, sizeof *next);
    struct fold fold;
    size_t end;

    assert(n_levels > 0);
    fold_init(&fold, next, op->n_ports);
    for (size_t k = 0; k < op->n_stages; k = end) {
        int depth = 0;

        end = group_end(op, order, k);
        for (size_t i = k; i < end; i++) {
            const struct order_stage *stage = &op->stages[order[i]];
            int own = fold_find(&fold, ports_of(stage), stage->n_demands,
                                sizeof *stage->demands);

            depth = own > depth ? own : depth;
        }
        for (size_t i = k; i < end; i++) {
            const struct order_stage *stage = &op->stages[order[i]];

            fold_take(&fold, ports_of(stage), stage->n_demands,
                      sizeof *stage->demands, depth);
            level[order[i]] = depth;
        }
    }
    for (size_t i = 0; i < op->n_stages; i++) {
        level[i] = fold_level(&fold, level[i], n_levels);
    }
    scratch_free(op->scratch, next);
}
