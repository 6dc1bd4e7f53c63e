/* SPDX-License-Identifier: Apache-2.0 */

/* Measures orders that prefer jobs in their early stage, on random searches.
 *
 * order-early N            the seeds 1 to N of each load and number of hosts
 *
 * Prints one JSON object.  Every seed generates searches that arrive one after
 * the other (sim/workload/workload-generate.h), which are simulated with the
 * levels of the policies and with lateness, as hosts serve them.  "early" is
 * the mean time from the begin of a job until it has 90 % of its last metric,
 * "sct" the mean completion time of stages, both relative to the plain network
 * on the same seed. */

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/task-pool.h"
#include "policies/policy.h"
#include "sim/run/by-policy.h"
#include "sim/run/results.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload-generate.h"
#include "sim/workload/workload.h"
#include "tests/bench/read-policy.h"

#define LATE_S 0.04             /* Time from a change to the hosts' levels. */

static const char *const policies[] = {
    "plain", "stage", "stage-early", "early", "maif",
};
#define N_POLICIES ((int) (sizeof policies / sizeof *policies))

static const struct {
    int n_hosts, n_cojobs;
} sizes[] = { { 64, 32 }, { 16, 16 }, { 6, 12 } };
#define N_SIZES ((int) (sizeof sizes / sizeof *sizes))

static const struct {
    const char *name;
    double load;
} loads[] = { { "load05", 0.5 }, { "load1", 1 }, { "load2", 2 } };
#define N_LOADS ((int) (sizeof loads / sizeof *loads))

/* Times of each policy relative to the first one. */
struct outcome {
    double early[N_POLICIES], sct[N_POLICIES];
};

static int n_seeds;

static void
run_policy(const struct workload *w, const char *name, double *earlyp,
           double *sctp)
{
    struct policy *policy = read_policy(name);
    struct sim_options options = sim_policy_options(policy);
    struct sim_result result;
    struct results results;

    options.late_s = LATE_S;
    simulate_by_policy(w, policy, &options, &result);
    results_compute(w, &result, NULL, &results);
    *earlyp = results.early.mean;
    *sctp = results.sct.mean;
    sim_result_uninit(&result);
    policy_destroy(policy);
}

/* Runs a seed of a cell, which is a number of hosts and a load. */
static char *
run_task(void *outcomes, size_t task)
{
    int cell = task / n_seeds;
    struct outcome *o = (struct outcome *) outcomes + task;
    struct generate_options options;
    struct workload *w;

    generate_options_draw(&options, 1 + task % n_seeds);
    options.n_hosts = sizes[cell / N_LOADS].n_hosts;
    options.n_cojobs = sizes[cell / N_LOADS].n_cojobs;
    options.load = loads[cell % N_LOADS].load;
    w = workload_generate(&options);
    for (int i = 0; i < N_POLICIES; i++) {
        run_policy(w, policies[i], &o->early[i], &o->sct[i]);
    }
    for (int i = N_POLICIES - 1; i >= 0; i--) {
        o->early[i] /= o->early[0];
        o->sct[i] /= o->sct[0];
    }
    workload_destroy(w);
    return NULL;
}

/* Prints the mean of 'member' of 'n' outcomes, of which this is the first,
 * with its 95 % interval. */
static void
print_mean(const char *what, const char *policy, const char *cell,
           const double *member, int n)
{
    struct interval interval =
        interval_of_member(member, sizeof(struct outcome), n);

    printf("\"%s_%s%s\": %.4f, \"%s_%s%s_ci95\": [%.4f, %.4f], ", what, policy,
           cell, interval.mean, what, policy, cell, interval.low,
           interval.high);
}

static void
print_cell(const char *cell, const struct outcome *o, int n)
{
    for (int i = 1; i < N_POLICIES; i++) {
        print_mean("early", policies[i], cell, &o->early[i], n);
        print_mean("sct", policies[i], cell, &o->sct[i], n);
    }
}

int
main(int argc, char *argv[])
{
    struct outcome *outcomes;
    int n;

    n_seeds = argc > 1 ? atoi(argv[1]) : 20;
    if (n_seeds < 2) {
        fputs("usage: order-early [SEEDS]\n", stderr);
        return 2;
    }
    n = N_SIZES * N_LOADS * n_seeds;
    outcomes = allocate(n, sizeof *outcomes);
    task_pool_run(&(struct task_pool){ .n = n,
                                       .run = run_task,
                                       .aux = outcomes,
                                       .label = "order-early",
                                       .noun = "task" });
    printf("{\"bench\": \"order-early\", \"figures\": {");
    for (int i = 0; i < N_SIZES * N_LOADS; i++) {
        char cell[32];

        snprintf(cell, sizeof cell, "_%d_%s", sizes[i / N_LOADS].n_hosts,
                 loads[i % N_LOADS].name);
        print_cell(cell, &outcomes[i * n_seeds], n_seeds);
    }
    print_cell("", outcomes, n);
    printf("\"seeds\": %d}}\n", n_seeds);
    free(outcomes);
    return 0;
}
