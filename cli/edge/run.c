/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach run: one process of a job.
 *
 * Puts itself into the job's cgroup, tells the agent, and becomes the command.
 * None of this may keep the command from running: what fails costs one line,
 * and the command's traffic is treated like everybody's. */

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/cgroup-path.h"
#include "wire/agent-call.h"
#include "agent/launch/job-cgroup.h"
#include "wire/log-spec.h"
#include "cli/command.h"
#include "cli/edge/print-env.h"

#define AGENT_MS 200            /* For the agent to answer. */

static void __attribute__((__format__(printf, 1, 2)))
warn(const char *format, ...)
{
    va_list args;

    fputs("stagecoach run: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs(", going on without\n", stderr);
}

static const char *
env_or(const char *name, const char *deflt)
{
    const char *value = getenv(name);

    return value && value[0] ? value : deflt;
}

/* Moves this process into the cgroup of 'cojob'/'job'.  Returns false after a
 * warning. */
static bool
enter_cgroup(const char *cojob, const char *job)
{
    const char *root = env_or("STAGECOACH_CGROUP", "stagecoach");
    char *mount = cgroup_mount_from("/proc/mounts");
    char *dir = NULL;
    int error;

    if (!mount) {
        warn("no cgroup v2 file system is mounted");
        return false;
    }
    if (!cgroup_root_is_valid(root)) {
        warn("STAGECOACH_CGROUP: \"%s\" is not a path below %s", root, mount);
        free(mount);
        return false;
    }
    if (asprintf(&dir, "%s/%s/%s/%s", mount, root, cojob, job) < 0) {
        dir = NULL;
        error = ENOMEM;
    } else {
        error = job_cgroup_enter(dir, strlen(mount), 0);
    }
    if (error) {
        warn("%s: cannot enter the job's cgroup (%s)",
             dir ? dir : job, strerror(error));
    }
    free(dir);
    free(mount);
    return !error;
}

static void
tell_agent(const char *rundir, const char *cojob, const char *job)
{
    const char *words[] = { "agent/register", cojob, job };
    int error = agent_call(rundir, agent_call_until(AGENT_MS), words, 3,
                           NULL);

    if (error) {
        warn("%s/agent.ctl: the agent does not answer (%s)", rundir,
             strerror(error));
    }
}

static bool
check_name(const char *option, const char *name)
{
    if (!cgroup_name_is_valid(name)) {
        warn("%s: \"%s\" is not a name, "CGROUP_NAME_RULE, option, name);
        return false;
    }
    return true;
}

static int
usage(FILE *stream)
{
    fputs("usage: stagecoach run --cojob COJOB --job JOB [--log LOG] -- "
          "COMMAND...\n"
          "       stagecoach run --print-env [--level L] [--interface NAME] "
          "COJOB JOB\n\n"
          "  --log FORMAT:PATH[,iteration=KEY][,metric=KEY][,stage=KEY]"
          "[,name=NAME]\n"
          "                 what the job logs is its progress; formats are "
          "json-lines,\n"
          "                 csv, regex, tfevents and mlflow\n", stream);
    return stream == stdout ? EXIT_OK : EXIT_USAGE;
}

/* Leaves 'log' where the agent looks for it: in the environment of the
 * command, with a path that does not depend on where it runs. */
static void
tell_log(const char *log)
{
    const char *colon = strchr(log, ':');
    char *absolute = NULL;
    struct log_spec spec;
    char *error;

    if (colon && colon[1] && colon[1] != '/') {
        char *cwd = getcwd(NULL, 0);

        if (!cwd || asprintf(&absolute, "%.*s:%s/%s", (int) (colon - log),
                             log, cwd, colon + 1) < 0) {
            absolute = NULL;
        }
        free(cwd);
    }
    error = log_spec_parse("--log", absolute ? absolute : log, &spec);
    if (error) {
        warn("%s", error);
        free(error);
    } else {
        setenv("STAGECOACH_LOG", absolute ? absolute : log, 1);
        log_spec_uninit(&spec);
    }
    free(absolute);
}

/* Runs a command as a process of a job. */
int
cmd_run(int argc, char *argv[])
{
    static const struct option options[] = {
        { "cojob", required_argument, NULL, 'c' },
        { "job", required_argument, NULL, 'j' },
        { "print-env", no_argument, NULL, 'e' },
        { "level", required_argument, NULL, 'l' },
        { "interface", required_argument, NULL, 'i' },
        { "log", required_argument, NULL, 'L' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    const char *rundir = env_or("STAGECOACH_RUNDIR", AGENT_RUNDIR);
    struct print_env env = { .rundir = rundir };
    bool print = false;
    const char *cojob = NULL;
    const char *job = NULL;
    const char *log = NULL;
    int option;

    while ((option = getopt_long(argc, argv, "+hc:j:", options, NULL))
           != -1) {
        switch (option) {
        case 'c':
            cojob = optarg;
            break;
        case 'j':
            job = optarg;
            break;
        case 'e':
            print = true;
            break;
        case 'l':
            env.level = optarg;
            break;
        case 'i':
            env.interface = optarg;
            break;
        case 'L':
            log = optarg;
            break;
        case 'h':
            return usage(stdout);
        default:
            return usage(stderr);
        }
    }
    if (print && !cojob && !job && optind + 2 == argc) {
        env.cojob = argv[optind];
        env.job = argv[optind + 1];
        return print_env(&env);
    }
    if (print || env.level || env.interface || !cojob || !job
        || optind >= argc) {
        return usage(stderr);
    }
    if (check_name("--cojob", cojob) && check_name("--job", job)) {
        setenv("STAGECOACH_COJOB", cojob, 1);
        setenv("STAGECOACH_JOB", job, 1);
        setenv("STAGECOACH_RUNDIR", rundir, 1);
        if (log) {
            tell_log(log);
        }
        if (enter_cgroup(cojob, job)) {
            tell_agent(rundir, cojob, job);
        }
    }
    execvp(argv[optind], &argv[optind]);
    fprintf(stderr, "%s: %s\n", argv[optind], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
