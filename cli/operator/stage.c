/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach stage: announces stages of a search that cannot announce them
 * itself. */

#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "controller/intent/intent-client.h"
#include "openvswitch/vlog.h"
#include "svec.h"
#include "util.h"
#include "wire/membership.h"

#define TIMEOUT_MS 5000

struct rung_list {
    struct search_rung *rungs;
    size_t n;
};

struct stage_options {
    char *intent;
    const char *cojob, *space;
    int64_t rung, iterations, bytes;
    double compute, eta;
    int64_t to_come;
    const char *trials;
    struct rung_list rungs;
    struct svec jobs;
    bool wait;                  /* Until hosts have applied the order. */
};

static char *
parse_names(const char *text, void *names)
{
    char *copy = xstrdup(text), *rest = copy;

    svec_clear(names);
    while (rest) {
        svec_add(names, strsep(&rest, ","));
    }
    free(copy);
    return NULL;
}

/* Parses "ITERATIONS:KEEP"; 'keep' is 0 without ":KEEP". */
static bool
parse_rung(char *text, struct search_rung *rung)
{
    char *keep = strchr(text, ':');
    long long iterations;

    if (keep) {
        *keep++ = '\0';
    }
    rung->keep = 0;
    if (!str_to_llong(text, 10, &iterations)
        || (keep && !str_to_int(keep, 10, &rung->keep))) {
        return false;
    }
    rung->iterations = iterations;
    return true;
}

static char *
parse_rungs(const char *text, void *list_)
{
    struct rung_list *list = list_;
    struct svec words = SVEC_EMPTY_INITIALIZER;
    char *error = parse_names(text, &words);

    free(list->rungs);
    list->rungs = xcalloc(words.n + 1, sizeof *list->rungs);
    list->n = words.n;
    for (size_t i = 0; !error && i < words.n; i++) {
        if (!parse_rung(words.names[i], &list->rungs[i])) {
            error = xasprintf("\"%s\"; expected rungs such as 30:3,80", text);
        }
    }
    svec_destroy(&words);
    return error;
}

#define AT(MEMBER) OPTION_AT(struct stage_options, MEMBER)

static const struct option_row rows[] = {
    { "intent", OPTION_COPY, AT(intent), .value = "REMOTE",
      .shown = "unix:RUNDIR/intent.sock", .help = "intent database" },
    { "cojob", OPTION_TEXT, AT(cojob), .value = "C", .required = true,
      .help = "name of the search" },
    { "namespace", OPTION_TEXT, AT(space), .value = "NS",
      .help = "begin: only pods of this namespace belong to the search" },
    { "rung", OPTION_INTEGER, AT(rung), 0, 1000, "R", .required = true,
      .help = "rung of the stage" },
    { "iterations", OPTION_INTEGER, AT(iterations), 1, RUNG_MAX_ITERATIONS,
      "N", .help = "begin: iteration that all jobs must reach" },
    { "rungs", OPTION_CUSTOM, AT(rungs), .value = "N:KEEP,...",
      .parse = parse_rungs,
      .help = "begin: in place of --iterations, with how many jobs continue, "
              "and the same of the rungs after this one" },
    { "eta", OPTION_REAL, AT(eta), 2, 1000, "N",
      .help =
          "begin: jobs are judged one by one, one in so many passes a rung" },
    { "to-come", OPTION_INTEGER, AT(to_come), 0, 1000000, "N",
      .help = "begin: with --eta, trials that have not begun" },
    { "trials", OPTION_WORD, AT(trials), .value = "neutral|promising",
      .help = "begin: with --eta, which trials go first",
      .shown = "as the policy has it" },
    { "bytes-per-iteration", OPTION_INTEGER, AT(bytes), 0, 1e15, "N",
      .help = "begin: bytes that a job sends in an iteration" },
    { "compute-s", OPTION_REAL, AT(compute), 0, 86400, "S",
      .help = "begin: seconds of an iteration without transfers" },
    { "jobs", OPTION_CUSTOM, AT(jobs), .value = "A,B,...",
      .parse = parse_names, .help = "begin: jobs of the stage (required)" },
    WAIT_HOSTS_ROW(struct stage_options, wait),
    { .name = NULL },
};

