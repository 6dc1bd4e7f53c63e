/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach policy tune: searches for better parameters of a policy. */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/simulate/policy.h"
#include "policies/policy.h"
#include "sim/workload/workload-view.h"
#include "sim/workload/workload.h"

#define MAX_NAME 31             /* Maximum length of the name of a policy. */

static const struct policy_syntax syntax = {
    .name = "stagecoach policy tune",
    .usage =
        "usage: stagecoach policy tune --trace T... [--seeds A-B]\n"
        "                              [--fabric F] [--rate R]\n"
        "                              [--policy BASE] [--objective O]\n"
        "                              [--keep MEMBER]... [--budget B]\n"
        "                              [--out FILE] [--seed N]\n"
#ifdef HAVE_OVS
        "       stagecoach policy tune --history H [--since AGE] ...\n"
#endif
        "\n"
        "Searches for better parameters of BASE's order on the first 60 % of\n"
        "the seeds, or of each T's searches or coflows by arrival, and\n"
        "validates the best ones on the rest, which is held back.  Writes a\n"
        "policy only if it is better by more than 1 % on both parts;\n"
        "otherwise the exit status is 1.\n",
    .options = POLICY_TRACE | POLICY_HISTORY | POLICY_POLICY | POLICY_TUNE,
    .max_policies = 1,
    .policy = "stage",
    .needs_trace = true,
};

static void
show_progress(void *unused, size_t n_evaluations, double ratio)
{
    fprintf(stderr, "\r%zu simulations, %.1f %% better\033[K",
            n_evaluations, 100 * (1 - ratio));
}

/* The workloads, and what they are of. */
struct inputs {
    size_t n;
    struct workload_input *inputs;
    struct tune_set sets[TUNE_N_PARTS];
    bool split;                 /* The sets are views that are owned. */
};

/* Checks that all workloads can be compared.  Returns NULL or a message that
 * the caller frees. */
static char *
check_inputs(const struct policy_args *args, const struct inputs *in)
{
    for (size_t i = 0; i < in->n; i++) {
        const struct workload *w = in->inputs[i].workload;
        const char *trace = args->n_traces ? args->traces[i % args->n_traces]
                                           : args->trace;

        if (!args->seeds.n && w->n_cojobs < 2) {
            return message("%s: %zu cojob, at least 2 are required for "
                           "training and validation", trace, w->n_cojobs);
        } else if (policy_service(w)
                   != policy_service(in->inputs[0].workload)) {
            return message("%s: measures %ss, all traces must measure %ss",
                           trace, w->noun, in->inputs[0].workload->noun);
        }
    }
    return NULL;
}

/* Opens each trace, with each seed if there are seeds. */
static char *
open_inputs(struct policy_args *args, struct inputs *in)
{
    size_t n_seeds = args->seeds.n ? args->seeds.n : 1;
    char *error = NULL;

    *in = (struct inputs){ .inputs = allocate(n_seeds * (args->n_traces + 1),
                                              sizeof *in->inputs) };
    if (args->history) {
        in->inputs[in->n++] = args->input;
        args->input = (struct workload_input) { .workload = NULL };
    }
    for (size_t i = 0; !error && i < n_seeds * args->n_traces; i++) {
        const char *trace = args->traces[i % args->n_traces];
        struct workload_input *input = &in->inputs[in->n++];

        error = args->seeds.n
                    ? seed_range_open(trace,
                                      args->seeds.first + i / args->n_traces,
                                      &args->network, input)
                    : workload_open(trace, NULL, &args->network, input);
    }
    return error ? error : check_inputs(args, in);
}

/* Divides the seeds, or each workload, into training and validation. */
static void
make_sets(const struct policy_args *args, struct inputs *in)
{
    size_t n_seeds = args->seeds.n ? in->n / args->n_traces : 0;
    size_t n_train = n_seeds * TUNE_TRAIN_SHARE;

    n_train = (n_train ? n_train : 1) * args->n_traces;
    in->split = !n_seeds;
    for (int p = 0; p < TUNE_N_PARTS; p++) {
        in->sets[p].workloads = allocate(in->n, sizeof *in->sets[p].workloads);
    }
    for (size_t i = 0; i < in->n; i++) {
        const struct workload *w = in->inputs[i].workload;
        struct workload *views[TUNE_N_PARTS];

        if (in->split) {
            workload_view_split(w, TUNE_TRAIN_SHARE, &views[TUNE_TRAIN],
                                &views[TUNE_HELD_BACK]);
            for (int p = 0; p < TUNE_N_PARTS; p++) {
                in->sets[p].workloads[in->sets[p].n++] = views[p];
            }
        } else {
            struct tune_set *set = &in->sets[i < n_train ? TUNE_TRAIN
                                                         : TUNE_HELD_BACK];

            set->workloads[set->n++] = w;
        }
    }
}

