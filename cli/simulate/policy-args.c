/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/simulate/policy-args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/simulate/policy-controller.h"
#include "cli/simulate/policy-open.h"
#include "policies/policy.h"
#include "sim/run/by-policy.h"
#include "sim/workload/workload.h"

#define AT(MEMBER) OPTION_AT(struct policy_args, MEMBER)

static char *
add_policy(const char *text, void *args_)
{
    struct policy_args *args = args_;

    if (args->n_names == args->syntax->max_policies) {
        char *error;

        if (asprintf(&error, "\"%s\": unexpected policy, at most %d %s "
                     "allowed", text, args->n_names,
                     args->n_names == 1 ? "is" : "are") < 0) {
            abort();
        }
        return error;
    }
    args->names[args->n_names++] = text;
    return NULL;
}

static const struct option_row rows[] = {
    { "trace", OPTION_TEXT, AT(trace), .value = "T", .modes = POLICY_TRACE,
      .help = "any input of \"stagecoach sim\"" },
#ifdef HAVE_OVS
    { "history", OPTION_TEXT, AT(history), .value = "H",
      .modes = POLICY_HISTORY,
      .help = "history of a controller instead of T: an age, such as 24h, to "
              "ask the running controller, or a file" },
    { "since", OPTION_TEXT, AT(since), .value = "AGE",
      .modes = POLICY_HISTORY,
      .help = "read only stages of the file that ended within AGE" },
#endif
    { "policy", OPTION_CUSTOM, .value = "P", .modes = POLICY_POLICY,
      .parse = add_policy, .help = "name or file of a policy" },
    { "live", OPTION_FLAG, AT(live), .modes = POLICY_LIVE,
      .help = "use the running stages of the controller" },
    { "objective", OPTION_TEXT, AT(objective), .modes = POLICY_TUNE,
      .value = "mean_sct|p95_sct|max_slowdown", .shown = "mean_sct",
      .help = "metric to minimize" },
    { "budget", OPTION_TEXT, AT(budget), .value = "B", .modes = POLICY_TUNE,
      .shown = "60s",
      .help = "limit: seconds, such as 60s, or a number of simulations, such "
              "as 200" },
    { "out", OPTION_TEXT, AT(out), .value = "FILE", .modes = POLICY_TUNE,
      .help = "output file of the policy" },
    { "seed", OPTION_TEXT, AT(seed), .value = "N", .modes = POLICY_TUNE,
      .shown = "0", .help = "seed of the search" },
    { "format", OPTION_CHOICE, AT(json), .value = "table|json",
      .deflt = "table", .modes = POLICY_FORMAT, .help = "output format" },
    { .name = NULL },
};

/* Returns true if all required arguments are there, otherwise false after a
 * message. */
static bool
is_complete(const struct policy_syntax *syntax,
            const struct policy_args *args)
{
    if (args->n_names < syntax->n_policies) {
        fprintf(stderr, "%s: %d %s named, %d %s needed, see \"%s "
                "--help\"\n", syntax->name, args->n_names,
                args->n_names == 1 ? "policy is" : "policies are",
                syntax->n_policies, syntax->n_policies == 1 ? "is" : "are",
                syntax->name);
        return false;
    }
    if ((args->history && args->trace) || (args->since && !args->history)) {
        fprintf(stderr, "%s: --trace excludes --history, and --since "
                "requires --history\n", syntax->name);
        return false;
    }
    if (syntax->needs_trace && !args->trace && !args->history) {
        fprintf(stderr, "%s: --trace is missing, any input of \"stagecoach "
                "sim\" is allowed\n", syntax->name);
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
        .name = syntax->name, .usage = syntax->usage, .rows = rows,
        .modes = syntax->options, .max_operands = syntax->n_names ? -1 : 0,
    };
    int first, status;

    *args = (struct policy_args) { .syntax = syntax };
    status = option_table_command(&table, argc, argv, args, &first);
    for (int i = first; status < 0 && i < argc; i++) {
        char *error = add_policy(argv[i], args);

        if (error) {
            fprintf(stderr, "%s: %s\n", syntax->name, error);
            free(error);
            return EXIT_USAGE;
        }
    }
    return status >= 0 ? status
           : is_complete(syntax, args) ? -1 : EXIT_USAGE;
}

static char *
open_workload(struct policy_args *args)
{
#ifdef HAVE_OVS
    if (args->history) {
        args->trace = args->history;
        return policy_history_open(args->history, args->since,
                                   &args->input.workload);
    }
#endif
    return args->trace ? workload_open(args->trace, NULL, &args->input)
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
    status = error ? policy_args_fail(error) : run(&args);
    if (fflush(stdout)) {
        status = EXIT_NO;
    }
    for (int i = 0; i < 2; i++) {
        policy_destroy(args.policies[i]);
    }
    workload_input_uninit(&args.input);
    return status;
}

/* Progress on a terminal. */
struct progress {
    const struct policy_args *args;
    const char *policy;
    time_t last;                /* Time of the last output. */
};

static void
show_progress(void *progress_, size_t n_ended, size_t n_stages)
{
    struct progress *p = progress_;
    time_t now = time(NULL);

    if (now != p->last) {
        p->last = now;
        fprintf(stderr, "\r%s: %zu of %zu %ss\033[K", p->policy, n_ended,
                n_stages, p->args->input.workload->noun);
    }
}

enum sim_service
policy_args_service(const struct policy_args *args)
{
    return strcmp(args->input.workload->noun, "coflow")
           ? SIM_SERVICE_LEVELS : SIM_SERVICE_EXACT;
}

void
policy_args_replay(const struct policy_args *args, int policy,
                   struct sim_result *result)
{
    bool terminal = isatty(STDERR_FILENO);
    struct progress progress = {
        .args = args, .policy = args->policies[policy]->name,
        .last = time(NULL),
    };
    struct sim_options options = sim_policy_options(args->policies[policy]);

    options.service = policy_args_service(args);
    options.progress = terminal ? show_progress : NULL;
    options.aux = &progress;
    simulate_by_policy(args->input.workload, args->policies[policy],
                       &options, result);
    if (terminal) {
        fputs("\r\033[K", stderr);
    }
}

int
policy_args_fail(char *error)
{
    fprintf(stderr, "%s\n", error);
    free(error);
    return EXIT_NO;
}
