/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach run: runs a command as a process of a job.
 *
 * Moves itself into the cgroup of the job, unless it is in one that a
 * scheduler made, notifies the agent, and executes the command.  A failure of
 * the first two is only a warning: then the traffic of the command is
 * unclassified. */

#include <cjson/cJSON.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/launch/launch.h"
#include "base/memory.h"
#include "base/name.h"
#include "cli/command.h"
#include "wire/agent-call.h"
#include "wire/cgroup-path.h"
#include "wire/log-spec.h"
#include "wire/shim-protocol.h"

/* A job for which --print-env prints variables. */
struct print_env {
    const char *rundir;
    const char *cojob, *job;
    const char *level;          /* Value of --level, for a job without a
                                 * level. */
    const char *interface;      /* Value of --interface, NULL to search for
                                 * it. */
};

#define PRINT_ENV_MS 1000       /* Timeout of a call of the agent, */
#define RUN_MS 200              /* and before the command starts. */
#define MAX_LEVEL 5

#define N_WORDS(WORDS) (sizeof(WORDS) / sizeof *(WORDS))

/* What switches and cards select by. */
struct job_class {
    int dscp;
    int queue;   /* As in the shim: 0 is served first. */
    int control; /* DSCP of control classes. */
};

/* Stores member 'name' of 'json' if it is a number from 0 to 'max'. */
static bool
get_number(const cJSON *json, const char *name, int max, int *value)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);

    if (!cJSON_IsNumber(item) || item->valuedouble < 0
        || item->valuedouble > max) {
        return false;
    }
    *value = item->valueint;
    return true;
}

/* Returns element 'i' of 'dscps', or 'other' if that is no DSCP. */
static int
dscp_at(const cJSON *dscps, int i, int other)
{
    const cJSON *dscp = cJSON_GetArrayItem(dscps, i);

    return cJSON_IsNumber(dscp) && dscp->valuedouble >= 0
                   && dscp->valuedouble <= 63
               ? dscp->valueint
               : other;
}

/* Stores the DSCP and the queue of job 'name' from a reply to "agent/jobs".
 * Returns false if the job has no rank. */
static bool
find_class(const cJSON *jobs, const char *name, struct job_class *class)
{
    const cJSON *job;

    cJSON_ArrayForEach (job, jobs) {
        const cJSON *n = cJSON_GetObjectItemCaseSensitive(job, "job");

        if (cJSON_IsString(n) && !strcmp(n->valuestring, name)
            && cJSON_GetObjectItemCaseSensitive(job, "rank")
            && get_number(job, "dscp", 63, &class->dscp)
            && get_number(job, "queue", SHIM_LEVEL_DEFAULT, &class->queue)) {
            return true;
        }
    }
    return false;
}

/* Reads the class of the job from the agent, or if it has none, the one
 * of --level by the agent's policy.  The result in a reply of the agent is a
 * string that contains JSON. */
static bool
request_class(const struct print_env *e, struct job_class *class)
{
    const char *words[] = { "agent/jobs" };
    char name[NAME_PAIR_SIZE];
    const cJSON *dscps;
    cJSON *reply, *result;
    char *text = NULL;
    bool found;

    if (agent_call(e->rundir, agent_call_until(PRINT_ENV_MS), words, 1,
                   &text)) {
        return false;
    }
    snprintf(name, sizeof name, "%s/%s", e->cojob, e->job);
    reply = cJSON_Parse(text);
    result = cJSON_Parse(cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(reply, "result")));
    found = find_class(cJSON_GetObjectItemCaseSensitive(result, "jobs"), name,
                       class);
    dscps = cJSON_GetObjectItemCaseSensitive(result, "dscps");
    class->control = dscp_at(dscps, SHIM_LEVEL_CONTROL, class->control);
    if (!found && e->level) {
        class->dscp = dscp_at(dscps, class->queue, class->dscp);
    }
    cJSON_Delete(result);
    cJSON_Delete(reply);
    free(text);
    return found;
}

/* Stores the interface of the IPv4 default route with the lowest metric. */
static bool
find_default_route(char name[IF_NAMESIZE])
{
    FILE *stream = fopen("/proc/net/route", "re");
    unsigned int best = 0;
    bool found = false;
    char line[256];

    while (stream && fgets(line, sizeof line, stream)) {
        char iface[IF_NAMESIZE];
        unsigned int destination, mask, metric;

        if (sscanf(line, "%15s %x %*x %*x %*d %*d %u %x", iface,
                   &destination, &metric, &mask) == 4
            && !destination && !mask && (!found || metric < best)) {
            strcpy(name, iface);
            best = metric;
            found = true;
        }
    }
    if (stream) {
        fclose(stream);
    }
    return found;
}

/* Stores the only interface with an address.  Returns false unless there is
 * exactly one. */
