/* SPDX-License-Identifier: Apache-2.0 */

/* Measures orders of searches that judge their trials one by one.
 *
 * async N                  the seeds 1 to N
 *
 * Prints one JSON object.  A seed draws twelve searches of 24 to 96 trials, 4
 * to 8 at a time, with rungs that keep a third or a quarter, on eight hosts
 * with the shapes of the main scenario.  Half of them have recorded learning
 * curves, the others power laws.  They arrive in a span in which the busiest
 * port is needed for LOADS of the time; of each figure the worst load counts,
 * and those of each load follow.
 *
 * A search has reached its target when a trial reports what the best fifth of
 * its trials would have after the last rung.  A miss counts as 1.5 times the
 * later of the ends of the search in both networks that are compared.  Ratios
 * are of sums over the searches of a seed; figures are means over seeds.  GPU
 * hours are those for which trials hold their devices.  "stage" is the order
 * that does not know that searches are asynchronous. */

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compare.h"
#include "base/memory.h"
#include "base/task-pool.h"
#include "policies/policy.h"
#include "sim/run/by-policy.h"
#include "sim/run/simulate.h"
#include "sim/workload/random.h"
#include "sim/workload/trial-curve.h"
#include "sim/workload/workload-pattern.h"
#include "sim/workload/workload.h"
#include "tests/bench/read-policy.h"

#define N_HOSTS 8
#define N_SEARCHES 12
#define CAPACITY (50e6 / 8)
#define LATE_S 0.04 /* Time from a change to the hosts' levels. */
#define MISS 1.5
#define RECORDED 160 /* Iterations of recorded curves. */

static const struct {
    double value;
    const char *name;
} loads[] = { { 0.5, "05" }, { 1, "1" }, { 2, "2" } };

#define N_LOADS (sizeof loads / sizeof *loads)

enum way { FAIR, PLAIN, STAGE, NEUTRAL, PROMISING, N_WAYS };

static const struct {
    const char *policy;
    double hidden; /* Of what the searches announce. */
    enum order_trials trials;
} ways[] = {
    [FAIR] = { "fair", 0, 0 },
    [PLAIN] = { "plain", 0, 0 },
    [STAGE] = { "stage", 1, 0 },
    [NEUTRAL] = { "stage", 0, ORDER_TRIALS_NEUTRAL },
    [PROMISING] = { "stage", 0, ORDER_TRIALS_PROMISING },
};

/* A search in one run; seconds since its arrival. */
struct search_run {
    double end, target;                /* 'target' is INFINITY for a miss. */
    double devices, devices_to_target; /* Device seconds. */
    double loss;                       /* Of the best trial at its end. */
};

/* How 'way' compares with 'base'. */
enum kind { TARGET, DEVICES_TO_TARGET, END, DEVICES, REGRET, MISSED };

static const struct figure {
    const char *name;
    enum kind kind;
    enum way way, base;
} figures[] = {
    { "time_to_target_vs_fair", TARGET, PROMISING, FAIR },
    { "time_to_target_vs_plain", TARGET, PROMISING, PLAIN },
    { "time_to_target_vs_stage", TARGET, PROMISING, STAGE },
    { "gpu_hours_to_target_vs_fair", DEVICES_TO_TARGET, PROMISING, FAIR },
    { "gpu_hours_to_target_vs_plain", DEVICES_TO_TARGET, PROMISING, PLAIN },
    { "gpu_hours_to_target_vs_stage", DEVICES_TO_TARGET, PROMISING, STAGE },
    { "regret_increase", REGRET, PROMISING, FAIR },
    { "missed_increase", MISSED, PROMISING, FAIR },
    { "end_vs_fair", END, PROMISING, FAIR },
    { "neutral_target_vs_fair", TARGET, NEUTRAL, FAIR },
    { "neutral_end_vs_fair", END, NEUTRAL, FAIR },
    { "neutral_end_vs_plain", END, NEUTRAL, PLAIN },
    { "neutral_gpu_hours_vs_fair", DEVICES, NEUTRAL, FAIR },
    { "neutral_gpu_hours_vs_plain", DEVICES, NEUTRAL, PLAIN },
    { "stage_target_vs_fair", TARGET, STAGE, FAIR },
    { "stage_gpu_hours_to_target_vs_fair", DEVICES_TO_TARGET, STAGE, FAIR },
    { "stage_end_vs_fair", END, STAGE, FAIR },
};

