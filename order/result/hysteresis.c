/* SPDX-License-Identifier: Apache-2.0 */

#include "order/result/hysteresis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "order/problem/problem.h"
#include "order/problem/scratch.h"

/* Most ranks that a stage moves back. */
#define MAX_PASSES 16

static double
times_of(const double *times, int stage)
{
    return times ? times[stage] : 1;
}

/* hysteresis_estimate() of stages that are served several 'times'. */
static double
estimate(const struct order_problem *problem, const double *times,
         const int *order, double *completion)
{
    double *load = scratch_alloc(problem->scratch, problem->n_ports,
                                 sizeof *load);
    double sum = 0;

    for (size_t k = 0; k < problem->n_stages; k++) {
        const struct order_stage *s = &problem->stages[order[k]];
        double n = times_of(times, order[k]);
        double end = order_stage_earliest_end(s);

        for (size_t i = 0; i < s->n_demands; i++) {
            load[s->demands[i].port] += n * s->demands[i].seconds;
            end = fmax(end, load[s->demands[i].port]);
        }
        if (completion) {
            completion[order[k]] = end;
        }
        sum += n * s->weight * end;
    }
    scratch_free(problem->scratch, load);
    return sum;
}

double
hysteresis_estimate(const struct order_problem *problem, const int *order,
                    double *completion)
{
    return estimate(problem, NULL, order, completion);
}

static bool
was_behind(const int *old_rank, int a, int b)
{
    return old_rank[a] >= 0 && old_rank[b] >= 0 && old_rank[a] > old_rank[b];
}

struct context {
    const struct order_problem *problem;
    const double *times;
    const int *old_rank;
};

/* Returns when 'stage' ends if 'load' and, unless it is negative, 'before' are
 * served before it. */
static double
end_after(const struct context *c, const double *load, int before, int stage)
{
    const struct order_stage *s = &c->problem->stages[stage];
    const struct order_stage *b = before < 0 ? NULL
                                  : &c->problem->stages[before];
    double end = order_stage_earliest_end(s);
    size_t j = 0;

    for (size_t i = 0; i < s->n_demands; i++) {
        int port = s->demands[i].port;
        double sum = load[port]
                     + times_of(c->times, stage) * s->demands[i].seconds;

        while (b && j < b->n_demands && b->demands[j].port < port) {
            j++;
        }
        if (b && j < b->n_demands && b->demands[j].port == port) {
            sum += times_of(c->times, before) * b->demands[j].seconds;
        }
        end = fmax(end, sum);
    }
    return end;
}

/* Returns the increase of the estimate if 'b' is served before 'a' instead of
 * after it, both after 'load'.  No other completion time changes. */
static double
cost_of_swap(const struct context *c, const double *load, int a, int b)
{
    double weight_a = times_of(c->times, a) * c->problem->stages[a].weight;
    double weight_b = times_of(c->times, b) * c->problem->stages[b].weight;

    return (weight_b * (end_after(c, load, -1, b) - end_after(c, load, a, b))
            + weight_a * (end_after(c, load, b, a)
                          - end_after(c, load, -1, a)));
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
make_old_order(const struct context *c, const int *order, int *old)
{
    size_t n = c->problem->n_stages;
    struct ranked *known = scratch_alloc(c->problem->scratch, n,
                                         sizeof *known);
    size_t n_known = 0, next = 0;

    for (size_t k = 0; k < n; k++) {
        int rank = c->old_rank[order[k]];

        if (rank >= 0) {
            known[n_known++] = (struct ranked) { order[k], rank };
        }
    }
    qsort(known, n_known, sizeof *known, compare_ranks);
    for (size_t k = 0; k < n; k++) {
        old[k] = c->old_rank[order[k]] >= 0 ? known[next++].stage : order[k];
    }
    scratch_free(c->problem->scratch, known);
}

/* Restores the previous order if that costs at most 'tolerance' of the
 * estimate.  It compares the whole order, because two searches from different
 * starting points find different orders that are about as good. */
static bool
keep_whole_order(const struct context *c, double tolerance, int *order)
{
    size_t n = c->problem->n_stages;
    int *old = scratch_alloc(c->problem->scratch, n, sizeof *old);
    bool keep;

    make_old_order(c, order, old);
    keep = (estimate(c->problem, c->times, old, NULL)
            <= (1 + tolerance) * estimate(c->problem, c->times, order, NULL));
    if (keep && n) {
        memcpy(order, old, n * sizeof *order);
    }
    scratch_free(c->problem->scratch, old);
    return keep;
}

static void
serve(const struct context *c, int stage, double *load)
{
    const struct order_stage *s = &c->problem->stages[stage];

    for (size_t i = 0; i < s->n_demands; i++) {
        load[s->demands[i].port] += times_of(c->times, stage)
                                    * s->demands[i].seconds;
    }
}

/* Swaps neighbors back.  The number of passes is limited: with very many
 * stages some inversions stay, which only changes levels. */
static bool
keep_neighbours(const struct context *c, double tolerance, int *order)
{
    size_t n = c->problem->n_stages;
    double slack = estimate(c->problem, c->times, order, NULL) * tolerance;
    double *load = scratch_alloc(c->problem->scratch, c->problem->n_ports,
                                 sizeof *load);
    bool changed = false, again = true;

    for (int pass = 0; again && pass < MAX_PASSES; pass++) {
        again = false;
        memset(load, 0, c->problem->n_ports * sizeof *load);
        for (size_t k = 0; k < n; k++) {
            int a = order[k];

            if (k + 1 < n && was_behind(c->old_rank, a, order[k + 1])) {
                double cost = cost_of_swap(c, load, a, order[k + 1]);

                if (cost <= slack) {
                    order[k] = order[k + 1];
                    order[k + 1] = a;
                    slack -= fmax(cost, 0);
                    again = changed = true;
                }
            }
            serve(c, order[k], load);
        }
    }
    scratch_free(c->problem->scratch, load);
    return changed;
}

bool
hysteresis_apply(const struct order_problem *problem, const double *times,
                 const int *old_rank, double tolerance, int *order)
{
    struct context c = {
        .problem = problem, .times = times, .old_rank = old_rank,
    };

    return (keep_whole_order(&c, tolerance, order)
            || keep_neighbours(&c, tolerance, order));
}
