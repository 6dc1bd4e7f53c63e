/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach sim: what an order is worth, without a cluster. */

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/simulate/fabric-open.h"
#include "cli/simulate/policy-open.h"
#include "cli/simulate/sim-run.h"
#include "cli/simulate/workload-open.h"
#include "policies/policy.h"
#include "sim/run/by-policy.h"
#include "sim/workload/workload.h"

#define MAX_LEVELS 1000000
#define MAX_SEED ((1ull << 53) - 1)
#define BOUND_ROUNDS 100        /* 1.5 % below the linear program's value on */
#define LP_ROUNDS 4000          /* the Facebook trace at time 0, and 0.25 %. */
#define BAR 24                  /* Characters of the progress bar. */

static const char usage[] =
    "usage: stagecoach sim WORKLOAD [--policy P]... [--offline]\n"
    "                      [--fabric F] [--levels N] [--seed N]\n"
    "                      [--bound certificate|lp] [--format table|json]\n"
    "                      [--html FILE]\n\n"
    "Simulates a coflow-benchmark trace, searches of a scenario, or searches\n"
    "made by chance, under each policy and prints the completion times of\n"
    "its coflows or stages, in seconds.\n\n"
    "  WORKLOAD      A file, or \"generate:SEED,NAME=VALUE...\" of which the\n"
    "                names are hosts, cojobs, jobs, iterations, rungs, place\n"
    "                (ps, ring, mixed), compute (0 to 0.95) and load; or\n"
    "                \"FILE,NAME=VALUE...\", a trace of jobs, of which the\n"
    "                names are those of stagecoach-sim-scenario(5).\n"
    "  --policy P    A policy's name or file; as often as wanted, up to 16\n"
    "                times.  Without it the scenario's, or fair and stage.\n"
    "  --offline     Everything arrives at time 0.\n"
    "  --fabric F    \"switch\"; \"leaf-spine,leaf=N,over=X\": N hosts a\n"
    "                leaf, uplinks oversubscribed X times; or\n"
    "                \"FILE.csv,over=X\", a topology.\n"
    "  --levels N    Serve levels strictly, N of them.  Without it a lab\n"
    "                scenario has its policies' levels, and all else the\n"
    "                exact order.\n"
    "  --bound B     \"certificate\" (default), or \"lp\" for one that is\n"
    "                closer and takes longer.\n"
    "  --seed N      Instead of the one in WORKLOAD.\n"
    "  --format F    \"table\" (default) or \"json\".\n"
    "  --html FILE   Write a page with pictures too.\n\n"
    "bound is what no order can go below on average for stages that begin\n"
    "when these began, gap is mean / bound, ratio is mean / the mean of the\n"
    "first policy.  Jain is the fairness index of the stages' slowdowns,\n"
    "slowest the largest of them, worst the most that a stage takes of its\n"
    "time under fair.  Accuracy is not simulated: a lab's search keeps\n"
    "its first jobs, others those with the best curves.  Decisions are\n"
    "applied at once, and there is no loss.\n";

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

/* Reads the workload, and which policies to run if the command line does not
 * say. */
static char *
read_workload(struct sim_run *run)
{
    char *error = workload_open(run->what, run->seed, &run->input);
    size_t n_named = run->n_policies;

    if (error) {
        return error;
    }
    run->workload = run->input.workload;
    error = run->fabric ? fabric_open(run->fabric, run->workload) : NULL;
    if (error) {
        return error;
    }
    for (size_t i = 0; !n_named && i < run->input.n_policies; i++) {
        run->policies[run->n_policies++].name = run->input.policies[i];
    }
    if (!run->n_policies) {
        run->policies[run->n_policies++].name = "fair";
        run->policies[run->n_policies++].name = "stage";
    }
    return NULL;
}

/* What the simulator calls back for. */
struct watch {
    const char *policy;
    const char *noun;
    struct timespec begin;
    double shown;               /* Seconds after 'begin'. */
    struct port_use *use;
};

