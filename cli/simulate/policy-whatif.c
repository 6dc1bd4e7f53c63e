/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach policy whatif: simulates a workload under two policies. */

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/progress-bar.h"
#include "cli/command.h"
#include "cli/data-file.h"
#include "cli/duration.h"
#include "cli/rate.h"
#include "cli/simulate/policy.h"
#include "cli/simulate/workload-open.h"
#include "policies/policy.h"
#include "sim/run/by-policy.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload.h"

/* Number of stages with the largest gains, and losses, that are listed. */
#define N_NAMED 5

struct whatif_args {
    const char *names[2];
    int n_names;
    const char *trace;
    struct workload_network network;
    const char *history; /* Replaces 'trace', which is then equal to it. */
    int64_t since;       /* Age in ms that limits a history, or 0. */
    bool json;

    struct policy *policies[2];
    struct workload_input input;
};

static char *
add_policy(const char *text, void *args_)
{
    struct whatif_args *args = args_;

    if (args->n_names == 2) {
        return message("\"%s\": a third policy; expected two", text);
    }
    args->names[args->n_names++] = text;
    return NULL;
}

#define AT(MEMBER) OPTION_AT(struct whatif_args, MEMBER)

static const struct option_row rows[] = {
    { "trace", OPTION_TEXT, AT(trace), .value = "T",
      .help = "any input of \"stagecoach sim\"" },
    WORKLOAD_NETWORK_ROWS(struct whatif_args, network, 0),
#ifdef HAVE_OVS
    { "history", OPTION_TEXT, AT(history), .value = "H",
      .help = "history of a controller instead of T: an age, such as 24h, to "
              "request it from the running controller, or a file" },
    { "since", OPTION_CUSTOM, AT(since), .value = "AGE",
      .parse = duration_option,
      .help = "read only stages of the file that ended within AGE" },
#endif
    { "policy", OPTION_CUSTOM, .value = "P", .parse = add_policy,
      .help = "name or file of a policy, A and then B" },
    FORMAT_ROW(struct whatif_args, json),
    { .name = NULL },
};

static const struct option_table table = {
    .name = "stagecoach policy whatif",
    .rows = rows,
    .usage =
        "usage: stagecoach policy whatif --trace T --policy A --policy B\n"
        "                                [--fabric F] [--rate R]\n"
        "                                [--format table|json]\n"
#ifdef HAVE_OVS
        "       stagecoach policy whatif --history H [--since AGE] ...\n"
#endif
        "\n"
        "Simulates T under both policies and prints what B changes: in total\n"
        "and for the stages with the largest changes.  Levels are served as\n"
        "in the data plane, unless T is a trace of coflows.\n",
};

/* Returns a message about arguments that do not fit, or NULL. */
static const char *
check_args(const struct whatif_args *args)
{
    return (args->n_names < 2 ? "--policy A --policy B are needed"
            : (args->history && args->trace) || (args->since && !args->history)
                ? "--trace excludes --history, and --since requires --history"
            : !args->trace && !args->history
                ? "--trace is missing; expected any input of \"stagecoach "
                  "sim\""
                : NULL);
}

static char *
open_workload(struct whatif_args *args)
{
#ifdef HAVE_OVS
    if (args->history) {
        char *error = policy_history_open(args->history, args->since,
                                          &args->input.workload);

        args->trace = args->history;
        return error ? error
                     : workload_set_network(args->input.workload,
                                            &args->network);
    }
#endif
    return workload_open(args->trace, NULL, &args->network, &args->input);
}

static char *
open_args(struct whatif_args *args)
{
    char *error = policy_open(args->names[0], &args->policies[0]);

    error = error ? error : policy_open(args->names[1], &args->policies[1]);
    return error ? error : open_workload(args);
}

/* Simulates the workload under one of the policies, with progress on a
 * terminal; a trace of coflows in the exact order, as in the literature.
 * Returns false after an interrupt. */
static bool
replay(const struct whatif_args *args, int policy, struct sim_result *result)
{
    const struct policy *p = args->policies[policy];
    const struct workload *w = args->input.workload;
    struct sim_options options = sim_policy_options(p);
    struct progress_bar bar;

    options.service =
        strcmp(w->noun, "coflow") ? SIM_SERVICE_LEVELS : SIM_SERVICE_EXACT;
    options.progress = progress_bar_update;
    options.aux = &bar;
    interrupt_catch();
    progress_bar_begin(&bar, p->name, w->noun);
    simulate_by_policy(w, p, &options, result);
    progress_bar_end(&bar);
    return result->n_stages == w->n_stages;
}

/* A stage under both policies, which may run it in different orders. */
struct change {
    size_t cojob, rung;
    double seconds[2];          /* Completion time under A and B. */
};

static double
gain(const struct change *c)
{
    return c->seconds[0] - c->seconds[1];
}

/* Compares by gain, the largest first, then by position in the workload. */
static int
compare_changes(const void *a_, const void *b_)
{
    const struct change *a = a_, *b = b_;

    return (gain(a) != gain(b) ? (gain(a) > gain(b) ? -1 : 1)
            : a->cojob != b->cojob ? (a->cojob < b->cojob ? -1 : 1)
            : a->rung < b->rung ? -1 : a->rung > b->rung);
}

/* Returns the change of each stage, the largest gain first, to be freed by the
 * caller.  Sorts the stages of both results. */
