/* SPDX-License-Identifier: Apache-2.0 */

/* Measures the gain of the policies on random searches.
 *
 * order-scenarios N        the seeds 1 to N
 *
 * Prints one JSON object.  Every seed generates a cluster, searches and
 * arrivals (sim/workload/workload-generate.h), which are simulated under
 * several policies, exactly or by levels. */

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compare.h"
#include "base/memory.h"
#include "base/task-pool.h"
#include "policies/policy.h"
#include "sim/run/by-policy.h"
#include "sim/run/results.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload-bound.h"
#include "sim/workload/workload-generate.h"
#include "sim/workload/workload.h"
#include "tests/bench/read-policy.h"

enum way { PLAIN, STAGE, SINCRONIA, BOTH, STAGE_8, DEFAULT, N_WAYS };

static const struct {
    const char *policy;
    int n_levels;               /* Number of levels; 0: exact order, -1: the
                                 * policy's. */
} ways[N_WAYS] = {
    [PLAIN] = { "plain", 0 },         [STAGE] = { "stage", 0 },
    [SINCRONIA] = { "sincronia", 0 }, [BOTH] = { "stage-early", 0 },
    [STAGE_8] = { "stage", 8 },       [DEFAULT] = { "stage", -1 },
};

static void
run(const struct workload *w, const char *name, int n_levels,
    struct sim_result *result)
{
    struct policy *policy = read_policy(name);
    struct sim_options options = sim_policy_options(policy);

    if (!n_levels) {
        options.service = SIM_SERVICE_EXACT;
        options.order.n_levels = INT_MAX;
    } else if (n_levels > 0) {
        options.order.n_levels = n_levels;
        options.min_share = 0;
    }
    simulate_by_policy(w, policy, &options, result);
    policy_destroy(policy);
}

/* The result of a seed: means relative to the plain network. */
struct outcome {
    double ratio[N_WAYS];
    double over_sincronia, loss_8, loss_both, gap; /* Of STAGE. */
    double worst_stage;                            /* Of DEFAULT. */
};

static char *
run_seed(void *outcomes, size_t task)
{
    struct outcome *o = (struct outcome *) outcomes + task;
    struct sim_result r[N_WAYS];
    struct generate_options options;
    struct results results;
    struct workload *w;

    generate_options_draw(&options, 1 + task);
    w = workload_generate(&options);
    for (int i = 0; i < N_WAYS; i++) {
        run(w, ways[i].policy, ways[i].n_levels, &r[i]);
        o->ratio[i] = r[i].mean / r[PLAIN].mean;
    }
    o->over_sincronia = o->ratio[STAGE] / o->ratio[SINCRONIA];
    o->loss_8 = o->ratio[STAGE_8] / o->ratio[STAGE] - 1;
    o->loss_both = o->ratio[BOTH] / o->ratio[STAGE] - 1;
    o->gap = r[STAGE].mean / workload_bound(w, 1, true).mean;
    results_compute(w, &r[DEFAULT], &r[PLAIN], &results);
    o->worst_stage = results.worst;
    for (int i = 0; i < N_WAYS; i++) {
        sim_result_uninit(&r[i]);
    }
    workload_destroy(w);
    return NULL;
}

static int
compare_ratios(const void *a_, const void *b_)
{
    const struct outcome *a = a_, *b = b_;

    return compare_doubles(&a->ratio[STAGE], &b->ratio[STAGE]);
}

/* Prints the figures of 'n' outcomes, by rising ratio of STAGE. */
static void
print(const struct outcome *o, int n)
{
#define MEAN(MEMBER) interval_of_member(&o->MEMBER, sizeof *o, n).mean
    double worst_stage = 0;

    for (int i = 0; i < n; i++) {
        worst_stage = fmax(worst_stage, o[i].worst_stage);
    }
    printf("{\"bench\": \"order-scenarios\", \"figures\": {"
           "\"ratio_plain\": %.4f, \"ratio_sincronia\": %.4f, "
           "\"worst_ratio_plain\": %.4f, \"mean_certificate_gap\": %.4f, "
           "\"levels8_loss\": %.4f, \"both_sct_loss\": %.4f, "
           "\"worst_starvation\": %.4f, \"ratio_plain_of_default\": %.4f, "
           "\"ratio_plain_min\": %.4f, \"ratio_plain_median\": %.4f, "
           "\"ratio_plain_p95\": %.4f, \"scenarios\": %d}, "
           "\"baseline\": {\"sincronia_ratio_plain\": %.4f}}\n",
           MEAN(ratio[STAGE]), MEAN(over_sincronia), o[n - 1].ratio[STAGE],
           MEAN(gap), MEAN(loss_8), MEAN(loss_both), worst_stage,
           MEAN(ratio[DEFAULT]), o[0].ratio[STAGE], o[n / 2].ratio[STAGE],
           o[n * 19 / 20].ratio[STAGE], n, MEAN(ratio[SINCRONIA]));
}

int
main(int argc, char *argv[])
{
    int n = argc > 1 ? atoi(argv[1]) : 200;
    struct outcome *outcomes;

    if (n < 1) {
        fputs("usage: order-scenarios [SEEDS]\n", stderr);
        return 2;
    }
    outcomes = allocate(n, sizeof *outcomes);
    task_pool_run(&(struct task_pool){ .n = n,
                                       .run = run_seed,
                                       .aux = outcomes,
                                       .label = "order-scenarios",
                                       .noun = "seed" });
    qsort(outcomes, n, sizeof *outcomes, compare_ratios);
    print(outcomes, n);
    free(outcomes);
    return 0;
}
