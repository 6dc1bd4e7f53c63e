/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/hysteresis.h"

#include <stdlib.h>
#include <string.h>

#include "order/order.h"
#include "util.h"

/* A stage moves at most so many places back. */
#define MAX_PASSES 16

/* Returns the weighted sum of the stages' completion times if they are served
 * in 'order', each ending with the longest port of it and all that goes
 * before it, and not before it would alone.  Stores the single times in
 * 'completion' if it is nonnull. */
double
hysteresis_estimate(const struct order_problem *problem, const int *order,
                    double *completion)
{
    double *load = xcalloc(MAX(problem->n_ports, 1), sizeof *load);
    double sum = 0;

    for (size_t k = 0; k < problem->n_stages; k++) {
        const struct order_stage *s = &problem->stages[order[k]];
        double end = order_stage_earliest_end(s);

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

/* When 's' ends if 'load' and then, if it is nonnull, 'before' are served
 * before it. */
static double
end_after(const double *load, const struct order_stage *before,
          const struct order_stage *s)
{
    double end = order_stage_earliest_end(s);
    size_t j = 0;

    for (size_t i = 0; i < s->n_demands; i++) {
        int port = s->demands[i].port;
        double sum = load[port] + s->demands[i].seconds;

        while (before && j < before->n_demands
               && before->demands[j].port < port) {
            j++;
        }
        if (before && j < before->n_demands
            && before->demands[j].port == port) {
            sum += before->demands[j].seconds;
        }
        end = MAX(end, sum);
    }
    return end;
}

/* By how much the estimate grows if 'b' goes before 'a' instead of after it,
 * both after 'load'.  Nobody else's end changes. */
static double
cost_of_swap(const double *load, const struct order_stage *a,
             const struct order_stage *b)
{
    return (b->weight * (end_after(load, NULL, b) - end_after(load, a, b))
            + a->weight * (end_after(load, b, a) - end_after(load, NULL, a)));
}

struct ranked {
    int stage, rank;
};

static int
compare_ranks(const void *a_, const void *b_)
{
    const struct ranked *a = a_, *b = b_;

    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Stores in 'old' the stages of 'order' as they were before.  Stages that were
 * not there follow whom they follow in 'order'. */
static void
make_old_order(const int *old_rank, const int *order, size_t n, int *old)
{
    struct ranked *known = xcalloc(MAX(n, 1), sizeof *known);
    size_t n_known = 0, next = 0;

    for (size_t k = 0; k < n; k++) {
        if (old_rank[order[k]] >= 0) {
            known[n_known++] = (struct ranked) { order[k],
                                                 old_rank[order[k]] };
        }
    }
    qsort(known, n_known, sizeof *known, compare_ranks);
    for (size_t k = 0; k < n; k++) {
        old[k] = old_rank[order[k]] >= 0 ? known[next++].stage : order[k];
    }
    free(known);
}

/* Returns 'order' to the old one if that costs no more than 'tolerance' of the
 * estimate.  Two searches for a good order that began in different places end
 * in different ones that are about as good, so this looks at all of it. */
static bool
keep_whole_order(const struct order_problem *problem, const int *old_rank,
                 double tolerance, int *order)
{
    size_t n = problem->n_stages;
    int *old = xcalloc(MAX(n, 1), sizeof *old);
    bool keep;

    make_old_order(old_rank, order, n, old);
    keep = (hysteresis_estimate(problem, old, NULL)
            <= (1 + tolerance) * hysteresis_estimate(problem, order, NULL));
    if (keep && n) {
        memcpy(order, old, n * sizeof *order);
    }
    free(old);
    return keep;
}

/* Puts single stages of 'order' back.  The work is bounded: with very many
 * stages some inversions stay, which costs only a change of level. */
static bool
keep_neighbours(const struct order_problem *problem, const int *old_rank,
                double tolerance, int *order)
{
    double slack = hysteresis_estimate(problem, order, NULL) * tolerance;
    double *load = xcalloc(MAX(problem->n_ports, 1), sizeof *load);
    bool changed = false, again = true;

    for (int pass = 0; again && pass < MAX_PASSES; pass++) {
        again = false;
        memset(load, 0, MAX(problem->n_ports, 1) * sizeof *load);
        for (size_t k = 0; k < problem->n_stages; k++) {
            const struct order_stage *s;

            if (k + 1 < problem->n_stages
                && was_other_way_round(old_rank, order[k], order[k + 1])) {
                double cost = cost_of_swap(load,
                                           &problem->stages[order[k]],
                                           &problem->stages[order[k + 1]]);

                if (cost <= slack) {
                    int tmp = order[k];

                    order[k] = order[k + 1];
                    order[k + 1] = tmp;
                    slack -= MAX(cost, 0);
                    again = changed = true;
                }
            }
            s = &problem->stages[order[k]];
            for (size_t i = 0; i < s->n_demands; i++) {
                load[s->demands[i].port] += s->demands[i].seconds;
            }
        }
    }
    free(load);
    return changed;
}

/* Returns true if 'order' may have changed. */
bool
hysteresis_apply(const struct order_problem *problem, const int *old_rank,
                 double tolerance, int *order)
{
    return (keep_whole_order(problem, old_rank, tolerance, order)
            || keep_neighbours(problem, old_rank, tolerance, order));
}