static struct change *
find_changes(struct sim_result results[2])
{
    size_t n = results[0].n_stages;
    struct change *changes = allocate(n, sizeof *changes);

    for (int p = 0; p < 2; p++) {
        sim_result_sort(&results[p]);
        for (size_t i = 0; i < n; i++) {
            const struct sim_stage *s = &results[p].stages[i];

            changes[i].cojob = s->cojob;
            changes[i].rung = s->rung;
            changes[i].seconds[p] = s->end - s->begin;
        }
    }
    qsort(changes, n, sizeof *changes, compare_changes);
    return changes;
}

/* Returns the 'i'th of the stages with the largest gain (sign 1) or loss (sign
 * -1), or NULL. */
static const struct change *
nth_change(const struct change *changes, size_t n, size_t i, int sign)
{
    const struct change *c;

    if (i >= N_NAMED || i >= n) {
        return NULL;
    }
    c = sign > 0 ? &changes[i] : &changes[n - 1 - i];
    return sign * gain(c) > 1e-9 ? c : NULL;
}

static void
print_named(const struct whatif_args *args, const struct change *changes,
            size_t n, int sign)
{
    const struct workload *w = args->input.workload;
    const struct change *c;

    for (size_t i = 0; (c = nth_change(changes, n, i, sign)); i++) {
        if (!i) {
            printf("\n%-28s %5s %9s %9s %9s\n",
                   sign > 0 ? "gain most" : "lose most", "rung", "A", "B",
                   "B - A");
        }
        printf("%-28s %5zu %9.3f %9.3f %+9.3f\n", w->cojobs[c->cojob].name,
               c->rung, c->seconds[0], c->seconds[1], -gain(c));
    }
}

static double
ratio(const struct sim_result results[2], int p)
{
    return results[0].mean > 0 ? results[p].mean / results[0].mean : 1;
}

static void
print_table(const struct whatif_args *args, const struct sim_result results[2],
            const struct change *changes)
{
    const struct workload *w = args->input.workload;
    size_t n = results[0].n_stages;

    printf("%s: %zu %s%s on %d hosts, completion times in seconds\n",
           args->trace, n, w->noun, n == 1 ? "" : "s", w->fabric->n_hosts);
    printf("  %-26s %9s %9s %9s %6s\n", "policy", "mean", "p95", "max",
           "ratio");
    for (int p = 0; p < 2; p++) {
        printf("%c %-26s %9.3f %9.3f %9.3f %6.3f\n", "AB"[p],
               args->policies[p]->name, results[p].mean, results[p].p95,
               results[p].max, ratio(results, p));
    }
    print_named(args, changes, n, 1);
    print_named(args, changes, n, -1);
}

static void
add_named(cJSON *top, const char *name, const struct whatif_args *args,
          const struct change *changes, size_t n, int sign)
{
    cJSON *array = cJSON_AddArrayToObject(top, name);
    const struct change *c;

    for (size_t i = 0; (c = nth_change(changes, n, i, sign)); i++) {
        cJSON *o = cJSON_CreateObject();

        cJSON_AddStringToObject(
            o, "cojob", args->input.workload->cojobs[c->cojob].name);
        cJSON_AddNumberToObject(o, "rung", c->rung);
        cJSON_AddNumberToObject(o, "a", c->seconds[0]);
        cJSON_AddNumberToObject(o, "b", c->seconds[1]);
        cJSON_AddItemToArray(array, o);
    }
}

static void
print_json(const struct whatif_args *args, const struct sim_result results[2],
           const struct change *changes)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *policies;

    cJSON_AddNumberToObject(top, "stages", results[0].n_stages);
    policies = cJSON_AddArrayToObject(top, "policies");

    for (int p = 0; p < 2; p++) {
        cJSON *o = cJSON_CreateObject();

        cJSON_AddStringToObject(o, "name", args->policies[p]->name);
        cJSON_AddNumberToObject(o, "mean", results[p].mean);
        cJSON_AddNumberToObject(o, "p95", results[p].p95);
        cJSON_AddNumberToObject(o, "max", results[p].max);
        cJSON_AddNumberToObject(o, "ratio", ratio(results, p));
        cJSON_AddItemToArray(policies, o);
    }
    add_named(top, "gain", args, changes, results[0].n_stages, 1);
    add_named(top, "lose", args, changes, results[0].n_stages, -1);
    command_print_json(top);
}

static int
whatif(const struct whatif_args *args)
{
    struct sim_result results[2];
    struct change *changes;
    int n = 0;

    while (n < 2 && replay(args, n, &results[n])) {
        n++;
    }
    if (n == 2) {
        changes = find_changes(results);
        (args->json ? print_json : print_table)(args, results, changes);
        free(changes);
    }
    for (int p = 0; p < n; p++) {
        sim_result_uninit(&results[p]);
    }
    return n < 2 ? interrupt_say(interrupt_caught(), n, 2, "simulation")
                 : EXIT_OK;
}

int
policy_whatif(int argc, char *argv[])
{
    struct whatif_args args = { .n_names = 0 };
    int status = option_table_command(&table, argc, argv, &args, NULL);
    const char *wrong = status < 0 ? check_args(&args) : NULL;
    char *error;

    if (wrong) {
        fprintf(stderr, "%s: %s\n", table.name, wrong);
        status = EXIT_USAGE;
    }
    if (status >= 0) {
        return status;
    }
    error = open_args(&args);
    status = error ? command_fail(NULL, error) : whatif(&args);
    if (fflush(stdout)) {
        status = EXIT_NO;
    }
    policy_destroy(args.policies[0]);
    policy_destroy(args.policies[1]);
    workload_input_uninit(&args.input);
    return status;
}
