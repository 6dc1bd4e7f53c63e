/* SPDX-License-Identifier: Apache-2.0 */

/* Measures what looking ahead gains, on searches at random hosts.
 *
 * order-lookahead N RUNS [FAMILY]...    the seeds 1 to N of each family, with
 *                                       RUNS runs of the judge in a second
 *
 * Prints one JSON object.  Each seed is simulated with the levels and the
 * delays of hosts, by the key of iterations alone and with plans; figures are
 * means over the seeds of the time of stages with plans / by the key.
 *
 * "share" is with as many runs of the judge as a tenth of a processor makes in
 * the simulated time, by the time that runs took in that simulation.  For
 * large clusters there is only that, and it needs a first simulation with few
 * runs.  "vs_lp" is the key alone over the bound of the same stages, in the
 * fluid and in the strict form (order/fluid/fluid.h). */

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/task-pool.h"
#include "policies/policy.h"
#include "scenario/scenario.h"
#include "sim/run/by-policy.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload-bound.h"
#include "sim/workload/workload-training.h"
#include "sim/workload/workload.h"
#include "tests/bench/read-policy.h"
#include "tests/bench/search-families.h"

#define FEW_RUNS 12 /* To find out how long they take. */
#define CORE_SHARE 0.1
#define ERROR 0.1 /* Of sizes and computing times. */
#define LARGE_SEEDS 30
#define LATE_S 0.04 /* Time from a change to the hosts' levels. */

/* Families of search-families.h, and lab scenarios with other seeds. */
static const struct family {
    const char *name;
    const char *scenario;
    bool large;
} families[] = {
    { "one", NULL, false },
    { "spread", NULL, false },
    { "quickstart", "lab/scenarios/quickstart.json", false },
    { "mixed", "lab/scenarios/main.json", false },
    { "16_load1", NULL, true },
    { "narrow_wide_64", NULL, true },
};
#define N_FAMILIES ((int) (sizeof families / sizeof *families))

/* With 'n_runs'; the same with wrong input of plans; by the share of a core.
 */
enum way { AHEAD, WRONG, SHARE, N_WAYS };

/* The result of a seed, relative to the key alone. */
struct outcome {
    double mean[N_WAYS], p95[N_WAYS];
    double runs;          /* In a simulated second, of SHARE. */
    double run_ms;        /* Time of a run. */
    double fluid, strict; /* Key alone / bound. */
};

static int n_seeds, n_runs;
static int n_chosen;
static const struct family *chosen[N_FAMILIES];
static int first_task[N_FAMILIES + 1]; /* Of each of 'chosen'. */

static struct workload *
open_scenario(const char *file, int64_t seed)
{
    struct scenario *scenario;
    char *error = scenario_from_file(file, &seed, &scenario);
    struct workload *w;

    if (error) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    w = workload_training_create(scenario);
    scenario_destroy(scenario);
    return w;
}

static struct workload *
make_workload(const struct family *f, int seed)
{
    for (int i = 0; !f->scenario && i < N_SEARCH_FAMILIES; i++) {
        if (!strcmp(search_families[i].name, f->name)) {
            return search_families[i].make(seed);
        }
    }
    return open_scenario(f->scenario, seed);
}

/* Simulates 'w' with 'runs' runs in a second. */
static void
run(const struct family *f, const struct workload *w, int seed, double runs,
    double error, struct sim_result *result)
{
    struct policy *policy = read_policy("stage");
    struct sim_options options = sim_policy_options(policy);

    if (f->scenario) {
        sim_options_like_lab(&options, seed);
    }
    options.late_s = LATE_S;
    options.lookahead_runs = runs;
    options.lookahead_error = error;
    simulate_by_policy(w, policy, &options, result);
    sim_result_uninit(result);
    policy_destroy(policy);
}

/* Compares 'mean', of the key alone, with the bounds of 'w'. */
static void
compare_with_bounds(const struct family *f, const struct workload *w,
                    double mean, struct outcome *o)
{
    struct sim_options options = { 0 };
    struct workload_bound bound;

    if (f->scenario) {
        sim_options_like_lab(&options, 0);
    }
    bound = workload_bound(w, options.efficiency, true);
    o->fluid = mean / bound.mean;
    o->strict = mean / bound.strict;
}

