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

#define TIMEOUT_MS 5000

struct stage_options {
    char *intent;
    const char *cojob;
    int64_t rung, iterations, later_iterations;
    struct svec jobs;
    bool wait;                  /* Until hosts have applied the order. */
};

static char *
parse_jobs(const char *text, void *jobs)
{
    char *copy = xstrdup(text);

    svec_clear(jobs);
    for (char *save = NULL, *name = strtok_r(copy, ",", &save); name;
         name = strtok_r(NULL, ",", &save)) {
        svec_add(jobs, name);
    }
    free(copy);
    return NULL;
}

#define AT(MEMBER) OPTION_AT(struct stage_options, MEMBER)

static const struct option_row rows[] = {
    { "intent", OPTION_COPY, AT(intent), .value = "REMOTE",
      .shown = "unix:RUNDIR/intent.sock", .help = "intent database" },
    { "cojob", OPTION_TEXT, AT(cojob), .value = "C", .required = true,
      .help = "name of the search" },
    { "rung", OPTION_INTEGER, AT(rung), 0, 1000, "R", .required = true,
      .help = "rung of the stage" },
    { "iterations", OPTION_INTEGER, AT(iterations), 1, 1e15, "N",
      .help = "begin: iteration that all jobs must reach (required)" },
    { "later-iterations", OPTION_INTEGER, AT(later_iterations), 0, 1e15, "N",
      .help = "begin: iterations that the search plans after this stage, the "
              "sum over its jobs" },
    { "jobs", OPTION_CUSTOM, AT(jobs), .value = "A,B,...",
      .parse = parse_jobs, .help = "begin: jobs of the stage (required)" },
    WAIT_HOSTS_ROW(struct stage_options, wait),
    { .name = NULL },
};

/* Begins the cojob as well if it has not been announced. */
static char *
begin(struct intent_client *ic, const struct stage_options *o,
      enum intent_result *result)
{
    const struct intent_edit stage = {
        .kind = INTENT_STAGE_BEGIN, .cojob = o->cojob, .rung = o->rung,
        .iterations = o->iterations, .later_iterations = o->later_iterations,
        .jobs = (const char *const *) o->jobs.names, .n = o->jobs.n
    };
    const struct intent_edit cojob = {
        .kind = INTENT_COJOB_BEGIN, .cojob = o->cojob, .weight = 1,
    };
    char *error;

    error = intent_client_write(ic, &stage, result);
    if (*result == INTENT_REFUSED) {
        free(error);
        error = intent_client_write(ic, &cojob, result);
        error = error ? error : intent_client_write(ic, &stage, result);
    }
    return error;
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
    int status;

    vlog_set_levels(NULL, VLF_CONSOLE, VLL_ERR);
    vlog_set_levels(NULL, VLF_SYSLOG, VLL_OFF);
    status = option_table_command(&table, argc, argv, &o, NULL);
    if (status < 0 && begins && (!o.iterations || !o.jobs.n)) {
        fprintf(stderr, "stagecoach stage: --%s: required option is missing\n",
                o.iterations ? "jobs" : "iterations");
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
    free(o.intent);
    return status;
}

int
cmd_stage(int argc, char *argv[])
{
    static const struct command commands[] = {
        { "begin", "[--intent REMOTE] --cojob C --rung R --iterations N "
          "[--later-iterations N] --jobs A,B,... [--wait hosts]",
          "Begin a stage: all the jobs must reach the iteration.", run_stage },
        { "end", "[--intent REMOTE] --cojob C --rung R [--wait hosts]",
          "End a stage.", run_stage },
        { NULL, NULL, NULL, NULL },
    };

    return command_group(commands, "stagecoach stage", argc, argv);
}
