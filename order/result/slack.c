/* SPDX-License-Identifier: Apache-2.0 */

#include "order/result/slack.h"

#include "order/problem/options.h"
#include "order/problem/problem.h"
#include "order/problem/scratch.h"
#include "order/problem/sort.h"
#include "order/result/levels.h"
#include "order/result/result.h"

static int
compare_jobs(const void *a_, const void *b_)
{
    const struct slack_job *a = a_, *b = b_;

    if (a->slack != b->slack) {
        return a->slack < b->slack ? -1 : 1;
    }
    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    return (a->id > b->id) - (a->id < b->id);
}

void
slack_set_levels(const struct order_problem *op, int n_levels,
                 struct slack_job *jobs, size_t n)
{
    int *next = scratch_alloc(op->scratch, op->n_ports, sizeof *next);
    struct fold fold;

    fold_init(&fold, next, op->n_ports);
    for (size_t i = 0; i < n; i++) {
        jobs[i].rank = i;
        jobs[i].level = fold_depth(&fold, jobs[i].ports, jobs[i].n_ports,
                                   jobs[i].stride);
    }
    for (size_t i = 0; i < n; i++) {
        jobs[i].level = fold_level(&fold, jobs[i].level, n_levels);
    }
    scratch_free(op->scratch, next);
}

void
slack_assign(const struct order_problem *op, const struct order_result *result,
             const struct order_options *options, struct slack_job *jobs,
             size_t n)
{
    bool whole = order_is_whole(options->kind);

    for (size_t i = 0; i < n; i++) {
        int stage = jobs[i].stage;

        jobs[i].slack = whole ? 0
                              : result->completion[stage]
                                    - options->slack_share * jobs[i].isolated;
        jobs[i].rank = result->rank[stage];
        jobs[i].level = result->level[stage];
    }
    scratch_sort(op->scratch, jobs, n, sizeof *jobs, compare_jobs);
    if (!whole) {
        slack_set_levels(op, options->n_levels, jobs, n);
    }
}
