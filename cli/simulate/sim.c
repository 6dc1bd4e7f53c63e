/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach sim: simulates a workload under policies. */

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/directory.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress-bar.h"
#include "cli/command.h"
#include "cli/data-file.h"
#include "cli/rate.h"
#include "cli/simulate/sim-seeds.h"
#include "cli/simulate/sim-setting.h"
#include "order/problem/memory.h"
#include "policies/policy.h"
#include "reporting/placements.h"
#include "reporting/report.h"
#include "sim/run/by-policy.h"
#include "sim/run/port-use.h"
#include "sim/run/results.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload-bound.h"
#include "sim/workload/workload.h"

#define SIM_RUN_MAX_POLICIES 16

/* One policy's simulation. */
struct sim_run_policy {
    const char *name;           /* Name or file on the command line. */
    struct policy *policy;
    struct sim_result result;
    struct results results;
    struct port_use use;        /* Initialized only if a page is written. */
};

struct sim_run {
    struct sim_setting setting;
    bool lp;                    /* Bounds by linear programming. */
    uint64_t seed_value;        /* Argument of --seed, or NO_SEED. */
    const uint64_t *seed;       /* 'seed_value', or NULL for the seed in
                                 * the workload. */
    bool json;
    const char *html;           /* File of a page to write, or NULL. */
    const char *csv;            /* File of stages to write, or NULL. */
    size_t n_policies;
    struct sim_run_policy policies[SIM_RUN_MAX_POLICIES];
    struct workload_input input;
    struct workload *workload;  /* Workload of 'input'. */
    struct workload_bound bound; /* Where jobs iterate, the bound of
                                  * each result. */
    size_t n_done, n_all;        /* Seeds, or simulations. */
};

static const struct sim_run_policy *
sim_run_baseline(const struct sim_run *run)
{
    const struct sim_run_policy *base = &run->policies[0];

    for (size_t k = 1; k < run->n_policies; k++) {
        if (report_baseline_rank(run->policies[k].policy->name)
            > report_baseline_rank(base->policy->name)) {
            base = &run->policies[k];
        }
    }
    return base;
}

/* Returns the mean of policy 'i' divided by the mean of the baseline. */
static double
sim_run_ratio(const struct sim_run *run, size_t i)
{
    const struct sim_run_policy *base = sim_run_baseline(run);

    return base->result.mean > 0
               ? run->policies[i].result.mean / base->result.mean
               : 1;
}

/* Figures of each policy: N_STAGES of completion times of stages, then of
 * other times and of fairness. */
#define N_STAGES 9

static const struct report_figure figures[] = {
    { "mean", 9, 3 },     { "p50", 9, 3 },      { "p95", 9, 3 },
    { "p99", 9, 3 },      { "max", 9, 3 },      { "bound", 9, 3 },
    { "gap", 6, 3 },      { "ratio", 6, 3 },    { "decisions", 9, 0 },
    { "mean CCT", 9, 3 }, { "mean JCT", 9, 3 }, { "early", 9, 3 },
    { "target", 9, 3 },   { "GPU s", 9, 0 },    { "Jain", 9, 3 },
    { "slowest", 9, 2 },  { "worst", 9, 3 },    { "us p99", 9, 0 },
};

#define N_FIGURES (sizeof figures / sizeof *figures)

static void
get_figures(const struct sim_run *run, size_t i, double values[N_FIGURES])
{
    const struct sim_result *r = &run->policies[i].result;
    const struct results *all = &run->policies[i].results;
    const double all_values[] = {
        r->mean,          r->p50,
        r->p95,           r->p99,
        r->max,           r->bound,
        r->gap,           sim_run_ratio(run, i),
        r->decisions,     all->cct.mean,
        all->jct.mean,    all->early.mean,
        all->target.mean, all->device_s_to_target,
        all->jain,        all->rho_max,
        all->worst,       r->decision_us_p99,
    };

    memcpy(values, all_values, sizeof all_values);
}

/* Prints figures 'first' to 'end' - 1. */
static void
put_figures(const struct sim_run *run, size_t first, size_t end)
{
    printf("%-16s", "policy");
    for (size_t k = first; k < end; k++) {
        printf(" %*s", figures[k].width, figures[k].title);
    }
    putchar('\n');
    for (size_t i = 0; i < run->n_policies; i++) {
        double values[N_FIGURES];

        get_figures(run, i, values);
        printf("%-16s", run->policies[i].policy->name);
        for (size_t k = first; k < end; k++) {
            report_put_figure(&figures[k], values[k], stdout);
        }
        putchar('\n');
    }
}