#define N_FIGURES (sizeof figures / sizeof *figures)

struct outcome {
    double value[N_LOADS][N_FIGURES];
    double missed[N_LOADS]; /* Share of the searches, under fair. */
};

static int n_seeds;

/* What the trials of a search have in common. */
struct shape {
    double bytes, compute;
    int n_workers, n_servers; /* Without servers, a ring. */
    bool recorded;
};

static struct shape
draw_shape(struct sim_random *r)
{
    double width = 16 * round(sim_random_log_between(r, 160, 448) / 16);
    bool ring = sim_random_between(r, 0, 1) < 0.33;

    return (struct shape){
        .bytes =
            4 * (64 * width + width + width * width + width + 10 * width + 10),
        .compute = sim_random_log_between(r, 0.005, 0.08),
        .n_workers =
            ring ? sim_random_integer(r, 2, 4) : sim_random_integer(r, 1, 3),
        .n_servers = ring ? 0 : sim_random_integer(r, 1, 2),
        .recorded = sim_random_between(r, 0, 1) < 0.5,
    };
}

/* Draws the curve of a trial that ends after 'last' iterations.  The metric of
 * a power law is a negative loss near 1. */
static struct workload_curve
draw_curve(const struct shape *shape, struct sim_random *r, int64_t last)
{
    if (shape->recorded) {
        double rate = sim_random_log_between(r, 0.02, 0.3);

        return (struct workload_curve){
            .every = 1,
            .recorded = trial_curve_find(10, rate),
            .stretch = (double) RECORDED / last,
            .final = sim_random_between(r, -0.03, 0.03),
        };
    }
    return (struct workload_curve){
        .every = 1,
        .final = -sim_random_between(r, 0.8, 1.2),
        .span = sim_random_log_between(r, 0.5, 2),
        .exponent = sim_random_between(r, 0.3, 0.9),
    };
}

/* Draws the hosts of a trial and adds what it moves. */
static void
add_exchange(const struct workload *w, struct workload_job *job,
             const struct shape *shape, struct sim_random *r)
{
    int n = shape->n_workers, hosts[5];

    sim_random_pick(r, w->fabric->n_hosts, n + shape->n_servers, hosts);
    if (shape->n_servers) {
        workload_add_ps(job, hosts, n, &hosts[n], shape->n_servers,
                        shape->bytes);
    } else {
        workload_add_ring(job, hosts, n, shape->bytes);
    }
}

static void
add_search(struct workload *w, struct sim_random *r)
{
    static int64_t thirds[] = { 3, 9, 27, 81 }, quarters[] = { 5, 20, 80 };
    struct shape shape = draw_shape(r);
    struct workload_trials trials = {
        .places = sim_random_integer(r, 4, 8),
        .eta = sim_random_integer(r, 3, 4),
        .n_brackets = 1,
    };
    int n = round(sim_random_log_between(r, 24, 96));
    struct workload_cojob *cojob;
    char name[16];

    trials.n_rungs = trials.eta == 3 ? 4 : 3;
    trials.rungs = trials.eta == 3 ? thirds : quarters;
    snprintf(name, sizeof name, "s%zu", w->n_cojobs);
    cojob = workload_add_cojob(w, name, 1, 0);
    for (int i = 0; i < n; i++) {
        struct workload_job *job;

        snprintf(name, sizeof name, "t%d", i);
        job = workload_add_job(cojob, name, shape.compute);
        job->devices = shape.n_workers;
        add_exchange(w, job, &shape, r);
        job->curve = draw_curve(&shape, r, trials.rungs[trials.n_rungs - 1]);
    }
    workload_add_trials(w, cojob, &trials);
}

