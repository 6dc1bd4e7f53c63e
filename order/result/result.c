/* SPDX-License-Identifier: Apache-2.0 */

#include "order/result/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "order/problem/memory.h"
#include "order/problem/options.h"
#include "order/problem/ports.h"
#include "order/problem/problem.h"
#include "order/problem/scratch.h"
#include "order/problem/sort.h"
#include "order/result/improve.h"
#include "order/result/levels.h"

const char *const order_bound_names[] = {
    [ORDER_BOUND_NONE] = "none",   [ORDER_BOUND_ISOLATED] = "isolated",
    [ORDER_BOUND_PORTS] = "ports", [ORDER_BOUND_LP] = "lp",
    [ORDER_BOUND_FLUID] = "fluid", [ORDER_BOUND_PRICES] = "prices",
    [ORDER_N_BOUNDS] = NULL,
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
    result->checked = INFINITY;
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

double
order_estimate(const struct order_problem *op, const int *order,
               double *completion)
{
    double *load = scratch_alloc(op->scratch, op->n_ports, sizeof *load);
    double sum = 0;

    for (size_t k = 0; k < op->n_stages; k++) {
        const struct order_stage *s = &op->stages[order[k]];
        double end = order_stage_earliest_end(s);

        for (size_t i = 0; i < s->n_demands; i++) {
            load[s->demands[i].port] += s->demands[i].seconds;
            end = fmax(end, load[s->demands[i].port]);
        }
        if (completion) {
            completion[order[k]] = end;
        }
        sum += s->weight * end;
    }
    scratch_free(op->scratch, load);
    return sum;
}

void
order_result_estimate(const struct order_problem *op,
                      struct order_result *result)
{
    result->estimate = order_estimate(op, result->order, result->completion);
}

/* A stage on a port. */
struct sharer {
    int stage, level;
    double seconds;
};

static int
compare_sharers(const void *a_, const void *b_)
{
    const struct sharer *a = a_, *b = b_;

    if (a->level != b->level) {
        return a->level < b->level ? -1 : 1;
    }
    return (a->seconds > b->seconds) - (a->seconds < b->seconds);
}

/* Raises the completion of each of the sorted 'sharers' to the time at which
 * the port has served it.  A level begins when the previous one has ended. */
static void
serve_levels(const struct sharer *sharers, size_t n, double *completion)
{
    double now = 0;

    for (size_t first = 0, next = 0; first < n; first = next) {
        double served = 0;

        while (next < n && sharers[next].level == sharers[first].level) {
            next++;
        }
        for (size_t i = first; i < next; i++) {
            double *end = &completion[sharers[i].stage];

            now += (sharers[i].seconds - served) * (next - i);
            served = sharers[i].seconds;
            *end = fmax(*end, now);
        }
    }
}

void
order_result_estimate_shared(const struct order_problem *op,
                             struct order_result *result)
{
    struct sharer *sharers =
        scratch_alloc(op->scratch, op->n_stages, sizeof *sharers);
    struct by_port bp;

    for (size_t i = 0; i < op->n_stages; i++) {
        result->completion[i] = order_stage_earliest_end(&op->stages[i]);
    }
    by_port_init(&bp, op);
    for (int p = 0; p < op->n_ports; p++) {
        size_t n;
        const struct by_port_demand *d = by_port_demands(&bp, p, &n);

        for (size_t i = 0; i < n; i++) {
            sharers[i] = (struct sharer){ .stage = d[i].stage,
                                          .level = result->level[d[i].stage],
                                          .seconds = d[i].seconds };
        }
        scratch_sort(op->scratch, sharers, n, sizeof *sharers,
                     compare_sharers);
        serve_levels(sharers, n, result->completion);
    }
    by_port_uninit(&bp);
    scratch_free(op->scratch, sharers);
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
    order_result_estimate(op, result);
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
    order_result_estimate_shared(op, result);
}
