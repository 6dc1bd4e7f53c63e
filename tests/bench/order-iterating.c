/* SPDX-License-Identifier: Apache-2.0 */

/* Measures the orders of jobs that iterate, on searches at random hosts.
 *
 * order-iterating N [FAMILY]...    the seeds 1 to N of each family
 *
 * Prints one JSON object.  A seed of a family generates a cluster and its
 * searches, which are simulated under each policy.  All times are relative to
 * the plain network on the same seed.  "present" orders only the iterations
 * that exchange, at each begin and end of one, without lateness, as hosts
 * could. */

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "sim/run/by-policy.h"
#include "sim/run/simulate.h"
#include "sim/workload/random.h"
#include "sim/workload/workload-generate.h"
#include "sim/workload/workload-pattern.h"
#include "sim/workload/workload.h"
#include "tests/bench/read-policy.h"
#include "tests/bench/seed-pool.h"

#define ROUNDS 100              /* Rounds of the ascent for the bound. */
#define LATE_S 0.04             /* Time from a change to the hosts' levels. */

/* What is simulated: a policy with the levels of its file and with lateness,
 * as hosts serve it, or without either.  The first of either kind is the
 * plain network.  The peers are published rules, and the sort by work.  STAGE
 * has the objective of the mean alone, DEFAULT that of the policy's file.
 * BALANCED and SLOWDOWN_ are further points between mean and tail. */
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
    SLOWDOWN_4,
    SLOWDOWN_2_5,
    SLOWDOWN_1_5,
    PRESENT,
    PRESENT_BALANCED,
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
    double slowdown;            /* Objective; negative is the policy's. */
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
    [DEFAULT] = { "default", "stage", LATE_S, .slowdown = -1 },
    [BALANCED] = { "balanced", "stage", LATE_S, .slowdown = 2 },
    [SLOWDOWN_4] = { "slowdown_4", "stage", LATE_S, .slowdown = 4 },
    [SLOWDOWN_2_5] = { "slowdown_2_5", "stage", LATE_S, .slowdown = 2.5 },
    [SLOWDOWN_1_5] = { "slowdown_1_5", "stage", LATE_S, .slowdown = 1.5 },
    [PRESENT] = { "present", "stage", 0, false, true },
    [PRESENT_BALANCED] = { "present_balanced", "stage", 0, false, true, 2 },
    [PLAIN_EXACT] = { "plain_exact", "plain", 0, true },
    [STAGE_EXACT] = { "exact", "stage", 0, true },
    [PRESENT_EXACT] = { "present_exact", "stage", 0, true, true },
};

/* Draws a search of the quickstart: three jobs, of which one is kept. */
static void
add_lab_search(struct workload *w, struct sim_random *r, int width,
               int n_servers)
{
    double parameters = 64.0 * width + width + (double) width * width + width
                        + 10.0 * width + 10;
    struct workload_cojob *cojob;
    char name[16];

    snprintf(name, sizeof name, "s%zu", w->n_cojobs);
    cojob = workload_add_cojob(w, name, 1, 0);
    for (int i = 0; i < 3; i++) {
        struct workload_job *job;
        int hosts[4];

        snprintf(name, sizeof name, "t%d", i);
        job = workload_add_job(cojob, name, 0.0048);
        job->devices = 2;
        sim_random_pick(r, w->fabric->n_hosts, 2 + n_servers, hosts);
        workload_add_ps(job, hosts, 2, &hosts[2], n_servers, 4 * parameters);
    }
    workload_add_rung(w, cojob, 30, 3);
    workload_add_rung(w, cojob, 80, 1);
}

static struct workload *
make_lab(struct sim_random *r, int n_servers, int first_width, int step)
{
    struct workload *w = workload_create("stage",
                                         sim_fabric_create(6, 50e6 / 8));

    for (int i = 0; i < 4; i++) {
        add_lab_search(w, r, first_width + i * step, n_servers);
    }
    return w;
}

static struct workload *
make_spread(int seed)
{
    return make_lab(&(struct sim_random) { seed }, 2, 288, 32);
}

