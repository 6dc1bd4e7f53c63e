/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach sim: what an order is worth, without a cluster. */

#include <cjson/cJSON.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/policy-open.h"
#include "cli/workload-open.h"
#include "policies/policy.h"
#include "sim/by-policy.h"
#include "sim/workload.h"

#define MAX_POLICIES 16

enum format { FORMAT_TABLE, FORMAT_JSON };

static const char usage[] =
    "usage: stagecoach sim TRACE|SCENARIO [--policy P]... [--offline]\n"
    "                      [--format table|json]\n\n"
    "Simulates a coflow-benchmark trace, or the searches of a lab scenario,\n"
    "under each policy and prints the completion times of its coflows or\n"
    "stages, in seconds.\n\n"
    "  --policy P    A policy's name or file; as often as wanted, up to 16\n"
    "                times.  Without it the scenario's, or fair and stage.\n"
    "  --offline     Everything arrives at time 0.\n"
    "  --format F    \"table\" (default) or \"json\".\n\n"
    "bound is what no order can go below on average for stages that begin\n"
    "when these began, gap is mean / bound, ratio is mean / the mean of the\n"
    "first policy.  Accuracy is not simulated: the jobs that a search keeps\n"
    "are the first ones.  Decisions are applied at once, and there is no\n"
    "loss.\n";

/* What the command line said, and what came out. */
struct sim_run {
    const char *file;
    bool offline;
    enum format format;
    size_t n_named;             /* Policies that the command line names. */
    size_t n_policies;
    const char *names[MAX_POLICIES];
    struct policy *policies[MAX_POLICIES];
    struct workload_input input;
    struct workload *workload;  /* The input's. */
    struct sim_result results[MAX_POLICIES];
};

static char *
read_policies(struct sim_run *run)
{
    for (size_t i = 0; i < run->n_policies; i++) {
        char *error = policy_open(run->names[i], &run->policies[i]);

        if (error) {
            return error;
        }
    }
    return NULL;
}

/* Reads the file, and which policies to run if the command line does not
 * say. */
static char *
read_workload(struct sim_run *run)
{
    char *error = workload_open(run->file, NULL, &run->input);

    if (error) {
        return error;
    }
    run->workload = run->input.workload;
    for (size_t i = 0; !run->n_named && i < run->input.n_policies; i++) {
        run->names[run->n_policies++] = run->input.policies[i];
    }
    if (!run->n_policies) {
        run->names[run->n_policies++] = "fair";
        run->names[run->n_policies++] = "stage";
    }
    return NULL;
}

/* What a terminal shows while it waits. */
struct progress {
    const char *policy;
    const char *noun;
    struct timespec last;
};

static void
show_progress(void *progress_, size_t n_ended, size_t n_stages)
{
    struct progress *p = progress_;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec - p->last.tv_sec
        + (now.tv_nsec - p->last.tv_nsec) / 1e9 >= 0.25) {
        p->last = now;
        fprintf(stderr, "\r%s: %zu of %zu %ss\033[K", p->policy, n_ended,
                n_stages, p->noun);
    }
}

static void
simulate_policies(struct sim_run *run)
{
    bool terminal = isatty(STDERR_FILENO);

    if (run->offline) {
        workload_make_offline(run->workload);
    }
    for (size_t i = 0; i < run->n_policies; i++) {
        const struct policy *policy = run->policies[i];
        struct progress progress = {
            .policy = policy->name, .noun = run->workload->noun,
        };
        struct sim_options options = sim_policy_options(policy);

        options.progress = terminal ? show_progress : NULL;
        options.aux = &progress;
        clock_gettime(CLOCK_MONOTONIC, &progress.last);
        simulate_by_policy(run->workload, policy, &options, &run->results[i]);
    }
    if (terminal) {
        fputs("\r\033[K", stderr);
    }
}

static double
ratio(const struct sim_run *run, size_t i)
{
    double first = run->results[0].mean;

    return first > 0 ? run->results[i].mean / first : 1;
}

static void
print_table(const struct sim_run *run)
{
    const struct workload *w = run->workload;

    printf("%s: %zu %s%s on %d hosts%s, completion times in seconds\n",
           run->file, w->n_stages, w->noun, w->n_stages == 1 ? "" : "s",
           w->fabric->n_hosts, run->offline ? ", all at once" : "");
    printf("%-16s %9s %9s %9s %9s %9s %9s %6s %6s %9s\n", "policy", "mean",
           "p50", "p95", "p99", "max", "bound", "gap", "ratio", "decisions");
    for (size_t i = 0; i < run->n_policies; i++) {
        const struct sim_result *r = &run->results[i];

        printf("%-16s %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %6.3f %6.3f %9zu\n",
               run->policies[i]->name, r->mean, r->p50, r->p95, r->p99,
               r->max, r->bound, r->gap, ratio(run, i), r->decisions);
    }
}