/* Prints what the last policy other than the baseline gains, if any. */
static void
put_gain(const struct sim_run *run)
{
    const struct sim_run_policy *base = sim_run_baseline(run);
    size_t i = run->n_policies - 1;

    i -= i && base == &run->policies[i];
    if (base != &run->policies[i]) {
        double ratio = sim_run_ratio(run, i);

        report_put_gain(run->n_policies > 2 ? run->policies[i].policy->name
                                            : NULL,
                        base->policy->name, interval_of(&ratio, 1), stdout);
    }
}

static void
sim_run_print_table(const struct sim_run *run)
{
    const struct workload *w = run->workload;

    printf("%s: %zu %s%s on %d hosts%s, completion times in seconds\n",
           run->setting.what, w->n_stages, w->noun,
           w->n_stages == 1 ? "" : "s", w->fabric->n_hosts,
           run->setting.offline ? ", all at once" : "");
    if (w->n_left_out) {
        printf("left out, without workers or times: %zu\n", w->n_left_out);
    }
    if (!strcmp(w->noun, "stage")) {
        put_gain(run);
    }
    put_figures(run, 0, N_STAGES);
    if (run->bound.mean > 0) {
        printf("bound of these stages: %.3f in the fluid form, %.3f in the "
               "strict form (%s)\n",
               run->bound.mean, run->bound.strict,
               order_bound_names[run->bound.kind]);
    }
    putchar('\n');
    put_figures(run, N_STAGES, N_FIGURES);
}

/* Adds 'x', or null if it is not finite. */
static void
add_number(cJSON *o, const char *name, double x)
{
    if (isfinite(x)) {
        cJSON_AddNumberToObject(o, name, x);
    } else {
        cJSON_AddNullToObject(o, name);
    }
}

static void
add_times(cJSON *o, const char *name, const struct results_times *t)
{
    cJSON *times = cJSON_AddObjectToObject(o, name);

    add_number(times, "n", t->n);
    add_number(times, "mean", t->mean);
    add_number(times, "p50", t->p50);
    add_number(times, "p95", t->p95);
    add_number(times, "p99", t->p99);
    add_number(times, "max", t->max);
}

static void
add_fairness(cJSON *o, const struct results *r)
{
    cJSON *fairness = cJSON_AddObjectToObject(o, "fairness");

    add_number(fairness, "jain", r->jain);
    add_number(fairness, "rho_max", r->rho_max);
    add_number(o, "starvation", r->worst);
}

static cJSON *
policy_to_json(const struct sim_run *run, size_t i)
{
    const struct sim_run_policy *p = &run->policies[i];
    const struct sim_result *r = &p->result;
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "name", p->policy->name);
    add_number(o, "mean", r->mean);
    add_number(o, "p50", r->p50);
    add_number(o, "p95", r->p95);
    add_number(o, "p99", r->p99);
    add_number(o, "max", r->max);
    add_number(o, "bound", r->bound);
    add_number(o, "bound_strict",
               run->bound.mean > 0 ? run->bound.strict : NAN);
    cJSON_AddStringToObject(o, "bound_kind", order_bound_names[r->bound_kind]);
    add_number(o, "gap", r->gap);
    add_number(o, "ratio", sim_run_ratio(run, i));
    add_number(o, "decisions", r->decisions);
    add_number(o, "decision_us_p99", r->decision_us_p99);
    add_number(o, "gained", r->gained);
    add_times(o, "sct", &p->results.sct);
    add_times(o, "cct", &p->results.cct);
    add_times(o, "jct", &p->results.jct);
    add_times(o, "early", &p->results.early);
    add_times(o, "target", &p->results.target);
    add_number(o, "gpu_s", p->results.device_s);
    add_number(o, "gpu_s_to_target", p->results.device_s_to_target);
    add_fairness(o, &p->results);
    return o;
}

static void
add_stages(cJSON *array, const struct sim_run *run, size_t i)
{
    const struct sim_result *r = &run->policies[i].result;

    for (size_t j = 0; j < r->n_stages; j++) {
        const struct sim_stage *stage = &r->stages[j];
        cJSON *o = cJSON_CreateObject();

        cJSON_AddStringToObject(o, "policy", run->policies[i].policy->name);
        cJSON_AddStringToObject(o, "cojob",
                                run->workload->cojobs[stage->cojob].name);
        cJSON_AddNumberToObject(o, "rung", stage->rung);
        cJSON_AddNumberToObject(o, "start", stage->begin);
        cJSON_AddNumberToObject(o, "end", stage->end);
        cJSON_AddItemToArray(array, o);
    }
}

