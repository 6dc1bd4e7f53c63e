/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/run/search-run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controller/ovsdb/database.h"
#include "lab/cluster/members.h"
#include "lab/cluster/plan.h"
#include "lab/cluster/say.h"
#include "scenario/scenario.h"
#include "lab/run/search-state.h"
#include "lab/cluster/spawn.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/poll-loop.h"
#include "process.h"
#include "util.h"

#define MAX_LINE 65536          /* A longer line is not an event. */
#define STOP_MS 2000            /* From SIGTERM to SIGKILL. */
#define TAIL_LINES 5            /* Of its log, when it fails. */

struct search_run {
    const struct plan *plan;
    const struct scenario_search *search;
    struct search_state *state; /* What it has told. */

    pid_t pid;                  /* 0 before it starts and after its end. */
    int fd;                     /* Its standard output, -1 if closed. */
    int events;                 /* Copy of what it says, -1 if closed. */
    struct ds buffer;           /* Of a line that is not complete. */
    char *log;                  /* What it writes to standard error. */
    char *error;                /* Why it failed. */
    bool over;
};

struct search_run *
search_run_create(const struct plan *plan, const struct scenario_search *ss,
                  struct report_policy *policy, long long epoch_ms)
{
    struct search_run *sr = xzalloc(sizeof *sr);
    char *name = xasprintf("search-%s", ss->cojob);

    sr->plan = plan;
    sr->search = ss;
    sr->state = search_state_create(ss, policy, epoch_ms);
    sr->fd = -1;
    sr->events = -1;
    ds_init(&sr->buffer);
    sr->log = plan_log(plan, name);
    free(name);
    return sr;
}

void
search_run_destroy(struct search_run *sr)
{
    if (sr) {
        int status;

        if (sr->pid) {
            kill(sr->pid, SIGTERM);
            if (!wait_child(sr->pid, STOP_MS, &status)) {
                kill(sr->pid, SIGKILL);
                waitpid(sr->pid, &status, 0);
            }
        }
        if (sr->fd >= 0) {
            close(sr->fd);
        }
        if (sr->events >= 0) {
            close(sr->events);
        }
        search_state_destroy(sr->state);
        ds_destroy(&sr->buffer);
        free(sr->log);
        free(sr->error);
        free(sr);
    }
}

static char *
write_search(const struct search_run *sr, const char *file)
{
    FILE *stream = fopen(file, "we");
    bool failed = !stream;

    if (stream) {
        failed = fputs(sr->search->text, stream) < 0;
        failed = fclose(stream) || failed;
    }
    return failed ? xasprintf("%s: %s", file, ovs_strerror(errno)) : NULL;
}

static char *
start_program(struct search_run *sr, const char *file)
{
    char *program = plan_program(sr->plan, "stagecoach");
    char *cluster = xasprintf("%s/cluster.json", sr->plan->rundir);
    char *intent = members_remote(sr->plan, &database_intent);
    char *cgroup = xasprintf("%s/daemons", sr->plan->cgroup);
    char *events = xasprintf("%s/log/search-%s.events", sr->plan->rundir,
                             sr->search->cojob);
    const char *const argv[] = {
        program, "search", "run", file, "--cluster", cluster, "--intent",
        intent, "--format", "json", NULL
    };
    int log = open(sr->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    struct spawn s = { .argv = argv, .cgroup = cgroup, .err = log };
    int fds[2] = { -1, -1 };
    int error = 0;

    sr->events = open(events, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                      0644);
    if (log < 0 || sr->events < 0 || pipe2(fds, O_CLOEXEC)) {
        error = errno;
    } else {
        s.out = fds[1];
        error = spawn(&s, &sr->pid);
        close(fds[1]);
        sr->fd = fds[0];
        fcntl(sr->fd, F_SETFL, O_NONBLOCK);
    }
    if (log >= 0) {
        close(log);
    }
    free(program);
    free(cluster);
    free(intent);
    free(cgroup);
    free(events);
    return error ? xasprintf("search %s: cannot be started (%s)",
                             sr->search->cojob, ovs_strerror(error)) : NULL;
}

/* Writes the search's file into the run directory and starts it. */
char *
search_run_start(struct search_run *sr)
{
    char *file = xasprintf("%s/search-%s.json", sr->plan->rundir,
                           sr->search->cojob);
    char *error = write_search(sr, file);

    search_state_start(sr->state);
    if (!error) {
        error = start_program(sr, file);
    }
    free(file);
    return error;
}

void
search_run_event(struct search_run *sr, const char *line)
{
    search_state_event(sr->state, line);
}

static void
take_lines(struct search_run *sr)
{
    char *line = ds_cstr(&sr->buffer);
    char *newline;

    while ((newline = strchr(line, '\n'))) {
        *newline = '\0';
        search_state_event(sr->state, line);
        line = newline + 1;
    }
    size_t rest = strlen(line);

    memmove(sr->buffer.string, line, rest + 1);
    sr->buffer.length = rest > MAX_LINE ? 0 : rest;
}

/* Reads what there is.  Returns false at the end of file. */
static bool
read_output(struct search_run *sr)
{
    char chunk[4096];
    ssize_t n;

    while ((n = read(sr->fd, chunk, sizeof chunk)) > 0) {
        ignore(write(sr->events, chunk, n));
        ds_put_buffer(&sr->buffer, chunk, n);
        take_lines(sr);
    }
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void
ended(struct search_run *sr, int status)
{
    sr->pid = 0;
    sr->over = true;
    if (status) {
        char *how = process_status_msg(status);
        char *tail = say_tail(sr->log, TAIL_LINES);

        sr->error = xasprintf("search %s failed (%s)%s%s", sr->search->cojob,
                              how, *tail ? ":\n" : "", tail);
        free(tail);
        free(how);
    }
}

void
search_run_run(struct search_run *sr)
{
    int status;

    if (sr->fd >= 0 && !read_output(sr)) {
        close(sr->fd);
        sr->fd = -1;
    }
    if (sr->pid && waitpid(sr->pid, &status, WNOHANG) == sr->pid) {
        if (sr->fd >= 0) {
            read_output(sr);
        }
        ended(sr, status);
    }
}

void
search_run_wait(struct search_run *sr)
{
    if (sr->fd >= 0) {
        poll_fd_wait(sr->fd, POLLIN);
    }
}

bool
search_run_is_over(const struct search_run *sr)
{
    return sr->over;
}

char *
search_run_error(const struct search_run *sr)
{
    return nullable_xstrdup(sr->error);
}

size_t
search_run_jobs(const struct search_run *sr, struct search_job jobs[],
                size_t max)
{
    return search_state_jobs(sr->state, jobs, max);
}

void
search_run_status(const struct search_run *sr, struct ds *ds)
{
    ds_put_cstr(ds, sr->search->cojob);
    if (sr->over) {
        ds_put_cstr(ds, sr->error ? " failed" : " done");
    } else {
        search_state_status(sr->state, ds);
    }
}