static void
add_stages(cJSON *array, const struct sim_run *run, size_t i)
{
    const struct sim_result *r = &run->results[i];

    for (size_t j = 0; j < r->n_stages; j++) {
        const struct sim_stage *stage = &r->stages[j];
        cJSON *o = cJSON_CreateObject();

        cJSON_AddStringToObject(o, "policy", run->policies[i]->name);
        cJSON_AddStringToObject(o, "cojob",
                                run->workload->cojobs[stage->cojob].name);
        cJSON_AddNumberToObject(o, "rung", stage->rung);
        cJSON_AddNumberToObject(o, "start", stage->begin);
        cJSON_AddNumberToObject(o, "end", stage->end);
        cJSON_AddItemToArray(array, o);
    }
}

static cJSON *
policy_to_json(const struct sim_run *run, size_t i)
{
    const struct sim_result *r = &run->results[i];
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "name", run->policies[i]->name);
    cJSON_AddNumberToObject(o, "mean", r->mean);
    cJSON_AddNumberToObject(o, "p50", r->p50);
    cJSON_AddNumberToObject(o, "p95", r->p95);
    cJSON_AddNumberToObject(o, "p99", r->p99);
    cJSON_AddNumberToObject(o, "max", r->max);
    cJSON_AddNumberToObject(o, "bound", r->bound);
    cJSON_AddNumberToObject(o, "gap", r->gap);
    cJSON_AddNumberToObject(o, "ratio", ratio(run, i));
    cJSON_AddNumberToObject(o, "decisions", r->decisions);
    cJSON_AddNumberToObject(o, "decision_gap_first", r->decision_gap_first);
    cJSON_AddNumberToObject(o, "decision_gap_mean", r->decision_gap_mean);
    return o;
}

static void
print_json(const struct sim_run *run)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *policies, *stages;
    char *text;

    cJSON_AddStringToObject(top, "file", run->file);
    cJSON_AddStringToObject(top, "measured", run->workload->noun);
    cJSON_AddNumberToObject(top, "hosts", run->workload->fabric->n_hosts);
    cJSON_AddBoolToObject(top, "offline", run->offline);
    policies = cJSON_AddArrayToObject(top, "policies");
    stages = cJSON_AddArrayToObject(top, "stages");
    for (size_t i = 0; i < run->n_policies; i++) {
        cJSON_AddItemToArray(policies, policy_to_json(run, i));
        add_stages(stages, run, i);
    }
    text = cJSON_Print(top);
    if (!text) {
        abort();
    }
    puts(text);
    cJSON_free(text);
    cJSON_Delete(top);
}

/* Returns -1 to go on, otherwise an exit status. */
static int
parse_options(int argc, char *argv[], struct sim_run *run)
{
    static const struct option options[] = {
        { "policy", required_argument, NULL, 'p' },
        { "offline", no_argument, NULL, 'o' },
        { "format", required_argument, NULL, 'f' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    int c;

    optind = 1;
    while ((c = getopt_long(argc, argv, "hp:", options, NULL)) != -1) {
        switch (c) {
        case 'p':
            if (run->n_policies == MAX_POLICIES) {
                fprintf(stderr, "--policy: %s is too much, at most %d "
                        "policies are allowed\n", optarg, MAX_POLICIES);
                return EXIT_USAGE;
            }
            run->names[run->n_policies++] = optarg;
            break;
        case 'o':
            run->offline = true;
            break;
        case 'f':
            if (strcmp(optarg, "table") && strcmp(optarg, "json")) {
                fprintf(stderr, "--format: \"%s\" is not one of \"table\", "
                        "\"json\"\n", optarg);
                return EXIT_USAGE;
            }
            run->format = optarg[0] == 'j' ? FORMAT_JSON : FORMAT_TABLE;
            break;
        case 'h':
            fputs(usage, stdout);
            return EXIT_OK;
        default:
            return EXIT_USAGE;
        }
    }
    if (argc - optind != 1) {
        fputs("stagecoach sim: one trace or scenario is needed, "
              "\"stagecoach sim --help\" tells more\n", stderr);
        return EXIT_USAGE;
    }
    run->file = argv[optind];
    return -1;
}

static void
sim_run_uninit(struct sim_run *run)
{
    for (size_t i = 0; i < run->n_policies; i++) {
        policy_destroy(run->policies[i]);
        sim_result_uninit(&run->results[i]);
    }
    workload_input_uninit(&run->input);
}

int
cmd_sim(int argc, char *argv[])
{
    struct sim_run run = { .format = FORMAT_TABLE };
    int status = parse_options(argc, argv, &run);
    char *error;

    if (status >= 0) {
        return status;
    }
    run.n_named = run.n_policies;
    error = read_workload(&run);
    if (!error) {
        error = read_policies(&run);
    }
    if (error) {
        fprintf(stderr, "%s\n", error);
        free(error);
        status = EXIT_NO;
    } else {
        simulate_policies(&run);
        if (run.format == FORMAT_JSON) {
            print_json(&run);
        } else {
            print_table(&run);
        }
        status = fflush(stdout) ? EXIT_NO : EXIT_OK;
    }
    sim_run_uninit(&run);
    return status;
}
