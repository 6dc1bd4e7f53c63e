/* SPDX-License-Identifier: Apache-2.0 */

/* The order of stages by work, refined for jobs that can interleave.  Coflows
 * are ordered as by "stage".
 *
 * With strict priority, the second of two such jobs already communicates while
 * the first computes; it is delayed only by the bursts of the first.  If
 * swapping two neighbors does not increase the cost, the one with the shorter
 * burst goes first.  If there are fewer levels than stages that share ports,
 * jobs that can interleave share a level before any others do. */

#include "order/baselines/baselines.h"

#include <limits.h>
#include <math.h>

#include "order/baselines/interleave.h"
#include "order/primal-dual/primal-dual.h"
#include "order/problem/options.h"
#include "order/problem/problem.h"
#include "order/problem/scratch.h"
#include "order/result/levels.h"
#include "order/result/result.h"

/* Relative difference below which two estimates are the same. */
#define TIE 1e-12

/* Adds 'times' the demands of 'stage' to the ports' 'load'. */
static void
add_load(const struct order_stage *stage, double times, double *load)
{
    for (size_t i = 0; i < stage->n_demands; i++) {
        load[stage->demands[i].port] += times * stage->demands[i].seconds;
    }
}

/* Returns the weighted end of 'stage' if it is served after 'load'. */
static double
stage_cost(const struct order_stage *stage, const double *load)
{
    double end = order_stage_earliest_end(stage);

    for (size_t i = 0; i < stage->n_demands; i++) {
        const struct order_demand *d = &stage->demands[i];

        end = fmax(end, load[d->port] + d->seconds);
    }
    return stage->weight * end;
}

/* Returns the cost of 'first' and 'second', served in this order. */
static double
pair_cost(const struct order_stage *first, const struct order_stage *second,
          double *load)
{
    double cost = stage_cost(first, load);

    add_load(first, 1, load);
    cost += stage_cost(second, load);
    add_load(first, -1, load);
    return cost;
}

static bool
should_swap(const struct order_stage *first, const struct order_stage *second,
            double *load)
{
    return second->traits.burst < first->traits.burst
           && interleave_fits(first, second)
           && pair_cost(second, first, load)
              <= pair_cost(first, second, load) * (1 + TIE);
}

/* Swaps neighbors in one pass over 'order'.  If all stages have begun, a swap
 * changes the end of no other stage. */
static void
refine_order(const struct order_problem *op, int *order)
{
    double *load = scratch_alloc(op->scratch, op->n_ports, sizeof *load);

    for (size_t k = 1; k < op->n_stages; k++) {
        int first = order[k - 1], second = order[k];

        if (should_swap(&op->stages[first], &op->stages[second], load)) {
            order[k - 1] = second;
            order[k] = first;
        }
        add_load(&op->stages[order[k - 1]], 1, load);
    }
    scratch_free(op->scratch, load);
}

/* Last level of a port so far. */
struct last_level {
    int next;                   /* The level after it; 0 if the port has no
                                 * level yet. */
    double used;                /* Share of time that the stages of the level
                                 * need; INFINITY if one is not periodic. */
};

/* Returns the share of time that demand 'i' of 'stage' needs. */
static double
time_share(const struct order_stage *stage, size_t i, double most)
{
    double duty = interleave_duty(stage);

    return duty > 0 ? duty * stage->demands[i].seconds / most : INFINITY;
}

/* Returns true if 'stage' can share the level before 'next' on all of its
 * ports that have this level. */
static bool
can_share(const struct order_stage *stage, double most, int next,
          const struct last_level *last)
{
    for (size_t i = 0; i < stage->n_demands; i++) {
        const struct last_level *l = &last[stage->demands[i].port];

        if (l->next == next
            && l->used + time_share(stage, i, most) > 1 + 1e-9) {
            return false;
        }
    }
    return next > 0;
}

/* Assigns levels by conflict neighborhood, except that stages that can
 * interleave share a level. */
static void
share_levels(const struct order_problem *op, int n_levels,
             struct order_result *result)
{
    struct last_level *last = scratch_alloc(op->scratch, op->n_ports,
                                           sizeof *last);

    for (size_t k = 0; k < op->n_stages; k++) {
        const struct order_stage *stage = &op->stages[result->order[k]];
        double most = order_stage_bottleneck(stage);
        int level = 0;

        for (size_t i = 0; i < stage->n_demands; i++) {
            int next = last[stage->demands[i].port].next;

            level = next > level ? next : level;
        }
        level -= can_share(stage, most, level, last);
        for (size_t i = 0; i < stage->n_demands; i++) {
            struct last_level *l = &last[stage->demands[i].port];

            l->used = time_share(stage, i, most)
                      + (l->next == level + 1 ? l->used : 0);
            l->next = level + 1;
        }
        result->level[result->order[k]] = level < n_levels ? level
                                          : n_levels - 1;
    }
    scratch_free(op->scratch, last);
}

/* Returns true if stages that share ports need more than 'n_levels' levels. */
static bool
levels_are_few(const struct order_problem *op, int n_levels,
               struct order_result *result)
{
    levels_assign(op, result->order, INT_MAX, result->level);
    for (size_t i = 0; i < op->n_stages; i++) {
        if (result->level[i] >= n_levels) {
            return true;
        }
    }
    return false;
}

void
order_compute_interleave(const struct order_options *options,
                         const struct order_problem *op,
                         struct order_result *result)
{
    int *order = scratch_alloc(op->scratch, op->n_stages, sizeof *order);

    if (order_problem_iterates(op)) {
        order_compute_work(options, op, result);
    } else {
        order_compute_stage(options, op, result);
    }
    for (size_t k = 0; k < op->n_stages; k++) {
        order[k] = result->order[k];
    }
    if (!order_problem_has_releases(op)) {
        refine_order(op, order);
    }
    order_result_ranked(options, op, order, result);
    if (!options->truncate && levels_are_few(op, options->n_levels, result)) {
        share_levels(op, options->n_levels, result);
    }
    scratch_free(op->scratch, order);
}
