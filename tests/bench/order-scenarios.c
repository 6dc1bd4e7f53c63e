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

#include "policies/policy.h"
#include "sim/run/by-policy.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload-generate.h"
#include "sim/workload/workload.h"
#include "tests/bench/read-policy.h"
#include "tests/bench/seed-pool.h"

#define ROUNDS 100              /* Rounds of the ascent for the bound. */

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

    options.bound_rounds = ROUNDS;
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

/* Returns the largest ratio of a stage's time to its time in 'plain'. */
static double
worst_stage(const struct sim_result *r, const struct sim_result *plain)
{
    double worst = 0;

    for (size_t i = 0; i < r->n_stages; i++) {
        const struct sim_stage *a = &r->stages[i];

        for (size_t j = 0; j < plain->n_stages; j++) {
            const struct sim_stage *b = &plain->stages[j];

            if (a->cojob == b->cojob && a->rung == b->rung) {
                worst = fmax(worst, (a->end - a->begin)
                                    / (b->end - b->begin));
            }
        }
    }
    return worst;
}

/* The result of a seed: means relative to the plain network. */
struct outcome {
    double ratio[N_WAYS];
    double gap, worst_stage;    /* Of STAGE and of DEFAULT. */
};

static void
run_seed(int task, void *outcome)
{
    struct outcome *o = outcome;
    struct sim_result r[N_WAYS];
    struct generate_options options;
    struct workload *w;

    generate_options_draw(&options, 1 + task);
    w = workload_generate(&options);
    for (int i = 0; i < N_WAYS; i++) {
        run(w, ways[i].policy, ways[i].n_levels, &r[i]);
        o->ratio[i] = r[i].mean / r[PLAIN].mean;
    }
    o->gap = r[STAGE].gap;
    o->worst_stage = worst_stage(&r[DEFAULT], &r[PLAIN]);
    for (int i = 0; i < N_WAYS; i++) {
        sim_result_uninit(&r[i]);
    }
    workload_destroy(w);
}

static int
compare_doubles(const void *a_, const void *b_)
{
    double a = *(const double *) a_, b = *(const double *) b_;

    return a < b ? -1 : a > b;
}

struct sums {
    double ratio[N_WAYS]; /* Mean time over plain's. */
    double over_sincronia, loss_8, loss_both, gap;
    double worst_stage;
    double *ratios;             /* Of STAGE, sorted. */
};

static void
add_up(const struct outcome *outcomes, int n, struct sums *sums)
{
    for (int i = 0; i < n; i++) {
        const struct outcome *o = &outcomes[i];

        for (int j = 0; j < N_WAYS; j++) {
            sums->ratio[j] += o->ratio[j] / n;
        }
        sums->ratios[i] = o->ratio[STAGE];
        sums->over_sincronia += o->ratio[STAGE] / o->ratio[SINCRONIA] / n;
        sums->loss_8 += (o->ratio[STAGE_8] / o->ratio[STAGE] - 1) / n;
        sums->loss_both += (o->ratio[BOTH] / o->ratio[STAGE] - 1) / n;
        sums->gap += o->gap / n;
        sums->worst_stage = fmax(sums->worst_stage, o->worst_stage);
    }
    qsort(sums->ratios, n, sizeof *sums->ratios, compare_doubles);
}

static void
print(const struct sums *sums, int n)
{
    printf("{\"bench\": \"order-scenarios\", \"figures\": {"
           "\"ratio_plain\": %.4f, \"ratio_sincronia\": %.4f, "
           "\"worst_ratio_plain\": %.4f, \"mean_certificate_gap\": %.4f, "
           "\"levels8_loss\": %.4f, \"both_sct_loss\": %.4f, "
           "\"worst_starvation\": %.4f, \"ratio_plain_of_default\": %.4f, "
           "\"ratio_plain_min\": %.4f, \"ratio_plain_median\": %.4f, "
           "\"ratio_plain_p95\": %.4f, \"scenarios\": %d}, "
           "\"baseline\": {\"sincronia_ratio_plain\": %.4f}}\n",
           sums->ratio[STAGE], sums->over_sincronia, sums->ratios[n - 1],
           sums->gap, sums->loss_8, sums->loss_both, sums->worst_stage,
           sums->ratio[DEFAULT], sums->ratios[0], sums->ratios[n / 2],
           sums->ratios[n * 19 / 20], n, sums->ratio[SINCRONIA]);
}

int
main(int argc, char *argv[])
{
    int n = argc > 1 ? atoi(argv[1]) : 200;
    struct outcome *outcomes;
    struct sums sums = { .gap = 0 };

    if (n < 1) {
        fputs("usage: order-scenarios [SEEDS]\n", stderr);
        return 2;
    }
    outcomes = calloc(n, sizeof *outcomes);
    sums.ratios = calloc(n, sizeof *sums.ratios);
    if (!outcomes || !sums.ratios) {
        perror("calloc");
        return 1;
    }
    seed_pool_run(n, run_seed, sizeof *outcomes, outcomes);
    add_up(outcomes, n, &sums);
    print(&sums, n);
    free(outcomes);
    free(sums.ratios);
    return 0;
}
