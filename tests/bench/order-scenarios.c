/* SPDX-License-Identifier: Apache-2.0 */

/* Measures the gain of the policies on random searches.
 *
 * order-scenarios N [M]    the seeds 1 to N, and 1 to M for early jobs
 *
 * Prints one JSON object.  Every seed generates a cluster, searches and
 * arrivals (sim/workload/workload-generate.h), which are simulated under
 * several policies, exactly or by levels.  The early jobs are searches of one
 * long job each; they start one after the other, so that the ports are as busy
 * as possible and most jobs are past their early stage. */

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

enum way { FAIR, STAGE, SINCRONIA, BOTH, STAGE_8, DEFAULT, N_WAYS };

static const struct {
    const char *policy;
    int n_levels;               /* Number of levels; 0: exact order, -1: the
                                 * policy's. */
} ways[N_WAYS] = {
    [FAIR] = { "fair", 0 },
    [STAGE] = { "stage", 0 },
    [SINCRONIA] = { "sincronia", 0 },
    [BOTH] = { "stage-early", 0 },
    [STAGE_8] = { "stage", 8 },
    [DEFAULT] = { "stage", -1 },
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

/* Returns the largest ratio of a stage's time to its time in 'fair'. */
static double
worst_stage(const struct sim_result *r, const struct sim_result *fair)
{
    double worst = 0;

    for (size_t i = 0; i < r->n_stages; i++) {
        const struct sim_stage *a = &r->stages[i];

        for (size_t j = 0; j < fair->n_stages; j++) {
            const struct sim_stage *b = &fair->stages[j];

            if (a->cojob == b->cojob && a->rung == b->rung) {
                worst = fmax(worst, (a->end - a->begin)
                                    / (b->end - b->begin));
            }
        }
    }
    return worst;
}

/* Returns the mean time to 0.9 of the final metric. */
static double
early_time(const struct sim_result *r)
{
    double sum = 0;
    int n = 0;

    for (size_t i = 0; i < r->n_jobs; i++) {
        if (isfinite(r->jobs[i].early_end)) {
            sum += r->jobs[i].early_end - r->jobs[i].begin;
            n++;
        }
    }
    return n ? sum / n : 0;
}

/* The task of one seed. */
struct task {
    int seed;
    bool early;
};

/* The result of a task: means relative to fair sharing; ratio[0] and ratio[1]
 * for early jobs under "early" and "maif". */
struct outcome {
    struct task task;
    double ratio[N_WAYS];
    double gap, worst_stage;    /* Of STAGE and of DEFAULT. */
};

static void
run_searches(struct outcome *o)
{
    struct sim_result r[N_WAYS];
    struct generate_options options;
    struct workload *w;

    generate_options_draw(&options, o->task.seed);
    w = workload_generate(&options);
    for (int i = 0; i < N_WAYS; i++) {
        run(w, ways[i].policy, ways[i].n_levels, &r[i]);
        o->ratio[i] = r[i].mean / r[FAIR].mean;
    }
    o->gap = r[STAGE].gap;
    o->worst_stage = worst_stage(&r[DEFAULT], &r[FAIR]);
    for (int i = 0; i < N_WAYS; i++) {
        sim_result_uninit(&r[i]);
    }
    workload_destroy(w);
}

/* Measures the time of early jobs under "early" and "maif" relative to fair
 * sharing. */
static void
run_early_jobs(struct outcome *o)
{
    struct generate_options options;
    struct sim_result fair, early, maif;
    struct workload *w;

    generate_options_draw(&options, o->task.seed);
    options.n_cojobs = 16 * options.n_hosts;
    options.n_jobs = 1;
    options.n_rungs = 1;
    options.iterations = 100;
    options.compute = 0.5;
    options.load = 1;
    w = workload_generate(&options);
    run(w, "fair", 0, &fair);
    run(w, "early", 0, &early);
    run(w, "maif", 0, &maif);
    o->ratio[0] = early_time(&early) / early_time(&fair);
    o->ratio[1] = early_time(&maif) / early_time(&fair);
    sim_result_uninit(&fair);
    sim_result_uninit(&early);
    sim_result_uninit(&maif);
    workload_destroy(w);
}

/* Number of tasks with early jobs.  They take longest, so they are first. */
static int n_early;

static void
run_task(int task, void *outcome)
{
    struct outcome *o = outcome;
    bool early = task < n_early;

    o->task = (struct task) { 1 + (early ? task : task - n_early), early };
    if (early) {
        run_early_jobs(o);
    } else {
        run_searches(o);
    }
}

static int
compare_doubles(const void *a_, const void *b_)
{
    double a = *(const double *) a_, b = *(const double *) b_;

    return a < b ? -1 : a > b;
}

struct sums {
    double ratio[N_WAYS];       /* Mean time over fair's. */
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
print(const struct sums *sums, int n, double early, double maif)
{
    printf("{\"bench\": \"order-scenarios\", \"figures\": {"
           "\"ratio_fair\": %.4f, \"ratio_sincronia\": %.4f, "
           "\"worst_ratio_fair\": %.4f, \"mean_certificate_gap\": %.4f, "
           "\"levels8_loss\": %.4f, \"early_ratio\": %.4f, "
           "\"both_sct_loss\": %.4f, \"worst_starvation\": %.4f, "
           "\"ratio_fair_of_default\": %.4f, \"ratio_fair_min\": %.4f, "
           "\"ratio_fair_median\": %.4f, \"ratio_fair_p95\": %.4f, "
           "\"scenarios\": %d, \"early_scenarios\": %d}, "
           "\"baseline\": {\"sincronia_ratio_fair\": %.4f, "
           "\"maif_ratio\": %.4f}}\n",
           sums->ratio[STAGE], sums->over_sincronia, sums->ratios[n - 1],
           sums->gap, sums->loss_8, early, sums->loss_both,
           sums->worst_stage, sums->ratio[DEFAULT], sums->ratios[0],
           sums->ratios[n / 2], sums->ratios[n * 19 / 20], n, n_early,
           sums->ratio[SINCRONIA], maif);
}

int
main(int argc, char *argv[])
{
    int n = argc > 1 ? atoi(argv[1]) : 200;
    struct outcome *outcomes;
    struct sums sums = { .gap = 0 };
    double early_ratio = 0, maif_ratio = 0;

    n_early = argc > 2 ? atoi(argv[2]) : 24;
    if (n < 1 || n_early < 1) {
        fputs("usage: order-scenarios [SEEDS [SEEDS]]\n", stderr);
        return 2;
    }
    outcomes = calloc(n_early + n, sizeof *outcomes);
    sums.ratios = calloc(n, sizeof *sums.ratios);
    if (!outcomes || !sums.ratios) {
        perror("calloc");
        return 1;
    }
    seed_pool_run(n_early + n, run_task, sizeof *outcomes, outcomes);
    add_up(&outcomes[n_early], n, &sums);
    for (int i = 0; i < n_early; i++) {
        early_ratio += outcomes[i].ratio[0] / n_early;
        maif_ratio += outcomes[i].ratio[1] / n_early;
    }
    print(&sums, n, early_ratio, maif_ratio);
    free(outcomes);
    free(sums.ratios);
    return 0;
}
