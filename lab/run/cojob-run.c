/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/run/cojob-run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "reporting/report.h"
#include "controller/ovsdb/database.h"
#include "controller/intent/intent-client.h"
#include "lab/run/cojob-processes.h"
#include "lab/run/cojob-watch.h"
#include "lab/cluster/members.h"
#include "lab/cluster/say.h"
#include "scenario/scenario.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/poll-loop.h"
#include "timeval.h"
#include "util.h"

#define INTENT_MS 2000          /* For the database to answer. */
#define POLL_MS 100             /* Between two looks at processes and
                                 * agents. */

struct cojob_run {
    const struct scenario_cojob *cojob;
    struct report_policy *policy;
    long long epoch_ms;
    struct intent_client *intent;
    struct cojob_watch *watch;
    struct cojob_processes *processes;

    int rung;                   /* That runs, -1 before and after all. */
    long long next_poll;
    char *error;                /* Why it failed. */
    bool over;
};

static double
elapsed(const struct cojob_run *cr)
{
    return (time_wall_msec() - cr->epoch_ms) / 1000.0;
}

struct cojob_run *
cojob_run_create(const struct plan *plan, const struct scenario *scenario,
                 const struct scenario_cojob *cojob,
                 struct report_policy *policy, long long epoch_ms)
{
    struct cojob_run *cr = xzalloc(sizeof *cr);
    char *remote = members_remote(plan, &database_intent);

    cr->cojob = cojob;
    cr->policy = policy;
    cr->epoch_ms = epoch_ms;
    cr->rung = -1;
    cr->intent = intent_client_create(remote, INTENT_MS);
    cr->watch = cojob_watch_create(plan, cojob);
    cr->processes = cojob_processes_create(plan, scenario, cojob);
    free(remote);
    return cr;
}

void
cojob_run_destroy(struct cojob_run *cr)
{
    if (cr) {
        cojob_processes_destroy(cr->processes);
        cojob_watch_destroy(cr->watch);
        intent_client_destroy(cr->intent);
        free(cr->error);
        free(cr);
    }
}

/* Announces a change of the cojob.  The jobs run even if that fails. */
static void
announce(const struct cojob_run *cr, struct intent_edit edit)
{
    char *error;

    edit.cojob = cr->cojob->name;
    error = intent_client_write(cr->intent, &edit);
    if (error) {
        say("cojob %s: %s", cr->cojob->name, error);
        free(error);
    }
}

static void
announce_job(struct cojob_run *cr, const struct scenario_job *job)
{
    struct intent_worker *workers = xcalloc(job->n_hosts, sizeof *workers);
    char **names = xcalloc(job->n_hosts, sizeof *names);

    for (size_t i = 0; i < job->n_hosts; i++) {
        names[i] = xasprintf("h%d", job->hosts[i]);
        workers[i] = (struct intent_worker) {
            .host = names[i], .role = "peer", .index = i,
        };
    }
    announce(cr, (struct intent_edit) {
        .kind = INTENT_JOB_BEGIN, .job = job->name, .workers = workers,
        .n = job->n_hosts,
    });
    for (size_t i = 0; i < job->n_hosts; i++) {
        free(names[i]);
    }
    free(names);
    free(workers);
}

static void
begin_stage(struct cojob_run *cr)
{
    const struct scenario_cojob *cojob = cr->cojob;
    const char **names = xcalloc(cojob->n_jobs, sizeof *names);

    cr->rung++;
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        names[i] = cojob->jobs[i].name;
    }
    announce(cr, (struct intent_edit) {
        .kind = INTENT_STAGE_BEGIN, .rung = cr->rung,
        .iterations = cojob->stages[cr->rung], .jobs = names,
        .n = cojob->n_jobs,
    });
    report_stage_begin(cr->policy, cojob->name, cr->rung, elapsed(cr),
                       cojob->n_jobs);
    free(names);
}

static void
end_stage(struct cojob_run *cr)
{
    report_stage_end(cr->policy, cr->cojob->name, cr->rung, elapsed(cr));
    announce(cr, (struct intent_edit) {
        .kind = INTENT_STAGE_END, .rung = cr->rung,
    });
}