static void
sim_run_print_json(const struct sim_run *run)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *policies, *stages;

    cJSON_AddStringToObject(top, "file", run->setting.what);
    cJSON_AddStringToObject(top, "measured", run->workload->noun);
    cJSON_AddNumberToObject(top, "hosts", run->workload->fabric->n_hosts);
    cJSON_AddNumberToObject(top, "left_out", run->workload->n_left_out);
    cJSON_AddBoolToObject(top, "offline", run->setting.offline);
    cJSON_AddStringToObject(top, "bound", run->lp ? "lp" : "certificate");
    policies = cJSON_AddArrayToObject(top, "policies");
    stages = cJSON_AddArrayToObject(top, "stages");
    for (size_t i = 0; i < run->n_policies; i++) {
        cJSON_AddItemToArray(policies, policy_to_json(run, i));
        add_stages(stages, run, i);
    }
    command_print_json(top);
}

#define MAX_PORTS 64            /* Ports in the heat map. */

static char *
port_name(const struct sim_fabric *fabric, int port)
{
    const char *direction = port % 2 ? "rx" : "tx";
    bool host = port < 2 * fabric->n_hosts;

    return message("%s%d:%s", host ? "h" : "s",
                   port / 2 - (host ? 0 : fabric->n_hosts), direction);
}

/* Stores at most MAX_PORTS ports with the most traffic, by number.  Returns
 * their number. */
static size_t
choose_ports(const struct port_use *use, int ports[MAX_PORTS])
{
    double *bytes = order_alloc(use->n_ports, sizeof *bytes);
    size_t n = 0;

    for (int slot = 0; slot < PORT_USE_SLOTS; slot++) {
        for (int p = 0; p < use->n_ports; p++) {
            bytes[p] += port_use_bytes(use, slot, p);
        }
    }
    for (int p = 0; p < use->n_ports; p++) {
        int more = 0;

        for (int q = 0; q < use->n_ports; q++) {
            more += bytes[q] > bytes[p] || (bytes[q] == bytes[p] && q < p);
        }
        if (more < MAX_PORTS) {
            ports[n++] = p;
        }
    }
    free(bytes);
    return n;
}

/* 'ports' are the same for every policy. */
static void
report_use(const struct sim_run *run, const struct port_use *use,
           const int *ports, size_t n_ports, struct report_policy *rp)
{
    const struct sim_fabric *fabric = run->workload->fabric;
    char *names[MAX_PORTS];

    for (size_t i = 0; i < n_ports; i++) {
        names[i] = port_name(fabric, ports[i]);
    }
    report_set_ports(rp, (const char *const *) names, n_ports);
    for (int slot = 0; slot * use->width < use->now; slot++) {
        float row[MAX_PORTS];

        for (size_t i = 0; i < n_ports; i++) {
            row[i] = port_use_bytes(use, slot, ports[i]) / use->width
                     / fabric->capacity[ports[i]];
        }
        report_links(rp, (slot + 0.5) * use->width, row);
    }
    for (size_t i = 0; i < n_ports; i++) {
        free(names[i]);
    }
}

static void
report_simulation(const struct sim_run *run, const struct sim_run_policy *p,
                  const int *ports, size_t n_ports, struct report *report)
{
    struct report_policy *rp = report_add_policy(report, p->policy->name);

    rp->bound_mean_s = p->result.bound;
    if (run->bound.mean > 0) {
        rp->bound_strict_mean_s = run->bound.strict;
    }
    report_set(&rp->bound_kind, order_bound_names[p->result.bound_kind]);
    rp->decisions = p->result.decisions;
    sim_setting_report(run->workload, &p->result, rp);
    report_use(run, &p->use, ports, n_ports, rp);
    rp->figures = allocate(N_FIGURES, sizeof *rp->figures);
    get_figures(run, p - run->policies, rp->figures);
}

