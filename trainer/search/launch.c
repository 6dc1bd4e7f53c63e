/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/search/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "trainer/search/hosts.h"

/* Enters the network namespace only.  "ip netns exec" would also replace /sys
 * and thereby the cgroup file system. */
static int
enter_netns(const struct search_host *host)
{
    char path[512];
    int fd, error;

    snprintf(path, sizeof path, "%s%s",
             strchr(host->netns, '/') ? "" : "/run/netns/", host->netns);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    error = setns(fd, CLONE_NEWNET) ? errno : 0;
    close(fd);
    return error;
}

void
child_init(struct child *child)
{
    memset(child, 0, sizeof *child);
    child->in = child->out = -1;
}

void
child_uninit(struct child *child)
{
    child_hang_up(child);
    if (child->out >= 0) {
        close(child->out);
    }
    if (child->pid > 0) {
        child_kill(child, SIGKILL);
        waitpid(child->pid, &child->status, 0);
    }
    child_init(child);
}

static void
set_environment(const struct search_host *host, const char *const env[])
{
    if (host->rundir) {
        setenv("STAGECOACH_RUNDIR", host->rundir, 1);
    }
    if (host->cgroup) {
        setenv("STAGECOACH_CGROUP", host->cgroup, 1);
    }
    for (; *env; env++) {
        putenv((char *) *env);
    }
}

/* Runs in the new process: executes the program, or writes an errno value to
 * 'report'. */
static void
become(const struct search_host *host, const char *const argv[],
       const char *const env[], const int in[2], const int out[2],
       int report, pid_t parent)
{
    sigset_t none;
    int error = 0;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(127);             /* The parent died before the signal was
                                 * set. */
    }
    if (dup2(in[0], STDIN_FILENO) < 0 || dup2(out[1], STDOUT_FILENO) < 0) {
        error = errno;
    }
    if (!error && host->launch == LAUNCH_NETNS) {
        error = enter_netns(host);
    }
    if (!error) {
        set_environment(host, env);
        execv(argv[0], (char **) argv);
        error = errno;
    }
    if (write(report, &error, sizeof error) < 0) {
        /* The parent reads the end of the pipe. */
    }
    _exit(127);
}

/* Returns 0 if the program runs, otherwise an errno value. */
static int
fork_and_become(struct child *child, const struct search_host *host,
                const char *const argv[], const char *const env[],
                const int in[2], const int out[2])
{
    pid_t parent = getpid();
    int report[2], error = 0;

    if (pipe2(report, O_CLOEXEC)) {
        return errno;
    }
    child->pid = fork();
    if (!child->pid) {
        become(host, argv, env, in, out, report[1], parent);
    }
    if (child->pid < 0) {
        error = errno;
        child->pid = 0;
    }
    close(report[1]);
    if (!error) {
        setpgid(child->pid, child->pid);        /* Parent and child both set
                                                 * it: either may run first. */
        while (read(report[0], &error, sizeof error) < 0 && errno == EINTR) {
            continue;
        }
        if (error) {
            waitpid(child->pid, &child->status, 0);
            child->pid = 0;
        }
    }
    close(report[0]);
    return error;
}

char *
child_start(struct child *child, const struct search_host *host,
            const char *const argv[], const char *const env[])
{
    int in[2] = { -1, -1 }, out[2] = { -1, -1 };
    int error = 0;

    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)
        || fcntl(in[1], F_SETFL, O_NONBLOCK)
        || fcntl(out[0], F_SETFL, O_NONBLOCK)) {
        error = errno;
    }
    if (!error) {
        error = fork_and_become(child, host, argv, env, in, out);
    }
    if (!error) {
        child->in = in[1];
        child->out = out[0];
        in[1] = out[0] = -1;
    }
    for (int i = 0; i < 2; i++) {
        if (in[i] >= 0) {
            close(in[i]);
        }
        if (out[i] >= 0) {
            close(out[i]);
        }
    }
    return error ? message("%s: cannot start %s (%s)", host->name, argv[0],
                           strerror(error)) : NULL;
}

/* Reads once.  Returns false if there are no data. */
static bool
child_read(struct child *child)
{
    size_t room = sizeof child->buffer - child->length;
    ssize_t n;

    if (child->out < 0) {
        return false;
    }
    n = read(child->out, child->buffer + child->length, room);
    if (n > 0) {
        child->length += n;
        return true;
    }
    if (!n || (errno != EAGAIN && errno != EINTR)) {
        close(child->out);
        child->out = -1;
    }
    return false;
}

char *
child_line(struct child *child)
{
    for (;;) {
        char *line, *newline;

        memmove(child->buffer, child->buffer + child->taken,
                child->length - child->taken);
        child->length -= child->taken;
        child->taken = 0;

        line = child->buffer;
        newline = memchr(line, '\n', child->length);
        if (newline) {
            bool whole = !child->skipping;

            *newline = '\0';
            child->taken = newline + 1 - line;
            child->skipping = false;
            if (whole) {
                return line;
            }
        } else if (child->length == sizeof child->buffer) {
            child->taken = child->length;
            child->skipping = true;
        } else if (!child_read(child)) {
            return NULL;
        }
    }
}

/* Data that a child does not read are dropped: the search never waits. */
void
child_say(struct child *child, const char *text)
{
    if (child->in >= 0
        && write(child->in, text, strlen(text)) != (ssize_t) strlen(text)) {
        child_hang_up(child);
    }
}

void
child_hang_up(struct child *child)
{
    if (child->in >= 0) {
        close(child->in);
        child->in = -1;
    }
}

void
child_kill(const struct child *child, int signal)
{
    if (child->pid > 0) {
        kill(-child->pid, signal);
    }
}

bool
child_reap(struct child *child)
{
    if (child->pid <= 0 || waitpid(child->pid, &child->status, WNOHANG)
                           != child->pid) {
        return false;
    }
    child_kill(child, SIGKILL); /* Remaining processes of its group. */
    child->pid = 0;
    child_hang_up(child);
    return true;
}
