/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POLICY_SNAPSHOT_H
#define POLICY_SNAPSHOT_H 1

/* Stages at one moment, to compare their order under different policies.
 *
 *    snapshot_from_workload(&snapshot, workload);
 *    struct order_problem *op = snapshot_problem(&snapshot, policy);
 *
 */

#include <stddef.h>

#include "order/order.h"

struct policy;
struct workload;

struct snapshot_stage {
    char *cojob;
    char *user;                 /* NULL if unknown. */
    int rung;
    double weight;              /* Weight of the search. */
    double isolated;            /* Isolated time in seconds, 0 if unknown. */
    struct order_traits traits;
    size_t n_demands, allocated_demands;
    struct order_demand *demands;
};

struct snapshot {
    int n_ports;
    size_t n, allocated;
    struct snapshot_stage *stages;
};

/* Creates a snapshot of the first stages of all cojobs, all present and
 * without traffic so far.  The cojob that arrives last has age 0. */
void snapshot_from_workload(struct snapshot *, const struct workload *);

void snapshot_uninit(struct snapshot *);

/* Adds a stage, which the caller completes.  Takes ownership of 'cojob'. */
struct snapshot_stage *snapshot_add(struct snapshot *, char *cojob, int rung,
                                    double weight);
void snapshot_add_demand(struct snapshot_stage *, int port, double seconds);

/* Returns the input of order_compute() under 'policy'.  Indexes of stages are
 * those of the snapshot. */
struct order_problem *snapshot_problem(const struct snapshot *,
                                       const struct policy *);

#endif /* cli/simulate/policy-snapshot.h */
