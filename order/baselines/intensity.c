/* SPDX-License-Identifier: Apache-2.0 */

/* The order of Crux (Cao et al., SIGCOMM 2024): jobs that keep the most
 * devices computing per second of network go first, so that devices wait
 * least.  Jobs of which that is not known go last. */

#include "order/baselines/baselines.h"

#include "order/by-key.h"
#include "order/order-internal.h"
#include "order/scratch.h"

static struct order_key
intensity_key(const struct order_stage *stage,
              const struct order_options *options)
{
    return (struct order_key) { {
        -stage->traits.intensity, order_stage_bottleneck(stage),
    } };
}

void
order_compute_intensity(const struct order_options *options,
                        const struct order_problem *op,
                        struct order_result *result)
{
    int *order = scratch_take(op->scratch, op->n_stages, sizeof *order);

    sort_by_key(op, options, intensity_key, order);
    order_result_ranked(options, op, order, result);
    scratch_give(op->scratch, order);
}
