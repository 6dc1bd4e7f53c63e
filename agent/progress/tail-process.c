/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/progress/tail-process.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/memory.h"
#include "base/name.h"
#include "openvswitch/poll-loop.h"
#include "util.h"

/* Descriptors of a tail are first moved above those that it gets. */
#define FIRST_FD 16

int
tail_program_open(int *fdp)
{
    static const char *const folders[] = { ".", NULL };
    char *path = directory_find(folders, TAIL_PROGRAM, X_OK);
    int error;

    *fdp = path ? open(path, O_PATH | O_CLOEXEC) : -1;
    error = !path ? ENOENT : *fdp < 0 ? errno : 0;
    free(path);
    return error;
}

/* Executes 'program' with its descriptors.  Returns 0 or a positive errno
 * value. */
static int
spawn(int program, const char *job, int control, int process, pid_t *pidp)
{
    char *argv[] = { (char *) TAIL_PROGRAM, (char *) job, NULL };
    char *envp[] = { NULL };
    const int fds[][2] = {
        { control, TAIL_CONTROL },
        { process, TAIL_PROCESS },
        { program, TAIL_SELF },
    };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    char path[64];
    sigset_t none;
    int error;

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    for (int i = 0; i < 3; i++) {
        posix_spawn_file_actions_addopen(&actions, i, "/dev/null", O_RDWR, 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        posix_spawn_file_actions_adddup2(&actions, fds[i][0], fds[i][1]);
    }
    posix_spawn_file_actions_addclosefrom_np(&actions, TAIL_SELF + 1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", TAIL_SELF);
    error = posix_spawn(pidp, path, &actions, &attr, argv, envp);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return error;
}

/* Like spawn(), for descriptors with any numbers. */
static int
spawn_moved(const int from[3], const char *job, pid_t *pidp)
{
    int fds[3], error = 0;

    for (int i = 0; i < 3; i++) {
        fds[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FIRST_FD);
        error = fds[i] < 0 && !error ? errno : error;
    }
    if (!error) {
        error = spawn(fds[0], job, fds[1], fds[2], pidp);
    }
    for (int i = 0; i < 3; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    return error;
}

int
tail_process_start(int program, const struct tail_start *start, int process,
                   long long now, struct tail_process **tp)
{
    struct tail_process *t;
    int pair[2], error;
    pid_t pid;

    *tp = NULL;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                   pair)) {
        return errno;
    }
    /* Sent before the tail exists, so that it never waits. */
    error = send(pair[0], start, sizeof *start, MSG_NOSIGNAL) < 0 ? errno : 0;
    if (!error) {
        const int fds[] = { program, pair[1], process };

        error = spawn_moved(fds, start->job, &pid);
    }
    close(pair[1]);
    if (error) {
        close(pair[0]);
        return error;
    }
    t = xzalloc(sizeof *t);
    t->pid = pid;
    t->uid = start->uid;
    t->control = pair[0];
    t->started = t->last_rx = now;
    t->report.iteration = -1;
    t->pidfd = syscall(SYS_pidfd_open, pid, 0);
    if (t->pidfd < 0) {
        error = errno;
        kill(pid, SIGKILL);
        tail_process_destroy(t);
        return error;
    }
    *tp = t;
    return 0;
}

void
tail_process_stop(struct tail_process *t)
{
    if (!t->stopping) {
        t->stopping = true;
        kill(t->pid, SIGKILL);
    }
}

void
tail_process_destroy(struct tail_process *t)
{
    if (t) {
        if (t->pid) {
            tail_process_stop(t);
        }
        if (t->pidfd >= 0) {
            close(t->pidfd);
        }
        if (t->control >= 0) {
            close(t->control);
        }
        free(t);
    }
}

static void
receive_reports(struct tail_process *t, long long now)
{
    struct tail_report r;
    ssize_t n;

    while (t->control >= 0
           && (n = recv(t->control, &r, sizeof r, MSG_DONTWAIT)) >= 0) {
        if (n == sizeof r) {
            t->report = r;
            t->last_rx = now;
            t->report.words[sizeof t->report.words - 1] = '\0';
            make_printable(t->report.words);
        } else if (!n) {
            close(t->control);
            t->control = -1;
        }
    }
}

bool
tail_process_progress(const struct tail_process *t, struct progress *p)
{
    const struct tail_report *r = &t->report;

    *p = (struct progress){ .iteration = r->iteration,
                            .stage = r->stage,
                            .value = r->value,
                            .has_value = isfinite(r->value) };
    ovs_strlcpy(p->metric, r->metric, sizeof p->metric);
    return r->iteration >= 0 && r->iteration <= PROGRESS_MAX_INTEGER
           && r->stage >= -1 && r->stage <= PROGRESS_MAX_INTEGER
           && (!p->metric[0] || name_is_valid(p->metric));
}

static bool
has_ended(struct tail_process *t)
{
    int status;

    if (waitpid(t->pid, &status, WNOHANG) != t->pid) {
        return false;
    }
    t->pid = 0;
    if (WIFSIGNALED(status)) {
        snprintf(t->end, sizeof t->end, "killed by signal %d",
                 WTERMSIG(status));
    } else {
        snprintf(t->end, sizeof t->end, "exit status %d", WEXITSTATUS(status));
    }
    return true;
}

bool
tail_process_run(struct tail_process *t, long long now)
{
    receive_reports(t, now);
    if (!t->stopping && now - t->last_rx >= TAIL_LATE_MS) {
        t->late = true;
        tail_process_stop(t);
    }
    return !has_ended(t);
}

void
tail_process_wait(const struct tail_process *t)
{
    poll_fd_wait(t->pidfd, POLLIN);
    if (t->control >= 0) {
        poll_fd_wait(t->control, POLLIN);
    }
    if (!t->stopping) {
        poll_timer_wait_until(t->last_rx + TAIL_LATE_MS);
    }
}
