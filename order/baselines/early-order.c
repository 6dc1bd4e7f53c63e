/* SPDX-License-Identifier: Apache-2.0 */

/* Orders by the progress of training: "maif", "early", and early jobs within
 * the order of stages.
 *
 * A search learns most from jobs whose metric still grows fast.
 * progress-curve.h predicts the gain of each job and the end of its early
 * phase.
 *
 * "maif" is the rule of JPAS (Zhou et al., Journal of Network and Computer
 * Applications 158, 2020) as far as public texts have it, which is a greedy
 * order of all jobs in each period that prefers jobs in their early stage: the
 * job with the largest predicted gain goes first, whatever its transfers cost.
 * The formulas are not public, so the fit of the curve and the scale of the
 * gain are those of progress-curve.h.
 *
 * "early" aims at the same result, early phases that end soon.  Early jobs go
 * before all others.  Among them, the job whose early phase needs the fewest
 * seconds of the network goes first, so that most early phases end soonest.
 * The gain in the next period decides where that end is unknown, and among
 * jobs that are not early.  (By gain alone, a job that has
 * just begun would always preempt one that is nearly finished.)
 *
 * In the order of stages, "stage+early", earliness raises a stage's weight by
 * at most the factor 'early_boost', whatever its curve. */

#include "order/baselines/baselines.h"

#include <math.h>

#include "order/primal-dual/primal-dual.h"
#include "order/problem/options.h"
#include "order/problem/problem.h"
#include "order/problem/scratch.h"
#include "order/result/result.h"

static double
known_gain(const struct order_stage *stage)
{
    return stage->traits.gain > 0 ? stage->traits.gain : 0;
}

/* Returns the sort key if an iteration needs 'seconds' of the network. */
static struct order_key
early_key(const struct order_stage *stage, double seconds)
{
    const struct order_traits *t = &stage->traits;
    double gain = t->early && t->iterations_to_theta > 0
        ? 1 / t->iterations_to_theta : known_gain(stage);
    double score = seconds > 0 ? gain / seconds : gain > 0 ? INFINITY : 0;

    return (struct order_key) { {
        !stage->traits.early, -score, order_stage_bottleneck(stage),
        order_stage_arrival(stage),
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

/* The cost of the gain is the time that an iteration needs on its busiest port
 * or, unless that is known for every job with demand, the job's remaining
 * time. */
void
order_compute_early(const struct order_options *options,
                    const struct order_problem *op,
                    struct order_result *result)
{
    order_key_func *key = burst_key;

    for (size_t i = 0; i < op->n_stages; i++) {
        const struct order_stage *stage = &op->stages[i];

        if (stage->n_demands && !(stage->traits.burst > 0)) {
            key = remaining_key;
        }
    }
    order_result_by_key(options, op, key, result);
}

/* Of jobs with equal gain, such as those without samples, the older first. */
static struct order_key
gain_key(const struct order_stage *stage, const struct order_options *options)
{
    return (struct order_key) { {
        -known_gain(stage), order_stage_arrival(stage),
    } };
}

void
order_compute_maif(const struct order_options *options,
                   const struct order_problem *op,
                   struct order_result *result)
{
    order_result_by_key(options, op, gain_key, result);
}

/* Returns a measure from 0 to 1: 0 if 'stage' is not early, 0.5 if its
 * predicted gain equals its largest step so far, 1 before the first
 * samples. */
static double
earliness(const struct order_stage *stage)
{
    double gain = known_gain(stage);

    return !stage->traits.early ? 0 : isinf(gain) ? 1 : gain / (1 + gain);
}

/* Orders stages with weights raised by their earliness.  Estimate and
 * certificate use the original weights, so that they show the cost of the
 * preference. */
void
order_compute_stage_early(const struct order_options *options,
                          const struct order_problem *op,
                          struct order_result *result)
{
    struct order_problem boosted = *op;

    boosted.stages = scratch_alloc(op->scratch, op->n_stages,
                                  sizeof *boosted.stages);
    for (size_t i = 0; i < op->n_stages; i++) {
        boosted.stages[i] = op->stages[i];
        boosted.stages[i].weight *= 1 + options->early_boost
                                        * earliness(&op->stages[i]);
    }
    order_compute_stage(options, &boosted, result);
    order_result_estimate(op, ONE_PORT_RANK, result);
    scratch_free(op->scratch, boosted.stages);
}