static char *
sim_run_write_html(const struct sim_run *run)
{
    const struct workload *w = run->workload;
    struct report *report = report_create(run->setting.what, "sim");
    int ports[MAX_PORTS];
    size_t n_ports = choose_ports(&run->policies[0].use, ports);
    char setting[128];
    char *error;

    snprintf(setting, sizeof setting, "simulated: %zu %s%s on %d hosts%s",
             w->n_stages, w->noun, w->n_stages == 1 ? "" : "s",
             w->fabric->n_hosts, run->setting.offline ? ", all at once" : "");
    report_set(&report->setting, setting);
    report->figures = figures;
    report->n_figures = N_FIGURES;
    report->legend =
        "Seconds. mean to max: completion times of stages (SCT), from begin "
        "to end; bound: no order has a mean below it; gap: mean / bound; "
        "ratio: mean / the baseline's; CCT and JCT: completion times of "
        "searches and of jobs; early: time to 0.9 of a job's last metric; "
        "target and GPU s: time and GPU seconds until a search is within 1 % "
        "of its best metric; "
        "slowest and Jain: the largest slowdown of a stage against its "
        "isolated time, and the fairness of slowdowns, 1 is equal; worst: "
        "largest ratio of a stage to its time without Stagecoach; us p99: "
        "microseconds of a decision, 99th percentile.";
    for (size_t i = 0; i < run->n_policies; i++) {
        report_simulation(run, &run->policies[i], ports, n_ports, report);
    }
    report_finish(report);
    error = report_write_html(report, run->html);
    report_destroy(report);
    return error;
}

#define MAX_LEVELS 1000000
#define MAX_SEED ((1ull << 53) - 1)
#define NO_SEED UINT64_MAX
#define BOUND_ROUNDS 100        /* 1.5 % below the linear program's value on */
#define LP_ROUNDS 4000          /* the Facebook trace at time 0, and 0.25 %. */

static char *
add_policy(const char *text, void *run_)
{
    struct sim_run *run = run_;

    if (run->n_policies == SIM_RUN_MAX_POLICIES) {
        return strdup("expected at most 16 policies");
    }
    run->policies[run->n_policies++].name = text;
    return NULL;
}

#define AT(MEMBER) OPTION_AT(struct sim_run, MEMBER)

static const struct option_row rows[] = {
    { "policy", OPTION_CUSTOM, .value = "P", .letter = 'p', .repeated = true,
      .parse = add_policy,
      .shown = "those of the scenario, or plain and stage",
      .help = "name or file of a policy" },
    { "offline", OPTION_FLAG, AT(setting.offline),
      .help = "let everything arrive at time 0" },
    WORKLOAD_NETWORK_ROWS(struct sim_run, setting.network, 0),
    { "levels", OPTION_INTEGER, AT(setting.n_levels), 1, MAX_LEVELS, "N",
      .shown = "the levels of the policy for a lab scenario, otherwise the "
               "exact order",
      .help = "number of strict levels to serve" },
    { "ideal", OPTION_FLAG, AT(setting.ideal),
      .help = "simulate a lab scenario without the delays and the jitter that "
              "the lab has" },
    { "survivors", OPTION_TEXT, AT(setting.survivors), .value = "REPORT",
      .help =
          "let the searches of a lab scenario keep the jobs that they kept "
          "in this report of \"lab run\"" },
    { "bound", OPTION_CHOICE, AT(lp), .value = "certificate|lp",
      .deflt = "certificate",
      .help = "lower bound; lp is tighter and takes longer" },
    { "seed", OPTION_INTEGER, AT(seed_value), 0, MAX_SEED, "N",
      .help = "replace the seed in WORKLOAD" },
    { "seeds", OPTION_CUSTOM, AT(setting.seeds), .value = "A-B",
      .parse = seed_range_parse,
      .help = "simulate WORKLOAD with each of these seeds, on all processors, "
              "and print means relative to the baseline" },
    { "csv", OPTION_TEXT, AT(csv), .value = "FILE",
      .help = "with --seeds: also write one line for each seed, policy and "
              "stage" },
    FORMAT_ROW(struct sim_run, json),
    { "html", OPTION_TEXT, AT(html), .value = "FILE",
      .help = "also write a page with charts; with --seeds: of the ratio at "
              "each seed" },
    { .name = NULL },
};

