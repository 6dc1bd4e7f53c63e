/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach stage: tells the controller of stages of a search that cannot
 * tell by itself. */

#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "cli/operator/wait-hosts.h"
#include "controller/intent/intent-client.h"
#include "openvswitch/vlog.h"
#include "svec.h"
#include "util.h"

#define TIMEOUT_MS 5000

struct stage_options {
    char *intent, *cojob;
    long long rung, iterations; /* -1 if not given. */
    struct svec jobs;
    bool wait;                  /* Until it is in force. */
};

/* Returns -1, with a message, if 'text' is not an integer from 'min'. */
static long long
parse_integer(const char *option, const char *text, long long min,
              long long max)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < min || value > max) {
        fprintf(stderr, "stagecoach stage: --%s: \"%s\" is not an integer "
                "from %lld to %lld\n", option, text, min, max);
        return -1;
    }
    return value;
}

static bool
is_given(bool given, const char *option)
{
    if (!given) {
        fprintf(stderr, "stagecoach stage: --%s: required option is "
                "missing\n", option);
    }
    return given;
}

static bool
parse(int argc, char *argv[], struct stage_options *o)
{
    static const struct option options[] = {
        {"intent", required_argument, NULL, 'i'},
        {"cojob", required_argument, NULL, 'c'},
        {"rung", required_argument, NULL, 'r'},
        {"iterations", required_argument, NULL, 'n'},
        {"jobs", required_argument, NULL, 'j'},
        {"wait", required_argument, NULL, 'w'},
        {NULL, 0, NULL, 0},
    };
    int c;

    optind = 0;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 'i':
            free(o->intent);
            o->intent = xstrdup(optarg);
            break;
        case 'c':
            free(o->cojob);
            o->cojob = xstrdup(optarg);
            break;
        case 'r':
            o->rung = parse_integer("rung", optarg, 0, 1000);
            if (o->rung < 0) {
                return false;
            }
            break;
        case 'n':
            o->iterations = parse_integer("iterations", optarg, 1,
                                          LLONG_MAX);
            if (o->iterations < 0) {
                return false;
            }
            break;
        case 'j':
            svec_clear(&o->jobs);
            for (char *save = NULL, *name = strtok_r(optarg, ",", &save);
                 name; name = strtok_r(NULL, ",", &save)) {
                svec_add(&o->jobs, name);
            }
            break;
        case 'w':
            o->wait = wait_hosts_parse("stage", optarg);
            if (!o->wait) {
                return false;
            }
            break;
        default:
            return false;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "stagecoach stage: \"%s\": unexpected argument\n",
                argv[optind]);
        return false;
    }
    return is_given(o->cojob != NULL, "cojob")
           && is_given(o->rung >= 0, "rung");
}

/* A cojob that nobody announced begins with its first stage. */
static char *
begin(struct intent_client *ic, const struct stage_options *o)
{
    const struct intent_edit stage = {
        .kind = INTENT_STAGE_BEGIN, .cojob = o->cojob, .rung = o->rung,
        .iterations = o->iterations,
        .jobs = (const char *const *) o->jobs.names, .n = o->jobs.n,
    };
    const struct intent_edit cojob = {
        .kind = INTENT_COJOB_BEGIN, .cojob = o->cojob, .weight = 1,
    };
    char *error;

    error = intent_client_write(ic, &stage);
    if (error && strstr(error, "it has not begun")) {
        free(error);
        error = intent_client_write(ic, &cojob);
        error = error ? error : intent_client_write(ic, &stage);
    }
    return error;
}

static int
run_stage(int argc, char *argv[], bool begins)
{
    struct stage_options o = { .rung = -1, .iterations = -1,
                               .jobs = SVEC_EMPTY_INITIALIZER };
    int status = EXIT_USAGE;

    vlog_set_levels(NULL, VLF_CONSOLE, VLL_ERR);
    vlog_set_levels(NULL, VLF_SYSLOG, VLL_OFF);
    if (parse(argc, argv, &o)
        && (!begins || (is_given(o.iterations > 0, "iterations")
                        && is_given(o.jobs.n > 0, "jobs")))) {
        struct intent_client *ic;
        char *error;

        if (!o.intent) {
            o.intent = xasprintf("unix:%s/intent.sock", cli_rundir());
        }
        ic = intent_client_create(o.intent, TIMEOUT_MS);
        error = (begins ? begin(ic, &o)
                 : intent_client_write(ic, &(struct intent_edit) {
                       .kind = INTENT_STAGE_END, .cojob = o.cojob,
                       .rung = o.rung,
                   }));
        intent_client_destroy(ic);
        status = EXIT_OK;
        if (error) {
            fprintf(stderr, "stagecoach stage: %s\n", error);
            status = strstr(error, "did not answer") ? EXIT_UNREACHABLE
                     : EXIT_NO;
            free(error);
        } else if (o.wait) {
            char *rung = xasprintf("%lld", o.rung);
            const char *args[] = { o.cojob, rung,
                                   begins ? "begun" : "ended" };

            status = wait_hosts("stage", args, 3);
            free(rung);
        }
    }
    svec_destroy(&o.jobs);
    free(o.cojob);
    free(o.intent);
    return status;
}

static int
cmd_stage_begin(int argc, char *argv[])
{
    return run_stage(argc, argv, true);
}

static int
cmd_stage_end(int argc, char *argv[])
{
    return run_stage(argc, argv, false);
}

int
cmd_stage(int argc, char *argv[])
{
    static const struct command commands[] = {
        { "begin", "[--intent REMOTE] --cojob C --rung R --iterations N "
          "--jobs A,B,... [--wait hosts]",
          "Begin a stage: all the jobs must reach the iteration.",
          cmd_stage_begin },
        { "end", "[--intent REMOTE] --cojob C --rung R [--wait hosts]",
          "End a stage.", cmd_stage_end },
        { NULL, NULL, NULL, NULL },
    };

    if (command_help(commands, "stagecoach stage", argc - 1, argv + 1)) {
        return EXIT_OK;
    }
    return command_dispatch(commands, "stagecoach stage", argc - 1,
                            argv + 1);
}
