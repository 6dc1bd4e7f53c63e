/* SPDX-License-Identifier: Apache-2.0 */

/* First come, first served, and what Baraat makes of it (Dogar et al.,
 * SIGCOMM 2014).
 *
 * Limited multiplexing: one large stage would hold up all that came after it,
 * so a stage that has sent 'heavy_bytes' shares with the next one, and as long
 * as that is heavy too, with the one after.  The first light stage closes the
 * group: those behind it wait. */

#include "order/baselines/baselines.h"

#include "order/by-key.h"
#include "order/order-internal.h"
#include "order/scratch.h"

static struct order_key
arrival_key(const struct order_stage *stage,
            const struct order_options *options)
{
    return (struct order_key) { { order_stage_arrived(stage) } };
}

void
order_compute_fifo(const struct order_options *options,
                   const struct order_problem *op,
                   struct order_result *result)
{
    int *order = scratch_take(op->scratch, op->n_stages, sizeof *order);

    sort_by_key(op, options, arrival_key, order);
    order_result_ranked(options, op, order, result);
    scratch_give(op->scratch, order);
}

void
order_compute_fifo_lm(const struct order_options *options,
                      const struct order_problem *op,
                      struct order_result *result)
{
    int *order = scratch_take(op->scratch, op->n_stages, sizeof *order);
    int *group = scratch_take(op->scratch, op->n_stages, sizeof *group);
    int n_groups = 0;

    sort_by_key(op, options, arrival_key, order);
    for (size_t k = 0; k < op->n_stages; k++) {
        const struct order_stage *stage = &op->stages[order[k]];

        group[k] = n_groups;
        if (!order_has_sent(stage, options->heavy_bytes)) {
            result->sent_limit[order[k]] = options->heavy_bytes;
            n_groups++;
        }
    }
    order_result_shared(options, op, order, group, result);
    scratch_give(op->scratch, group);
    scratch_give(op->scratch, order);
}
