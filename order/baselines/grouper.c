/* SPDX-License-Identifier: Apache-2.0 */

/* Whole stages by the primal-dual permutation of their remaining demands, as
 * Grouper orders the rounds of hyper-parameter searches.  All jobs of a stage
 * share its rank, and the order changes only when a stage begins or ends, see
 * order_is_whole().
 *
 * Its abstract is public, not its formulas.  The permutation is therefore that
 * of Mastrolilli et al. without releases and isolated times. */

#include "order/baselines/baselines.h"

#include "order/primal-dual/primal-dual.h"
#include "order/problem/options.h"
#include "order/problem/problem.h"
#include "order/problem/scratch.h"
#include "order/result/result.h"

void
order_compute_grouper(const struct order_options *options,
                      const struct order_problem *op,
                      struct order_result *result)
{
    int *order = scratch_alloc(op->scratch, op->n_stages, sizeof *order);

    permute(op, 0, order);
    order_result_ranked(options, op, order, result);
    result->decider = ORDER_BY_PERMUTATION;
    scratch_free(op->scratch, order);
}