static void
show_progress(void *watch_, size_t n_ended, size_t n_stages)
{
    struct watch *w = watch_;
    struct timespec now;
    double seconds;
    int done = n_ended * BAR / n_stages;

    clock_gettime(CLOCK_MONOTONIC, &now);
    seconds = now.tv_sec - w->begin.tv_sec
              + (now.tv_nsec - w->begin.tv_nsec) / 1e9;
    if (seconds - w->shown < 0.25) {
        return;
    }
    w->shown = seconds;
    fprintf(stderr, "\r%s [%.*s%.*s] %zu of %zu %ss", w->policy,
            done, "########################",
            BAR - done, "........................", n_ended, n_stages,
            w->noun);
    if (n_ended) {
        fprintf(stderr, ", %.0f s left",
                seconds / n_ended * (n_stages - n_ended));
    }
    fputs("\033[K", stderr);
}

static void
observe(void *watch, double seconds, const struct sim_flow *flows, size_t n)
{
    port_use_add(((struct watch *) watch)->use, seconds, flows, n);
}

static void
simulate_policy(const struct sim_run *run, struct sim_run_policy *p)
{
    struct watch watch = {
        .policy = p->name, .noun = run->workload->noun, .use = &p->use,
    };
    struct sim_options options = sim_policy_options(p->policy);

    options.certify = true;
    options.bound_rounds = run->lp ? LP_ROUNDS : BOUND_ROUNDS;
    options.progress = isatty(STDERR_FILENO) ? show_progress : NULL;
    options.observe = run->html ? observe : NULL;
    options.aux = &watch;
    if (run->n_levels) {
        options.order.n_levels = run->n_levels;
    } else if (!run->input.levels) {
        options.service = SIM_SERVICE_EXACT;
        options.order.n_levels = INT_MAX;
    }
    if (run->html) {
        port_use_init(&p->use, run->workload->fabric->n_ports);
    }
    clock_gettime(CLOCK_MONOTONIC, &watch.begin);
    simulate_by_policy(run->workload, p->policy, &options, &p->result);
    if (options.progress) {
        fputs("\r\033[K", stderr);
    }
}

/* Returns what the first policy without an order found, or NULL. */
static const struct sim_result *
find_fair(const struct sim_run *run)
{
    for (size_t i = 0; i < run->n_policies; i++) {
        if (run->policies[i].policy->order.kind == ORDER_FAIR) {
            return &run->policies[i].result;
        }
    }
    return NULL;
}

static void
simulate_policies(struct sim_run *run)
{
    if (run->offline) {
        workload_make_offline(run->workload);
    }
    for (size_t i = 0; i < run->n_policies; i++) {
        simulate_policy(run, &run->policies[i]);
    }
    for (size_t i = 0; i < run->n_policies; i++) {
        results_compute(run->workload, &run->policies[i].result,
                        find_fair(run), &run->policies[i].results);
    }
}

double
sim_run_ratio(const struct sim_run *run, size_t i)
{
    double first = run->policies[0].result.mean;

    return first > 0 ? run->policies[i].result.mean / first : 1;
}

/* Stores in '*indexp' which of 'names', which ends with a null pointer, 'arg'
 * is; says so and returns false if it is none. */
static bool
parse_name(const char *option, const char *arg, const char *const names[],
           int *indexp)
{
    for (int i = 0; names[i]; i++) {
        if (!strcmp(arg, names[i])) {
            *indexp = i;
            return true;
        }
    }
    fprintf(stderr, "--%s: \"%s\" is not one of \"%s\", \"%s\"\n", option, arg,
            names[0], names[1]);
    return false;
}

/* Stores 'arg' in '*np'; says so and returns false if it is no integer from
 * 'min' to 'max'. */
static bool
parse_integer(const char *option, const char *arg, uint64_t min, uint64_t max,
              uint64_t *np)
{
    char *end;
    unsigned long long n;

    errno = 0;
    n = strtoull(arg, &end, 10);
    if (!isdigit((unsigned char) *arg) || *end || errno
        || n < min || n > max) {
        fprintf(stderr, "--%s: \"%s\" is not an integer from %"PRIu64" to "
                "%"PRIu64"\n", option, arg, min, max);
        return false;
    }
    *np = n;
    return true;
}

