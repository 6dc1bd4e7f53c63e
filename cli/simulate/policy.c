/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach policy: checks, shows, compares, tunes and exports policies. */

#include "cli/simulate/policy.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/json-check.h"
#include "base/memory.h"
#include "base/progress-bar.h"
#include "cli/command.h"
#include "cli/data-file.h"
#include "cli/duration.h"
#include "cli/rate.h"
#include "policies/policy.h"
#include "sim/run/by-policy.h"
#include "sim/workload/workload.h"
#include "wire/log-spec.h"

#define MAX_SEED ((1ull << 53) - 1)

#define AT(MEMBER) OPTION_AT(struct policy_args, MEMBER)

static char *
add_policy(const char *text, void *args_)
{
    struct policy_args *args = args_;

    if (args->n_names == args->syntax->max_policies) {
        return message("\"%s\": unexpected policy; expected at most %d", text,
                       args->n_names);
    }
    args->names[args->n_names++] = text;
    return NULL;
}

static char *
parse_budget(const char *text, void *options_)
{
    struct tune_options *options = options_;
    char *end;
    double x = strtod(text, &end);
    bool seconds = !strcmp(end, "s");

    if (end == text || (*end && !seconds) || x > 1e6
        || !(seconds ? x > 0 : x >= 1 && x == floor(x))) {
        return message(
            "\"%s\" is not a budget; expected seconds such as \"60s\" or a "
            "number of simulations such as \"200\", at most "
            "1000000",
            text);
    }
    options->budget_s = seconds ? x : 0;
    options->evaluations = seconds ? 0 : x;
    return NULL;
}

static char *
add_trace(const char *text, void *args_)
{
    struct policy_args *args = args_;
    size_t max = args->syntax->options & POLICY_TUNE ? POLICY_MAX_TRACES : 1;

    if (args->n_traces == max) {
        return message("\"%s\": unexpected trace; expected at most %zu", text,
                       max);
    }
    args->traces[args->n_traces++] = text;
    args->trace = args->traces[0];
    return NULL;
}

static char *
add_kept(const char *text, void *args_)
{
    struct policy_args *args = args_;

    if (args->tune.n_kept == POLICY_MAX_KEPT) {
        return message("\"%s\": expected at most %d members", text,
                       POLICY_MAX_KEPT);
    }
    args->kept[args->tune.n_kept++] = text;
    return NULL;
}

static const struct option_row option_rows[] = {
    { "trace", OPTION_CUSTOM, .value = "T", .modes = POLICY_TRACE,
      .parse = add_trace, .help = "any input of \"stagecoach sim\"" },
    WORKLOAD_NETWORK_ROWS(struct policy_args, network, POLICY_TRACE),
    { "seeds", OPTION_CUSTOM, AT(seeds), .value = "A-B", .modes = POLICY_TUNE,
      .parse = seed_range_parse,
      .help = "use T with each of these seeds: the first 60 % of them for "
              "training, the others for validation" },
#ifdef HAVE_OVS
    { "history", OPTION_TEXT, AT(history), .value = "H",
      .modes = POLICY_HISTORY,
      .help = "history of a controller instead of T: an age, such as 24h, to "
              "ask the running controller, or a file" },
    { "since", OPTION_CUSTOM, AT(since), .value = "AGE",
      .modes = POLICY_HISTORY, .parse = duration_option,
      .help = "read only stages of the file that ended within AGE" },
#endif
    { "policy", OPTION_CUSTOM, .value = "P", .modes = POLICY_POLICY,
      .parse = add_policy, .help = "name or file of a policy" },
    { "objective", OPTION_CHOICE, AT(tune.objective), .modes = POLICY_TUNE,
      .value = "mean_sct|p95_sct|max_slowdown|balanced", .deflt = "mean_sct",
      .help = "metric to minimize; balanced is the geometric mean of the "
              "first two" },
    { "keep", OPTION_CUSTOM, .value = "MEMBER", .modes = POLICY_TUNE,
      .repeated = true, .parse = add_kept,
      .help = "do not change this member, such as /objective/latest" },
    { "budget", OPTION_CUSTOM, AT(tune), .value = "B", .modes = POLICY_TUNE,
      .deflt = "60s", .parse = parse_budget,
      .help = "limit: seconds, such as 60s, or a number of simulations, such "
              "as 200" },
    { "out", OPTION_TEXT, AT(out), .value = "FILE", .modes = POLICY_TUNE,
      .help = "output file of the policy" },
    { "seed", OPTION_INTEGER, AT(tune.seed), 0, MAX_SEED, "N", "0",
      .modes = POLICY_TUNE, .help = "seed of the search" },
    { "format", OPTION_CHOICE, AT(json), .value = "table|json",
      .deflt = "table", .modes = POLICY_FORMAT, .help = "output format" },
    { .name = NULL },
};

/* Returns true if all required arguments are there, otherwise false after a
 * message. */