static char *
run_task(void *outcomes, size_t task_)
{
    struct outcome *o = (struct outcome *) outcomes + task_;
    struct sim_result key, r;
    const struct family *f;
    struct workload *w;
    int i = 0, task = task_, seed;

    while (task >= first_task[i + 1]) {
        i++;
    }
    f = chosen[i];
    seed = 1 + task - first_task[i];
    w = make_workload(f, seed);
    run(f, w, seed, 0, 0, &key);
    compare_with_bounds(f, w, key.mean, o);
    for (enum way way = f->large ? SHARE : AHEAD; way < N_WAYS; way++) {
        if (way == SHARE && f->large) {
            run(f, w, seed, FEW_RUNS, 0, &r);
        }
        if (way == SHARE) {
            o->run_ms = r.plan_runs ? r.plan_s * 1e3 / r.plan_runs : 0;
            o->runs = fmin(CORE_SHARE * 1e3 / o->run_ms, 10 * n_runs);
        }
        run(f, w, seed, way == SHARE ? o->runs : n_runs,
            way == WRONG ? ERROR : 0, &r);
        o->mean[way] = r.mean / key.mean;
        o->p95[way] = r.p95 / key.p95;
    }
    workload_destroy(w);
    return NULL;
}

static struct interval
mean_of(const double *member, int n)
{
    return interval_of_member(member, sizeof(struct outcome), n);
}

static void
print_way(const char *prefix, const char *name, const struct outcome *o,
          enum way way, int n)
{
    struct interval mean = mean_of(&o->mean[way], n);

    printf("\"%s%s\": %.4f, \"%sp95_%s\": %.4f, ", prefix, name, mean.mean,
           prefix, name, mean_of(&o->p95[way], n).mean);
    if (n > 1) {
        printf("\"%slow_%s\": %.4f, \"%shigh_%s\": %.4f, ", prefix, name,
               mean.low, prefix, name, mean.high);
    }
}

/* Prints the figures of a family; adds its gains to 'gains'. */
static void
print_family(const struct family *f, const struct outcome *o, int n,
             double gains[N_WAYS])
{
    printf("\"run_ms_%s\": %.3f, \"share_runs_%s\": %.1f, ", f->name,
           mean_of(&o->run_ms, n).mean, f->name, mean_of(&o->runs, n).mean);
    printf("\"vs_lp_%s\": %.4f, \"vs_lp_strict_%s\": %.4f, ", f->name,
           mean_of(&o->fluid, n).mean, f->name, mean_of(&o->strict, n).mean);
    if (f->large) {
        print_way("", f->name, o, SHARE, n);
        return;
    }
    print_way("", f->name, o, AHEAD, n);
    print_way("wrong_", f->name, o, WRONG, n);
    print_way("share_", f->name, o, SHARE, n);
    for (enum way way = 0; way < N_WAYS; way++) {
        gains[way] += 1 - mean_of(&o->mean[way], n).mean;
    }
}

static void
choose(int argc, char *argv[])
{
    for (int i = 0; i < N_FAMILIES; i++) {
        bool named = argc < 4;

        for (int j = 3; j < argc; j++) {
            named |= !strcmp(argv[j], families[i].name);
        }
        if (named) {
            bool few = families[i].large && n_seeds > LARGE_SEEDS;

            chosen[n_chosen] = &families[i];
            first_task[n_chosen + 1] =
                first_task[n_chosen] + (few ? LARGE_SEEDS : n_seeds);
            n_chosen++;
        }
    }
}

int
main(int argc, char *argv[])
{
    double gains[N_WAYS] = { 0 };
    struct outcome *outcomes;

    n_seeds = argc > 1 ? atoi(argv[1]) : 100;
    n_runs = argc > 2 ? atoi(argv[2]) : 240;
    choose(argc, argv);
    if (n_seeds < 1 || !n_chosen) {
        fputs("usage: order-lookahead [SEEDS [RUNS [FAMILY...]]]\n", stderr);
        return 2;
    }
    outcomes = allocate(first_task[n_chosen], sizeof *outcomes);
    task_pool_run(&(struct task_pool){ .n = first_task[n_chosen],
                                       .run = run_task,
                                       .aux = outcomes,
                                       .label = "order-lookahead",
                                       .noun = "seed" });
    printf("{\"bench\": \"order-lookahead\", \"figures\": {");
    for (int i = 0; i < n_chosen; i++) {
        print_family(chosen[i], &outcomes[first_task[i]],
                     first_task[i + 1] - first_task[i], gains);
    }
    if (gains[AHEAD] > 0) {
        printf("\"wrong_share\": %.4f, \"budget_share\": %.4f, ",
               gains[WRONG] / gains[AHEAD], gains[SHARE] / gains[AHEAD]);
    }
    printf("\"seeds\": %d}}\n", n_seeds);
    free(outcomes);
    return 0;
}
