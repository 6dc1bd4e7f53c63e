/* SPDX-License-Identifier: Apache-2.0 */

/* The order of Crux (Cao et al., SIGCOMM 2024): jobs with the most device time
 * of computing per second of network go first, so that devices wait least.
 * Jobs of unknown intensity go last. */

#include "order/baselines/baselines.h"

#include "order/problem/options.h"
#include "order/problem/problem.h"
#include "order/problem/sort.h"
#include "order/result/result.h"

static struct order_key
intensity_key(const struct order_stage *stage,
              const struct order_options *options)
{
    return (struct order_key){ { -stage->traits.intensity,
                                 order_stage_bottleneck(stage) } };
}

void
order_compute_intensity(const struct order_options *options,
                        const struct order_problem *op,
                        struct order_result *result)
{
    order_result_by_key(options, op, intensity_key, result);
}
