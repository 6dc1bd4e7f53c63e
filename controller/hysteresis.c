/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/hysteresis.h"

#include <stdlib.h>

#include "controller/order/order.h"
#include "util.h"

/* Returns the weighted sum of the stages' completion times if they are served
 * in 'order', each ending with the longest port of it and all that goes
 * before it.  Stores the single times in 'completion' if it is nonnull. */
double
hysteresis_estimate(const struct order_problem *problem, const int *order,
                    double *completion)
{
    double *load = xcalloc(MAX(problem->n_ports, 1), sizeof *load);
    double sum = 0;

    for (size_t k = 0; k < problem->n_stages; k++) {
        const struct order_stage *s = &problem->stages[order[k]];
        double end = 0;

        for (size_t i = 0; i < s->n_demands; i++) {
            load[s->demands[i].port] += s->demands[i].seconds;
            end = MAX(end, load[s->demands[i].port]);
        }
        if (completion) {
            completion[order[k]] = end;
        }
        sum += s->weight * end;
    }
    free(load);
    return sum;
}

static bool
was_other_way_round(const int *old_rank, int a, int b)
{
    return old_rank[a] >= 0 && old_rank[b] >= 0 && old_rank[a] > old_rank[b];
}

static void
swap_next(int *order, size_t k)
{
    int tmp = order[k];

    order[k] = order[k + 1];
    order[k + 1] = tmp;
}

/* Returns true if 'order' changed.  The work is bounded: with very many
 * stages some inversions stay, which costs only a change of level. */
bool
hysteresis_apply(const struct order_problem *problem, const int *old_rank,
                 double tolerance, int *order)
{
    double limit = hysteresis_estimate(problem, order, NULL)
                   * (1 + tolerance);
    size_t budget = 16 * problem->n_stages;
    bool changed = false, again = true;

    /* Each swap removes an inversion against the old order, so this ends. */
    while (again && budget) {
        again = false;
        for (size_t k = 0; k + 1 < problem->n_stages; k++) {
            if (!was_other_way_round(old_rank, order[k], order[k + 1])) {
                continue;
            } else if (!budget) {
                break;
            }
            budget--;
            swap_next(order, k);
            if (hysteresis_estimate(problem, order, NULL) <= limit) {
                again = changed = true;
            } else {
                swap_next(order, k);
            }
        }
    }
    return changed;
}