/* Returns the metric of the best fifth of the trials after the last rung. */
static double
target_of(const struct workload_cojob *cojob)
{
    const struct workload_trials *t = &cojob->trials;
    double *last = allocate(cojob->n_jobs, sizeof *last);
    double target;

    for (size_t i = 0; i < cojob->n_jobs; i++) {
        last[i] =
            workload_curve_at(&cojob->jobs[i].curve, t->rungs[t->n_rungs - 1]);
    }
    qsort(last, cojob->n_jobs, sizeof *last, compare_doubles);
    target = last[cojob->n_jobs - (cojob->n_jobs + 4) / 5];
    free(last);
    return target;
}

struct targets {
    double metric[N_SEARCHES];
    double reached[N_SEARCHES]; /* Time of a run. */
};

static void
note_metric(void *aux, const struct sim_job *job, double metric, double now)
{
    struct targets *t = aux;

    if (metric >= t->metric[job->cojob]) {
        t->reached[job->cojob] = fmin(t->reached[job->cojob], now);
    }
}

/* Adds what 'job' did to its search. */
static void
add_job(const struct workload *w, const struct sim_job *job, double reached,
        struct search_run *s)
{
    const struct workload_cojob *cojob = &w->cojobs[job->cojob];
    const struct workload_job *wj = &cojob->jobs[job->job];
    double metric = workload_curve_at(&wj->curve, job->iterations);

    s->end = fmax(s->end, job->end - cojob->arrival);
    s->devices += wj->devices * (job->end - job->begin);
    s->devices_to_target +=
        wj->devices * fmax(fmin(job->end, reached) - job->begin, 0);
    s->loss = fmin(s->loss, wj->curve.recorded ? 1 - metric : -metric);
}

/* Simulates 'w'.  Returns the seconds for which the busiest port was
 * needed. */
static double
run(struct workload *w, struct targets *targets, enum way way,
    struct search_run runs[])
{
    struct policy *policy = read_policy(ways[way].policy);
    struct sim_options options = sim_policy_options(policy);
    struct sim_result result;
    double busiest = 0;

    options.late_s = LATE_S;
    options.order.trials = ways[way].trials;
    options.reported = note_metric;
    options.aux = targets;
    for (int i = 0; i < N_SEARCHES; i++) {
        w->cojobs[i].hidden = ways[way].hidden;
        targets->reached[i] = INFINITY;
        runs[i] = (struct search_run){ .loss = INFINITY };
    }
    simulate_by_policy(w, policy, &options, &result);
    for (size_t i = 0; i < result.n_jobs; i++) {
        size_t s = result.jobs[i].cojob;

        add_job(w, &result.jobs[i], targets->reached[s], &runs[s]);
    }
    for (int i = 0; i < N_SEARCHES; i++) {
        runs[i].target = targets->reached[i] - w->cojobs[i].arrival;
    }
    for (int p = 0; p < result.n_ports; p++) {
        busiest = fmax(busiest, result.port_bytes[p] / CAPACITY);
    }
    sim_result_uninit(&result);
    policy_destroy(policy);
    return busiest;
}

/* Returns what 'run' counts, which is compared with 'other'. */
static double
value_of(enum kind kind, const struct search_run *run,
         const struct search_run *other)
{
    bool missed = isinf(run->target);

    switch (kind) {
    case TARGET:
        return missed ? MISS * fmax(run->end, other->end) : run->target;
    case DEVICES_TO_TARGET:
        return missed ? MISS * fmax(run->devices, other->devices)
                      : run->devices_to_target;
    case END:
        return run->end;
    case DEVICES:
        return run->devices;
    case REGRET:
        return run->loss;
    case MISSED:
        return missed;
    }
    return 0;
}

static double
compare(enum kind kind, const struct search_run runs[],
        const struct search_run base[])
{
    double sum = 0, sum_base = 0;

    for (int i = 0; i < N_SEARCHES; i++) {
        sum += value_of(kind, &runs[i], &base[i]);
        sum_base += value_of(kind, &base[i], &runs[i]);
    }
    return kind == MISSED   ? (sum - sum_base) / N_SEARCHES
           : kind == REGRET ? sum / sum_base - 1
                            : sum / sum_base;
}

