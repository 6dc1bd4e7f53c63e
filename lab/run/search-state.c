/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/run/search-state.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reporting/report.h"
#include "lab/cluster/say.h"
#include "scenario/scenario.h"
#include "openvswitch/dynamic-string.h"
#include "timeval.h"
#include "util.h"

/* A job of the search, in the order in which they began. */
struct job {
    char *name;
    uint64_t hosts;             /* Bit i: it has a process on host i. */
    bool live;                  /* In the stage that runs. */
    long long iteration;
};

struct search_state {
    const char *cojob;
    struct report_policy *policy;
    long long epoch_ms;

    double begin_s;             /* Of the search, NAN before it. */
    int rung;                   /* That runs, -1 between stages. */
    long long target;           /* Iterations where it ends. */
    size_t n_jobs, allocated_jobs;
    struct job *jobs;
    cJSON *placements;          /* Of the search: whose hosts are whose. */
};

static cJSON *
parse_placements(const char *text)
{
    cJSON *search = cJSON_Parse(text);
    cJSON *placements = cJSON_DetachItemFromObject(search, "placements");

    cJSON_Delete(search);
    return placements;
}

struct search_state *
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

void
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

void
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

/* Returns NAN if there is no such number. */
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

/* The hosts in array 'role' of 'placement', named h0, h1... */
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

/* Trials take the search's placements in turns. */
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

/* A search says that its first stage begins when its jobs have connected and
 * have their parameters.  Who waits for it waits for that as well, and how
 * long it takes depends on the policy. */
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
search_state_event(struct search_state *ss, const char *line)
{
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
search_state_jobs(const struct search_state *ss, struct search_job jobs[],
                  size_t max)
{
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

void
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
