/* SPDX-License-Identifier: Apache-2.0 */

/* Folds an order into few levels.
 *
 * A switch has few queues, but two stages that share no port never meet, so
 * they may share a level: what counts is a stage's place among its neighbours,
 * not in the whole order. */

#include "controller/order/order.h"

#include <assert.h>

#include "controller/order/memory.h"

void
levels_assign(const struct order_problem *op, const int *order,
              int n_levels, int *level)
{
    int *next = order_alloc(op->n_ports, sizeof *next);

    /* 'next' of a port: one more than the largest level on it so far. */
    assert(n_levels > 0);
    for (size_t k = 0; k < op->n_stages; k++) {
        const struct order_stage *stage = &op->stages[order[k]];
        int l = 0;

        for (size_t i = 0; i < stage->n_demands; i++) {
            int after = next[stage->demands[i].port];

            l = after > l ? after : l;
        }
        for (size_t i = 0; i < stage->n_demands; i++) {
            next[stage->demands[i].port] = l + 1;
        }
        level[order[k]] = l < n_levels ? l : n_levels - 1;
    }
    free(next);
}
