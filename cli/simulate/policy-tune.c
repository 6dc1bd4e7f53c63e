/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach policy tune: searches for better parameters of a policy. */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/command.h"
#include "cli/simulate/policy.h"
#include "policies/policy.h"
#include "sim/workload/workload.h"

#define MAX_NAME 31             /* Maximum length of the name of a policy. */

static const struct policy_syntax syntax = {
    .name = "stagecoach policy tune",
    .usage =
        "usage: stagecoach policy tune --trace T [--policy BASE]\n"
        "                              [--objective O] [--budget B]\n"
        "                              [--out FILE] [--seed N]\n"
#ifdef HAVE_OVS
        "       stagecoach policy tune --history H [--since AGE] ...\n"
#endif
        "\n"
        "Searches for better parameters of BASE's order on the first 60 % of\n"
        "T's searches or coflows by arrival, and validates the best ones on\n"
        "the rest.  Writes a policy only if it is better on both parts;\n"
        "otherwise the exit status is 1.\n",
    .options = POLICY_TRACE | POLICY_HISTORY | POLICY_POLICY | POLICY_TUNE,
    .max_policies = 1, .policy = "stage", .needs_trace = true,
};

static void
show_progress(void *unused, size_t n_evaluations, double ratio)
{
    fprintf(stderr, "\r%zu simulations, %.1f %% better\033[K",
            n_evaluations, 100 * (1 - ratio));
}

static void
print_score(const char *policy, const struct tune_score scores[TUNE_N_PARTS])
{
    printf("%-20s", policy);
    for (int p = 0; p < TUNE_N_PARTS; p++) {
        for (int o = 0; o < TUNE_N_OBJECTIVES; o++) {
            printf(" %12.3f", scores[p].of[o]);
        }
    }
    putchar('\n');
}

/* Prints the differences of 'tuned' from 'base'. */
static void
print_changes(const struct policy *base, const struct policy *tuned)
{
    struct policy_rows old, new;

    policy_rows_init(&old, base);
    policy_rows_init(&new, tuned);
    for (size_t i = 0; i < new.n; i++) {
        const struct policy_row *row = policy_rows_find(&old,
                                                        new.rows[i].member);

        if (strcmp(row->value, new.rows[i].value)) {
            printf("%s: %s, not %s\n", row->member, new.rows[i].value,
                   row->value);
        }
    }
    policy_rows_uninit(&old);
    policy_rows_uninit(&new);
}

/* Returns the gain of the objective on 'part', in percent. */
static double
gain(const struct tune_options *options, const struct tune_result *r,
     enum tune_part part)
{
    double base = r->base[part].of[options->objective];

    return base > 0
           ? 100 * (1 - r->tuned[part].of[options->objective] / base) : 0;
}

/* Returns the word for a gain in percent: "more" for a loss. */
static const char *
more_or_less(double gain)
{
    return gain < 0 ? "more" : "less";
}

static void
print_result(const struct policy_args *args,
             const struct tune_options *options, const struct tune_result *r)
{
    const char *noun = args->input.workload->noun;
    double train = gain(options, r, TUNE_TRAIN);
    double held = gain(options, r, TUNE_HELD_BACK);

    printf("%s: %zu simulations of the first %zu cojobs, %zu for validation; "
           "completion times of %ss in seconds\n", args->trace,
           r->n_evaluations, r->n_cojobs[TUNE_TRAIN],
           r->n_cojobs[TUNE_HELD_BACK], noun);
    printf("%-20s %12s %12s %12s %12s %12s %12s\n", "policy", "mean_sct",
           "p95_sct", "max_slowdown", "held:mean", "held:p95",
           "held:max_sl");
    print_score(args->policies[0]->name, r->base);
    print_score("tuned", r->tuned);
    print_changes(args->policies[0], &r->policy);
    printf("%s: %.1f %% %s in training, %.1f %% %s in validation: %s\n",
           tune_objectives[options->objective],
           fabs(train), more_or_less(train), fabs(held), more_or_less(held),
           r->better ? "better" : "not better, no policy is written");
}

/* Writes the policy.  Returns NULL or a message that the caller frees. */
static char *
write_policy(const struct policy_args *args,
             const struct tune_options *options, const struct tune_result *r)
{
    FILE *stream = fopen(args->out, "w");
    char name[MAX_NAME + 1], *description, *text;
    bool failed = !stream;

    snprintf(name, sizeof name, "%.*s-tuned", MAX_NAME - 6,
             args->policies[0]->name);
    description = message("%s, tuned for %s on %s: %.1f %% less in training, "
                          "%.1f %% less in validation.",
                          args->policies[0]->name,
                          tune_objectives[options->objective], args->trace,
                          gain(options, r, TUNE_TRAIN),
                          gain(options, r, TUNE_HELD_BACK));
    text = policy_rewrite(args->policies[0], &r->policy, name, description);
    if (stream) {
        failed = fprintf(stream, "%s\n", text) < 0;
        failed |= fclose(stream) != 0;
    }
    free(description);
    free(text);
    return failed ? message("%s: %s", args->out, strerror(errno)) : NULL;
}

/* Tunes the policy.  Returns an exit status, EXIT_NO if the result is not
 * better. */
static int
run_tune(struct policy_args *args)
{
    struct tune_options *options = &args->tune;
    struct tune_result result;
    char *error = NULL;

    if (args->input.workload->n_cojobs < 2) {
        return command_fail(NULL, message(
            "%s: %zu cojob, at least 2 are required for training and "
            "validation", args->trace, args->input.workload->n_cojobs));
    }
    options->service = policy_args_service(args);
    options->progress = isatty(STDERR_FILENO) ? show_progress : NULL;
    tune(args->input.workload, args->policies[0], options, &result);
    if (options->progress) {
        fputs("\r\033[K", stderr);
    }
    print_result(args, options, &result);
    if (result.better && args->out) {
        error = write_policy(args, options, &result);
    }
    return (error ? command_fail(NULL, error)
            : result.better ? EXIT_OK : EXIT_NO);
}

int
policy_tune(int argc, char *argv[])
{
    return policy_command(&syntax, argc, argv, run_tune);
}
