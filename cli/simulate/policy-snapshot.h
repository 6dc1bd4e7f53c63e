/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POLICY_SNAPSHOT_H
#define POLICY_SNAPSHOT_H 1

/* Stages that want the network at one moment, so that one can ask what a
 * policy would make of them.
 *
 *    snapshot_from_workload(&snapshot, workload);
 *    struct order_problem *op = snapshot_problem(&snapshot, policy);
 *
 * A snapshot owns what is in it. */

#include <stddef.h>

#include "order/order.h"

struct policy;
struct workload;

struct snapshot_stage {
    char *cojob;
    char *user;                 /* NULL if not known. */
    int rung;
    double weight;              /* That the search asked for. */
    double isolated;            /* Seconds that it takes alone, 0: unknown. */
    struct order_traits traits;
    size_t n_demands, allocated_demands;
    struct order_demand *demands;
};

struct snapshot {
    int n_ports;
    size_t n, allocated;
    struct snapshot_stage *stages;
};

/* The first stages of all cojobs, as if all of them had come and nobody had
 * sent anything yet; the one that arrives last has age 0. */
void snapshot_from_workload(struct snapshot *, const struct workload *);

void snapshot_uninit(struct snapshot *);

/* A new stage for the caller to fill in; takes over 'cojob'. */
struct snapshot_stage *snapshot_add(struct snapshot *, char *cojob, int rung,
                                    double weight);
void snapshot_add_demand(struct snapshot_stage *, int port, double seconds);

/* What order_compute() gets by 'policy'; stages have the same indexes. */
struct order_problem *snapshot_problem(const struct snapshot *,
                                       const struct policy *);

#endif /* cli/simulate/policy-snapshot.h */
