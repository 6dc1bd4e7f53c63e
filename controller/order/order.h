/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ORDER_H
#define ORDER_H 1

/* In which order search stages get the network, and how good that order is.
 *
 *
 * Motivation
 * ==========
 *
 * A rung of a hyper-parameter search cannot be judged until its slowest job
 * gets there, so what the network should minimise is the weighted sum of the
 * stages' completion times.  That is coflow scheduling with a whole stage as
 * the coflow: ports are machines, a stage needs so many seconds of each, and
 * it is done when the last port has served it.  A primal-dual algorithm gives
 * an order within a constant of the best one and, with it, a lower bound on
 * the best one: a certificate.
 *
 *
 * Usage
 * =====
 *
 *    struct order_problem *op = order_problem_create(n_ports);
 *    int s = order_problem_add_stage(op, weight, id);
 *    order_problem_add_demand(op, s, port, seconds);
 *
 *    struct order_result result;
 *    order_result_init(&result);
 *    order_compute(ORDER_STAGE, op, n_levels, &result);
 *    ...result.order[0] is the index of the stage that is served first...
 *    ...result.estimate / result.bound is at least how good it is...
 *    order_result_uninit(&result);
 *    order_problem_destroy(op);
 *
 * The problem is the input of every order by whatever name, and the result is
 * the output of every one.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain C with no dependency but libm: the controller, the simulator and the
 * tests link the same code.  A result's arrays belong to the result and are
 * reused by the next order_compute() into it.  Nothing here is shared, so
 * different threads may work on different problems. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More seconds than any stage needs of a port.  A demand is at most so large,
 * so that a port that has lost its capacity makes an order, not a NaN. */
#define ORDER_MAX_SECONDS 1e9

enum order_kind {
    ORDER_FAIR,                 /* No order: every stage at level 0. */
    ORDER_STAGE,                /* Primal-dual permutation of stages. */
};

/* "fair", "stage"; indexed by enum order_kind, null-terminated. */
extern const char *const order_names[];

/* One (stage, port) pair with demand. */
struct order_demand {
    int port;                   /* 0 .. n_ports - 1. */
    double seconds;             /* Of that port at full capacity, > 0, at most
                                 * ORDER_MAX_SECONDS. */
};

/* One stage.  Read-only outside this module. */
struct order_stage {
    uint64_t id;                /* Breaks ties: the smaller is served first. */
    double weight;              /* > 0, finite; 1 is an ordinary search. */
    double release;             /* Seconds from the problem's time 0; 0 if the
                                 * stage has begun. */
    double isolated;            /* Seconds it takes alone, computing included,
                                 * 0 if not known.  Less than the longest
                                 * demand counts as that. */
    size_t n_demands, allocated_demands;
    struct order_demand *demands;   /* Sorted by port, each port once. */
};

struct order_problem {
    int n_ports;
    size_t n_stages, allocated_stages;
    struct order_stage *stages;
};

struct order_problem *order_problem_create(int n_ports);
void order_problem_destroy(struct order_problem *);

/* Stages have indexes 0, 1, ... in the order in which they are added.  What
 * order_compute() finds depends on their ids, not on their indexes, as long as
 * ids differ.  Demands for the same port add up; no positive number of seconds
 * is no demand. */
int order_problem_add_stage(struct order_problem *, double weight,
                            uint64_t id);
void order_problem_set_release(struct order_problem *, int stage,
                               double release, double isolated);
void order_problem_add_demand(struct order_problem *, int stage, int port,
                              double seconds);
double order_stage_earliest_end(const struct order_stage *);

/* What order_compute() found.  Arrays have 'n' elements. */
struct order_result {
    size_t n, allocated;
    int *order;                 /* Stage index at each rank, 0 first. */
    int *rank;                  /* Rank of each stage. */
    int *level;                 /* Level of each stage, 0 .. n_levels - 1, 0
                                 * first; never falls along the order among
                                 * stages that share a port. */
    double *completion;         /* Estimated completion of each stage in
                                 * seconds from the problem's time 0: when the
                                 * last of its ports has served it and what
                                 * goes before it there, each port on its own,
                                 * and not before it would end alone.  For
                                 * ORDER_FAIR, if ports share equally. */
    double estimate;            /* Weighted sum of 'completion'. */
    double bound;               /* Certificate: no schedule has a smaller
                                 * weighted sum of completion times; at most
                                 * 'estimate'. */
};

void order_result_init(struct order_result *);
void order_result_uninit(struct order_result *);

void order_compute(enum order_kind, const struct order_problem *,
                   int n_levels, struct order_result *);

/* The rooms behind order_compute(), for tests and for bounds on their own. */

/* Fills 'order' (n_stages elements) and returns a lower bound on the weighted
 * sum of completion times.  'kappa' > 0 uses releases and isolated times: a
 * stage that ends after kappa times the busiest port's load even when alone
 * goes last; 0 ignores them.  Equals go by size, the smaller first, then by
 * id.  (Mastrolilli et al. 2010; Sincronia, SIGCOMM 2018; releases after
 * Ahmadi et al. 2020.) */
double permute(const struct order_problem *, double kappa, int *order);

/* The best of the known lower bounds on the weighted sum of completion times:
 * permute() without and with releases for several kappas, the sum of isolated
 * ends and, for equal weights, shortest remaining processing time first on
 * each port. */
double certificate_bound(const struct order_problem *);

/* Levels by conflict neighbourhood: a stage is one level after the last of
 * those before it in 'order' that share a port with it, at most
 * 'n_levels' - 1. */
void levels_assign(const struct order_problem *, const int *order,
                   int n_levels, int *level);

#endif /* controller/order/order.h */
