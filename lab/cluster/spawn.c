/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/cluster/cgroup-tree.h"
#include "process.h"
#include "util.h"

/* Where "ip netns" keeps the names of network namespaces. */
#define NETNS_DIR "/run/netns"

/* Enters network namespace 'name'.  Returns 0 or a positive errno value. */
int
netns_enter(const char *name)
{
    char *path = xasprintf(NETNS_DIR"/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int error = 0;

    free(path);
    if (fd < 0) {
        return errno;
    }
    if (setns(fd, CLONE_NEWNET)) {
        error = errno;
    }
    close(fd);
    return error;
}

/* Calls 'cb' with 'aux' while in network namespace 'name' and returns what it
 * returns, or a negative errno value if the namespace cannot be entered. */
int
netns_call(const char *name, int (*cb)(void *aux), void *aux)
{
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    int error, result;

    if (home < 0) {
        return -errno;
    }
    error = netns_enter(name);
    result = error ? -error : cb(aux);
    if (!error && setns(home, CLONE_NEWNET)) {
        ovs_fatal(errno, "cannot return to the own network namespace");
    }
    close(home);
    return result;
}

static void OVS_NO_RETURN
child_fail(const char *what, int error)
{
    dprintf(STDERR_FILENO, "%s: %s\n", what, ovs_strerror(error));
    _exit(127);
}

static void
child_redirect(int fd, int to, int null)
{
    if (dup2(fd ? fd : null, to) < 0) {
        _exit(127);
    }
}

/* The child's half of spawn(). */
static void OVS_NO_RETURN
child_main(const struct spawn *s, pid_t parent)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;
    int error;

    /* The order matters: messages about the rest go to the new stderr. */
    child_redirect(s->err, STDERR_FILENO, null);
    child_redirect(s->in, STDIN_FILENO, null);
    child_redirect(s->out, STDOUT_FILENO, null);

    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(127);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);

    error = s->cgroup ? cgroup_tree_join(s->cgroup) : 0;
    if (error) {
        child_fail(s->cgroup, error);
    }
    error = s->netns ? netns_enter(s->netns) : 0;
    if (error) {
        child_fail(s->netns, error);
    }
    for (const char *const *e = s->env; e && *e; e++) {
        putenv(CONST_CAST(char *, *e));
    }
    execvp(s->argv[0], (char *const *) s->argv);
    child_fail(s->argv[0], errno);
}

/* Starts what 's' says and stores its process id in '*pidp'.  Returns 0 or a
 * positive errno value; that the program cannot be executed shows as exit
 * status 127 and a line at its standard error. */
int
spawn(const struct spawn *s, pid_t *pidp)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid < 0) {
        return errno;
    }
    if (!pid) {
        child_main(s, parent);
    }
    *pidp = pid;
    return 0;
}

int
wait_child(pid_t pid, int timeout_ms, int *statusp)
{
    int fd = pidfd_open(pid, 0);
    struct pollfd pfd = { .fd = fd, .events = POLLIN };
    int n;

    if (fd < 0) {
        return false;
    }
    do {
        n = poll(&pfd, 1, timeout_ms);
    } while (n < 0 && errno == EINTR);
    close(fd);
    return n > 0 && waitpid(pid, statusp, 0) == pid;
}

static char *
read_memfd(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char *text;
    ssize_t n;

    size = MAX(0, size);
    text = xmalloc(size + 1);
    n = pread(fd, text, size, 0);
    text[MAX(0, n)] = '\0';
    return text;
}

/* Returns the last line of 'text' that is not empty, cutting 'text'. */
static char *
last_line(char *text)
{
    size_t n = strlen(text);

    while (n > 0 && strchr("\n ", text[n - 1])) {
        text[--n] = '\0';
    }
    return strrchr(text, '\n') ? strrchr(text, '\n') + 1 : text;
}

static char *
tool_message(const char *const argv[], int status, bool ended, char *errors)
{
    const char *line = last_line(errors);

    if (!ended) {
        return xasprintf("%s: no answer in time", argv[0]);
    } else if (*line) {
        return xasprintf("%s %s: %s", argv[0], argv[1] ? argv[1] : "", line);
    }
    return xasprintf("%s %s: %s", argv[0], argv[1] ? argv[1] : "",
                     process_status_msg(status));
}

char *
tool_run(const char *netns, const char *const argv[], const char *input,
         int timeout_ms, char **outputp)
{
    int in = memfd_create("in", MFD_CLOEXEC);
    int out = memfd_create("out", MFD_CLOEXEC);
    int err = memfd_create("err", MFD_CLOEXEC);
    struct spawn s = {
        .argv = argv, .netns = netns, .in = in, .out = out, .err = err,
    };
    size_t length = input ? strlen(input) : 0;
    char *message = NULL;
    int status = 0;
    pid_t pid;

    if (outputp) {
        *outputp = NULL;
    }
    if (in < 0 || out < 0 || err < 0
        || (length && pwrite(in, input, length, 0) != length)
        || spawn(&s, &pid)) {
        message = xasprintf("%s: %s", argv[0], ovs_strerror(errno));
    } else {
        bool ended = wait_child(pid, timeout_ms, &status);

        if (!ended) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
        }
        if (!ended || status) {
            char *errors = read_memfd(err);

            message = tool_message(argv, status, ended, errors);
            free(errors);
        } else if (outputp) {
            *outputp = read_memfd(out);
        }
    }
    close(in);
    close(out);
    close(err);
    return message;
}
