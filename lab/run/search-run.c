/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/run/run.h"

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
#include "lab/cluster/console.h"
#include "lab/cluster/plan.h"
#include "lab/cluster/spawn.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/poll-loop.h"
#include "reporting/report.h"
#include "scenario/scenario.h"
#include "util.h"

#define MAX_LINE 65536          /* Longer lines are ignored. */
#define STOP_MS 2000            /* From SIGTERM to SIGKILL. */

/* A job of a search. */
struct job {
    char *name;
    uint64_t hosts;             /* Bit i: the job has a process on host i. */
    int n_workers;
    double begin;               /* Of its processes, seconds. */
    bool ready;                 /* True if its workers have started. */
    bool live;                  /* True if the job is in the running stage. */
    long long iteration;
};

struct search_run {
    struct run up;
    const char *text;           /* JSON of the search. */

    /* State according to its events. */
    int rung;                   /* Running rung, -1 between stages. */
    long long target;           /* Iteration at which the running stage
                                 * ends. */
    size_t n_jobs, allocated_jobs;
    struct job *jobs;
    cJSON *placements;          /* Placements of the search: the hosts of its
                                 * jobs. */

    pid_t pid;                  /* 0 before it starts and after its end. */
    int fd;                     /* Its standard output, -1 if closed. */
    int events;                 /* File with a copy of its output, -1 if
                                 * closed. */
    struct ds buffer;           /* Incomplete last line of its output. */
    char *log;                  /* File with its standard error. */
};

static struct search_run *
search_run_cast(const struct run *run)
{
    return CONTAINER_OF(run, struct search_run, up);
}