static bool
is_complete(const struct policy_syntax *syntax, const struct policy_args *args)
{
    if (args->n_names < syntax->n_policies) {
        fprintf(stderr, "%s: %d %s named, %d %s needed, see \"%s "
                "--help\"\n", syntax->name, args->n_names,
                args->n_names == 1 ? "policy is" : "policies are",
                syntax->n_policies, syntax->n_policies == 1 ? "is" : "are",
                syntax->name);
        return false;
    }
    if (args->history && args->seeds.n) {
        fprintf(stderr, "%s: --history excludes --seeds\n", syntax->name);
        return false;
    }
    if (args->seeds.n == 1) {
        fprintf(stderr,
                "%s: --seeds: 1 seed, at least 2 are required for "
                "training and validation\n",
                syntax->name);
        return false;
    }
    if ((args->history && args->trace) || (args->since && !args->history)) {
        fprintf(stderr, "%s: --trace excludes --history, and --since "
                "requires --history\n", syntax->name);
        return false;
    }
    if (syntax->needs_trace && !args->trace && !args->history) {
        fprintf(stderr,
                "%s: --trace is missing; expected any input of \"stagecoach "
                "sim\"\n",
                syntax->name);
        return false;
    }
    return true;
}

/* Returns -1 to continue, otherwise an exit status. */
static int
parse_args(const struct policy_syntax *syntax, int argc, char *argv[],
           struct policy_args *args)
{
    const struct option_table table = {
        .name = syntax->name, .usage = syntax->usage, .rows = option_rows,
        .modes = syntax->options, .max_operands = syntax->n_names ? -1 : 0
    };
    int first, status;

    *args = (struct policy_args) { .syntax = syntax };
    status = option_table_command(&table, argc, argv, args, &first);
    for (int i = first; status < 0 && i < argc; i++) {
        char *error = add_policy(argv[i], args);

        if (error) {
            command_fail(syntax->name, error);
            return EXIT_USAGE;
        }
    }
    return status >= 0 ? status : is_complete(syntax, args) ? -1 : EXIT_USAGE;
}

static char *
open_workload(struct policy_args *args)
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
    return args->trace && !(args->syntax->options & POLICY_TUNE)
               ? workload_open(args->trace, NULL, &args->network, &args->input)
               : NULL;
}

static char *
open_args(struct policy_args *args)
{
    char *error = NULL;

    if (!args->n_names && args->syntax->policy) {
        args->names[args->n_names++] = args->syntax->policy;
    }
    for (int i = 0; !error && i < args->n_names; i++) {
        error = policy_open(args->names[i], &args->policies[i]);
    }
    return error ? error : open_workload(args);
}

int
policy_command(const struct policy_syntax *syntax, int argc, char *argv[],
               int (*run)(struct policy_args *))
{
    struct policy_args args;
    int status = parse_args(syntax, argc, argv, &args);
    char *error;

    if (status >= 0) {
        return status;
    }
    error = open_args(&args);
    status = error ? command_fail(NULL, error) : run(&args);
    if (fflush(stdout)) {
        status = EXIT_NO;
    }
    for (int i = 0; i < 2; i++) {
        policy_destroy(args.policies[i]);
    }
    workload_input_uninit(&args.input);
    return status;
}

enum sim_service
policy_service(const struct workload *w)
{
    return strcmp(w->noun, "coflow") ? SIM_SERVICE_LEVELS : SIM_SERVICE_EXACT;
}

bool
policy_args_replay(const struct policy_args *args, int policy,
                   struct sim_result *result)
{
    const struct policy *p = args->policies[policy];
    const struct workload *w = args->input.workload;
    struct sim_options options = sim_policy_options(p);
    struct progress_bar bar;

    options.service = policy_service(w);
    options.progress = progress_bar_update;
    options.aux = &bar;
    interrupt_catch();
    progress_bar_begin(&bar, p->name, w->noun);
    simulate_by_policy(w, p, &options, result);
    progress_bar_end(&bar);
    return result->n_stages == w->n_stages;
}

static const struct policy_syntax show_syntax = {
    .name = "stagecoach policy show",
    .usage =
        "usage: stagecoach policy show NAME|FILE [--format table|json]\n\n"
        "Shows every member of a policy with its value and its origin: the\n"
        "file or the default.\n",
    .options = POLICY_FORMAT, .n_names = 1, .n_policies = 1, .max_policies = 1,
};

static void
print_table(const struct policy_rows *rows)
{
    size_t width = strlen("member");

    for (size_t i = 0; i < rows->n; i++) {
        size_t n = strlen(rows->rows[i].member);

        width = n > width ? n : width;
    }
    printf("%-*s  %-7s  value\n", (int) width, "member", "origin");
    for (size_t i = 0; i < rows->n; i++) {
        const struct policy_row *row = &rows->rows[i];

        printf("%-*s  %-7s  %s\n", (int) width, row->member,
               row->given ? "file" : "default", row->value);
    }
}