static bool
add_policy(struct sim_run *run, const char *arg)
{
    if (run->n_policies == SIM_RUN_MAX_POLICIES) {
        fprintf(stderr, "--policy: %s is too much, at most %d policies are "
                "allowed\n", arg, SIM_RUN_MAX_POLICIES);
        return false;
    }
    run->policies[run->n_policies++].name = arg;
    return true;
}

/* Returns false after it has said what is wrong. */
static bool
parse_option(struct sim_run *run, int c)
{
    static const char *const formats[] = { "table", "json", NULL };
    static const char *const bounds[] = { "certificate", "lp", NULL };
    static uint64_t seed;
    uint64_t n;
    int index;

    switch (c) {
    case 'p':
        return add_policy(run, optarg);
    case 'o':
        run->offline = true;
        return true;
    case 'l':
        if (!parse_integer("levels", optarg, 1, MAX_LEVELS, &n)) {
            return false;
        }
        run->n_levels = n;
        return true;
    case 'F':
        run->fabric = optarg;
        return true;
    case 's':
        run->seed = &seed;
        return parse_integer("seed", optarg, 0, MAX_SEED, &seed);
    case 'w':
        run->html = optarg;
        return true;
    case 'b':
        if (!parse_name("bound", optarg, bounds, &index)) {
            return false;
        }
        run->lp = index;
        return true;
    case 'f':
        if (!parse_name("format", optarg, formats, &index)) {
            return false;
        }
        run->format = index;
        return true;
    default:
        return false;
    }
}

/* Returns -1 to go on, otherwise an exit status. */
static int
parse_options(int argc, char *argv[], struct sim_run *run)
{
    static const struct option options[] = {
        { "policy", required_argument, NULL, 'p' },
        { "offline", no_argument, NULL, 'o' },
        { "fabric", required_argument, NULL, 'F' },
        { "levels", required_argument, NULL, 'l' },
        { "bound", required_argument, NULL, 'b' },
        { "format", required_argument, NULL, 'f' },
        { "html", required_argument, NULL, 'w' },
        { "seed", required_argument, NULL, 's' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    int c;

    optind = 1;
    while ((c = getopt_long(argc, argv, "hp:", options, NULL)) != -1) {
        if (c == 'h') {
            fputs(usage, stdout);
            return EXIT_OK;
        } else if (!parse_option(run, c)) {
            return EXIT_USAGE;
        }
    }
    if (argc - optind != 1) {
        fputs("stagecoach sim: one trace or scenario is needed, "
              "\"stagecoach sim --help\" tells more\n", stderr);
        return EXIT_USAGE;
    }
    run->what = argv[optind];
    return -1;
}

static void
sim_run_uninit(struct sim_run *run)
{
    for (size_t i = 0; i < run->n_policies; i++) {
        policy_destroy(run->policies[i].policy);
        sim_result_uninit(&run->policies[i].result);
        port_use_uninit(&run->policies[i].use);
    }
    workload_input_uninit(&run->input);
}

/* Prints, and returns NULL or a message. */
static char *
show(const struct sim_run *run)
{
    if (run->format == SIM_FORMAT_JSON) {
        sim_run_print_json(run);
    } else {
        sim_run_print_table(run);
    }
    if (fflush(stdout)) {
        return strdup("standard output: cannot be written");
    }
    return run->html ? sim_run_write_html(run) : NULL;
}

int
cmd_sim(int argc, char *argv[])
{
    struct sim_run run = { .format = SIM_FORMAT_TABLE };
    int status = parse_options(argc, argv, &run);
    char *error;

    if (status >= 0) {
        return status;
    }
    error = read_workload(&run);
    if (!error) {
        error = read_policies(&run);
    }
    if (!error) {
        simulate_policies(&run);
        error = show(&run);
    }
    if (error) {
        fprintf(stderr, "%s\n", error);
    }
    status = error ? EXIT_NO : EXIT_OK;
    free(error);
    sim_run_uninit(&run);
    return status;
}