/* Begins the cojob as well if it has not been announced. */
static char *
begin(struct intent_client *ic, const struct stage_options *o,
      enum intent_result *result)
{
    const struct intent_edit stage = { .kind = INTENT_STAGE_BEGIN,
                                       .cojob = o->cojob,
                                       .rung = o->rung,
                                       .rungs = o->rungs.rungs,
                                       .n_rungs = o->rungs.n,
                                       .jobs =
                                           (const char *const *) o->jobs.names,
                                       .n = o->jobs.n,
                                       .eta = o->eta,
                                       .to_come = o->to_come,
                                       .trials = o->trials,
                                       .bytes_per_iteration = o->bytes,
                                       .compute_s = o->compute };
    char *owner =
        o->space ? xasprintf(MEMBERSHIP_NAMESPACE "%s", o->space) : NULL;
    const struct intent_edit cojob = {
        .kind = INTENT_COJOB_BEGIN,
        .cojob = o->cojob,
        .weight = 1,
        .owner = owner,
        .uid = owner ? membership_namespace(o->space) : 0
    };
    char *error;

    error = intent_client_write(ic, &stage, result);
    if (*result == INTENT_REFUSED) {
        free(error);
        error = intent_client_write(ic, &cojob, result);
        error = error ? error : intent_client_write(ic, &stage, result);
    }
    free(owner);
    return error;
}

/* Returns an error message if options of "begin" are missing. */
static const char *
check_begin(struct stage_options *o)
{
    struct search_rung *last;

    if (o->iterations && !o->rungs.n) {
        o->rungs.rungs = xmalloc(sizeof *o->rungs.rungs);
        o->rungs.rungs[o->rungs.n++] =
            (struct search_rung){ .iterations = o->iterations };
    } else if (o->iterations || !o->rungs.n) {
        return "--iterations or --rungs, one of them is required";
    }
    if (!(o->eta > 0) && (o->to_come || o->trials)) {
        return "--to-come, --trials: --eta is missing";
    }
    last = &o->rungs.rungs[o->rungs.n - 1];
    last->keep += !last->keep && !(o->eta > 0);
    return o->jobs.n ? NULL : "--jobs: required option is missing";
}

static int
run_stage(int argc, char *argv[])
{
    static const struct option_table table = {
        .name = "stagecoach stage", .rows = rows,
        .usage = "usage: stagecoach stage begin|end [OPTION...]\n",
    };
    struct stage_options o = { .jobs = SVEC_EMPTY_INITIALIZER };
    bool begins = !strcmp(argv[0], "begin");
    const char *missing;
    int status;

    vlog_set_levels(NULL, VLF_CONSOLE, VLL_ERR);
    vlog_set_levels(NULL, VLF_SYSLOG, VLL_OFF);
    status = option_table_command(&table, argc, argv, &o, NULL);
    missing = status < 0 && begins ? check_begin(&o) : NULL;
    if (missing) {
        fprintf(stderr, "stagecoach stage: %s\n", missing);
        status = EXIT_USAGE;
    }
    if (status < 0) {
        struct intent_client *ic;
        enum intent_result result;
        char *error;

        if (!o.intent) {
            char *rundir = command_controller_rundir();

            o.intent = xasprintf("unix:%s/intent.sock", rundir);
            free(rundir);
        }
        ic = intent_client_create(o.intent, TIMEOUT_MS);
        error = (begins ? begin(ic, &o, &result)
                        : intent_client_write(
                            ic,
                            &(struct intent_edit){ .kind = INTENT_STAGE_END,
                                                   .cojob = o.cojob,
                                                   .rung = o.rung },
                            &result));
        intent_client_destroy(ic);
        status = EXIT_OK;
        if (error) {
            fprintf(stderr, "stagecoach stage: %s\n", error);
            status = result == INTENT_TIMED_OUT ? EXIT_UNREACHABLE : EXIT_NO;
            free(error);
        } else if (o.wait) {
            char *rung = xasprintf("%" PRId64, o.rung);
            const char *args[] = { o.cojob, rung, begins ? "begun" : "ended" };

            status = wait_hosts("stage", args, 3);
            free(rung);
        }
    }
    svec_destroy(&o.jobs);
    free(o.rungs.rungs);
    free(o.intent);
    return status;
}

int
cmd_stage(int argc, char *argv[])
{
    static const struct command commands[] = {
        { "begin",
          "[--intent REMOTE] --cojob C --rung R --iterations N"
          "|--rungs N:KEEP,... --jobs A,B,... [--eta N] [--to-come N] "
          "[--trials neutral|promising] [--bytes-per-iteration N] "
          "[--compute-s S] [--namespace NS] [--wait hosts]",
          "Begin a stage: all the jobs must reach the iteration.", run_stage },
        { "end", "[--intent REMOTE] --cojob C --rung R [--wait hosts]",
          "End a stage.", run_stage },
        { NULL, NULL, NULL, NULL },
    };

    return command_group(commands, "stagecoach stage", argc, argv);
}
