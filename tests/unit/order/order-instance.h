/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ORDER_INSTANCE_H
#define ORDER_INSTANCE_H 1

/* Small random problems for the tests of the order, and their best answer by
 * trying all permutations.
 *
 * On every port, the stages in the order of their completion times in the best
 * schedule, each interrupting those after it, end no later than in that
 * schedule.  So the best of all permutations is the best of all schedules of
 * independent ports, releases or not. */

#include <stdbool.h>
#include <stdint.h>

struct order_problem;
struct order_stage;

#define INSTANCE_MAX_STAGES 7

struct instance_shape {
    int max_stages;             /* 1 .. max_stages, at most
                                 * INSTANCE_MAX_STAGES. */
    int max_ports;
    bool weights;               /* Unequal ones. */
    bool releases;              /* And isolated times. */
    bool integers;              /* Small ones, which make ties. */
};

uint32_t instance_random(uint64_t *state);
double instance_uniform(uint64_t *state);
struct order_problem *instance_create(uint64_t *state,
                                      const struct instance_shape *);

/* Lets all stages begin at the problem's time 0. */
void instance_begin_all(struct order_problem *);

/* Large ones, as clusters have them: some ports are in demand more than
 * others, and stages are as different in size as 1 and 10,000. */
struct instance_crowd {
    int n_ports;
    int ports_per_stage;        /* At most n_ports. */
    double skew;                /* Port k is in demand as (k + 1)^-skew; 0 is
                                 * equally. */
};

void instance_add_stage(uint64_t *state, const struct instance_crowd *,
                        struct order_problem *, uint64_t id);

double instance_demand(const struct order_stage *, int port);
bool instance_share_a_port(const struct order_stage *,
                           const struct order_stage *);

/* Weighted sum of ends if every port serves by 'order'. */
double instance_cost(const struct order_problem *, const int *order);
double instance_optimum(const struct order_problem *);

/* permute() for kappa 0 by plain loops over a matrix of all stages and all
 * ports, 'seconds', by port: what it should find.  Ties are not looked at. */
double instance_permute(int n_stages, int n_ports, const double *seconds,
                        const double *weight, int *order);

#endif /* tests/unit/order/order-instance.h */
