/* SPDX-License-Identifier: Apache-2.0 */

/* Measures what the order gains by seeing the links of a fabric.
 *
 * order-fabric N           the seeds 1 to N
 *
 * Prints one JSON object.  A seed generates searches on 64 hosts
 * (sim/workload/workload-generate.h), in leaves of 8 hosts with uplinks that
 * carry a half, a quarter or an eighth of what these can send.  They are
 * simulated under "stage", with orders that see all ports, or the ports of
 * hosts only ("hidden"), as without a topology. */

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/task-pool.h"
#include "policies/policy.h"
#include "sim/fabric/fabric.h"
#include "sim/run/by-policy.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload-generate.h"
#include "sim/workload/workload.h"
#include "tests/bench/read-policy.h"

#define N_HOSTS 64
#define HOSTS_PER_LEAF 8
#define LATE_S 0.04             /* Time from a change to the hosts' levels. */

static const int oversubscriptions[] = { 2, 4, 8 };

#define N_FABRICS (sizeof oversubscriptions / sizeof *oversubscriptions)

/* The result of a task: mean times of stages relative to the plain network,
 * and what the hidden links cost. */
struct outcome {
    double seen, hidden, loss;
};

static int n_seeds;

static double
run(const struct workload *w, const char *name, bool hosts_only)
{
    struct policy *policy = read_policy(name);
    struct sim_options options = sim_policy_options(policy);
    struct sim_result result;
    double mean;

    options.late_s = LATE_S;
    options.hosts_only = hosts_only;
    simulate_by_policy(w, policy, &options, &result);
    mean = result.mean;
    sim_result_uninit(&result);
    policy_destroy(policy);
    return mean;
}

static char *
run_task(void *outcomes, size_t task)
{
    struct outcome *o = (struct outcome *) outcomes + task;
    struct generate_options options;
    struct workload *w;
    double plain;

    generate_options_draw(&options, 1 + task % n_seeds);
    options.n_hosts = N_HOSTS;
    w = workload_generate(&options);
    workload_set_fabric(w, sim_fabric_create_leaf_spine(
        N_HOSTS, HOSTS_PER_LEAF, w->fabric->capacity[0],
        oversubscriptions[task / n_seeds]));
    plain = run(w, "plain", false);
    o->seen = run(w, "stage", false) / plain;
    o->hidden = run(w, "stage", true) / plain;
    o->loss = o->hidden / o->seen - 1;
    workload_destroy(w);
    return NULL;
}

static double
mean_of(const double *member)
{
    return interval_of_member(member, sizeof(struct outcome), n_seeds).mean;
}

static void
print(const struct outcome *o, int oversubscription)
{
    double least = INFINITY, most = -INFINITY;

    for (int i = 0; i < n_seeds; i++) {
        least = fmin(least, o[i].loss);
        most = fmax(most, o[i].loss);
    }
    printf("\"ratio_plain_%d\": %.4f, \"hidden_ratio_plain_%d\": %.4f, "
           "\"hidden_loss_%d\": %.4f, \"hidden_loss_min_%d\": %.4f, "
           "\"hidden_loss_max_%d\": %.4f, ",
           oversubscription, mean_of(&o->seen), oversubscription,
           mean_of(&o->hidden), oversubscription, mean_of(&o->loss),
           oversubscription, least, oversubscription, most);
}

int
main(int argc, char *argv[])
{
    struct outcome *outcomes;

    n_seeds = argc > 1 ? atoi(argv[1]) : 20;
    if (n_seeds < 1) {
        fputs("usage: order-fabric [SEEDS]\n", stderr);
        return 2;
    }
    outcomes = allocate(N_FABRICS * n_seeds, sizeof *outcomes);
    task_pool_run(&(struct task_pool){ .n = N_FABRICS * n_seeds,
                                       .run = run_task,
                                       .aux = outcomes,
                                       .label = "order-fabric",
                                       .noun = "task" });
    printf("{\"bench\": \"order-fabric\", \"figures\": {");
    for (size_t i = 0; i < N_FABRICS; i++) {
        print(&outcomes[i * n_seeds], oversubscriptions[i]);
    }
    printf("\"seeds\": %d}}\n", n_seeds);
    free(outcomes);
    return 0;
}
