/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/run/search-run.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controller/ovsdb/database.h"
#include "lab/cluster/members.h"
#include "lab/cluster/plan.h"
#include "lab/cluster/console.h"
#include "lab/cluster/spawn.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/poll-loop.h"
#include "process.h"
#include "reporting/report.h"
#include "scenario/scenario.h"
#include "timeval.h"
#include "util.h"

#define MAX_LINE 65536          /* Longer lines are ignored. */
#define STOP_MS 2000            /* From SIGTERM to SIGKILL. */
#define TAIL_LINES 5            /* Lines of its log in the message about a
                                 * failure. */

/* A job of a search. */
struct job {
    char *name;
    uint64_t hosts;             /* Bit i: the job has a process on host i. */
    bool live;                  /* True if the job is in the running stage. */
    long long iteration;
};

struct search_state {
    const char *cojob;
    struct report_policy *policy;
    long long epoch_ms;

    double begin_s;             /* Start of the search, seconds after
                                 * 'epoch_ms'; NAN before it. */
    int rung;                   /* Running rung, -1 between stages. */
    long long target;           /* Iteration at which the running stage
                                 * ends. */
    size_t n_jobs, allocated_jobs;
    struct job *jobs;
    cJSON *placements;          /* Placements of the search: the hosts of its
                                 * jobs. */
};

struct search_run {
    const struct plan *plan;
    const struct scenario_search *search;
    struct search_state *state; /* State according to its events. */

    pid_t pid;                  /* 0 before it starts and after its end. */
    int fd;                     /* Its standard output, -1 if closed. */
    int events;                 /* File with a copy of its output, -1 if
                                 * closed. */
    struct ds buffer;           /* Incomplete last line of its output. */
    char *log;                  /* File with its standard error. */
    char *error;                /* Reason of the failure, or NULL. */
    bool over;
};

static cJSON *
parse_placements(const char *text)
{
    cJSON *search = cJSON_Parse(text);
    cJSON *placements = cJSON_DetachItemFromObject(search, "placements");

    cJSON_Delete(search);
    return placements;
}

static struct search_state *
search_state_create(const struct scenario_search *search,
                    struct report_policy *policy, long long epoch_ms)
{
    struct search_state *ss = xzalloc(sizeof *ss);

    ss->cojob = search->cojob;
    ss->policy = policy;
    ss->epoch_ms = epoch_ms;
    ss->begin_s = NAN;
    ss->rung = -1;
    ss->placements = parse_placements(search->text);
    return ss;
}

static void
search_state_destroy(struct search_state *ss)
{
    if (ss) {
        for (size_t i = 0; i < ss->n_jobs; i++) {
            free(ss->jobs[i].name);
        }
        free(ss->jobs);
        cJSON_Delete(ss->placements);
        free(ss);
    }
}

static void
search_state_start(struct search_state *ss)
{
    report_search_begin(ss->policy, ss->cojob,
                        (time_wall_msec() - ss->epoch_ms) / 1000.0);
}

static const char *
get_string(const cJSON *event, const char *name)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItem(event, name));

    return s ? s : "";
}

/* Returns the number 'name', NAN if it is missing. */
static double
get_number(const cJSON *event, const char *name)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(event, name));
}

static long long
get_integer(const cJSON *event, const char *name)
{
    double d = get_number(event, name);

    return d >= 0 && d < 1e15 ? d : 0;
}

/* Returns the hosts in array 'role' of 'placement', named h0, h1..., as
 * bits. */
static uint64_t
placed_hosts(const cJSON *placement, const char *role)
{
    const cJSON *names = cJSON_GetObjectItem(placement, role);
    const cJSON *name;
    uint64_t hosts = 0;

    cJSON_ArrayForEach (name, names) {
        const char *text = cJSON_GetStringValue(name);
        int host;

        if (text && sscanf(text, "h%d", &host) == 1 && host >= 0
            && host < SCENARIO_MAX_HOSTS) {
            hosts |= UINT64_C(1) << host;
        }
    }
    return hosts;
}

static struct job *
find_job(struct search_state *ss, const char *name)
{
    for (size_t i = 0; i < ss->n_jobs; i++) {
        if (!strcmp(ss->jobs[i].name, name)) {
            return &ss->jobs[i];
        }
    }
    return NULL;
}

/* Returns the job 'name', after adding it if necessary.  Jobs use the
 * placements of the search in turn. */
static struct job *
get_job(struct search_state *ss, const char *name)
{
    struct job *job = find_job(ss, name);
    int n = cJSON_GetArraySize(ss->placements);

    if (!job) {
        const cJSON *p = n ? cJSON_GetArrayItem(ss->placements,
                                                ss->n_jobs % n) : NULL;

        if (ss->n_jobs >= ss->allocated_jobs) {
            ss->jobs = x2nrealloc(ss->jobs, &ss->allocated_jobs,
                                  sizeof *ss->jobs);
        }
        job = &ss->jobs[ss->n_jobs++];
        *job = (struct job) {
            .name = xstrdup(name),
            .hosts = placed_hosts(p, "workers") | placed_hosts(p, "servers"),
        };
    }
    return job;
}

