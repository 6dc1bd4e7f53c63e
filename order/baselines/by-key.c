/* SPDX-License-Identifier: Apache-2.0 */

/* Stages by one number, several measures of size most often.
 *
 * Smallest effective bottleneck first is the order of Varys (Chowdhury, Zhong
 * and Stoica, SIGCOMM 2014): by the demand for the busiest port, at arrival or
 * now.  Total coflow first sorts by all remaining bytes.  "work" sorts stages
 * by the remaining seconds of all ports per weight.
 *
 * The order of Crux (Cao et al., SIGCOMM 2024): jobs with the most device time
 * of computing per second of network go first, so that devices wait least.
 * Jobs of unknown intensity go last. */

#include "order/baselines/baselines.h"

#include "order/problem/options.h"
#include "order/problem/problem.h"
#include "order/problem/sort.h"
#include "order/result/result.h"

struct order_key
order_key_remaining(const struct order_stage *stage,
                    const struct order_options *options)
{
    return (struct order_key){ { order_stage_bottleneck(stage) } };
}

/* Uses the remaining bottleneck if the one at arrival is unknown. */
struct order_key
order_key_initial(const struct order_stage *stage,
                  const struct order_options *options)
{
    double initial = stage->traits.initial;

    return initial > 0 ? (struct order_key){ { initial } }
                       : order_key_remaining(stage, options);
}

struct order_key
order_key_weighted_work(const struct order_stage *stage,
                        const struct order_options *options)
{
    return (struct order_key){ { order_stage_work(stage) / stage->weight } };
}

struct order_key
order_key_intensity(const struct order_stage *stage,
                    const struct order_options *options)
{
    return (struct order_key){ { -stage->traits.intensity,
                                 order_stage_bottleneck(stage) } };
}

static struct order_key
bytes_key(const struct order_stage *stage, const struct order_options *options)
{
    return (struct order_key){ { stage->traits.bytes } };
}

static struct order_key
work_key(const struct order_stage *stage, const struct order_options *options)
{
    return (struct order_key){ { order_stage_work(stage) } };
}

/* Bytes and seconds are not comparable: unless the bytes of every stage with
 * demand are known, all stages are sorted by the sum of their seconds. */
void
order_compute_tcf(const struct order_options *options,
                  const struct order_problem *op, struct order_result *result)
{
    order_key_func *key = bytes_key;

    for (size_t i = 0; i < op->n_stages; i++) {
        const struct order_stage *stage = &op->stages[i];

        if (stage->n_demands && !(stage->traits.bytes > 0)) {
            key = work_key;
        }
    }
    order_result_by_key(options, op, key, result);
}