static bool
find_only_interface(char name[IF_NAMESIZE])
{
    struct ifaddrs *list;
    bool found = false, several = false;

    if (getifaddrs(&list)) {
        return false;
    }
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET
            || i->ifa_flags & IFF_LOOPBACK || !(i->ifa_flags & IFF_UP)) {
            continue;
        }
        several |= found && strcmp(name, i->ifa_name);
        snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
        found = true;
    }
    freeifaddrs(list);
    return found && !several;
}

/* Returns true if a shell does not interpret any character of 'name'. */
static bool
is_plain(const char *name)
{
    size_t n = strlen(name);

    return n && n < IF_NAMESIZE
           && n == strspn(name, "abcdefghijklmnopqrstuvwxyz"
                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
}

/* Returns false after a message if an argument is not valid. */
static bool
check(const struct print_env *e)
{
    const char *const names[] = { e->cojob, e->job };

    for (int i = 0; i < 2; i++) {
        if (!name_is_valid(names[i])) {
            fprintf(stderr, "stagecoach run: \"%s\" is not " NAME_RULE "\n",
                    names[i]);
            return false;
        }
    }
    if (e->level && (strlen(e->level) != 1 || e->level[0] < '0'
                     || e->level[0] > '0' + MAX_LEVEL)) {
        fprintf(stderr,
                "stagecoach run: --level: \"%s\" is not a level; expected 0 "
                "(served first) to %d\n",
                e->level, MAX_LEVEL);
        return false;
    }
    if (e->interface && !is_plain(e->interface)) {
        fprintf(stderr,
                "stagecoach run: --interface: \"%s\" is not an "
                "interface; expected 1 to %d letters, digits, '.', '_' and '-'"
                "\n",
                e->interface, IF_NAMESIZE - 1);
        return false;
    }
    return true;
}

static void
print_class(const struct print_env *e)
{
    static const uint8_t dscps[] = SHIM_LEVEL_DSCPS;
    struct job_class class = { .queue = e->level ? 1 + e->level[0] - '0'
                                                 : SHIM_LEVEL_DEFAULT,
                               .control = dscps[SHIM_LEVEL_CONTROL] };

    class.dscp = dscps[class.queue];
    if (!request_class(e, &class) && !e->level) {
        fprintf(stderr,
                "stagecoach run: the agent of %s has no level of "
                "%s/%s and --level is not given, continuing without "
                "NCCL_IB_TC\n",
                e->rundir, e->cojob, e->job);
        return;
    }
    printf("NCCL_IB_TC=%1$d\nNCCL_IB_SL=%2$d\nNCCL_IB_FIFO_TC=%3$d\n"
           "UCX_IB_TRAFFIC_CLASS=%1$d\nUCX_IB_SL=%2$d\n",
           class.dscp << 2, SHIM_LEVEL_DEFAULT - class.queue,
           class.control << 2);
}

static void
print_interface(const struct print_env *e)
{
    char found[IF_NAMESIZE] = "";
    const char *name = e->interface;

    if (!name && (find_default_route(found) || find_only_interface(found))
        && is_plain(found)) {
        name = found;
    }
    if (name) {
        printf("NCCL_SOCKET_IFNAME==%s\nGLOO_SOCKET_IFNAME=%s\n", name, name);
    } else {
        fprintf(stderr, "stagecoach run: no default route, no single "
                "interface and no --interface, continuing without "
                "NCCL_SOCKET_IFNAME\n");
    }
}

/* Prints the variables, one on each line.  Returns an exit status. */
static int
print_env(const struct print_env *e)
{
    if (!check(e)) {
        return EXIT_USAGE;
    }
    print_class(e);
    print_interface(e);
    return EXIT_OK;
}

static void __attribute__((__format__(printf, 1, 2)))
warn(const char *format, ...)
{
    va_list args;

    fputs("stagecoach run: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs(", continuing without\n", stderr);
}

/* Moves this process into the cgroup of 'cojob'/'job'.  Returns false after a
 * warning. */
static bool
enter_cgroup(const char *cojob, const char *job)
{
    const char *root = command_env("STAGECOACH_CGROUP", "stagecoach");
    char *mount = cgroup_mount_from("/proc/mounts");
    char *dir;
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
    dir = message("%s/%s/%s/%s", mount, root, cojob, job);
    error = job_cgroup_enter(dir, 0);
    if (error) {
        warn("%s: cannot enter the job's cgroup (%s)", dir, strerror(error));
    }
    free(dir);
    free(mount);
    return !error;
}

static void
tell_agent(const char *rundir, const char *words[], size_t n)
{
    int error = agent_call(rundir, agent_call_until(RUN_MS), words, n, NULL);

    if (error) {
        warn("%s/agent.ctl: the agent does not reply (%s)", rundir,
             strerror(error));
    }
}

/* Makes this process one of the job.  In the cgroup of a scheduler's job it
 * stays there, and only claims itself. */
static void
join_job(const char *rundir, const char *cojob, const char *job)
{
    char *path = job_cgroup_path(getpid());
    char *own = path ? job_cgroup_of_scheduler(path) : NULL;

    if (own) {
        char *pid = message("%ld", (long) getpid());
        char *user = message("uid=%ld", (long) getuid());
        const char *words[] = { "agent/claim", "registration", cojob,
                                job,           "pid",          pid,
                                user };

        tell_agent(rundir, words, N_WORDS(words));
        free(user);
        free(pid);
    } else if (enter_cgroup(cojob, job)) {
        const char *words[] = { "agent/register", cojob, job };

        tell_agent(rundir, words, N_WORDS(words));
    }
    free(own);
    free(path);
}

static bool
check_name(const char *option, const char *name)
{
    if (!name_is_valid(name)) {
        warn("%s: \"%s\" is not " NAME_RULE, option, name);
        return false;
    }
    return true;
}

/* Leaves 'log' where the agent finds it: in the environment of the
 * command, with a path that does not depend on where it runs. */
static void
export_log(const char *log)
{
    const char *colon = strchr(log, ':');
    bool relative = colon && colon[1] && colon[1] != '/';
    char *cwd = relative ? getcwd(NULL, 0) : NULL;
    char *absolute = (cwd ? message("%.*s:%s/%s", (int) (colon - log), log,
                                    cwd, colon + 1)
                      : duplicate(log));
    struct log_spec spec;
    char *error = log_spec_parse("--log", absolute, &spec);

    if (error) {
        warn("%s", error);
        free(error);
    } else {
        setenv("STAGECOACH_LOG", absolute, 1);
        log_spec_uninit(&spec);
    }
    free(absolute);
    free(cwd);
}

struct run_options {
    const char *cojob, *job;
    const char *log;            /* Argument of --log, or NULL. */
    bool print;
    struct print_env env;
};

#define AT(MEMBER) OPTION_AT(struct run_options, MEMBER)

static const struct option_row rows[] = {
    { "cojob", OPTION_TEXT, AT(cojob), .value = "COJOB", .letter = 'c',
      .help = "search that the job belongs to" },
    { "job", OPTION_TEXT, AT(job), .value = "JOB", .letter = 'j',
      .help = "job that the command is a process of" },
    { "log", OPTION_TEXT, AT(log),
      .value = "FORMAT:PATH[,iteration=KEY][,metric=KEY][,stage=KEY]"
               "[,name=NAME]",
      .help = "read the progress of the job from its log; formats: "
              "json-lines, csv, regex, mlflow" },
    { "print-env", OPTION_FLAG, AT(print),
      .help = "print environment variables that set the DSCP of the job's "
              "traffic, and exit" },
    { "level", OPTION_TEXT, AT(env.level), .value = "L",
      .help = "with --print-env: level of a job that has none yet" },
    { "interface", OPTION_TEXT, AT(env.interface), .value = "NAME",
      .help = "with --print-env: network interface of the job" },
    { .name = NULL },
};

static const struct option_table table = {
    .name = "stagecoach run", .rows = rows,
    .usage =
        "usage: stagecoach run --cojob COJOB --job JOB [--log LOG] -- "
        "COMMAND...\n"
        "       stagecoach run --print-env [--level L] [--interface NAME] "
        "COJOB JOB\n",
    .max_operands = -1, .in_order = true,
};

/* Runs a command as a process of a job. */
int
cmd_run(int argc, char *argv[])
{
    const char *rundir = command_rundir();
    struct run_options o = { .env.rundir = rundir };
    int first, status;

    status = option_table_command(&table, argc, argv, &o, &first);
    if (status >= 0) {
        return status;
    }
    if (o.print && !o.cojob && !o.job && first + 2 == argc) {
        o.env.cojob = argv[first];
        o.env.job = argv[first + 1];
        return print_env(&o.env);
    }
    if (o.print || o.env.level || o.env.interface || !o.cojob || !o.job
        || first >= argc) {
        fputs(table.usage, stderr);
        return EXIT_USAGE;
    }
    if (check_name("--cojob", o.cojob) && check_name("--job", o.job)) {
        setenv("STAGECOACH_COJOB", o.cojob, 1);
        setenv("STAGECOACH_JOB", o.job, 1);
        setenv("STAGECOACH_RUNDIR", rundir, 1);
        if (o.log) {
            export_log(o.log);
        }
        join_job(rundir, o.cojob, o.job);
    }
    execvp(argv[first], &argv[first]);
    fprintf(stderr, "%s: %s\n", argv[first], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
