/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/hysteresis.h"

#include <stdlib.h>
#include <string.h>

#include "order/order.h"
#include "util.h"

/* Most ranks that a stage moves back. */
#define MAX_PASSES 16

/* Returns the weighted sum of the stages' completion times if they are served
 * in 'order': a stage ends when all ports have served it and the stages before
 * it, and not before its isolated time.  Stores the completion times in
 * 'completion' unless that is NULL. */
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
was_behind(const int *old_rank, int a, int b)
{
    return old_rank[a] >= 0 && old_rank[b] >= 0 && old_rank[a] > old_rank[b];
}

/* Returns when 's' ends if 'load' and, unless NULL, 'before' are served before
 * it. */
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

/* Returns the increase of the estimate if 'b' is served before 'a' instead of
 * after it, both after 'load'.  No other completion time changes. */
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

/* Stores in 'old' the stages of 'order' in their previous order.  New stages
 * have the same position as in 'order'. */
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

/* Restores the previous order if that costs at most 'tolerance' of the
 * estimate.  It compares the whole order, because two searches from different
 * starting points find different orders that are about as good. */
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

/* Swaps neighbors back.  The number of passes is limited: with very many
 * stages some inversions stay, which only changes levels. */
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
                && was_behind(old_rank, order[k], order[k + 1])) {
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