static void
print_json(const struct policy_rows *rows)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *members = cJSON_AddArrayToObject(top, "members");

    for (size_t i = 0; i < rows->n; i++) {
        const struct policy_row *row = &rows->rows[i];
        cJSON *o = cJSON_CreateObject();

        cJSON_AddStringToObject(o, "member", row->member);
        cJSON_AddStringToObject(o, "origin", row->given ? "file" : "default");
        cJSON_AddRawToObject(o, "value", row->value);
        cJSON_AddItemToArray(members, o);
    }
    command_print_json(top);
}

static int
show(struct policy_args *args)
{
    struct policy_rows rows;

    policy_rows_init(&rows, args->policies[0]);
    (args->json ? print_json : print_table)(&rows);
    policy_rows_uninit(&rows);
    return EXIT_OK;
}

static int
policy_show(int argc, char *argv[])
{
    return policy_command(&show_syntax, argc, argv, show);
}

/* Returns true if 'text' is a JSON schema, such as the installed schema of
 * policies. */
static bool
is_schema(const char *text)
{
    static const char begin[] = "https://json-schema.org/";
    cJSON *json = cJSON_Parse(text);
    const char *schema = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(json, "$schema"));
    bool result = schema && !strncmp(schema, begin, sizeof begin - 1);

    cJSON_Delete(json);
    return result;
}

/* Returns true if 'text' contains rules for log readers, valid or not. */
static bool
is_readers(const char *text)
{
    cJSON *json = cJSON_Parse(text);
    bool result = cJSON_HasObjectItem(json, "readers");

    cJSON_Delete(json);
    return result;
}

static char *
readers_error(const char *file, const char *text)
{
    struct log_rules *rules;
    char *error = log_rules_parse(file, text, &rules);

    log_rules_destroy(rules);
    return error;
}

/* Prints the warnings of the valid policy in 'text'. */
static void
print_warnings(const char *file, const char *text)
{
    struct policy *policy;
    char *warnings = NULL;

    free(policy_from_string(file, text, &policy));
    if (policy) {
        warnings = policy_warnings(file, policy);
    }
    if (warnings) {
        puts(warnings);
    }
    free(warnings);
    policy_destroy(policy);
}

/* Checks 'file' and prints the result.  Returns true if it is valid. */
static bool
check(const char *file)
{
    char *text;
    char *errors = json_read_file(file, &text);
    bool schema = text && is_schema(text);
    bool readers = text && is_readers(text);
    bool good;

    if (text && !schema) {
        errors =
            readers ? readers_error(file, text) : policy_errors(file, text);
    }
    good = !errors;
    if (errors) {
        puts(errors);
    } else {
        printf("%s: %s\n", file, schema ? "skipped, a JSON schema" : "ok");
        if (!schema && !readers) {
            print_warnings(file, text);
        }
    }
    free(errors);
    free(text);
    return good;
}

/* Checks all files, also after an invalid one. */
static int
policy_check(int argc, char *argv[])
{
    bool help = argc == 2 && !strcmp(argv[1], "--help");
    int status = EXIT_OK;

    if (help || argc < 2 || argv[1][0] == '-') {
        fputs("usage: stagecoach policy check FILE...\n\n"
              "Checks that each file is a valid policy, or valid rules "
              "for log readers,\nand prints all errors and warnings.\n",
              help ? stdout : stderr);
        return help ? EXIT_OK : EXIT_USAGE;
    }
    for (int i = 1; i < argc; i++) {
        if (!check(argv[i])) {
            status = EXIT_NO;
        }
    }
    return status;
}

/* Prints the name and the description of each installed policy. */
static int
policy_list(int argc, char *argv[])
{
    bool help = argc == 2 && !strcmp(argv[1], "--help");
    char **names;
    int status = EXIT_OK;

    if (help || argc > 1) {
        fputs(
            "usage: stagecoach policy list\n\n"
            "Lists the installed policies, by which every command that takes "
            "a policy\nknows them.\n",
            help ? stdout : stderr);
        return help ? EXIT_OK : EXIT_USAGE;
    }
    names = policy_names();
    for (size_t i = 0; names[i]; i++) {
        struct policy *policy;
        char *error = policy_open(names[i], &policy);

        if (error) {
            status = command_fail(NULL, error);
        } else {
            printf("%-13s %s\n", names[i], policy->description);
        }
        policy_destroy(policy);
        free(names[i]);
    }
    free(names);
    return status;
}

static const struct command commands[] = {
    { "check", "FILE...", "Check that each file is a valid policy.",
      policy_check },
    { "list", "", "List the installed policies.", policy_list },
    { "show", "NAME|FILE", "Show every member of a policy.", policy_show },
    { "diff", "A B", "Show the differences between two policies.",
      policy_diff },
    { "whatif", "--trace T --policy A --policy B",
      "Simulate a workload under two policies.", policy_whatif },
    { "tune", "--trace T [OPTION...]",
      "Search for better parameters of a policy.", policy_tune },
    { "export", "P --to sonic|cumulus|openconfig --ports PORT,...",
      "Print a policy's levels as configuration of a switch.", policy_export },
    { NULL, NULL, NULL, NULL },
};

int
cmd_policy(int argc, char *argv[])
{
    return command_dispatch(commands, "stagecoach policy", argc - 1, argv + 1);
}
