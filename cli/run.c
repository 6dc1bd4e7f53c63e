/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach run: one process of a job.
 *
 * Puts itself into the job's cgroup, tells the agent, and becomes the command.
 * None of this may keep the command from running: what fails costs one line,
 * and the command's traffic is treated like everybody's. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "agent/identify/cgroup-path.h"
#include "agent/progress/log-spec.h"
#include "cli/command.h"

#define AGENT_MS 200            /* For the agent to answer. */
#define CGROUP_TRIES 5          /* The agent may remove an empty cgroup between
                                 * our making it and our entering it. */

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

/* Makes each directory of 'path' that is missing after the first 'skip'
 * bytes. */
static int
make_dirs(char *path, size_t skip)
{
    for (char *p = path + skip; ; p++) {
        if (*p == '/' || !*p) {
            char c = *p;

            *p = '\0';
            if (mkdir(path, 0755) && errno != EEXIST) {
                int error = errno;

                *p = c;
                return error;
            }
            *p = c;
            if (!c) {
                return 0;
            }
        }
    }
}

static int
write_pid(const char *dir)
{
    char *path;
    int error = 0;
    int fd;

    if (asprintf(&path, "%s/cgroup.procs", dir) < 0) {
        return ENOMEM;
    }
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1) {
        error = errno;
    }
    if (fd >= 0) {
        close(fd);
    }
    free(path);
    return error;
}

static int
enter(char *dir, size_t mount_len)
{
    int error = 0;

    for (int i = 0; i < CGROUP_TRIES; i++) {
        error = make_dirs(dir, mount_len + 1);
        if (!error) {
            error = write_pid(dir);
        }
        if (error != ENOENT && error != ENODEV) {
            break;
        }
    }
    return error;
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
        error = enter(dir, strlen(mount));
    }
    if (error) {
        warn("%s: cannot enter the job's cgroup (%s)",
             dir ? dir : job, strerror(error));
    }
    free(dir);
    free(mount);
    return !error;
}

/* Sends 'request' on 'fd' and waits until the agent has read it and answered,
 * for at most AGENT_MS. */
static int
exchange(int fd, const char *request)
{
    struct pollfd pfd = { .fd = fd, .events = POLLIN };
    char answer[512];
    int n;

    if (send(fd, request, strlen(request), MSG_NOSIGNAL | MSG_DONTWAIT)
        != (ssize_t) strlen(request)) {
        return errno;
    }
    n = poll(&pfd, 1, AGENT_MS);
    if (n <= 0) {
        return n ? errno : ETIMEDOUT;
    }
    return recv(fd, answer, sizeof answer, MSG_DONTWAIT) > 0 ? 0 : ECONNRESET;
}

static int
call_agent(const char *path, const char *request)
{
    struct sockaddr_un sun = { .sun_family = AF_UNIX };
    int fd, error;

    if (strlen(path) >= sizeof sun.sun_path) {
        return ENAMETOOLONG;
    }
    strcpy(sun.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return errno;
    }
    error = connect(fd, (struct sockaddr *) &sun, sizeof sun) ? errno
            : exchange(fd, request);
    close(fd);
    return error;
}

static void
tell_agent(const char *rundir, const char *cojob, const char *job)
{
    char request[256];
    char *path;
    int error;

    /* Names have no character that JSON would escape. */
    snprintf(request, sizeof request,
             "{\"method\":\"agent/register\",\"params\":[\"%s\",\"%s\"],"
             "\"id\":0}", cojob, job);
    if (asprintf(&path, "%s/agent.ctl", rundir) < 0) {
        return;
    }
    error = call_agent(path, request);
    if (error) {
        warn("%s: the agent does not answer (%s)", path, strerror(error));
    }
    free(path);
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
          "COMMAND...\n\n"
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
        { "log", required_argument, NULL, 'l' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    const char *rundir = env_or("STAGECOACH_RUNDIR", "/run/stagecoach");
    const char *cojob = NULL;
    const char *job = NULL;
    const char *log = NULL;
    int option;

    while ((option = getopt_long(argc, argv, "+hc:j:l:", options, NULL))
           != -1) {
        switch (option) {
        case 'c':
            cojob = optarg;
            break;
        case 'j':
            job = optarg;
            break;
        case 'l':
            log = optarg;
            break;
        case 'h':
            return usage(stdout);
        default:
            return usage(stderr);
        }
    }
    if (!cojob || !job || optind >= argc) {
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
