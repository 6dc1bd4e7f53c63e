/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/cluster/say.h"
#include "lab/cluster/spawn.h"
#include "openvswitch/list.h"
#include "openvswitch/poll-loop.h"
#include "process.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

#define RESTART_MS 100          /* From its end to its next start. */
#define STOP_MS 1500            /* From SIGTERM to SIGKILL. */
#define YOUNG_MS 5000           /* A daemon that ends before is failing... */
#define MAX_YOUNG 5             /* ...and after so many times, hopeless. */
#define TAIL_LINES 8            /* Of the log of a hopeless one. */

struct daemon {
    struct ovs_list node;       /* In supervisor's 'daemons', as started. */
    char *name;
    char *netns;                /* NULL for that of the lab. */
    char *log;
    struct svec env, argv;
    pid_t pid;                  /* 0 while it is not running. */
    long long started;          /* When it was started last. */
    long long restart_at;       /* When to start it again, if 'pid' is 0. */
    int n_young;                /* Times in a row that it ended young. */
};

struct supervisor {
    struct ovs_list daemons;
    char *log_dir;
    char *cgroup;
    unsigned int n_restarts;
};

struct supervisor *
supervisor_create(const char *log_dir, const char *cgroup)
{
    struct supervisor *sv = xzalloc(sizeof *sv);

    ovs_list_init(&sv->daemons);
    sv->log_dir = xstrdup(log_dir);
    sv->cgroup = xstrdup(cgroup);
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
        free(sv->log_dir);
        free(sv->cgroup);
        free(sv);
    }
}

static char *
daemon_start(struct supervisor *sv, struct daemon *d)
{
    int log = open(d->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    struct spawn s = {
        .argv = (const char *const *) d->argv.names,
        .env = (const char *const *) d->env.names,
        .netns = d->netns,
        .cgroup = sv->cgroup,
        .out = log,
        .err = log,
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

static void
copy_strings(struct svec *to, const char *const from[])
{
    svec_init(to);
    for (; from && *from; from++) {
        svec_add(to, *from);
    }
    svec_terminate(to);
}

char *
supervisor_add(struct supervisor *sv, const char *name, const char *netns,
               const char *const env[], const char *const argv[])
{
    struct daemon *d = xzalloc(sizeof *d);

    d->name = xstrdup(name);
    d->netns = nullable_xstrdup(netns);
    d->log = xasprintf("%s/%s.log", sv->log_dir, name);
    copy_strings(&d->env, env);
    copy_strings(&d->argv, argv);
    ovs_list_push_back(&sv->daemons, &d->node);
    return daemon_start(sv, d);
}

/* 'd' has ended with 'status': says so and decides when it starts again.
 * Returns a message if that is no use. */
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

        error = xasprintf("%s: ends whenever it is started (%s); the end of "
                          "%s:\n%s", d->name, how, d->log, tail);
        free(tail);
    } else {
        sv->n_restarts++;
        say("%s ended (%s), starting it again", d->name, how);
    }
    free(how);
    return error;
}

/* Reaps daemons that have ended and starts them again.  Returns NULL or a
 * message that the lab cannot go on. */
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

/* The end of a child comes as a signal, which the caller waits for. */
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

/* Ends all daemons: those who use others' services were started after them,
 * so the last one first. */
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
            if (!wait_child(d->pid, MAX(0, deadline - time_msec()),
                            &status)) {
                kill(d->pid, SIGKILL);
                waitpid(d->pid, &status, 0);
            }
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
