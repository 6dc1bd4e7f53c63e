/* SPDX-License-Identifier: Apache-2.0 */

/* Early jobs first (JPAS), alone and within the order of stages.
 *
 * A search learns most from jobs whose metric still grows fast; early.h says
 * which those are, how much they are about to gain and when they will have
 * gained most of it.  Early jobs go before all others; of them the one whose
 * early stage ends after the fewest seconds of the network, so that most of
 * them are over soonest.  The gain of the next period decides where that end is
 * not known, and among jobs that are not early.  (By the gain alone a job that
 * has just begun, and gains most, would always stop one that is nearly there.)
 *
 * As a weight of the order of stages the same number is a share of one, so
 * that a stage is preferred by at most 'early_boost' whatever its curve. */

#include "order/baselines/baselines.h"

#include <math.h>

#include "order/by-key.h"
#include "order/order-internal.h"
#include "order/scratch.h"

static double
known_gain(const struct order_stage *stage)
{
    return stage->traits.gain > 0 ? stage->traits.gain : 0;
}

/* Returns the order's key if an iteration costs 'seconds'. */
static struct order_key
early_key(const struct order_stage *stage, double seconds)
{
    const struct order_traits *t = &stage->traits;
    double gain = t->early && t->ahead > 0 ? 1 / t->ahead
        : known_gain(stage);
    double score = seconds > 0 ? gain / seconds : gain > 0 ? INFINITY : 0;

    return (struct order_key) { {
        !stage->traits.early, -score, order_stage_bottleneck(stage),
        order_stage_arrived(stage),
    } };
}

static struct order_key
burst_key(const struct order_stage *stage,
          const struct order_options *options)
{
    return early_key(stage, stage->traits.burst);
}

static struct order_key
remaining_key(const struct order_stage *stage,
              const struct order_options *options)
{
    return early_key(stage, order_stage_bottleneck(stage));
}

/* The gain costs what an iteration needs of its busiest port or, unless that
 * is known of every job that needs something, what remains of the job. */
void
order_compute_early(const struct order_options *options,
                    const struct order_problem *op,
                    struct order_result *result)
{
    int *order = scratch_take(op->scratch, op->n_stages, sizeof *order);
    order_key_func *key = burst_key;

    for (size_t i = 0; i < op->n_stages; i++) {
        const struct order_stage *stage = &op->stages[i];

        if (stage->n_demands && !(stage->traits.burst > 0)) {
            key = remaining_key;
        }
    }
    sort_by_key(op, options, key, order);
    order_result_ranked(options, op, order, result);
    scratch_give(op->scratch, order);
}

/* Returns how early 'stage' is, from 0 to 1: 0 if it is not early, one half if
 * it is about to gain as much as its largest step so far, 1 before there are
 * samples. */
static double
earliness(const struct order_stage *stage)
{
    double gain = known_gain(stage);

    return !stage->traits.early ? 0 : isinf(gain) ? 1 : gain / (1 + gain);
}

/* The order of stages on weights that earliness raises.  Estimates, like the
 * certificate, count the weights that were asked for: how much the preference
 * costs is to be seen. */
void
order_compute_stage_early(const struct order_options *options,
                          const struct order_problem *op,
                          struct order_result *result)
{
    struct order_problem boosted = *op;

    boosted.stages = scratch_take(op->scratch, op->n_stages,
                                  sizeof *boosted.stages);
    for (size_t i = 0; i < op->n_stages; i++) {
        boosted.stages[i] = op->stages[i];
        boosted.stages[i].weight *= 1 + options->early_boost
                                        * earliness(&op->stages[i]);
    }
    order_compute_stage(options, &boosted, result);
    order_result_estimate(op, ONE_PORT_RANK, result);
    scratch_give(op->scratch, boosted.stages);
}