static void
close_inputs(struct inputs *in)
{
    for (int p = 0; p < TUNE_N_PARTS; p++) {
        for (size_t i = 0; in->split && i < in->sets[p].n; i++) {
            workload_view_destroy(
                (struct workload *) in->sets[p].workloads[i]);
        }
        free(in->sets[p].workloads);
    }
    for (size_t i = 0; i < in->n; i++) {
        workload_input_uninit(&in->inputs[i]);
    }
    free(in->inputs);
}

/* Checks the names of --keep. */
static char *
check_kept(const struct policy_args *args)
{
    const struct tune_options *options = &args->tune;
    struct tune_space space;

    tune_space_init(&space, args->policies[0],
                    options->service == SIM_SERVICE_LEVELS);
    for (size_t i = 0; i < options->n_kept; i++) {
        if (!tune_space_keep(&space, options->kept[i])) {
            char *names = message("%s", space.n ? space.knobs[0].name
                                                : "no member");

            for (size_t k = 1; k < space.n; k++) {
                char *more = message("%s, %s", names, space.knobs[k].name);

                free(names);
                names = more;
            }
            char *error = message("--keep: \"%s\" is not tuned; expected %s",
                                  options->kept[i], names);

            free(names);
            return error;
        }
    }
    return NULL;
}

static void
print_score(const char *policy, const struct tune_score scores[TUNE_N_PARTS])
{
    printf("%-20s", policy);
    for (int p = 0; p < TUNE_N_PARTS; p++) {
        for (int o = 0; o < TUNE_BALANCED; o++) {
            printf(" %12.3f", scores[p].of[o]);
        }
    }
    putchar('\n');
}

static void
print_gains(const struct tune_result *r)
{
    printf("%-20s", "gain");
    for (int p = 0; p < TUNE_N_PARTS; p++) {
        for (int o = 0; o < TUNE_BALANCED; o++) {
            printf(" %10.1f %%", 100 * r->gain[p][o].mean);
        }
    }
    putchar('\n');
}

/* Returns "1.5 % (1.0 to 2.0)", "1.5 %" without an interval, or "-" without a
 * mean, for the caller to free. */
static char *
percents(const struct interval *gain)
{
    return isnan(gain->mean) ? message("-")
           : isnan(gain->low)
               ? message("%.1f %%", 100 * gain->mean)
               : message("%.1f %% (%.1f to %.1f)", 100 * gain->mean,
                         100 * gain->low, 100 * gain->high);
}

/* Returns the value of a knob for people, for the caller to free. */
static char *
knob_text(const struct knob *knob, double value)
{
    return knob->kind == KNOB_FOLD ? message("%s", policy_folds[value >= 0.5])
                                   : message("%.12g", value);
}

static void
print_effect(const struct tune_effect *e)
{
    char *is = knob_text(e->knob, e->is);
    char *best = knob_text(e->knob, e->best);
    char *worst = knob_text(e->knob, e->worst);
    char *held_back = percents(&e->held_back);

    printf("%-20s %10s", e->knob->name, is);
    if (!e->n) {
        puts(e->ineffective ? "  no effect"
                            : "  not tried, the budget was used up");
    } else {
        printf(" %10s %5.1f %%  %-22s %10s %5.1f %%%s\n", best, 100 * e->gain,
               held_back, worst, 100 * e->loss, e->knob->kept ? "  kept" : "");
    }
    free(is);
    free(best);
    free(worst);
    free(held_back);
}

