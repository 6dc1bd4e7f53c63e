/* SPDX-License-Identifier: Apache-2.0 */

/* The order of stages, refined for jobs that can take turns.
 *
 * Of two such jobs, strict priority already lets the second communicate while
 * the first computes; what it costs the second is the first one's bursts.  So
 * where the order of stages does not care who of two neighbours goes first,
 * the one with the shorter burst does.  And if there are fewer levels than
 * stages that meet, jobs that can take turns share one before any others
 * do. */

#include "order/baselines/baselines.h"

#include <limits.h>
#include <math.h>

#include "order/by-key.h"
#include "order/interleave.h"
#include "order/order-internal.h"
#include "order/scratch.h"

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

/* Returns when 'stage' ends after 'load' on the ports, times its weight. */
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

/* Returns what 'first' and 'second' cost one after the other. */
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

/* Goes through 'order' once and swaps neighbours.  Two neighbours do not
 * change when any other stage ends, as long as all are there. */
static void
refine(const struct order_problem *op, int *order)
{
    double *load = scratch_take(op->scratch, op->n_ports, sizeof *load);

    for (size_t k = 1; k < op->n_stages; k++) {
        int first = order[k - 1], second = order[k];

        if (should_swap(&op->stages[first], &op->stages[second], load)) {
            order[k - 1] = second;
            order[k] = first;
        }
        add_load(&op->stages[order[k - 1]], 1, load);
    }
    scratch_give(op->scratch, load);
}

/* The last level on a port so far. */
struct last_level {
    int next;                   /* The level after it; 0 if there is none. */
    double used;                /* Share of time that those in it need,
                                 * INFINITY if one of them is not periodic. */
};

/* Returns the share of time that the i-th demand of 'stage' needs. */
static double
needed(const struct order_stage *stage, size_t i, double most)
{
    double duty = interleave_duty(stage);

    return duty > 0 ? duty * stage->demands[i].seconds / most : INFINITY;
}

/* Returns true if 'stage' has time to share the level before 'next' with those
 * in it, wherever it meets them. */
static bool
has_time(const struct order_stage *stage, double most, int next,
         const struct last_level *last)
{
    for (size_t i = 0; i < stage->n_demands; i++) {
        const struct last_level *l = &last[stage->demands[i].port];

        if (l->next == next && l->used + needed(stage, i, most) > 1 + 1e-9) {
            return false;
        }
    }
    return next > 0;
}

/* Levels by conflict neighbourhood, but that stages that can take turns
 * share. */
static void
share_levels(const struct order_problem *op, int n_levels,
             struct order_result *result)
{
    struct last_level *last = scratch_take(op->scratch, op->n_ports,
                                           sizeof *last);

    for (size_t k = 0; k < op->n_stages; k++) {
        const struct order_stage *stage = &op->stages[result->order[k]];
        double most = order_stage_bottleneck(stage);
        int level = 0;

        for (size_t i = 0; i < stage->n_demands; i++) {
            int next = last[stage->demands[i].port].next;

            level = next > level ? next : level;
        }
        level -= has_time(stage, most, level, last);
        for (size_t i = 0; i < stage->n_demands; i++) {
            struct last_level *l = &last[stage->demands[i].port];

            l->used = needed(stage, i, most)
                      + (l->next == level + 1 ? l->used : 0);
            l->next = level + 1;
        }
        result->level[result->order[k]] = level < n_levels ? level
                                          : n_levels - 1;
    }
    scratch_give(op->scratch, last);
}

/* Returns true if the stages that meet need more than 'n_levels' levels. */
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

static bool
all_are_there(const struct order_problem *op)
{
    for (size_t i = 0; i < op->n_stages; i++) {
        if (op->stages[i].release > 0) {
            return false;
        }
    }
    return true;
}

void
order_compute_interleave(const struct order_options *options,
                         const struct order_problem *op,
                         struct order_result *result)
{
    int *order = scratch_take(op->scratch, op->n_stages, sizeof *order);

    order_compute_stage(options, op, result);
    for (size_t k = 0; k < op->n_stages; k++) {
        order[k] = result->order[k];
    }
    if (all_are_there(op)) {
        refine(op, order);
    }
    order_result_ranked(options, op, order, result);
    if (!options->truncate && levels_are_few(op, options->n_levels, result)) {
        share_levels(op, options->n_levels, result);
    }
    scratch_give(op->scratch, order);
}