static void
no_stage(struct search_state *ss)
{
    for (size_t i = 0; i < ss->n_jobs; i++) {
        ss->jobs[i].live = false;
    }
    ss->rung = -1;
}

/* The first stage of a search is announced when its jobs have connected and
 * have their parameters.  The report counts that time too, because it depends
 * on the policy. */
static void
stage_begin(struct search_state *ss, const cJSON *event, double t)
{
    const cJSON *jobs = cJSON_GetObjectItem(event, "jobs");
    const cJSON *job;

    no_stage(ss);
    ss->rung = get_integer(event, "rung");
    ss->target = get_integer(event, "iterations");
    cJSON_ArrayForEach (job, jobs) {
        const char *name = cJSON_GetStringValue(job);

        if (name) {
            get_job(ss, name)->live = true;
        }
    }
    report_stage_begin(ss->policy, get_string(event, "cojob"), ss->rung,
                       ss->rung || isnan(ss->begin_s) ? t : ss->begin_s,
                       cJSON_GetArraySize(jobs));
}

static void
progress(struct search_state *ss, const cJSON *event, double t)
{
    const char *name = get_string(event, "job");
    long long iteration = get_integer(event, "iteration");
    struct job *job = find_job(ss, name);

    if (job) {
        job->iteration = iteration;
    }
    report_progress(ss->policy, get_string(event, "cojob"), name, t,
                    iteration, get_number(event, "loss"),
                    get_number(event, "accuracy"));
}

static void
job_end(struct search_state *ss, const cJSON *event, double t)
{
    const char *name = get_string(event, "job");
    const char *outcome = get_string(event, "outcome");
    struct job *job;

    progress(ss, event, t);
    job = find_job(ss, name);
    if (job) {
        job->live = false;
    }
    if (!strcmp(outcome, "failed")) {
        say("%s/%s failed", get_string(event, "cojob"), name);
    }
    report_job_end(ss->policy, get_string(event, "cojob"), name, outcome);
}

void
search_run_event(struct search_run *sr, const char *line)
{
    struct search_state *ss = sr->state;
    cJSON *event = cJSON_Parse(line);
    const char *type = get_string(event, "event");
    const char *cojob = get_string(event, "cojob");
    double t = (get_number(event, "time") - ss->epoch_ms) / 1000;

    if (isnan(t)) {
        /* Not an event. */
    } else if (!strcmp(type, "search-begin")) {
        ss->begin_s = t;
        report_search_begin(ss->policy, cojob, t);
    } else if (!strcmp(type, "job-begin")) {
        get_job(ss, get_string(event, "job"));
    } else if (!strcmp(type, "stage-begin")) {
        stage_begin(ss, event, t);
    } else if (!strcmp(type, "progress")) {
        progress(ss, event, t);
    } else if (!strcmp(type, "stage-end")) {
        report_stage_end(ss->policy, cojob, get_integer(event, "rung"), t);
        no_stage(ss);
    } else if (!strcmp(type, "job-end")) {
        job_end(ss, event, t);
    } else if (!strcmp(type, "search-end")) {
        const char *best = get_string(event, "best");

        report_search_end(ss->policy, cojob, t, *best ? best : NULL);
    }
    cJSON_Delete(event);
}

size_t
search_run_jobs(const struct search_run *sr, struct search_job jobs[],
                size_t max)
{
    const struct search_state *ss = sr->state;
    size_t n = 0;

    for (size_t i = 0; ss->rung >= 0 && i < ss->n_jobs; i++) {
        if (ss->jobs[i].live && ss->jobs[i].iteration < ss->target) {
            if (n < max) {
                jobs[n] = (struct search_job) {
                    .cojob = ss->cojob,
                    .job = ss->jobs[i].name,
                    .hosts = ss->jobs[i].hosts,
                    .iteration = ss->jobs[i].iteration,
                    .target = ss->target,
                };
            }
            n++;
        }
    }
    return MIN(n, max);
}

static void
search_state_status(const struct search_state *ss, struct ds *ds)
{
    long long least = ss->target;

    if (ss->rung < 0) {
        ds_put_cstr(ds, " -");
        return;
    }
    for (size_t i = 0; i < ss->n_jobs; i++) {
        if (ss->jobs[i].live) {
            least = MIN(least, ss->jobs[i].iteration);
        }
    }
    ds_put_format(ds, " rung %d %lld/%lld", ss->rung, least, ss->target);
}

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

/* Writes the search file into the run directory and starts the search. */
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

static void
take_lines(struct search_run *sr)
{
    char *line = ds_cstr(&sr->buffer);
    char *newline;

    while ((newline = strchr(line, '\n'))) {
        *newline = '\0';
        search_run_event(sr, line);
        line = newline + 1;
    }
    size_t rest = strlen(line);

    memmove(sr->buffer.string, line, rest + 1);
    sr->buffer.length = rest > MAX_LINE ? 0 : rest;
}

/* Reads the available output.  Returns false at the end of file. */
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
