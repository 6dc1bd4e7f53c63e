/* SPDX-License-Identifier: Apache-2.0 */

/* Measures the orders of jobs that iterate, on searches at random hosts.
 *
 * order-iterating N [FAMILY]...    the seeds 1 to N of each family
 *
 * Prints one JSON object.  A seed of a family generates a cluster and its
 * searches, which are simulated under each policy.  All times are relative to
 * the plain network on the same seed.  "present" orders only the iterations
 * that exchange, at each begin and end of one, without lateness, as hosts
 * could.  "vs_lp" is the shipped order over the bound of the same stages, in
 * the fluid and in the strict form (order/fluid/fluid.h). */

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/task-pool.h"
#include "policies/policy.h"
#include "sim/run/by-policy.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload-bound.h"
#include "sim/workload/workload.h"
#include "tests/bench/read-policy.h"
#include "tests/bench/search-families.h"

#define LATE_S 0.04             /* Time from a change to the hosts' levels. */

/* What is simulated: a policy with the levels of its file and with lateness,
 * as hosts serve it, or without either.  The first of either kind is the plain
 * network.  The peers are published rules, and the sort by work.  STAGE has
 * the objective of the mean alone, without aging, DEFAULT the objective of the
 * policy's file; BALANCED and LOOSE have other limits of lateness. */
enum way {
    PLAIN,
    STAGE,
    SINCRONIA,
    SEBF,
    INTENSITY,
    TCF,
    LAS,
    DCLAS,
    WORK,
    DEFAULT,
    BALANCED,
    LOOSE,
    PRESENT,
    PLAIN_EXACT,
    STAGE_EXACT,
    PRESENT_EXACT,
    N_WAYS
};
#define FIRST_PEER SINCRONIA
#define LAST_PEER WORK

static const struct {
    const char *name, *policy;
    double late_s;
    bool exact;
    bool present_only;          /* See struct sim_options. */
    double latest;              /* Objective; negative is the policy's. */
} ways[N_WAYS] = {
    [PLAIN] = { "plain", "plain", LATE_S },
    [STAGE] = { "stage", "stage", LATE_S },
    [SINCRONIA] = { "sincronia", "sincronia", LATE_S },
    [SEBF] = { "sebf", "sebf", LATE_S },
    [INTENSITY] = { "intensity", "intensity", LATE_S },
    [TCF] = { "tcf", "tcf", LATE_S },
    [LAS] = { "las", "las", LATE_S },
    [DCLAS] = { "dclas", "dclas", LATE_S },
    [WORK] = { "work", "work", LATE_S },
    [DEFAULT] = { "default", "stage", LATE_S, .latest = -1 },
    [BALANCED] = { "balanced", "stage", LATE_S, .latest = 0.85 },
    [LOOSE] = { "loose", "stage", LATE_S, .latest = 1.2 },
    [PRESENT] = { "present", "stage", 0, false, true },
    [PLAIN_EXACT] = { "plain_exact", "plain", 0, true },
    [STAGE_EXACT] = { "exact", "stage", 0, true },
    [PRESENT_EXACT] = { "present_exact", "stage", 0, true, true },
};

/* The result of a task: times relative to the plain network on the same seed,
 * by the same rates. */
struct outcome {
    double mean[N_WAYS], p95[N_WAYS];
    double fluid, strict; /* DEFAULT / bound. */
    double worst[N_WAYS]; /* Of the searches, from arrival to end. */
};

static int n_seeds, n_chosen;
static const struct search_family *chosen[N_SEARCH_FAMILIES];

static void
run_policy(const struct workload *w, enum way way, struct sim_result *result)
{
    struct policy *policy = read_policy(ways[way].policy);
    struct sim_options options = sim_policy_options(policy);

    options.late_s = ways[way].late_s;
    options.present_only = ways[way].present_only;
    if (ways[way].latest >= 0 && !strcmp(ways[way].policy, "stage")) {
        options.latest = ways[way].latest;
        options.aging_slowdown *= options.latest > 0;
    }
    if (ways[way].exact) {
        options.service = SIM_SERVICE_EXACT;
        options.order.n_levels = INT_MAX;
    }
    simulate_by_policy(w, policy, &options, result);
    policy_destroy(policy);
}

/* Compares the searches of 'r' with their times in the plain network, which
 * are stored in 'plain' if 'r' is that.  Returns the worst ratio. */
static double
worst_search(const struct workload *w, const struct sim_result *r, bool base,
             double *plain)
{
    double worst = 0;

    for (size_t i = 0; i < r->n_stages; i++) {
        size_t c = r->stages[i].cojob;
        double time = r->stages[i].end - w->cojobs[c].arrival;

        if (r->stages[i].rung + 1 == w->cojobs[c].n_rungs) {
            plain[c] = base ? time : plain[c];
            worst = fmax(worst, time / plain[c]);
        }
    }
    return worst;
}