/* Announces the cojob and its first stage, and starts its processes. */
char *
cojob_run_start(struct cojob_run *cr)
{
    const struct scenario_cojob *cojob = cr->cojob;

    report_search_begin(cr->policy, cojob->name, elapsed(cr));
    announce(cr, (struct intent_edit) {
        .kind = INTENT_COJOB_BEGIN, .weight = cojob->weight,
    });
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        announce_job(cr, &cojob->jobs[i]);
    }
    cojob_watch_begin(cr->watch);
    begin_stage(cr);
    return cojob_processes_start(cr->processes);
}

/* A job that has ended has done all that it will do. */
static bool
stage_is_done(const struct cojob_run *cr)
{
    const struct scenario_cojob *cojob = cr->cojob;

    if (cr->rung + 1 == (int) cojob->n_stages && cojob->until_exit) {
        return !cojob_processes_are_running(cr->processes, NULL);
    }
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        if (cojob_processes_are_running(cr->processes, &cojob->jobs[i])
            && cojob_watch_iteration(cr->watch, i)
               < cojob->stages[cr->rung]) {
            return false;
        }
    }
    return true;
}

static void
finish(struct cojob_run *cr)
{
    const struct scenario_cojob *cojob = cr->cojob;

    cojob_processes_stop(cr->processes);
    cojob_watch_run(cr->watch);
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        const char *name = cojob->jobs[i].name;

        report_progress(cr->policy, cojob->name, name, elapsed(cr),
                        MAX(0, cojob_watch_iteration(cr->watch, i)), NAN,
                        NAN);
        report_job_end(cr->policy, cojob->name, name, "done");
        announce(cr, (struct intent_edit) {
            .kind = INTENT_JOB_END, .job = name, .outcome = "done",
        });
    }
    announce(cr, (struct intent_edit) { .kind = INTENT_COJOB_END });
    report_search_end(cr->policy, cojob->name, elapsed(cr), NULL);
    cojob_watch_report(cr->watch, cr->policy);
    cr->rung = -1;
    cr->over = true;
}

void
cojob_run_run(struct cojob_run *cr)
{
    if (cr->over || time_msec() < cr->next_poll) {
        return;
    }
    cr->next_poll = time_msec() + POLL_MS;
    cr->error = cojob_processes_reap(cr->processes);
    cr->over = cr->error;
    cojob_watch_run(cr->watch);
    if (!cr->over && stage_is_done(cr)) {
        end_stage(cr);
        if (cr->rung + 1 < (int) cr->cojob->n_stages) {
            begin_stage(cr);
        } else {
            finish(cr);
        }
    }
}

void
cojob_run_wait(struct cojob_run *cr)
{
    if (!cr->over) {
        poll_timer_wait_until(cr->next_poll);
    }
}

bool
cojob_run_is_over(const struct cojob_run *cr)
{
    return cr->over;
}

char *
cojob_run_error(const struct cojob_run *cr)
{
    return nullable_xstrdup(cr->error);
}

size_t
cojob_run_jobs(const struct cojob_run *cr, struct search_job jobs[],
               size_t max)
{
    const struct scenario_cojob *cojob = cr->cojob;
    size_t n = 0;

    for (size_t i = 0; cr->rung >= 0 && i < cojob->n_jobs && n < max; i++) {
        const struct scenario_job *job = &cojob->jobs[i];
        struct search_job sj = {
            .cojob = cojob->name, .job = job->name,
            .iteration = cojob_watch_iteration(cr->watch, i),
            .target = cojob->stages[cr->rung],
        };

        for (size_t j = 0; j < job->n_hosts; j++) {
            sj.hosts |= UINT64_C(1) << job->hosts[j];
        }
        if (cojob_processes_are_running(cr->processes, job) && sj.iteration > 0
            && sj.iteration < sj.target) {
            jobs[n++] = sj;
        }
    }
    return n;
}

void
cojob_run_status(const struct cojob_run *cr, struct ds *ds)
{
    const struct scenario_cojob *cojob = cr->cojob;
    long long least = INT64_MAX;

    ds_put_cstr(ds, cojob->name);
    if (cr->over) {
        ds_put_cstr(ds, cr->error ? " failed" : " done");
        return;
    }
    for (size_t i = 0; i < cojob->n_jobs; i++) {
        least = MIN(least, cojob_watch_iteration(cr->watch, i));
    }
    ds_put_format(ds, " rung %d %lld/%"PRId64, cr->rung, MAX(0, least),
                  cojob->stages[cr->rung]);
}
