/* SPDX-License-Identifier: Apache-2.0 */

/* When stages end, each port looked at on its own. */

#include "order/order-internal.h"

#include <math.h>

#include "order/by-port.h"
#include "order/scratch.h"

static int
compare_ranks(const void *a_, const void *b_)
{
    const struct one_port_job *a = a_, *b = b_;

    return (a->rank > b->rank) - (a->rank < b->rank);
}

static bool
all_are_there(const struct one_port_job *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (jobs[i].release > 0) {
            return false;
        }
    }
    return true;
}

/* Serves the 'n' 'jobs' of a port, those of a 'level' at equal rates.  Each
 * level begins when those before it have ended.  If some jobs come later, the
 * levels are not told apart. */
static void
serve_levels(const int *level, struct one_port_job *jobs, size_t n,
             struct scratch *scratch)
{
    double begin = 0;

    if (!all_are_there(jobs, n)) {
        one_port_serve(ONE_PORT_SHARE, jobs, n, scratch);
        return;
    }
    scratch_sort(scratch, jobs, n, sizeof *jobs, compare_ranks);
    for (size_t first = 0, next; first < n; first = next) {
        double end = begin;

        next = first + 1;
        while (next < n && level[jobs[next].stage] == level[jobs[first].stage])
        {
            next++;
        }
        one_port_serve(ONE_PORT_SHARE, &jobs[first], next - first, scratch);
        for (size_t i = first; i < next; i++) {
            jobs[i].end += begin;
            end = fmax(end, jobs[i].end);
        }
        begin = end;
    }
}

/* Serves port 'p' and lets no stage end before it has been served there.
 * 'jobs' has room for all stages. */
static void
estimate_port(const struct order_problem *op, const struct by_port *bp, int p,
              enum one_port_rule rule, struct one_port_job *jobs,
              struct order_result *result)
{
    const struct by_port_demand *d;
    size_t n;

    d = by_port_demands(bp, p, &n);
    for (size_t i = 0; i < n; i++) {
        jobs[i].stage = d[i].stage;
        jobs[i].rank = result->rank[d[i].stage];
        jobs[i].release = op->stages[d[i].stage].release;
        jobs[i].seconds = d[i].seconds;
    }
    if (rule == ONE_PORT_SHARE) {
        serve_levels(result->level, jobs, n, op->scratch);
    } else {
        one_port_serve(rule, jobs, n, op->scratch);
    }
    for (size_t i = 0; i < n; i++) {
        double *completion = &result->completion[jobs[i].stage];

        *completion = fmax(*completion, jobs[i].end);
    }
}

static void
estimate_by_port(const struct order_problem *op, enum one_port_rule rule,
                 struct order_result *result)
{
    struct one_port_job *jobs = scratch_take(op->scratch, op->n_stages,
                                             sizeof *jobs);
    struct by_port bp;

    by_port_init(&bp, op);
    for (int p = 0; p < op->n_ports; p++) {
        estimate_port(op, &bp, p, rule, jobs, result);
    }
    by_port_uninit(&bp);
    scratch_give(op->scratch, jobs);
}

/* The same by rank if all stages are there: each port serves one after the
 * other. */
static void
estimate_in_order(const struct order_problem *op, struct order_result *result)
{
    double *load = scratch_take(op->scratch, op->n_ports, sizeof *load);

    for (size_t k = 0; k < op->n_stages; k++) {
        const struct order_stage *stage = &op->stages[result->order[k]];
        double *completion = &result->completion[result->order[k]];

        for (size_t i = 0; i < stage->n_demands; i++) {
            int port = stage->demands[i].port;

            load[port] += stage->demands[i].seconds;
            if (load[port] > *completion) {
                *completion = load[port];
            }
        }
    }
    scratch_give(op->scratch, load);
}

static bool
all_have_begun(const struct order_problem *op)
{
    for (size_t i = 0; i < op->n_stages; i++) {
        if (op->stages[i].release > 0) {
            return false;
        }
    }
    return true;
}

/* A stage ends when the last of its ports has served it, and not before it
 * would alone. */
void
order_result_estimate(const struct order_problem *op, enum one_port_rule rule,
                      struct order_result *result)
{
    for (size_t i = 0; i < op->n_stages; i++) {
        result->completion[i] = order_stage_earliest_end(&op->stages[i]);
    }
    if (rule == ONE_PORT_RANK && all_have_begun(op)) {
        estimate_in_order(op, result);
    } else {
        estimate_by_port(op, rule, result);
    }

    result->estimate = 0;
    for (size_t i = 0; i < op->n_stages; i++) {
        result->estimate += op->stages[i].weight * result->completion[i];
    }
}
