/* SPDX-License-Identifier: Apache-2.0 */

/* Levels of a whole order. */

#include "order/order.h"

#include <assert.h>

#include "order/fold.h"

void
levels_assign(const struct order_problem *op, const int *order,
              int n_levels, int *level)
{
    struct fold fold;

    assert(n_levels > 0);
    fold_init(&fold, op->next_level, op->n_ports);
    for (size_t k = 0; k < op->n_stages; k++) {
        const struct order_stage *stage = &op->stages[order[k]];
        const struct order_demand *d = stage->demands;

        level[order[k]] = fold_depth(&fold, d ? &d->port : NULL,
                                     stage->n_demands, sizeof *d);
    }
    for (size_t i = 0; i < op->n_stages; i++) {
        level[i] = fold_level(&fold, level[i], n_levels);
    }
}
