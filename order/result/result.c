/* SPDX-License-Identifier: Apache-2.0 */

#include "order/result/result.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "order/problem/memory.h"
#include "order/problem/options.h"
#include "order/problem/problem.h"
#include "order/problem/scratch.h"
#include "order/result/improve.h"
#include "order/result/levels.h"

const char *const order_bound_names[] = {
    [ORDER_BOUND_NONE] = "none",   [ORDER_BOUND_ISOLATED] = "isolated",
    [ORDER_BOUND_PORTS] = "ports", [ORDER_BOUND_COUPLED] = "coupled",
    [ORDER_BOUND_LP] = "lp",       [ORDER_N_BOUNDS] = NULL
};

const char *const order_decider_names[] = {
    [ORDER_BY_RULE] = "rule",         [ORDER_BY_PERMUTATION] = "permutation",
    [ORDER_BY_KEY] = "key",           [ORDER_BY_PLAN] = "plan",
    [ORDER_BY_OVERRIDE] = "override", [ORDER_BY_START] = "start",
    [ORDER_N_DECIDERS] = NULL,
};

void
order_result_init(struct order_result *result)
{
    memset(result, 0, sizeof *result);
}

void
order_result_uninit(struct order_result *result)
{
    free(result->order);
    free(result->rank);
    free(result->level);
    free(result->completion);
    free(result->sent_limit);
    if (result->improver) {
        improver_uninit(result->improver);
        free(result->improver);
    }
    order_result_init(result);
}

void
order_result_resize(struct order_result *result, size_t n)
{
    if (n > result->allocated) {
        size_t m = 2 * n;

        result->order = order_renew(result->order, m, sizeof *result->order);
        result->rank = order_renew(result->rank, m, sizeof *result->rank);
        result->level = order_renew(result->level, m, sizeof *result->level);
        result->completion = order_renew(result->completion, m,
                                         sizeof *result->completion);
        result->sent_limit = order_renew(result->sent_limit, m,
                                         sizeof *result->sent_limit);
        result->allocated = m;
    }
    result->n = n;
    result->improvement = 0;
    result->decider = ORDER_BY_RULE;
    for (size_t i = 0; i < n; i++) {
        result->sent_limit[i] = INFINITY;
    }
}

void
order_result_set_order(struct order_result *result, const int *order)
{
    for (size_t k = 0; k < result->n; k++) {
        result->order[k] = order[k];
        result->rank[order[k]] = k;
    }
}

void
order_result_set_levels(const struct order_options *options,
                        const struct order_problem *op,
                        struct order_result *result)
{
    int last = options->n_levels - 1;

    if (!options->truncate) {
        levels_assign(op, result->order, options->n_levels, result->level);
        return;
    }
    for (size_t k = 0; k < result->n; k++) {
        result->level[result->order[k]] = k < last ? k : last;
    }
}

static int
compare_ranks(const void *a_, const void *b_)
{
    const struct one_port_job *a = a_, *b = b_;

    return (a->rank > b->rank) - (a->rank < b->rank);
}

static bool
all_are_released(const struct one_port_job *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (jobs[i].release > 0) {
            return false;
        }
    }
    return true;
}

/* Serves the 'n' 'jobs' of a port, those of a 'level' at equal rates.  A level
 * begins when the previous one has ended.  If some jobs are released later,
 * all jobs are served at equal rates. */
static void
serve_levels(const int *level, struct one_port_job *jobs, size_t n,
             struct scratch *scratch)
{
    double begin = 0;

    if (!all_are_released(jobs, n)) {
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

/* Serves port 'p' and raises the completion of each of its stages to the time
 * at which the port has served it.  'jobs' has space for all stages. */
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
    struct one_port_job *jobs = scratch_alloc(op->scratch, op->n_stages,
                                             sizeof *jobs);
    struct by_port bp;

    by_port_init(&bp, op);
    for (int p = 0; p < op->n_ports; p++) {
        estimate_port(op, &bp, p, rule, jobs, result);
    }
    by_port_uninit(&bp);
    scratch_free(op->scratch, jobs);
}

/* Estimates completions by rank if all stages have begun: each port serves one
 * stage after the other. */
static void
estimate_in_order(const struct order_problem *op, struct order_result *result)
{
    double *load = scratch_alloc(op->scratch, op->n_ports, sizeof *load);

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
    scratch_free(op->scratch, load);
}

void
order_result_estimate(const struct order_problem *op, enum one_port_rule rule,
                      struct order_result *result)
{
    for (size_t i = 0; i < op->n_stages; i++) {
        result->completion[i] = order_stage_earliest_end(&op->stages[i]);
    }
    if (rule == ONE_PORT_RANK && !order_problem_has_releases(op)) {
        estimate_in_order(op, result);
    } else {
        estimate_by_port(op, rule, result);
    }

    result->estimate = 0;
    for (size_t i = 0; i < op->n_stages; i++) {
        result->estimate += op->stages[i].weight * result->completion[i];
    }
}

void
order_result_ranked(const struct order_options *options,
                    const struct order_problem *op, const int *order,
                    struct order_result *result)
{
    order_result_set_order(result, order);
    order_result_set_levels(options, op, result);
    order_result_estimate(op, ONE_PORT_RANK, result);
}

void
order_result_by_key(const struct order_options *options,
                    const struct order_problem *op, order_key_func *key,
                    struct order_result *result)
{
    int *order = scratch_alloc(op->scratch, op->n_stages, sizeof *order);

    sort_by_key(op, options, key, order);
    order_result_ranked(options, op, order, result);
    scratch_free(op->scratch, order);
}

void
order_result_shared(const struct order_options *options,
                    const struct order_problem *op, const int *order,
                    const int *group, struct order_result *result)
{
    int last = options->n_levels - 1;

    order_result_set_order(result, order);
    for (size_t k = 0; k < result->n; k++) {
        result->level[order[k]] = group[k] < last ? group[k] : last;
    }
    order_result_estimate(op, ONE_PORT_SHARE, result);
}
