/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_BOUND_H
#define WORKLOAD_BOUND_H 1

/* How soon the stages of a workload can complete, where jobs iterate.
 *
 *    struct workload_bound bound = workload_bound(w, efficiency, true);
 *
 *    if (bound.mean > 0) {
 *        ...no order has stages with a shorter mean completion time...
 *    }
 *
 * Depends on no policy, unlike the bound of struct sim_result, which is of
 * stages with recorded begins.  Of four searches of two rungs it takes about a
 * second, of others less. */

#include <stdbool.h>

#include "order/result/result.h"

struct workload;

/* Seconds, means over all stages; see fluid.h.  0 if no job iterates. */
struct workload_bound {
    double mean;           /* Fluid form. */
    double strict;         /* Strict form. */
    enum order_bound kind; /* What 'mean' is. */
};

/* Of the capacity of ports, jobs can use 'efficiency', as in struct
 * sim_options.  With 'survivors', a search keeps its first jobs after a rung;
 * without it, the bound holds for any that it keeps. */
struct workload_bound workload_bound(const struct workload *,
                                     double efficiency, bool survivors);

#endif /* sim/workload/workload-bound.h */
