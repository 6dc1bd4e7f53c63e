/* SPDX-License-Identifier: Apache-2.0 */

/* Lower bounds on the weighted sum of completion times of any schedule. */

#include "order/primal-dual/primal-dual.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "order/problem/ports.h"
#include "order/problem/problem.h"
#include "order/problem/scratch.h"

/* Returns the isolated end of each stage. */
static double *
earliest_ends(const struct order_problem *op)
{
    double *ends = scratch_alloc(op->scratch, op->n_stages, sizeof *ends);

    for (size_t i = 0; i < op->n_stages; i++) {
        ends[i] = order_stage_earliest_end(&op->stages[i]);
    }
    return ends;
}

/* No stage ends before its isolated end. */
static double
bound_by_ends(const struct order_problem *op, const double *ends)
{
    double sum = 0;

    for (size_t i = 0; i < op->n_stages; i++) {
        sum += op->stages[i].weight * ends[i];
    }
    return sum;
}

static bool
weights_are_equal(const struct order_problem *op)
{
    for (size_t i = 1; i < op->n_stages; i++) {
        if (op->stages[i].weight != op->stages[0].weight) {
            return false;
        }
    }
    return true;
}

/* Returns the sum of ends, all weights being 1, if stages competed on 'port'
 * only: shortest remaining time first is optimal for the stages on it, and the
 * other stages reach their isolated ends.  'jobs' and 'on_port' have space for
 * all stages. */
static double
bound_by_port(const struct order_problem *op, const struct by_port *bp,
              int port, const double *ends, struct one_port_job *jobs,
              bool *on_port)
{
    const struct by_port_demand *d;
    double sum = 0;
    size_t n;

    d = by_port_demands(bp, port, &n);
    memset(on_port, 0, op->n_stages * sizeof *on_port);
    for (size_t i = 0; i < n; i++) {
        jobs[i].stage = d[i].stage;
        jobs[i].rank = i;
        jobs[i].release = op->stages[d[i].stage].release;
        jobs[i].seconds = d[i].seconds;
        on_port[d[i].stage] = true;
    }
    one_port_serve(jobs, n, op->scratch);
    for (size_t i = 0; i < n; i++) {
        sum += jobs[i].end;
    }
    for (size_t i = 0; i < op->n_stages; i++) {
        sum += on_port[i] ? 0 : ends[i];
    }
    return sum;
}

/* Returns an upper limit of bound_by_port() for 'port': the average over all
 * orders that start when all of its stages are released.  The best order is no
 * worse than the average.  'sum' is the sum of all 'ends'. */
static double
most_by_port(const struct order_problem *op, const struct by_port *bp,
             int port, const double *ends, double sum)
{
    double seconds = 0, release = 0;
    const struct by_port_demand *d;
    size_t n;

    d = by_port_demands(bp, port, &n);
    for (size_t i = 0; i < n; i++) {
        seconds += d[i].seconds;
        release = fmax(release, op->stages[d[i].stage].release);
        sum -= ends[d[i].stage];
    }
    return sum + n * release + seconds * (n + 1) / 2;
}

/* Returns the best of the bounds of single ports and 'best'. */
static double
bound_by_best_port(const struct order_problem *op, const double *ends,
                   double best)
{
    double weight = op->stages[0].weight;
    double sum = bound_by_ends(op, ends) / weight;
    struct one_port_job *jobs = scratch_alloc(op->scratch, op->n_stages,
                                             sizeof *jobs);
    bool *on_port = scratch_alloc(op->scratch, op->n_stages, sizeof *on_port);
    struct by_port bp;

    by_port_init(&bp, op);
    for (int p = 0; p < op->n_ports; p++) {
        if (most_by_port(op, &bp, p, ends, sum) * weight * (1 + 1e-9) > best) {
            double bound = bound_by_port(op, &bp, p, ends, jobs, on_port);

            best = fmax(best, bound * weight
                        * (1 - 8 * (op->n_stages + 1) * DBL_EPSILON));
        }
    }
    by_port_uninit(&bp);
    scratch_free(op->scratch, on_port);
    scratch_free(op->scratch, jobs);
    return best;
}

/* Returns true if a stage is delayed by something other than its ports. */
static bool
has_earliest_ends(const struct order_problem *op)
{
    for (size_t i = 0; i < op->n_stages; i++) {
        if (op->stages[i].release > 0 || op->stages[i].isolated > 0) {
            return true;
        }
    }
    return false;
}

/* Returns the best of the bounds of all ports by themselves and 'best', the
 * sum of 'ends'.  If stages are delayed by ports only, no isolated end is
 * after the busiest port's load, and a kappa of 1 or more has no effect. */
static double
bound_by_ports(const struct order_problem *op, const double *ends, double best)
{
    static const double kappas[] = { 0.1, 0.25, 0.5, 1, 2, 4 };
    int n_kappas = has_earliest_ends(op) ? 6 : 3;
    int *order = scratch_alloc(op->scratch, op->n_stages, sizeof *order);

    best = fmax(best, permute(op, 0, order));
    for (int i = 0; i < n_kappas; i++) {
        best = fmax(best, permute_again(op, kappas[i], order));
    }
    scratch_free(op->scratch, order);
    if (op->n_stages && weights_are_equal(op)) {
        best = bound_by_best_port(op, ends, best);
    }
    return best;
}

/* Replaces '*best' by 'bound' if that is larger.  A difference by rounding
 * does not change the kind. */
static void
take_larger(double *best, enum order_bound *best_kind, double bound,
            enum order_bound kind)
{
    if (bound > *best * (1 + 1e-9)) {
        *best_kind = kind;
    }
    *best = fmax(*best, bound);
}

double
certificate_bound(const struct order_problem *op, enum order_bound *kindp)
{
    double *ends = earliest_ends(op);
    double isolated = bound_by_ends(op, ends)
        * (1 - 8 * (op->n_stages + 1) * DBL_EPSILON);
    enum order_bound kind = ORDER_BOUND_NONE;
    double best = 0;

    take_larger(&best, &kind, isolated, ORDER_BOUND_ISOLATED);
    take_larger(&best, &kind, bound_by_ports(op, ends, isolated),
                ORDER_BOUND_PORTS);
    scratch_free(op->scratch, ends);
    if (kindp) {
        *kindp = kind;
    }
    return best;
}