static const struct option_table table = {
    .name = "stagecoach sim",
    .rows = rows,
    .usage =
        "usage: stagecoach sim WORKLOAD [OPTION...]\n\n"
        "Simulates a trace of coflows or jobs, the searches of a scenario, or\n"
        "random searches under each policy, and prints the completion times\n"
        "of the coflows or stages in seconds; with --seeds under each policy\n"
        "and with each seed, and prints means.\n\n"
        "WORKLOAD is a file; \"generate:SEED,NAME=VALUE...\" for random\n"
        "searches, with the names hosts, cojobs, jobs, iterations, rungs,\n"
        "placement (ps, ring, mixed), compute (0 to 0.95) and load; or\n"
        "\"FILE,NAME=VALUE...\" for a trace of jobs, with the names of\n"
        "stagecoach-sim-scenario(5).\n",
    .footer =
        "Columns: bound is a lower bound on the mean: where jobs iterate, of\n"
        "any schedule of the searches, in the fluid form; elsewhere, or with\n"
        "--bound lp, of stages with these begin times.  gap is mean / bound,\n"
        "ratio is mean / mean of plain, otherwise of fair, otherwise of the\n"
        "first policy.  Jain is Jain's\n"
        "fairness index of the slowdowns of the stages, slowest the largest\n"
        "slowdown, worst the largest ratio of a stage's time to its time\n"
        "under plain.\n\n"
        "A search keeps the jobs with the best curves; those of a lab\n"
        "scenario are recorded ones of similar trials.  No packets are lost.\n"
        "Decisions are applied immediately, but for lab scenarios, see\n"
        "--ideal.\n",
    .operand = "WORKLOAD",
    .min_operands = 1,
    .max_operands = 1,
};

static char *
read_policies(struct sim_run *run)
{
    for (size_t i = 0; i < run->n_policies; i++) {
        char *error = policy_open(run->policies[i].name,
                                  &run->policies[i].policy);

        if (error) {
            return error;
        }
    }
    return NULL;
}

/* Reads the workload, and its policies if the command line names none. */
static char *
read_workload(struct sim_run *run)
{
    const struct seed_range *seeds = &run->setting.seeds;
    char *error = sim_setting_open(
        &run->setting, seeds->n ? &seeds->first : run->seed, &run->input);
    size_t n_named = run->n_policies;

    if (error) {
        return error;
    }
    run->workload = run->input.workload;
    for (size_t i = 0; !n_named && i < run->input.n_policies; i++) {
        run->policies[run->n_policies++].name = run->input.policies[i];
    }
    if (!run->n_policies) {
        run->policies[run->n_policies++].name = "plain";
        run->policies[run->n_policies++].name = "stage";
    }
    return NULL;
}

/* Argument of the simulator's callbacks. */
struct watch {
    struct progress_bar bar; /* First, for progress_bar_update(). */
    struct port_use *use;
};

static void
observe(void *watch, double seconds, const struct sim_flow *flows, size_t n)
{
    port_use_add(((struct watch *) watch)->use, seconds, flows, n);
}

/* Returns false after an interrupt. */
static bool
simulate_policy(const struct sim_run *run, struct sim_run_policy *p)
{
    struct watch watch = { .use = &p->use };
    struct sim_options options =
        sim_setting_options(&run->setting, &run->input, p->policy);

    options.bound_rounds = run->lp ? LP_ROUNDS : BOUND_ROUNDS;
    options.progress = progress_bar_update;
    options.observe = run->html ? observe : NULL;
    options.aux = &watch;
    if (run->html) {
        port_use_init(&p->use, run->workload->fabric->n_ports);
    }
    progress_bar_begin(&watch.bar, p->name, run->workload->noun);
    simulate_by_policy(run->workload, p->policy, &options, &p->result);
    progress_bar_end(&watch.bar);
    return p->result.n_stages == run->workload->n_stages;
}

/* Returns the result of the network without shims, or NULL. */
static const struct sim_result *
find_plain(const struct sim_run *run)
{
    for (size_t i = 0; i < run->n_policies; i++) {
        if (run->policies[i].policy->order.kind == ORDER_PLAIN) {
            return &run->policies[i].result;
        }
    }
    return NULL;
}

/* Bounds the searches, if their jobs iterate. */
static void
find_bound(struct sim_run *run)
{
    struct sim_options options = sim_setting_options(
        &run->setting, &run->input, run->policies[0].policy);

    run->bound = workload_bound(run->workload, options.efficiency, true);
    for (size_t i = 0; run->bound.mean > 0 && i < run->n_policies; i++) {
        struct sim_result *r = &run->policies[i].result;

        r->bound = run->bound.mean;
        r->bound_kind = run->bound.kind;
        r->gap = r->mean / r->bound;
    }
}