static cJSON *
parse_placements(const char *text)
{
    cJSON *search = cJSON_Parse(text);
    cJSON *placements = cJSON_DetachItemFromObject(search, "placements");

    cJSON_Delete(search);
    return placements;
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
find_job(struct search_run *sr, const char *name)
{
    for (size_t i = 0; i < sr->n_jobs; i++) {
        if (!strcmp(sr->jobs[i].name, name)) {
            return &sr->jobs[i];
        }
    }
    return NULL;
}

/* Returns the job 'name', after adding it if necessary.  Jobs use the
 * placements of the search in turn. */
static struct job *
get_job(struct search_run *sr, const char *name)
{
    struct job *job = find_job(sr, name);
    int n = cJSON_GetArraySize(sr->placements);

    if (!job) {
        const cJSON *p = n ? cJSON_GetArrayItem(sr->placements,
                                                sr->n_jobs % n) : NULL;

        if (sr->n_jobs >= sr->allocated_jobs) {
            sr->jobs = x2nrealloc(sr->jobs, &sr->allocated_jobs,
                                  sizeof *sr->jobs);
        }
        job = &sr->jobs[sr->n_jobs++];
        *job = (struct job){
            .name = xstrdup(name),
            .n_workers = cJSON_GetArraySize(cJSON_GetObjectItem(p, "workers")),
            .hosts = placed_hosts(p, "workers") | placed_hosts(p, "servers")
        };
    }
    return job;
}

static void
no_stage(struct search_run *sr)
{
    for (size_t i = 0; i < sr->n_jobs; i++) {
        sr->jobs[i].live = false;
    }
    sr->rung = -1;
}

static void
stage_begin(struct search_run *sr, const cJSON *event, double t)
{
    const cJSON *jobs = cJSON_GetObjectItem(event, "jobs");
    const cJSON *job;

    no_stage(sr);
    sr->rung = get_integer(event, "rung");
    sr->target = get_integer(event, "iterations");
    cJSON_ArrayForEach (job, jobs) {
        const char *name = cJSON_GetStringValue(job);

        if (name) {
            get_job(sr, name)->live = true;
        }
    }
    report_stage_begin(sr->up.policy, get_string(event, "cojob"), sr->rung, t,
                       cJSON_GetArraySize(jobs));
}

static void
progress(struct search_run *sr, const cJSON *event, double t)
{
    const char *name = get_string(event, "job");
    long long iteration = get_integer(event, "iteration");
    struct job *job = find_job(sr, name);

    if (job) {
        job->iteration = iteration;
    }
    report_progress(sr->up.policy, get_string(event, "cojob"), name, t,
                    iteration, get_number(event, "loss"),
                    get_number(event, "accuracy"));
}

static void
job_end(struct search_run *sr, const cJSON *event, double t)
{
    const char *name = get_string(event, "job");
    const char *outcome = get_string(event, "outcome");
    struct job *job;

    progress(sr, event, t);
    job = find_job(sr, name);
    if (job) {
        job->live = false;
        report_job_devices(sr->up.policy, get_string(event, "cojob"), name,
                           job->begin, t, job->n_workers);
    }
    if (!strcmp(outcome, "failed")) {
        say("%s/%s failed", get_string(event, "cojob"), name);
    }
    report_job_end(sr->up.policy, get_string(event, "cojob"), name, outcome,
                   get_number(event, "exchange_s"));
}

void
search_run_event(struct run *run, const char *line)
{
    struct search_run *sr = search_run_cast(run);
    cJSON *event = cJSON_Parse(line);
    const char *type = get_string(event, "event");
    const char *cojob = get_string(event, "cojob");
    double t = (get_number(event, "time") - run->epoch_ms) / 1000;

    if (isnan(t)) {
        /* Not an event. */
    } else if (!strcmp(type, "search-begin")) {
        report_search_begin(sr->up.policy, cojob, t);
    } else if (!strcmp(type, "job-begin")) {
        get_job(sr, get_string(event, "job"))->begin = t;
    } else if (!strcmp(type, "job-ready")) {
        get_job(sr, get_string(event, "job"))->ready = true;
        report_job_ready(sr->up.policy, cojob, get_string(event, "job"), t,
                         get_number(event, "seconds"));
    } else if (!strcmp(type, "stage-begin")) {
        stage_begin(sr, event, t);
    } else if (!strcmp(type, "progress")) {
        progress(sr, event, t);
    } else if (!strcmp(type, "stage-end")) {
        report_stage_end(sr->up.policy, cojob, get_integer(event, "rung"), t);
        no_stage(sr);
    } else if (!strcmp(type, "job-end")) {
        job_end(sr, event, t);
    } else if (!strcmp(type, "search-end")) {
        const char *best = get_string(event, "best");

        report_search_end(sr->up.policy, cojob, t, *best ? best : NULL);
    }
    cJSON_Delete(event);
}

static size_t
search_run_jobs(const struct run *run, struct run_job jobs[], size_t max)
{
    const struct search_run *sr = search_run_cast(run);
    size_t n = 0;

    for (size_t i = 0; sr->rung >= 0 && i < sr->n_jobs && n < max; i++) {
        const struct job *job = &sr->jobs[i];

        if (job->live && job->ready && job->iteration < sr->target) {
            jobs[n++] = (struct run_job) {
                .cojob = run->cojob, .job = job->name, .hosts = job->hosts,
                .iteration = job->iteration, .target = sr->target,
            };
        }
    }
    return n;
}

static void
search_run_status(const struct run *run, struct ds *ds)
{
    const struct search_run *sr = search_run_cast(run);
    long long least = sr->target;

    if (sr->rung < 0) {
        ds_put_cstr(ds, " -");
        return;
    }
    for (size_t i = 0; i < sr->n_jobs; i++) {
        if (sr->jobs[i].live) {
            least = MIN(least, sr->jobs[i].iteration);
        }
    }
    ds_put_format(ds, " rung %d %lld/%lld", sr->rung, least, sr->target);
}

static void
search_run_destroy(struct run *run)
{
    struct search_run *sr = search_run_cast(run);
    int status;

    if (sr->pid) {
        kill(sr->pid, SIGTERM);
        end_child(sr->pid, sr->pid, time_msec() + STOP_MS, &status);
    }
    if (sr->fd >= 0) {
        close(sr->fd);
    }
    if (sr->events >= 0) {
        close(sr->events);
    }
    for (size_t i = 0; i < sr->n_jobs; i++) {
        free(sr->jobs[i].name);
    }
    free(sr->jobs);
    cJSON_Delete(sr->placements);
    ds_destroy(&sr->buffer);
    free(sr->log);
    free(run->error);
    free(sr);
}

static char *
start_program(struct search_run *sr, const char *file)
{
    const struct plan *plan = sr->up.plan;
    char *program = plan_program(plan, "stagecoach");
    char *cluster = xasprintf("%s/cluster.json", plan->rundir);
    char *intent = plan_remote(plan, &database_intent);
    char *events = xasprintf("%s/log/search-%s.events", plan->rundir,
                             sr->up.cojob);
    const char *const argv[] = {
        program, "search", "run", file, "--cluster", cluster, "--intent",
        intent, "--format", "json", NULL
    };
    int log = open_log(sr->log);
    struct spawn s = {
        .argv = argv, .cgroup = plan->daemons_cgroup, .err = log,
    };
    int fds[2] = { -1, -1 };
    int error = 0;

    sr->events = open_log(events);
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
    free(events);
    return error ? xasprintf("search %s: cannot be started (%s)",
                             sr->up.cojob, ovs_strerror(error)) : NULL;
}

/* Writes the search file into the run directory and starts the search. */
static char *
search_run_start(struct run *run)
{
    struct search_run *sr = search_run_cast(run);
    char *file = xasprintf("%s/search-%s.json", run->plan->rundir, run->cojob);
    char *error = plan_write_text(file, sr->text);

    report_search_begin(run->policy, run->cojob, run_elapsed(run));
    error = error ? error : start_program(sr, file);
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
        search_run_event(&sr->up, line);
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
search_run_run(struct run *run)
{
    struct search_run *sr = search_run_cast(run);
    int status;

    if (sr->fd >= 0 && !read_output(sr)) {
        close(sr->fd);
        sr->fd = -1;
    }
    if (sr->pid && waitpid(sr->pid, &status, WNOHANG) == sr->pid) {
        if (sr->fd >= 0) {
            read_output(sr);
        }
        sr->pid = 0;
        run->over = true;
        if (status) {
            char *what = xasprintf("search %s", run->cojob);

            run->error = say_failure(what, status, sr->log);
            free(what);
        }
    }
}

static void
search_run_wait(struct run *run)
{
    const struct search_run *sr = search_run_cast(run);

    if (sr->fd >= 0) {
        poll_fd_wait(sr->fd, POLLIN);
    }
}

static const struct run_class search_run_class = {
    .start = search_run_start, .run = search_run_run, .wait = search_run_wait,
    .jobs = search_run_jobs, .status = search_run_status,
    .destroy = search_run_destroy
};

struct run *
search_run_create(const struct plan *plan, const struct scenario_search *ss,
                  struct report_policy *policy, long long epoch_ms,
                  long long begin_ms)
{
    struct search_run *sr = xzalloc(sizeof *sr);
    char *name = xasprintf("search-%s", ss->cojob);

    sr->up = (struct run) {
        .class = &search_run_class, .cojob = ss->cojob,
        .start_s = ss->start_s, .plan = plan, .policy = policy,
        .epoch_ms = epoch_ms, .begin_ms = begin_ms,
    };
    sr->text = ss->text;
    sr->rung = -1;
    sr->placements = parse_placements(ss->text);
    sr->fd = -1;
    sr->events = -1;
    ds_init(&sr->buffer);
    sr->log = plan_log(plan, name);
    free(name);
    return &sr->up;
}
