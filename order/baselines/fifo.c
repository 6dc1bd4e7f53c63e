/* SPDX-License-Identifier: Apache-2.0 */

/* First come, first served, and the variant of Baraat (Dogar et al., SIGCOMM
 * 2014).
 *
 * Limited multiplexing: a stage that has sent 'heavy_bytes' shares with the
 * next stage, so that a large stage does not delay all later ones.  If the
 * next stage is heavy too, both share with the one after it, and so on.  The
 * first light stage closes the group. */

#include "order/baselines/baselines.h"

#include "order/problem/options.h"
#include "order/problem/problem.h"
#include "order/problem/scratch.h"
#include "order/problem/sort.h"
#include "order/result/result.h"

struct order_key
order_key_arrival(const struct order_stage *stage,
                  const struct order_options *options)
{
    return (struct order_key) { { order_stage_arrival(stage) } };
}

void
order_compute_fifo_lm(const struct order_options *options,
                      const struct order_problem *op,
                      struct order_result *result)
{
    int *order = scratch_alloc(op->scratch, op->n_stages, sizeof *order);
    int *group = scratch_alloc(op->scratch, op->n_stages, sizeof *group);
    int n_groups = 0;

    sort_by_key(op, options, order_key_arrival, order);
    for (size_t k = 0; k < op->n_stages; k++) {
        const struct order_stage *stage = &op->stages[order[k]];

        group[k] = n_groups;
        if (!order_stage_has_sent(stage, options->heavy_bytes)) {
            result->sent_limit[order[k]] = options->heavy_bytes;
            n_groups++;
        }
    }
    order_result_shared(options, op, order, group, result);
    scratch_free(op->scratch, group);
    scratch_free(op->scratch, order);
}
