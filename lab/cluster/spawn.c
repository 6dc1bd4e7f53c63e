/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/cluster/cgroup-tree.h"
#include "lab/cluster/console.h"
#include "lab/cluster/plan.h"
#include "openvswitch/list.h"
#include "openvswitch/poll-loop.h"
#include "process.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

/* Folder in which "ip netns" keeps the names of network namespaces. */
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

/* Calls 'cb' with 'aux' in network namespace 'name'.  Returns its result, or a
 * negative errno value if the namespace cannot be entered. */
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
        ovs_fatal(errno, "cannot return to the initial network namespace");
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

    /* Standard error first, so that it gets the messages about the rest. */
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

/* Starts the program of 's' and stores its process id in '*pidp'.  Returns 0
 * or a positive errno value.  If the program cannot be executed, the child
 * writes a message and exits with status 127. */
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
open_log(const char *file)
{
    return open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static bool
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

bool
end_child(pid_t pid, pid_t victim, long long deadline, int *statusp)
{
    if (wait_child(pid, MAX(0, deadline - time_msec()), statusp)) {
        return true;
    }
    kill(victim, SIGKILL);
    waitpid(pid, statusp, 0);
    return false;
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

/* Returns the last nonempty line of 'text', which is modified. */
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
    char *how, *message;

    if (!ended) {
        return xasprintf("%s: timed out", argv[0]);
    }
    how = process_status_msg(status);
    message = xasprintf("%s %s: %s", argv[0], argv[1] ? argv[1] : "",
                        *line ? line : how);
    free(how);
    return message;
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
        bool ended = end_child(pid, pid, time_msec() + timeout_ms, &status);

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

#define RESTART_MS 100          /* Delay before a restart. */
#define STOP_MS 1500            /* From SIGTERM to SIGKILL. */
#define YOUNG_MS 5000           /* A daemon that ends earlier has failed. */
#define MAX_YOUNG 5             /* Failures in a row after which the lab gives
                                 * up. */
#define TAIL_LINES 8            /* Lines of the log in the message about
                                 * that. */

struct daemon {
    struct ovs_list node;       /* In supervisor's 'daemons', in order of
                                 * start. */
    char *name;
    char *netns;                /* NULL for the namespace of the lab. */
    char *log;
    struct svec env, argv;
    pid_t pid;                  /* 0 while it is not running. */
    long long started;          /* time_msec() of the last start. */
    long long restart_at;       /* time_msec() of the next start, if 'pid' is
                                 * 0. */
    int n_young;                /* Failures in a row. */
};

struct supervisor {
    const struct plan *plan;
    struct ovs_list daemons;
    unsigned int n_restarts;
};

struct supervisor *
supervisor_create(const struct plan *plan)
{
    struct supervisor *sv = xzalloc(sizeof *sv);

    sv->plan = plan;
    ovs_list_init(&sv->daemons);
    return sv;
}

void
supervisor_destroy(struct supervisor *sv)
{
    struct daemon *d;

    if (sv) {
        LIST_FOR_EACH_POP (d, node, &sv->daemons) {
            free(d->name);
            free(d->netns);
            free(d->log);
            svec_destroy(&d->env);
            svec_destroy(&d->argv);
            free(d);
        }
        free(sv);
    }
}

static char *
daemon_start(struct supervisor *sv, struct daemon *d)
{
    int log = open_log(d->log);
    struct spawn s = {
        .argv = (const char *const *) d->argv.names,
        .env = (const char *const *) d->env.names, .netns = d->netns,
        .cgroup = sv->plan->daemons_cgroup, .out = log, .err = log
    };
    int error;

    if (log < 0) {
        return xasprintf("%s: %s", d->log, ovs_strerror(errno));
    }
    d->started = time_msec();
    error = spawn(&s, &d->pid);
    close(log);
    return error ? xasprintf("%s: cannot be started (%s)", d->name,
                             ovs_strerror(error)) : NULL;
}

char *
supervisor_add(struct supervisor *sv, const char *name, const char *netns,
               struct svec *env, struct svec *argv)
{
    struct daemon *d = xzalloc(sizeof *d);

    svec_terminate(env);
    svec_terminate(argv);
    d->name = xstrdup(name);
    d->netns = nullable_xstrdup(netns);
    d->log = plan_log(sv->plan, name);
    d->env = *env;
    d->argv = *argv;
    ovs_list_push_back(&sv->daemons, &d->node);
    return daemon_start(sv, d);
}

/* Handles the end of 'd' with 'status': schedules its restart.  Returns a
 * message after too many failures in a row. */
static char *
daemon_ended(struct supervisor *sv, struct daemon *d, int status)
{
    char *how = process_status_msg(status);
    char *error = NULL;

    d->pid = 0;
    d->restart_at = time_msec() + RESTART_MS;
    d->n_young = time_msec() < d->started + YOUNG_MS ? d->n_young + 1 : 0;
    if (d->n_young >= MAX_YOUNG) {
        char *tail = say_tail(d->log, TAIL_LINES);

        error = xasprintf("%s: ends soon after each start (%s); the end of "
                          "%s:\n%s", d->name, how, d->log, tail);
        free(tail);
    } else {
        sv->n_restarts++;
        say("%s ended (%s), restarting it", d->name, how);
    }
    free(how);
    return error;
}

/* Reaps daemons that have ended and restarts them.  Returns NULL, or a message
 * if the lab must end. */
char *
supervisor_run(struct supervisor *sv)
{
    struct daemon *d;

    LIST_FOR_EACH (d, node, &sv->daemons) {
        char *error = NULL;
        int status;

        if (d->pid && waitpid(d->pid, &status, WNOHANG) == d->pid) {
            error = daemon_ended(sv, d, status);
        }
        if (!error && !d->pid && time_msec() >= d->restart_at) {
            error = daemon_start(sv, d);
        }
        if (error) {
            return error;
        }
    }
    return NULL;
}

/* The caller also waits for SIGCHLD. */
void
supervisor_wait(struct supervisor *sv)
{
    struct daemon *d;

    LIST_FOR_EACH (d, node, &sv->daemons) {
        if (!d->pid) {
            poll_timer_wait_until(d->restart_at);
        }
    }
}

/* Stops all daemons, the last one first: clients are started after their
 * servers. */
void
supervisor_stop(struct supervisor *sv)
{
    struct daemon *d;

    LIST_FOR_EACH_REVERSE (d, node, &sv->daemons) {
        if (d->pid) {
            kill(d->pid, SIGTERM);
        }
    }

    long long deadline = time_msec() + STOP_MS;

    LIST_FOR_EACH_REVERSE (d, node, &sv->daemons) {
        int status;

        if (d->pid) {
            end_child(d->pid, d->pid, deadline, &status);
            d->pid = 0;
            d->restart_at = LLONG_MAX;
        }
    }
}

unsigned int
supervisor_restarts(const struct supervisor *sv)
{
    return sv->n_restarts;
}

pid_t
supervisor_pid(const struct supervisor *sv, const char *name)
{
    struct daemon *d;

    LIST_FOR_EACH (d, node, &sv->daemons) {
        if (!strcmp(d->name, name)) {
            return d->pid;
        }
    }
    return 0;
}