static void
sim_run_policy_uninit(struct sim_run_policy *p)
{
    policy_destroy(p->policy);
    sim_result_uninit(&p->result);
    port_use_uninit(&p->use);
}

/* Simulates the policies.  After an interrupt only those before it are left.
 */
static void
simulate_policies(struct sim_run *run)
{
    run->n_all = run->n_policies;
    while (run->n_done < run->n_all
           && simulate_policy(run, &run->policies[run->n_done])) {
        run->n_done++;
    }
    while (run->n_policies > run->n_done) {
        sim_run_policy_uninit(&run->policies[--run->n_policies]);
    }
    if (!run->lp && run->n_done) {
        find_bound(run);
    }
    for (size_t i = 0; i < run->n_policies; i++) {
        results_compute(run->workload, &run->policies[i].result,
                        find_plain(run), &run->policies[i].results);
    }
}

/* Returns what is wrong with the options together, or NULL. */
static const char *
check_options(const struct sim_run *run)
{
    if (!run->setting.seeds.n) {
        return run->csv ? "--csv requires --seeds" : NULL;
    }
    return run->seed                ? "--seeds excludes --seed"
           : run->setting.survivors ? "--seeds excludes --survivors"
           : run->lp ? "--seeds has no bound and excludes --bound lp"
                     : NULL;
}

/* Parses the options.  Returns -1 to continue, otherwise an exit status. */
static int
parse_options(int argc, char *argv[], struct sim_run *run)
{
    int workload, status;

    run->seed_value = NO_SEED;
    status = option_table_command(&table, argc, argv, run, &workload);
    if (status < 0) {
        const char *wrong;

        run->setting.what = argv[workload];
        run->seed = run->seed_value != NO_SEED ? &run->seed_value : NULL;
        wrong = check_options(run);
        if (wrong) {
            fprintf(stderr, "%s: %s\n", table.name, wrong);
            return EXIT_USAGE;
        }
    }
    return status;
}

static void
sim_run_uninit(struct sim_run *run)
{
    for (size_t i = 0; i < run->n_policies; i++) {
        sim_run_policy_uninit(&run->policies[i]);
    }
    workload_input_uninit(&run->input);
}

static char *
flush_output(void)
{
    return fflush(stdout) ? strdup("standard output: cannot be written")
                          : NULL;
}

/* Simulates the policies and prints the results.  Returns NULL or a message.
 */
static char *
run_once(struct sim_run *run)
{
    char *error;

    simulate_policies(run);
    if (!run->n_done) {
        return NULL;
    }
    if (run->json) {
        sim_run_print_json(run);
    } else {
        sim_run_print_table(run);
    }
    error = flush_output();
    return error || !run->html ? error : sim_run_write_html(run);
}

/* Simulates the policies with each seed and prints the means.  Returns NULL or
 * a message. */
static char *
run_seeds(struct sim_run *run)
{
    const struct policy *policies[SIM_RUN_MAX_POLICIES];
    const struct sim_seeds args = { .setting = &run->setting,
                                    .policies = policies,
                                    .n_policies = run->n_policies,
                                    .csv = run->csv };
    struct placements *results;
    char *error;

    for (size_t i = 0; i < run->n_policies; i++) {
        policies[i] = run->policies[i].policy;
    }
    run->n_all = run->setting.seeds.n;
    error = sim_seeds_run(&args, &results, &run->n_done);
    if (!error && run->n_done) {
        (run->json ? placements_put_json : placements_put_summary)(results,
                                                                   stdout);
        error = flush_output();
    }
    if (!error && run->n_done && run->html) {
        error = placements_write_html(results, run->html);
    }
    placements_destroy(results);
    return error;
}

int
cmd_sim(int argc, char *argv[])
{
    struct sim_run run = { .n_policies = 0 };
    int status = parse_options(argc, argv, &run);
    char *error;

    if (status >= 0) {
        return status;
    }
    error = output_file_check(run.html);
    error = error ? error : output_file_check(run.csv);
    error = error ? error : read_workload(&run);
    error = error ? error : read_policies(&run);
    if (!error) {
        interrupt_catch();
        error = run.setting.seeds.n ? run_seeds(&run) : run_once(&run);
    }
    status = error ? command_fail(NULL, error)
             : run.n_done < run.n_all
                 ? interrupt_say(interrupt_caught(), run.n_done, run.n_all,
                                 run.setting.seeds.n ? "seed" : "simulation")
                 : EXIT_OK;
    sim_run_uninit(&run);
    return status;
}
