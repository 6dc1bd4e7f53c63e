/* SPDX-License-Identifier: Apache-2.0 */

/* What orders are worth on searches made by chance.
 *
 * order-scenarios N [M]    the seeds 1 to N, and 1 to M for early jobs
 *
 * Prints one JSON object.  Every seed draws a cluster, searches and arrivals
 * (sim/workload-generate.h) and is simulated under each of a few orders,
 * exactly or by levels.  The early jobs are searches of one job that trains for
 * long, which come one after the other so that ports are as busy as they can
 * be and most jobs are past their early stage. */

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "policies/policy.h"
#include "sim/by-policy.h"
#include "sim/simulate.h"
#include "sim/workload-generate.h"
#include "sim/workload.h"

#define ROUNDS 100              /* Of the bound's ascent. */

enum way { FAIR, STAGE, SINCRONIA, BOTH, STAGE_8, DEFAULT, N_WAYS };

static const struct {
    const char *policy;
    int n_levels;               /* 0 is exact, -1 the policy's. */
} ways[N_WAYS] = {
    [FAIR] = { "fair", 0 },
    [STAGE] = { "stage", 0 },
    [SINCRONIA] = { "sincronia", 0 },
    [BOTH] = { "stage-early", 0 },
    [STAGE_8] = { "stage", 8 },
    [DEFAULT] = { "stage", -1 },
};

static struct policy *
read_policy(const char *name)
{
    struct policy *policy;
    char file[64], *error;

    snprintf(file, sizeof file, "policies/%s.json", name);
    error = policy_from_file(file, &policy);
    if (error) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    return policy;
}

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
        options.guard_share = 0;
    }
    simulate_by_policy(w, policy, &options, result);
    policy_destroy(policy);
}

/* Returns the largest of the stages' times over what they are in 'fair'. */
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

struct sums {
    int n;
    double ratio[N_WAYS];       /* Mean time over fair's. */
    double over_sincronia, loss_8, loss_both, gap;
    double worst_ratio, worst_stage;
    double *ratios;             /* Of STAGE, each seed's. */
};

static void
add_seed(uint64_t seed, struct sums *sums)
{
    struct sim_result r[N_WAYS];
    struct generate_options options;
    struct workload *w;

    generate_options_draw(&options, seed);
    w = workload_generate(&options);
    for (int i = 0; i < N_WAYS; i++) {
        run(w, ways[i].policy, ways[i].n_levels, &r[i]);
        sums->ratio[i] += r[i].mean / r[FAIR].mean;
    }
    sums->ratios[sums->n++] = r[STAGE].mean / r[FAIR].mean;
    sums->over_sincronia += r[STAGE].mean / r[SINCRONIA].mean;
    sums->loss_8 += r[STAGE_8].mean / r[STAGE].mean - 1;
    sums->loss_both += r[BOTH].mean / r[STAGE].mean - 1;
    sums->gap += r[STAGE].gap;
    sums->worst_ratio = fmax(sums->worst_ratio, r[STAGE].mean / r[FAIR].mean);
    sums->worst_stage = fmax(sums->worst_stage,
                             worst_stage(&r[DEFAULT], &r[FAIR]));
    for (int i = 0; i < N_WAYS; i++) {
        sim_result_uninit(&r[i]);
    }
    workload_destroy(w);
}

/* Returns how long early jobs take under "early" against fair sharing. */
static double
early_ratio(uint64_t seed)
{
    struct generate_options options;
    struct sim_result fair, early;
    struct workload *w;
    double ratio;

    generate_options_draw(&options, seed);
    options.n_cojobs = 16 * options.n_hosts;
    options.n_jobs = 1;
    options.n_rungs = 1;
    options.iterations = 100;
    options.compute = 0.5;
    options.load = 1;
    w = workload_generate(&options);
    run(w, "fair", 0, &fair);
    run(w, "early", 0, &early);
    ratio = early_time(&early) / early_time(&fair);
    sim_result_uninit(&fair);
    sim_result_uninit(&early);
    workload_destroy(w);
    return ratio;
}

static void
show_progress(const char *what, int done, int all)
{
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r%s: %d of %d\033[K%s", what, done, all,
                done == all ? "\n" : "");
    }
}

static int
compare_doubles(const void *a_, const void *b_)
{
    double a = *(const double *) a_, b = *(const double *) b_;

    return a < b ? -1 : a > b;
}

int
main(int argc, char *argv[])
{
    int n = argc > 1 ? atoi(argv[1]) : 200;
    int n_early = argc > 2 ? atoi(argv[2]) : 50;
    struct sums sums = { .ratios = calloc(n, sizeof(double)) };
    double early = 0;

    if (n < 1 || n_early < 1 || !sums.ratios) {
        fputs("usage: order-scenarios [SEEDS [SEEDS]]\n", stderr);
        return 2;
    }
    for (int seed = 1; seed <= n; seed++) {
        add_seed(seed, &sums);
        show_progress("searches", seed, n);
    }
    for (int seed = 1; seed <= n_early; seed++) {
        early += early_ratio(seed);
        show_progress("early jobs", seed, n_early);
    }
    qsort(sums.ratios, n, sizeof *sums.ratios, compare_doubles);
    printf("{\"bench\": \"order-scenarios\", \"figures\": {"
           "\"ratio_fair\": %.4f, \"ratio_sincronia\": %.4f, "
           "\"worst_ratio_fair\": %.4f, \"mean_certificate_gap\": %.4f, "
           "\"levels8_loss\": %.4f, \"early_ratio\": %.4f, "
           "\"both_sct_loss\": %.4f, \"worst_starvation\": %.4f, "
           "\"ratio_fair_of_default\": %.4f, \"ratio_fair_min\": %.4f, "
           "\"ratio_fair_median\": %.4f, \"ratio_fair_p95\": %.4f, "
           "\"scenarios\": %d, \"early_scenarios\": %d}, "
           "\"baseline\": {\"sincronia_ratio_fair\": %.4f}}\n",
           sums.ratio[STAGE] / n, sums.over_sincronia / n, sums.worst_ratio,
           sums.gap / n, sums.loss_8 / n, early / n_early,
           sums.loss_both / n, sums.worst_stage, sums.ratio[DEFAULT] / n,
           sums.ratios[0], sums.ratios[n / 2], sums.ratios[n * 19 / 20], n,
           n_early, sums.ratio[SINCRONIA] / n);
    free(sums.ratios);
    return 0;
}
