/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ORDER_H
#define ORDER_H 1

/* Order in which search stages get the network, with a bound on its quality.
 *
 * A rung of a hyper-parameter search cannot be judged until its slowest job
 * has finished, so the network should minimize the weighted sum of the stages'
 * completion times.  Where jobs iterate, a key by remaining work and urgency
 * decides the order, and the primal-dual algorithm bounds it: the order costs
 * at most 1.25 times its permutation, or the permutation decides.  Elsewhere
 * the permutation decides, improved by local search: that is coflow scheduling
 * with a whole stage as the coflow.  Ports are machines, a stage needs a
 * number of seconds of each, and it ends when the last port has served it.
 * The permutation's cost is within a constant factor of the optimum, and the
 * algorithm gives a lower bound on the optimum: the certificate.  'decider' of
 * the result is the one that decided.
 *
 *    struct order_problem *op = order_problem_create(n_ports);
 *    int s = order_problem_add_stage(op, weight, id);
 *    order_problem_add_demand(op, s, port, seconds);
 *
 *    struct order_options options = ORDER_OPTIONS_INIT(ORDER_STAGE);
 *    struct order_result result;
 *    order_result_init(&result);
 *    order_compute(&options, op, &result);
 *    ...result.order[0] is the index of the stage that is served first...
 *    ...result.estimate / result.bound limits the distance to the optimum...
 *    order_result_uninit(&result);
 *    order_problem_destroy(op);
 *
 * All orders have the same input and the same output.  The ordered entities
 * are called stages.  Orders that were published for jobs or coflows get those
 * instead; see 'enum order_unit'.
 *
 * The code is in rooms, and a room includes only rooms before it:
 *
 *    problem/       Input, options, and helpers of all orders.
 *    result/        Ranks, levels and estimates; local search; slack of jobs.
 *    primal-dual/   The permutation, the order of stages, lower bounds.
 *    lookahead/     What follows from an order, by simulation, and orders that
 *                   are better by that.
 *    fluid/         Lower bounds where jobs iterate.
 *    baselines/     Published orders to compare with.
 *
 * Measured on the Facebook trace, so that it need not be measured again.  The
 * network behaves like nearly independent ports: serving whole coflows by
 * rank, with their flows in proportion to the remaining bytes, costs 0.03 %
 * more than independent ports.  The order is nearly optimal: 42.45 s by local
 * search, 42.39 s with more moves in 24 ms, and annealing with millions of
 * moves always ends at 42.38 s; online 21.10 s against 21.06 s for a search
 * that knows the future; 29.12 s against 28.99 s for the trace sampled up to
 * 2,000 coflows.  The rest of the distance to the linear program (39.39, 18.70
 * and 24.57 s) belongs to the program: it takes each port for its load alone,
 * and with releases it counts the mean time of service and not its end.
 *
 * Jobs that iterate are different: a job that waits at one port leaves the
 * others idle.  A stage is then not one coflow; its iterations are.  They have
 * the weights of iteration-weight.h and are sorted by bottleneck over weight,
 * or ordered by the same permutation if that is clearly better: the guarantee
 * of the permutation holds for their weighted completion times, but for a
 * factor of 1.25 (stage.c).  The certificate is of the problem's stages, each
 * by itself; fluid/ bounds searches.  "grouper" is the permutation alone, of
 * whole stages and at their begins and ends, as published; docs/notes/order.md
 * compares it.  The order of whole stages by their total work, "work", with
 * jobs ordered by slack, has a mean 1 to 5 % longer.  The isolated time of a
 * job is trusted only where it was measured without a job of higher rank: a
 * waiting job has the pace of the jobs before it, and with it jobs overtook
 * one another for as long as they waited (mean SCT of the quickstart 21 s
 * instead of 19 s).
 *
 * Plain C with no dependency but libm: controller, simulator and tests link
 * the same code.  Problems and results keep their memory for the next
 * order_compute(), see problem.h and result.h.  Nothing is shared between
 * problems, so different threads may work on different ones. */

#include <stdbool.h>

#include "order/problem/options.h"
#include "order/problem/problem.h"
#include "order/result/result.h"

/* Entity that an order regards as a stage of the problem. */
enum order_unit {
    ORDER_UNIT_STAGE,           /* All jobs of a rung, until the rung ends. */
    ORDER_UNIT_JOB,             /* One job, until its rung ends. */
    ORDER_UNIT_COFLOW,          /* The current iteration of one job. */
    ORDER_UNIT_ITERATION,       /* One iteration of one job until its rung
                                 * ends, whether it exchanges or computes,
                                 * with the weight of iteration-weight.h. */
};

/* How the simulator assigns rates by default. */
enum order_service {
    ORDER_SERVICE_SHARE, /* By level, max-min inside a level; the order
                          * inside a level has no meaning. */
    ORDER_SERVICE_FILL,  /* Strictly by rank; the flows of a stage get
                          * rates in proportion to their remaining
                          * bytes. */
    ORDER_SERVICE_MADD,  /* By rank; each flow just fast enough to end
                          * with its stage's bottleneck, the remaining
                          * bandwidth by rank. */
};

/* Description of an order. */
struct order_class {
    const char *summary;        /* One line of help. */
    enum order_unit unit;       /* Use order_unit(). */
    enum order_unit iterating;  /* Unit if jobs iterate. */
    enum order_service service;
    bool certified; /* Minimizes the sum of completion times that the
                     * certificate bounds. */
    /* Use order_compute().  Sets all of the result but the bound. */
    void (*compute)(const struct order_options *, const struct order_problem *,
                    struct order_result *);
    const char *unserved; /* Why no shim serves the order, so that it
                           * exists only in the simulator; NULL if shims
                           * serve it. */
    order_key_func *key;  /* Sorts the stages, instead of 'compute'. */
};

/* Indexed by enum order_kind. */
extern const struct order_class order_classes[ORDER_N_KINDS];

/* Returns the entity that orders of 'kind' regard as a stage, in a cluster
 * where jobs iterate or in one where no job does. */
enum order_unit order_unit(enum order_kind, bool iterates);

/* Returns true if orders of 'kind' depend on the metrics of jobs, so that they
 * must be computed again in each period for which gains are predicted. */
bool order_uses_metrics(enum order_kind);

/* Returns true if a plan (lookahead/plan.h) may multiply keys of the order. */
bool order_looks_ahead(enum order_kind);

/* Returns true if orders of 'kind' give all units the same rank and level. */
static inline bool
order_is_equal(enum order_kind kind)
{
    return kind == ORDER_FAIR || kind == ORDER_PLAIN || kind == ORDER_MLTCP;
}

/* Names of all orders, null-terminated. */
extern const char *const order_names[];

/* Orders the stages of the problem and stores the outcome in the result, which
 * must be initialized. */
void order_compute(const struct order_options *, const struct order_problem *,
                   struct order_result *);

#endif /* order/order.h */