/* Prints what each knob does alone. */
static void
print_effects(const struct tune_options *options, const struct tune_result *r)
{
    if (!r->space.n) {
        return;
    }
    printf("%s with one member changed, in training:\n",
           tune_objectives[options->objective]);
    printf("%-20s %10s %10s %7s  %-22s %10s %7s\n", "member", "is", "best",
           "gain", "gain held back", "worst", "loss");
    for (size_t k = 0; k < r->space.n; k++) {
        print_effect(&r->effects[k]);
    }
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

/* Returns true if a member that may be changed gains more than the margin on
 * the workloads that were held back. */
static bool
something_gains(const struct tune_options *options,
                const struct tune_result *r)
{
    bool gains = r->gain[TUNE_HELD_BACK][options->objective].mean
                 > TUNE_MARGIN;

    for (size_t k = 0; k < r->space.n; k++) {
        gains |= !r->effects[k].knob->kept
                 && r->effects[k].held_back.mean > TUNE_MARGIN;
    }
    return gains;
}

static void
print_verdict(const struct policy_args *args,
              const struct tune_options *options, const struct tune_result *r)
{
    char *train = percents(&r->gain[TUNE_TRAIN][options->objective]);
    char *held_back = percents(&r->gain[TUNE_HELD_BACK][options->objective]);

    printf("%s: gain %s in training, %s held back: %s\n",
           tune_objectives[options->objective], train, held_back,
           r->better ? "better" : "not better, no policy is written");
    if (!something_gains(options, r)) {
        printf("nothing that was tried is better than %s by more than %g %% "
               "on held-back workloads\n", args->policies[0]->name,
               100 * TUNE_MARGIN);
    }
    free(train);
    free(held_back);
}

static void
print_result(const struct policy_args *args, const struct inputs *in,
             const struct tune_options *options, const struct tune_result *r)
{
    size_t n[TUNE_N_PARTS] = { in->sets[TUNE_TRAIN].n,
                               in->sets[TUNE_HELD_BACK].n };

    for (int p = 0; in->split && p < TUNE_N_PARTS; p++) {
        n[p] = 0;
        for (size_t i = 0; i < in->sets[p].n; i++) {
            n[p] += in->sets[p].workloads[i]->n_cojobs;
        }
    }
    for (size_t i = 0; i < args->n_traces || !i; i++) {
        printf("%s%s", i ? ", " : "", i ? args->traces[i] : args->trace);
    }
    printf(in->split ? ": %zu simulations; the first %zu cojobs for training, "
                       "%zu held back\n"
                     : ": %zu simulations; %zu workloads for training, %zu "
                       "held "
                       "back\n",
           r->n_simulations, n[TUNE_TRAIN], n[TUNE_HELD_BACK]);
    print_effects(options, r);
    printf("%-20s %12s %12s %12s %12s %12s %12s\n", "policy", "mean_sct",
           "p95_sct", "max_slowdown", "held:mean", "held:p95", "held:max_sl");
    print_score(args->policies[0]->name, r->base);
    print_score("tuned", r->tuned);
    print_gains(r);
    print_changes(args->policies[0], &r->policy);
    print_verdict(args, options, r);
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
    description = message(
        "%s, tuned for %s on %s: gain %.1f %% in training, %.1f %% held back.",
        args->policies[0]->name, tune_objectives[options->objective],
        args->trace, 100 * r->gain[TUNE_TRAIN][options->objective].mean,
        100 * r->gain[TUNE_HELD_BACK][options->objective].mean);
    text = policy_rewrite(args->policies[0], &r->policy, name, description);
    if (stream) {
        failed = fprintf(stream, "%s\n", text) < 0;
        failed |= fclose(stream) != 0;
    }
    free(description);
    free(text);
    return failed ? message("%s: %s", args->out, strerror(errno)) : NULL;
}

static char *
tune_inputs(struct policy_args *args, struct inputs *in,
            struct tune_result *result)
{
    struct tune_options *options = &args->tune;
    bool begun;
    char *error;

    options->kept = args->kept;
    options->service = policy_service(in->inputs[0].workload);
    options->progress = isatty(STDERR_FILENO) ? show_progress : NULL;
    error = check_kept(args);
    error = error ? error : output_file_check(args->out);
    if (error) {
        return error;
    }
    make_sets(args, in);
    interrupt_catch();
    begun = tune(in->sets, args->policies[0], options, result);
    if (options->progress) {
        fputs("\r\033[K", stderr);
    }
    if (begun) {
        print_result(args, in, options, result);
    }
    return begun && result->better && args->out
               ? write_policy(args, options, result)
               : NULL;
}

/* Tunes the policy.  Returns an exit status, EXIT_NO if the result is not
 * better. */
static int
run_tune(struct policy_args *args)
{
    struct tune_result result;
    struct inputs in;
    char *error = open_inputs(args, &in);

    error = error ? error : tune_inputs(args, &in, &result);
    close_inputs(&in);
    return error                ? command_fail(NULL, error)
           : interrupt_caught() ? interrupt_say(
                 interrupt_caught(), result.n_simulations, 0, "simulation")
           : result.better ? EXIT_OK
                           : EXIT_NO;
}

int
policy_tune(int argc, char *argv[])
{
    return policy_command(&syntax, argc, argv, run_tune);
}
