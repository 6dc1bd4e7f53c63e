/* SPDX-License-Identifier: Apache-2.0 */

/* Whole stages, so that the mean of their completion times is least.
 *
 * For coflows, which exchange once, ports are nearly independent of each other
 * and the primal-dual permutation is the beginning.  The improvement starts
 * from the best of the permutation without and with the stages' own ends (the
 * guarantee is the latter's where stages come later or compute, the former is
 * often better in practice) and of the smallest bottleneck first, so that it is
 * never worse, as estimated, than sincronia or sebf.
 *
 * Jobs that iterate are rigid: one that waits at one port leaves the others
 * idle, and it is the cluster rather than a single port that is full.  What a
 * stage then takes from the others is all of its work, wherever that is, so the
 * least work for its weight goes first.  Measured on generated searches (mean
 * stage completion time against fair, 10 scenarios each): 0.80, 0.81 and 0.85
 * by the improved permutation, 0.78, 0.79 and 0.83 by work. */

#include <math.h>
#include <string.h>

#include "order/by-key.h"
#include "order/improve.h"
#include "order/memory.h"
#include "order/order-internal.h"
#include "order/scratch.h"

/* The share of the busiest port from which on a stage's own earliest end is
 * what matters; the worst case is least at one half. */
#define KAPPA 0.5

static struct order_key
bottleneck_key(const struct order_stage *stage,
               const struct order_options *options)
{
    return (struct order_key) { { order_stage_bottleneck(stage)
                                  / stage->weight } };
}

static struct order_key
work_key(const struct order_stage *stage, const struct order_options *options)
{
    double sum = 0;

    for (size_t i = 0; i < stage->n_demands; i++) {
        sum += stage->demands[i].seconds;
    }
    return (struct order_key) { { sum / stage->weight } };
}

static bool
has_releases(const struct order_problem *op)
{
    for (size_t i = 0; i < op->n_stages; i++) {
        if (op->stages[i].release > 0) {
            return true;
        }
    }
    return false;
}

static bool
is_rigid(const struct order_problem *op)
{
    for (size_t i = 0; i < op->n_stages; i++) {
        if (op->stages[i].traits.period > 0) {
            return true;
        }
    }
    return false;
}

/* Offers 'order' as a start.  The improvement does not look at releases: if
 * there are any, the best start by the estimate is the only one. */
static void
offer(const struct order_problem *op, bool releases, const int *order,
      struct order_result *result)
{
    double best = result->estimate;

    if (releases) {
        order_result_set_order(result, order);
        order_result_estimate(op, ONE_PORT_RANK, result);
        if (result->estimate >= best * (1 - 1e-12)) {
            result->estimate = best;
            return;
        }
        improver_begin(result->improver, op);
    }
    improver_offer(result->improver, order);
}

/* Takes the best start and improves it, unless that turns out worse with
 * releases.  Uses 'start'. */
static void
improve(const struct order_options *options, const struct order_problem *op,
        bool releases, int *start, struct order_result *result)
{
    struct improver *im = result->improver;
    double before = im->cost;
    double estimate;

    order_result_set_order(result, im->order);
    order_result_estimate(op, ONE_PORT_RANK, result);
    if (options->improve_moves <= 0 || op->n_stages < 2) {
        return;
    }
    estimate = result->estimate;
    memcpy(start, im->order, op->n_stages * sizeof *start);
    improver_run(im, options->improve_moves, options->improve_s);
    order_result_set_order(result, im->order);
    order_result_estimate(op, ONE_PORT_RANK, result);
    if (releases && result->estimate > estimate) {
        order_result_set_order(result, start);
        order_result_estimate(op, ONE_PORT_RANK, result);
    } else if (before > 0) {
        result->gained = 1 - im->cost / before;
    }
}

/* The improved permutation.  Uses 'order'. */
static void
compute_coflows(const struct order_options *options,
                const struct order_problem *op, int *order,
                struct order_result *result)
{
    bool releases = has_releases(op);

    if (!result->improver) {
        result->improver = order_alloc(1, sizeof *result->improver);
        improver_init(result->improver);
    }
    improver_begin(result->improver, op);
    result->estimate = INFINITY;
    permute(op, 0, order);
    offer(op, releases, order, result);
    permute(op, KAPPA, order);
    offer(op, releases, order, result);
    sort_by_key(op, options, bottleneck_key, order);
    offer(op, releases, order, result);
    improve(options, op, releases, order, result);
}

void
order_compute_stage(const struct order_options *options,
                    const struct order_problem *op,
                    struct order_result *result)
{
    int *order = scratch_take(op->scratch, op->n_stages, sizeof *order);

    if (is_rigid(op)) {
        sort_by_key(op, options, work_key, order);
        order_result_set_order(result, order);
        order_result_estimate(op, ONE_PORT_RANK, result);
    } else {
        compute_coflows(options, op, order, result);
    }
    order_result_set_levels(options, op, result);
    scratch_give(op->scratch, order);
}
