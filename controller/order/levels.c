/* SPDX-License-Identifier: Apache-2.0 */

/* Folds an order into few levels.
 *
 * A switch has few queues, but two stages that share no port never meet, so
 * they may share a level: what counts is a stage's place among its neighbours,
 * not in the whole order. */

#include "controller/order/order.h"

#include <assert.h>
#include <string.h>

/* Returns how many ports have stages. */
static int
count_ports(const struct order_problem *op)
{
    int n = 0;

    for (int p = 0; p < op->n_ports; p++) {
        n += op->n_on_port[p] > 0;
    }
    return n;
}

/* Returns the level of 'stage' if 'next' of a port is one more than the
 * largest level on it so far, and at most 'last'.  Updates 'next', and
 * '*n_open', how many ports are below 'last'. */
static int
assign(const struct order_stage *stage, int last, int *next, int *n_open)
{
    int level = 0;

    for (size_t i = 0; i < stage->n_demands; i++) {
        int after = next[stage->demands[i].port];

        level = after > level ? after : level;
    }
    for (size_t i = 0; i < stage->n_demands; i++) {
        int *n = &next[stage->demands[i].port];

        *n_open -= *n < last && level + 1 >= last;
        *n = level < last ? level + 1 : last;
    }
    return level;
}

/* Once all ports have reached the last level, so have all stages after. */
void
levels_assign(const struct order_problem *op, const int *order,
              int n_levels, int *level)
{
    int last = n_levels - 1, n_open = last ? count_ports(op) : 0;

    assert(n_levels > 0);
    memset(op->next_level, 0, op->n_ports * sizeof *op->next_level);
    for (size_t k = 0; k < op->n_stages; k++) {
        const struct order_stage *stage = &op->stages[order[k]];

        if (n_open) {
            level[order[k]] = assign(stage, last, op->next_level, &n_open);
        } else {
            level[order[k]] = stage->n_demands ? last : 0;
        }
    }
}