static struct workload *
make_one_server(int seed)
{
    return make_lab(&(struct sim_random) { seed }, 1, 288, 32);
}

static struct workload *
make_equal_widths(int seed)
{
    return make_lab(&(struct sim_random) { seed }, 2, 336, 0);
}

static struct workload *
make_generated(int seed, double load)
{
    struct generate_options options;

    generate_options_draw(&options, seed);
    options.n_hosts = 16;
    options.n_cojobs = 12;
    options.load = load;
    return workload_generate(&options);
}

static struct workload *
make_load_half(int seed)
{
    return make_generated(seed, 0.5);
}

static struct workload *
make_load_1(int seed)
{
    return make_generated(seed, 1);
}

static struct workload *
make_load_2(int seed)
{
    return make_generated(seed, 2);
}

/* Searches of wide rings, over a quarter of the hosts or more, beside searches
 * of narrow jobs. */
static struct workload *
make_narrow_wide(int seed, int n_hosts)
{
    struct workload *w = workload_create("stage",
                                         sim_fabric_create(n_hosts, 1.25e9));
    struct sim_random r = { seed };

    for (int i = 0; i < n_hosts / 4; i++) {
        bool wide = i % 4 == 0;
        int n = sim_random_integer(&r, 2, wide ? 3 : 6);
        int n_workers = wide ? 16 : sim_random_integer(&r, 2, 3);
        double bytes = sim_random_log_between(&r, 1e7, 1e8);
        int64_t iterations = sim_random_integer(&r, 6, 20);
        struct workload_cojob *cojob;
        char name[16];

        snprintf(name, sizeof name, "s%d", i);
        cojob = workload_add_cojob(w, name, 1, 0);
        for (int j = 0; j < n; j++) {
            struct workload_job *job;

            snprintf(name, sizeof name, "t%d", j);
            job = workload_add_job(cojob, name, 0);
            workload_draw_exchange(job, &r, n_hosts, n_workers, wide ? 0 : 1,
                                   bytes);
            workload_draw_rest(job, &r, w->fabric, 0.3);
        }
        workload_add_rung(w, cojob, iterations, n);
        workload_add_rung(w, cojob, 3 * iterations, (n + 1) / 2);
        workload_keep_best(cojob);
    }
    return w;
}

static struct workload *
make_narrow_wide_64(int seed)
{
    return make_narrow_wide(seed, 64);
}

static struct workload *
make_narrow_wide_128(int seed)
{
    return make_narrow_wide(seed, 128);
}

static const struct family {
    const char *name;
    struct workload *(*make)(int seed);
} families[] = {
    { "spread", make_spread },
    { "one", make_one_server },
    { "equal", make_equal_widths },
    { "16_load05", make_load_half },
    { "16_load1", make_load_1 },
    { "16_load2", make_load_2 },
    { "narrow_wide_64", make_narrow_wide_64 },
    { "narrow_wide_128", make_narrow_wide_128 },
};

#define N_FAMILIES ((int) (sizeof families / sizeof *families))

/* The result of a task: times relative to the plain network on the same seed,
 * by the same rates. */
struct outcome {
    double mean[N_WAYS], p95[N_WAYS];
    double gap;                 /* Of STAGE_EXACT: mean / bound. */
};

static int n_seeds, n_chosen;
static const struct family *chosen[N_FAMILIES];

static void
run_policy(const struct workload *w, enum way way, struct sim_result *result)
{
    struct policy *policy = read_policy(ways[way].policy);
    struct sim_options options = sim_policy_options(policy);

    options.late_s = ways[way].late_s;
    options.present_only = ways[way].present_only;
    if (ways[way].slowdown >= 0) {
        options.objective_slowdown = ways[way].slowdown;
    }
    if (ways[way].exact) {
        options.service = SIM_SERVICE_EXACT;
        options.order.n_levels = INT_MAX;
        options.bound_rounds = ROUNDS;
    }
    simulate_by_policy(w, policy, &options, result);
    policy_destroy(policy);
}