/* Runs 'w' in all ways, and compares them. */
static void
run_load(struct workload *w, struct targets *targets, size_t load,
         struct outcome *o)
{
    struct search_run runs[N_WAYS][N_SEARCHES];

    for (enum way way = 0; way < N_WAYS; way++) {
        run(w, targets, way, runs[way]);
    }
    for (size_t f = 0; f < N_FIGURES; f++) {
        o->value[load][f] = compare(figures[f].kind, runs[figures[f].way],
                                    runs[figures[f].base]);
    }
    for (int i = 0; i < N_SEARCHES; i++) {
        o->missed[load] += (double) isinf(runs[FAIR][i].target) / N_SEARCHES;
    }
}

static char *
run_task(void *outcomes, size_t task)
{
    struct sim_random r = { 1 + task };
    struct workload *w =
        workload_create("stage", sim_fabric_create(N_HOSTS, CAPACITY));
    struct search_run runs[N_SEARCHES];
    double arrivals[N_SEARCHES] = { 0 };
    struct targets targets;
    double busiest;

    for (int i = 0; i < N_SEARCHES; i++) {
        add_search(w, &r);
        targets.metric[i] = target_of(&w->cojobs[i]);
        arrivals[i] = i ? arrivals[i - 1] + sim_random_gap(&r) : 0;
    }
    busiest = run(w, &targets, PLAIN, runs);
    for (size_t l = 0; l < N_LOADS; l++) {
        double span = busiest / loads[l].value;

        for (int i = 0; i < N_SEARCHES; i++) {
            w->cojobs[i].arrival =
                span * arrivals[i] / arrivals[N_SEARCHES - 1];
        }
        run_load(w, &targets, l, (struct outcome *) outcomes + task);
    }
    workload_destroy(w);
    return NULL;
}

/* Prints the figure with the values at 'member' of the outcomes at the first
 * load. */
static void
print_figure(const char *name, const double *member, size_t stride)
{
    struct interval worst = { .mean = -INFINITY };

    for (size_t l = 0; l < N_LOADS; l++) {
        struct interval in = interval_of_member(
            member + l * stride, sizeof(struct outcome), n_seeds);

        printf("\"%s_load%s\": %.4f, ", name, loads[l].name, in.mean);
        worst = in.mean > worst.mean ? in : worst;
    }
    printf("\"%s\": %.4f, ", name, worst.mean);
    if (n_seeds > 1) {
        printf("\"%s_low\": %.4f, \"%s_high\": %.4f, ", name, worst.low, name,
               worst.high);
    }
}

static void
print_outcomes(const struct outcome *o)
{
    double worst = 0;

    for (size_t f = 0; f < N_FIGURES; f++) {
        print_figure(figures[f].name, &o->value[0][f], N_FIGURES);
    }
    print_figure("fair_missed", &o->missed[0], 1);
    for (int i = 0; i < n_seeds; i++) {
        for (size_t l = 0; l < N_LOADS; l++) {
            worst = fmax(worst, o[i].value[l][0]);
        }
    }
    printf("\"worst\": %.4f, ", worst);
}

int
main(int argc, char *argv[])
{
    struct outcome *outcomes;
    char *error;

    n_seeds = argc > 1 ? atoi(argv[1]) : 200;
    if (n_seeds < 1) {
        fputs("usage: async [SEEDS]\n", stderr);
        return 2;
    }
    outcomes = allocate(n_seeds, sizeof *outcomes);
    error = task_pool_run(&(struct task_pool){ .n = n_seeds,
                                               .run = run_task,
                                               .aux = outcomes,
                                               .label = "async",
                                               .noun = "seed" });
    printf("{\"bench\": \"async\", \"figures\": {");
    print_outcomes(outcomes);
    printf("\"seeds\": %d}}\n", n_seeds);
    free(error);
    free(outcomes);
    return 0;
}
