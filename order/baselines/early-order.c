/* SPDX-License-Identifier: Apache-2.0 */

/* Orders by the progress of training: "maif", "early", and early jobs within
 * the order of stages.
 *
 * A search learns most from jobs with a metric that still grows fast.
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
 * "stage+early" minimizes the sum of two kinds of ends: those of searches, as
 * the order of stages does, and those of the early phases of their jobs.  The
 * mean early end of a search's jobs counts as much as 'early_boost' ends of
 * the search.  An iteration is weighted by its share in each of both, and
 * what two ends weigh adds up, see iteration-weight.h: an iteration of a job
 * that needs n more iterations to the end of its early phase has 1 / n of what
 * that end weighs.
 *
 * "early" is the same with a boost so large that stages decide only among jobs
 * that are not early. */

#include "order/baselines/baselines.h"

#include <math.h>

#include "order/primal-dual/primal-dual.h"
#include "order/problem/options.h"
#include "order/problem/problem.h"
#include "order/problem/scratch.h"
#include "order/result/result.h"

/* Boost of "early". */
#define FIRST_OF_ALL 1e4

static double
known_gain(const struct order_stage *stage)
{
    return stage->traits.gain > 0 ? stage->traits.gain : 0;
}

/* Of jobs with equal gain, such as those without samples, the older first. */
struct order_key
order_key_gain(const struct order_stage *stage,
               const struct order_options *options)
{
    return (struct order_key){ { -known_gain(stage),
                                 order_stage_arrival(stage) } };
}

/* Returns the share, from 0 to 1, that an iteration of 'stage' has in what its
 * early phase still needs.  Without a prediction of that, the gain relative to
 * the largest step so far takes its place, so that the share of a job that
 * reports nothing falls. */
static double
early_share(const struct order_stage *stage)
{
    const struct order_traits *t = &stage->traits;
    double gain = known_gain(stage);

    if (!t->early) {
        return 0;
    } else if (t->iterations_to_theta > 0) {
        return 1 / fmax(t->iterations_to_theta, 1);
    }
    return isinf(gain) ? 1 : gain / (1 + gain);
}

/* Sorts the stages without demands among themselves, the heaviest first.  They
 * change no estimate, so the order of stages leaves them as they come, but a
 * job's demands may only not be known yet. */
static void
sort_without_demands(const struct order_problem *op,
                     struct order_result *result)
{
    size_t *places = scratch_alloc(op->scratch, result->n, sizeof *places);
    size_t n = 0;

    for (size_t k = 0; k < result->n; k++) {
        int stage = result->order[k];
        size_t i;

        if (op->stages[stage].n_demands) {
            continue;
        }
        places[n] = k;
        for (i = n++; i > 0; i--) {
            int before = result->order[places[i - 1]];

            if (op->stages[before].weight >= op->stages[stage].weight) {
                break;
            }
            result->order[places[i]] = before;
        }
        result->order[places[i]] = stage;
    }
    scratch_free(op->scratch, places);
    for (size_t k = 0; k < result->n; k++) {
        result->rank[result->order[k]] = k;
    }
}

/* Orders stages with what early phases weigh added to their weights.
 * Estimate and certificate use the original weights, so that they show the
 * cost of the preference. */
static void
compute_boosted(const struct order_options *options, double boost,
                const struct order_problem *op, struct order_result *result)
{
    struct order_problem boosted = *op;

    boosted.stages = scratch_alloc(op->scratch, op->n_stages,
                                  sizeof *boosted.stages);
    for (size_t i = 0; i < op->n_stages; i++) {
        const struct order_stage *stage = &op->stages[i];
        double weight = stage->traits.early_weight;

        boosted.stages[i] = *stage;
        boosted.stages[i].weight += boost * early_share(stage)
                                    * (weight > 0 ? weight : stage->weight);
    }
    order_compute_stage(options, &boosted, result);
    sort_without_demands(&boosted, result);
    order_result_estimate(op, result);
    scratch_free(op->scratch, boosted.stages);
}

void
order_compute_stage_early(const struct order_options *options,
                          const struct order_problem *op,
                          struct order_result *result)
{
    compute_boosted(options, options->early_boost, op, result);
}

void
order_compute_early(const struct order_options *options,
                    const struct order_problem *op,
                    struct order_result *result)
{
    compute_boosted(options, FIRST_OF_ALL, op, result);
}