static void
run_task(int task, void *outcome_)
{
    struct workload *w = chosen[task / n_seeds]->make(1 + task % n_seeds);
    double mean[N_WAYS], p95[N_WAYS];
    struct outcome *o = outcome_;

    for (int i = 0; i < N_WAYS; i++) {
        int base = ways[i].exact ? PLAIN_EXACT : PLAIN;
        struct sim_result r;

        run_policy(w, i, &r);
        mean[i] = r.mean;
        p95[i] = r.p95;
        o->mean[i] = r.mean / mean[base];
        o->p95[i] = r.p95 / p95[base];
        o->gap = i == STAGE_EXACT ? r.gap : o->gap;
        sim_result_uninit(&r);
    }
    workload_destroy(w);
}

static double
mean_of(const struct outcome *o, const double *first)
{
    size_t offset = (const char *) first - (const char *) o;
    double sum = 0;

    for (int s = 0; s < n_seeds; s++) {
        sum += *(const double *) ((const char *) &o[s] + offset);
    }
    return sum / n_seeds;
}

static void
print_family(const struct family *f, const struct outcome *o)
{
    for (int i = 0; i < N_WAYS; i++) {
        if (i == STAGE) {
            printf("\"vs_plain_%s\": %.4f, \"p95_vs_plain_%s\": %.4f, ",
                   f->name, mean_of(o, &o->mean[i]), f->name,
                   mean_of(o, &o->p95[i]));
        } else if (i != PLAIN && i != PLAIN_EXACT) {
            printf("\"%s_vs_plain_%s\": %.4f, \"%s_p95_vs_plain_%s\": %.4f, ",
                   ways[i].name, f->name, mean_of(o, &o->mean[i]),
                   ways[i].name, f->name, mean_of(o, &o->p95[i]));
        }
    }
}

/* Prints the figures over all families.  A best peer is the best of a seed. */
static void
print_all(const struct outcome *o, int n)
{
    double mean = 0, worst = 0, gap = 0, p95 = 0, balanced = 0,
           balanced_p95 = 0;

    for (int i = 0; i < n; i++) {
        double best = INFINITY;

        for (int k = FIRST_PEER; k <= LAST_PEER; k++) {
            best = fmin(best, o[i].mean[k]);
        }
        mean += o[i].mean[STAGE] / best / n;
        worst = fmax(worst, o[i].mean[STAGE] / best);
        gap += o[i].gap / n;
        p95 += o[i].p95[DEFAULT] / n;
        balanced += o[i].mean[BALANCED] / n;
        balanced_p95 += o[i].p95[BALANCED] / n;
    }
    printf("\"vs_best_peer_mean\": %.4f, \"vs_best_peer_worst\": %.4f, "
           "\"p95_vs_plain\": %.4f, \"balanced_vs_plain\": %.4f, "
           "\"balanced_p95_vs_plain\": %.4f, \"vs_bound\": %.4f, "
           "\"seeds\": %d",
           mean, worst, p95, balanced, balanced_p95, gap, n_seeds);
}

int
main(int argc, char *argv[])
{
    struct outcome *outcomes;

    n_seeds = argc > 1 ? atoi(argv[1]) : 200;
    for (int i = 0; i < N_FAMILIES; i++) {
        bool named = argc < 3;

        for (int j = 2; j < argc; j++) {
            named |= !strcmp(argv[j], families[i].name);
        }
        if (named) {
            chosen[n_chosen++] = &families[i];
        }
    }
    if (n_seeds < 1 || !n_chosen) {
        fputs("usage: order-iterating [SEEDS [FAMILY...]]\n", stderr);
        return 2;
    }
    outcomes = calloc((size_t) n_chosen * n_seeds, sizeof *outcomes);
    if (!outcomes) {
        perror("calloc");
        return 1;
    }
    seed_pool_run(n_chosen * n_seeds, run_task, sizeof *outcomes, outcomes);
    printf("{\"bench\": \"order-iterating\", \"figures\": {");
    for (int i = 0; i < n_chosen; i++) {
        print_family(chosen[i], &outcomes[i * n_seeds]);
    }
    print_all(outcomes, n_chosen * n_seeds);
    printf("}}\n");
    free(outcomes);
    return 0;
}
