/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PROBLEM_H
#define PROBLEM_H 1

/* Input of every order: stages and their demand for each port.
 *
 *    struct order_problem *op = order_problem_create(n_ports);
 *    int s = order_problem_add_stage(op, weight, id);
 *    order_problem_add_demand(op, s, port, seconds);
 *    ...
 *    order_problem_destroy(op);
 *
 * A problem owns its arrays and the memory in which orders of it are computed.
 * A caller that orders for each event keeps its problem: once the arrays have
 * reached their largest size, neither changes to the problem nor
 * order_compute() allocate memory.  Problems share nothing, so different
 * threads may work on different problems. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Largest demand for a port.  A port without capacity then results in an
 * order, not in NaN. */
#define ORDER_MAX_SECONDS 1e9

/* Smallest demand, less than the time of one bit.  Less counts as 0. */
#define ORDER_MIN_SECONDS 1e-12

/* Largest weight of a stage; the smallest is its reciprocal. */
#define ORDER_MAX_WEIGHT 1e100

/* Demand of one stage for one port. */
struct order_demand {
    int port;                   /* 0 .. n_ports - 1. */
    double seconds;             /* Time at the port's full capacity, from
                                 * ORDER_MIN_SECONDS to ORDER_MAX_SECONDS. */
    double inverse;             /* 1 / seconds. */
};

/* Attributes other than demand that the baseline orders use.  0 means unknown,
 * unless the comment of the member has another meaning. */
struct order_traits {
    double arrival;             /* Age: seconds from the arrival to the
                                 * problem's time 0. */
    double sent;                /* Bytes sent so far. */
    double bytes;               /* Remaining bytes. */
    double initial;             /* Seconds that the busiest port needed when
                                 * the stage arrived. */
    double intensity;           /* Device-seconds of computing per second of
                                 * its busiest port. */
    double early_weight;        /* Importance of the end of its early phase:
                                 * see iteration_early_weight(); 0 is the
                                 * weight of the stage. */
    double gain;                /* Predicted improvement of the metric in the
                                 * next period, relative to the largest so far;
                                 * see progress-curve.h.  INFINITY before the
                                 * first samples. */
    bool early;                 /* True if the metric is below 'early_theta' of
                                 * its final value. */
    double iterations_to_theta; /* Predicted number of iterations until the
                                 * metric reaches 'early_theta' of its final
                                 * value; 0 if unknown or already reached. */
    double period;              /* Seconds of an iteration without competitors;
                                 * 0 if the job is not periodic. */
    size_t group;               /* Where jobs iterate, those of a group, from 1
                                 * on, follow one another and have one
                                 * level. */
};

/* One stage.  Read-only outside this module. */
struct order_stage {
    uint64_t id;                /* Breaks ties: the smaller is served first. */
    double weight;              /* Importance; 1 is an ordinary search.  From
                                 * 1 / ORDER_MAX_WEIGHT to ORDER_MAX_WEIGHT. */
    double release;             /* Start in seconds from the problem's time 0;
                                 * 0 if the stage has begun.  Only bounds are
                                 * of stages that begin later: an order
                                 * regards all as begun. */
    double isolated;            /* Seconds that the stage takes without
                                 * competitors, computing included; 0 if
                                 * unknown.  The longest demand is used if it
                                 * is larger. */
    struct order_traits traits;
    size_t n_demands, allocated_demands;
    struct order_demand *demands;   /* Sorted by port, each port once. */
};

struct order_problem {
    int n_ports;
    double now; /* The problem's time 0 on the caller's clock,
                 * seconds; used for the epochs of sincronia,
                 * and by compute_iterations(). */
    size_t n_stages, allocated_stages;
    struct order_stage *stages; /* Elements from 'n_stages' on only keep their
                                 * memory. */
    int *by_id;                 /* Stage indexes by rising id. */
    int *n_on_port;             /* Number of stages on each port. */
    struct scratch *scratch;    /* Memory of the algorithms. */
    int allocated_ports;
};

struct order_problem *order_problem_create(int n_ports);
void order_problem_destroy(struct order_problem *);
void order_problem_clear(struct order_problem *);
void order_problem_restart(struct order_problem *, int n_ports);

/* Stages have indexes 0, 1, ... in the order in which they are added.  If a
 * stage is removed, the last one takes its index.  The results of
 * order_compute() depend on the stages' ids, not on their indexes, as long as
 * ids differ.  Demands for the same port add up; a number of seconds that is
 * not positive is no demand. */
int order_problem_add_stage(struct order_problem *, double weight,
                            uint64_t id);
void order_problem_remove_stage(struct order_problem *, int stage);
void order_problem_set_release(struct order_problem *, int stage,
                               double release, double isolated);
void order_problem_add_demand(struct order_problem *, int stage, int port,
                              double seconds);
void order_problem_set_demand(struct order_problem *, int stage, int port,
                              double seconds);
void order_problem_set_weight(struct order_problem *, int stage,
                              double weight);
void order_problem_set_traits(struct order_problem *, int stage,
                              const struct order_traits *);

/* Raises the weight of each stage by the time that it has waited, so that no
 * stage waits for ever.  A weight is multiplied by
 *
 *     1 + age / 'aging_s' + (slowdown / 'aging_slowdown')^4
 *
 * where the slowdown is the age divided by the isolated time of the whole
 * stage, including the part that has been sent.  0 disables an aging term.
 *
 * The fourth power hardly changes the order of stages that wait a little, as
 * most do, and stops starvation; the square costs one per cent of the mean.
 * With the remaining time instead of the whole, all stages that are nearly
 * finished would age. */
void order_problem_age(struct order_problem *, double aging_s,
                       double aging_slowdown);

/* Returns the factor by which the weight of a stage of 'age' seconds grows,
 * see order_problem_age(), which needs 'isolated' seconds as a whole without
 * competitors; 0 if that is unknown. */
double order_aging(double age, double isolated, double aging_s,
                   double aging_slowdown);

/* Returns the completion time of the stage without competitors, a lower bound
 * for every schedule. */
double order_stage_earliest_end(const struct order_stage *);

/* Returns the arrival in seconds from the problem's time 0, < 0 if the stage
 * has arrived. */
double order_stage_arrival(const struct order_stage *);

/* Returns true if the stage has sent 'bytes'.  A tolerance for rounding makes
 * it true at the predicted moment. */
bool order_stage_has_sent(const struct order_stage *, double bytes);

/* Returns the stage's demand for its busiest port, seconds. */
double order_stage_bottleneck(const struct order_stage *);

/* Returns the sum of the stage's demands, seconds. */
double order_stage_work(const struct order_stage *);

#endif /* order/problem/problem.h */
