/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/simulate/policy-args.h"

#include <getopt.h>
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

static const struct option all_options[] = {
    { "trace", required_argument, NULL, 't' },
    { "policy", required_argument, NULL, 'p' },
    { "format", required_argument, NULL, 'f' },
    { "live", no_argument, NULL, 'l' },
    { "out", required_argument, NULL, 'O' },
    { "objective", required_argument, NULL, 'b' },
    { "budget", required_argument, NULL, 'u' },
    { "seed", required_argument, NULL, 's' },
    { "history", required_argument, NULL, 'H' },
    { "since", required_argument, NULL, 'S' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

#define N_OPTIONS (sizeof all_options / sizeof *all_options)

/* Copies those of 'all_options' that the command takes. */
static void
choose_options(const struct policy_syntax *syntax,
               struct option options[N_OPTIONS])
{
    size_t n = 0;

    for (size_t i = 0; i < N_OPTIONS; i++) {
        int c = all_options[i].val;

        if (!c || c == 'h' || strchr(syntax->options, c)) {
            options[n++] = all_options[i];
        }
    }
}

static bool
add_policy(const struct policy_syntax *syntax, const char *name,
           struct policy_args *args)
{
    if (args->n_names == syntax->max_policies) {
        fprintf(stderr, "%s: \"%s\": unexpected policy, at most %d %s "
                "allowed\n", syntax->name, name, syntax->max_policies,
                syntax->max_policies == 1 ? "is" : "are");
        return false;
    }
    args->names[args->n_names++] = name;
    return true;
}

static bool
set_format(const char *format, struct policy_args *args)
{
    args->json = !strcmp(format, "json");
    if (!args->json && strcmp(format, "table")) {
        fprintf(stderr, "--format: \"%s\" is not one of \"table\", "
                "\"json\"\n", format);
        return false;
    }
    return true;
}

/* Takes option 'c'.  Returns -1 to go on, otherwise an exit status. */
static int
take_option(const struct policy_syntax *syntax, int c,
            struct policy_args *args)
{
    bool good = true;

    switch (c) {
    case 't':
        args->trace = optarg;
        break;
    case 'p':
        good = add_policy(syntax, optarg, args);
        break;
    case 'f':
        good = set_format(optarg, args);
        break;
    case 'l':
        args->live = true;
        break;
    case 'O':
        args->out = optarg;
        break;
    case 'b':
        args->objective = optarg;
        break;
    case 'u':
        args->budget = optarg;
        break;
    case 's':
        args->seed = optarg;
        break;
    case 'H':
        args->history = optarg;
        break;
    case 'S':
        args->since = optarg;
        break;
    case 'h':
        fputs(syntax->usage, stdout);
        return EXIT_OK;
    default:
        good = false;
    }
    return good ? -1 : EXIT_USAGE;
}

/* Says what is missing, if anything. */
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

int
policy_args_parse(const struct policy_syntax *syntax, int argc, char *argv[],
                  struct policy_args *args)
{
    struct option options[N_OPTIONS];
    int c;

    *args = (struct policy_args) { .n_names = 0 };
    choose_options(syntax, options);
    optind = 0;
    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        int status = take_option(syntax, c, args);

        if (status >= 0) {
            return status;
        }
    }
    for (; optind < argc; optind++) {
        if (!syntax->n_names) {
            fprintf(stderr, "%s: \"%s\": unexpected argument, there are only "
                    "options\n", syntax->name, argv[optind]);
            return EXIT_USAGE;
        }
        if (!add_policy(syntax, argv[optind], args)) {
            return EXIT_USAGE;
        }
    }
    return is_complete(syntax, args) ? -1 : EXIT_USAGE;
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

char *
policy_args_open(struct policy_args *args)
{
    char *error = NULL;

    for (int i = 0; !error && i < args->n_names; i++) {
        error = policy_open(args->names[i], &args->policies[i]);
    }
    return error ? error : open_workload(args);
}

void
policy_args_uninit(struct policy_args *args)
{
    for (int i = 0; i < 2; i++) {
        policy_destroy(args->policies[i]);
    }
    workload_input_uninit(&args->input);
}

/* What a terminal shows while it waits. */
struct progress {
    const struct policy_args *args;
    const char *policy;
    time_t last;                /* When it was shown. */
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
