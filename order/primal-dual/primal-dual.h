/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PRIMAL_DUAL_H
#define PRIMAL_DUAL_H 1

/* The primal-dual permutation of stages, the order made of it, and lower
 * bounds on the weighted sum of completion times.
 *
 * All functions use the memory of the problem, which they do not change
 * otherwise. */

#include <stdbool.h>

#include "order/result/result.h"

struct order_options;
struct order_problem;

/* Fills 'order' (n_stages elements) and returns a lower bound on the weighted
 * sum of completion times.  'kappa' 0 ignores releases and isolated times.
 * With 'kappa' > 0, a stage with an isolated end after kappa times the busiest
 * port's load goes last.  Ties are broken by size, the smaller first, then by
 * id.  (Mastrolilli et al. 2010; Sincronia, SIGCOMM 2018; releases after
 * Ahmadi et al. 2020.) */
double permute(const struct order_problem *, double kappa, int *order);

/* Like permute() with 'kappa' > 0, except for rounding, but faster.  The
 * previous call for this problem must have been permute() with kappa 0; this
 * one repeats its order up to the first stage with a late isolated end. */
double permute_again(const struct order_problem *, double kappa, int *order);

/* Sets whether permute() avoids the processor's vector instructions.  The
 * result is the same to the last bit.  For tests. */
void permute_use_portable(bool);

/* Returns the best of the known lower bounds and stores in '*kind', unless it
 * is NULL, which one it is: the sum of isolated ends; permute() without and
 * with releases for several kappas and, for equal weights, shortest remaining
 * processing time first on each port. */
double certificate_bound(const struct order_problem *, enum order_bound *kind);

/* Computes ORDER_STAGE, which other orders start from. */
void order_compute_stage(const struct order_options *,
                         const struct order_problem *, struct order_result *);

#endif /* order/primal-dual/primal-dual.h */
