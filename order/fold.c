/* SPDX-License-Identifier: Apache-2.0 */

#include "order/fold.h"

#include <math.h>

/* 'next' has an element for each port and is the caller's. */
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