static char *
run_task(void *outcomes, size_t task)
{
    struct workload *w = chosen[task / n_seeds]->make(1 + task % n_seeds);
    double mean[N_WAYS], p95[N_WAYS];
    double *plain = allocate(w->n_cojobs, sizeof *plain);
    struct workload_bound bound = workload_bound(w, 1, true);
    struct outcome *o = (struct outcome *) outcomes + task;

    for (int i = 0; i < N_WAYS; i++) {
        int base = ways[i].exact ? PLAIN_EXACT : PLAIN;
        struct sim_result r;

        run_policy(w, i, &r);
        mean[i] = r.mean;
        p95[i] = r.p95;
        o->mean[i] = r.mean / mean[base];
        o->p95[i] = r.p95 / p95[base];
        o->worst[i] = worst_search(w, &r, i == base, plain);
        sim_result_uninit(&r);
    }
    free(plain);
    o->fluid = mean[DEFAULT] / bound.mean;
    o->strict = mean[DEFAULT] / bound.strict;
    workload_destroy(w);
    return NULL;
}

static double
mean_of(const double *member, int n)
{
    return interval_of_member(member, sizeof(struct outcome), n).mean;
}

static void
print_family(const struct search_family *f, const struct outcome *o)
{
    for (int i = 0; i < N_WAYS; i++) {
        const char *name = i == STAGE ? "" : ways[i].name;
        const char *gap = i == STAGE ? "" : "_";

        if (i != PLAIN && i != PLAIN_EXACT) {
            printf("\"%s%svs_plain_%s\": %.4f, "
                   "\"%s%sp95_vs_plain_%s\": %.4f, ",
                   name, gap, f->name, mean_of(&o->mean[i], n_seeds), name,
                   gap, f->name, mean_of(&o->p95[i], n_seeds));
        }
    }
    printf("\"vs_lp_%s\": %.4f, \"vs_lp_strict_%s\": %.4f, "
           "\"search_%s\": %.4f, \"default_search_%s\": %.4f, ",
           f->name, mean_of(&o->fluid, n_seeds), f->name,
           mean_of(&o->strict, n_seeds), f->name,
           mean_of(&o->worst[STAGE], n_seeds), f->name,
           mean_of(&o->worst[DEFAULT], n_seeds));
}

/* Prints the figures over all families.  A best peer is the best of a seed. */
static void
print_all(const struct outcome *o, int n)
{
    double mean = 0, worst = 0;

    for (int i = 0; i < n; i++) {
        double best = INFINITY;

        for (int k = FIRST_PEER; k <= LAST_PEER; k++) {
            best = fmin(best, o[i].mean[k]);
        }
        mean += o[i].mean[STAGE] / best / n;
        worst = fmax(worst, o[i].mean[STAGE] / best);
    }
    printf("\"vs_best_peer_mean\": %.4f, \"vs_best_peer_worst\": %.4f, "
           "\"p95_vs_plain\": %.4f, \"balanced_vs_plain\": %.4f, "
           "\"balanced_p95_vs_plain\": %.4f, \"seeds\": %d",
           mean, worst, mean_of(&o->p95[DEFAULT], n),
           mean_of(&o->mean[BALANCED], n), mean_of(&o->p95[BALANCED], n),
           n_seeds);
}

int
main(int argc, char *argv[])
{
    struct outcome *outcomes;

    n_seeds = argc > 1 ? atoi(argv[1]) : 200;
    for (int i = 0; i < N_SEARCH_FAMILIES; i++) {
        bool named = argc < 3;

        for (int j = 2; j < argc; j++) {
            named |= !strcmp(argv[j], search_families[i].name);
        }
        if (named) {
            chosen[n_chosen++] = &search_families[i];
        }
    }
    if (n_seeds < 1 || !n_chosen) {
        fputs("usage: order-iterating [SEEDS [FAMILY...]]\n", stderr);
        return 2;
    }
    outcomes = allocate((size_t) n_chosen * n_seeds, sizeof *outcomes);
    task_pool_run(&(struct task_pool){ .n = (size_t) n_chosen * n_seeds,
                                       .run = run_task,
                                       .aux = outcomes,
                                       .label = "order-iterating",
                                       .noun = "task" });
    printf("{\"bench\": \"order-iterating\", \"figures\": {");
    for (int i = 0; i < n_chosen; i++) {
        print_family(chosen[i], &outcomes[i * n_seeds]);
    }
    print_all(outcomes, n_chosen * n_seeds);
    printf("}}\n");
    free(outcomes);
    return 0;
}
