/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/run/run.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/directory.h"
#include "lab/cluster/cluster.h"
#include "lab/cluster/console.h"
#include "lab/cluster/fabric.h"
#include "lab/cluster/plan.h"
#include "lab/cluster/spawn.h"
#include "lab/measure/sampler.h"
#include "lab/measure/stall-watch.h"
#include "lab/run/faults.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/poll-loop.h"
#include "reporting/report.h"
#include "scenario/scenario.h"
#include "timeval.h"
#include "util.h"

#define MAX_JOBS 256            /* Maximum number of jobs of a search that are
                                 * watched. */
#define PLAIN_STATUS_MS 10000   /* Interval of status lines in a log. */
#define SETTLE_MS 2000          /* Time in which the controller must learn of
                                 * the last end. */

struct policy_run {
    struct cluster *cluster;
    const struct plan *plan;
    const struct scenario *scenario;
    struct report_policy *policy;
    long long epoch_ms;         /* Wall time of second 0. */
    long long begin_ms;         /* time_msec() of second 0. */
    size_t n_runs;
    struct run **runs;          /* Searches, then cojobs. */
    struct sampler *sampler;
    struct stall_watch *stalls;
    struct faults *faults;              /* NULL without plan->ha. */
    long long next_plain_ms;
};

/* Returns the seconds since the start of the run. */
static double
elapsed(const struct policy_run *pr)
{
    return (time_msec() - pr->begin_ms) / 1000.0;
}

/* Appends the state of the sockets of a stalled job's hosts to 'ds'. */
static void
put_sockets(const struct policy_run *pr, uint64_t hosts, struct ds *ds)
{
    static const char *const argv[] = { "ss", "-tinHO", NULL };

    for (int i = 0; i < pr->plan->n_hosts; i++) {
        char *text = NULL;
        char *save = NULL;

        if (hosts & (UINT64_C(1) << i)) {
            free(tool_run(pr->plan->hosts[i].ns, argv, NULL, 2000, &text));
        }
        for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
             line = strtok_r(NULL, "\n", &save)) {
            unsigned int queued;

            if (sscanf(line, "%*s %*u %u", &queued) == 1 && queued) {
                ds_put_format(ds, "\n  h%d: %.200s", i, line);
            }
        }
        free(text);
    }
}

/* A job of commands may compute for a long time, so it is stalled only if a
 * socket has data to send. */
static void
watch_job(struct policy_run *pr, const struct run_job *job, bool of_commands)
{
    uint64_t moved = 0;

    for (int i = 0; i < pr->plan->n_hosts; i++) {
        if (job->hosts & (UINT64_C(1) << i)) {
            moved = MAX(moved, sampler_moved(pr->sampler, i));
        }
    }
    if (stall_watch_job(pr->stalls, job->cojob, job->job, job->iteration,
                        moved, time_msec())) {
        struct ds ds = DS_EMPTY_INITIALIZER;

        put_sockets(pr, job->hosts, &ds);
        if (ds.length || !of_commands) {
            pr->policy->stalls++;
            say("%s/%s stalled at iteration %lld: no link of its hosts "
                "has carried 1 %% of its rate for %d s%s", job->cojob,
                job->job, job->iteration, STALL_MS / 1000, ds_cstr(&ds));
        }
        ds_destroy(&ds);
    }
}

static void
watch_stalls(struct policy_run *pr)
{
    for (size_t i = 0; i < pr->n_runs; i++) {
        const struct run *run = pr->runs[i];
        struct run_job jobs[MAX_JOBS];
        size_t n = run->started ? run->class->jobs(run, jobs, MAX_JOBS) : 0;

        for (size_t j = 0; j < n; j++) {
            watch_job(pr, &jobs[j], run->class->of_commands);
        }
    }
}

static void
show_status(struct policy_run *pr)
{
    struct ds ds = DS_EMPTY_INITIALIZER;
    bool plain = time_msec() >= pr->next_plain_ms;

    ds_put_format(&ds, "%s %.0f s", pr->policy->name, elapsed(pr));
    for (size_t i = 0; i < pr->n_runs; i++) {
        const struct run *run = pr->runs[i];

        if (run->started) {
            ds_put_format(&ds, " | %s", run->cojob);
            if (run->over) {
                ds_put_cstr(&ds, run->error ? " failed" : " done");
            } else {
                run->class->status(run, &ds);
            }
        }
    }
    say_status(ds_cstr(&ds), plain ? ds_cstr(&ds) : NULL);
    if (plain) {
        pr->next_plain_ms = time_msec() + PLAIN_STATUS_MS;
    }
    ds_destroy(&ds);
}

/* Starts what is due, and runs it.  Returns true if all has ended or something
 * has failed; then stores the reason in '*errorp', otherwise NULL. */
static bool
run_all(struct policy_run *pr, char **errorp)
{
    bool over = true;

    *errorp = NULL;
    for (size_t i = 0; !*errorp && i < pr->n_runs; i++) {
        struct run *run = pr->runs[i];

        if (!run->started && elapsed(pr) >= run->start_s) {
            run->started = true;
            *errorp = run->class->start(run);
        }
        if (run->started && !*errorp) {
            run->class->run(run);
            *errorp = nullable_xstrdup(run->error);
        }
        over = over && run->over;
    }
    return over || *errorp;
}

static void
wait_for_news(struct policy_run *pr)
{
    for (size_t i = 0; i < pr->n_runs; i++) {
        if (pr->runs[i]->started) {
            pr->runs[i]->class->wait(pr->runs[i]);
        }
    }
    cluster_wait(pr->cluster);
    if (pr->faults) {
        faults_wait(pr->faults);
    }
    sampler_wait(pr->sampler);
    interrupt_wait();
    poll_block();
}

/* Runs until the last search or cojob has ended. */
static char *
main_loop(struct policy_run *pr)
{
    char *error = NULL;

    while (!run_all(pr, &error)) {
        if (sampler_run(pr->sampler)) {
            watch_stalls(pr);
            show_status(pr);
        }
        if (pr->faults) {
            faults_run(pr->faults);
        }
        error = cluster_run(pr->cluster);
        if (error) {
            return error;
        } else if (interrupt_signal()) {
            return xstrdup("interrupted");
        } else if (elapsed(pr) > pr->scenario->timeout_s) {
            return xasprintf("not completed within %g s",
                             pr->scenario->timeout_s);
        }
        wait_for_news(pr);
    }
    return error;
}

static cJSON *
ask(const struct policy_run *pr, const char *command)
{
    char *error;
    cJSON *json = cluster_ask(pr->plan, command, &error);

    if (error) {
        say("%s: %s", command, error);
    }
    free(error);
    return json;
}

static double
get_number(const cJSON *object, const char *member)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(object, member));
}

/* Returns true if the controller has the end of 'n' stages. */
static bool
all_ended(const cJSON *stages, size_t n)
{
    const cJSON *stage;
    size_t n_ended = 0;

    cJSON_ArrayForEach (stage, stages) {
        n_ended += get_number(stage, "ended") > 0;
    }
    return n_ended >= n;
}

/* Reads the statistics of the controller. */
static void
ask_controller(struct policy_run *pr)
{
    long long deadline = time_msec() + SETTLE_MS;
    cJSON *json = NULL;

    do {
        cJSON_Delete(json);
        json = ask(pr, "controller/stages");
        if (!json || all_ended(cJSON_GetObjectItem(json, "stages"),
                               pr->policy->n_stages)) {
            break;
        }
        interrupt_sleep(100);
    } while (time_msec() < deadline && !interrupt_signal());

    pr->policy->decisions = get_number(json, "decisions");
    cJSON_Delete(json);

    json = ask(pr, "controller/status");
    pr->policy->decision_us_max = get_number(json, "decision_us_max");
    cJSON_Delete(json);
}

static void
ask_switches(struct policy_run *pr)
{
    char *datapath = fabric_datapath(pr->plan);

    report_set(&pr->policy->queues, fabric_queues_to_string(
        pr->plan, datapath, cluster_switches_in_sync(pr->plan)));
    free(datapath);
}

static void
create_runs(struct policy_run *pr)
{
    const struct scenario *s = pr->scenario;

    pr->runs = xcalloc(s->n_searches + s->n_cojobs, sizeof *pr->runs);
    for (size_t i = 0; i < s->n_searches; i++) {
        pr->runs[pr->n_runs++] = search_run_create(
            pr->plan, &s->searches[i], pr->policy, pr->epoch_ms, pr->begin_ms);
    }
    for (size_t i = 0; i < s->n_cojobs; i++) {
        pr->runs[pr->n_runs++] = cojob_run_create(
            pr->plan, s, &s->cojobs[i], pr->policy, pr->begin_ms);
    }
}

/* Everything between cluster_up() and cluster_down(). */
static char *
run_in_cluster(struct policy_run *pr)
{
    char *file = xasprintf("%s/cluster.json", pr->plan->rundir);
    char *error = plan_write_cluster(pr->plan, file);

    free(file);
    if (error) {
        return error;
    }
    pr->epoch_ms = time_wall_msec();
    pr->begin_ms = time_msec();
    pr->next_plain_ms = time_msec() + PLAIN_STATUS_MS;
    pr->policy->congestion_control = pr->plan->cc ? "shims" : "tcp";
    free(pr->policy->tcp_congestion_control);
    pr->policy->tcp_congestion_control = fabric_congestion(pr->plan);
    create_runs(pr);
    pr->stalls = stall_watch_create(pr->plan->rate_bps);
    pr->faults = pr->plan->ha ? faults_create(pr->plan, pr->cluster) : NULL;
    pr->sampler = sampler_create(pr->plan, pr->policy, pr->begin_ms);

    error = main_loop(pr);
    say_status_end();
    if (!interrupt_signal()) {
        sampler_finish(pr->sampler);
        if (pr->faults) {
            faults_finish(pr->faults, pr->policy);
        }
        ask_controller(pr);
        ask_switches(pr);
    } else if (!error) {
        error = xstrdup("interrupted");
    }

    sampler_destroy(pr->sampler);
    free(pr->faults);
    stall_watch_destroy(pr->stalls);
    for (size_t i = 0; i < pr->n_runs; i++) {
        pr->runs[i]->class->destroy(pr->runs[i]);
    }
    free(pr->runs);
    pr->policy->restarts = cluster_restarts(pr->cluster);
    return error;
}

static void
copy_logs(const struct plan *plan, const char *log_dir)
{
    char *from = xasprintf("%s/log", plan->rundir);
    const char *const copy[] = { "cp", "-R", "-T", from, log_dir, NULL };
    char *error = directory_create(log_dir);

    error = error ? error : tool_run(NULL, copy, NULL, 30000, NULL);
    if (error) {
        say("%s", error);
    }
    free(error);
    free(from);
}

char *
policy_run(struct cluster *cluster, const struct plan *plan,
           const struct scenario *scenario, const char *policy_file,
           const char *log_dir, struct report_policy *policy)
{
    struct policy_run pr = {
        .cluster = cluster, .plan = plan, .scenario = scenario,
        .policy = policy,
    };
    char *error, *error2;

    say_status("starting the cluster", NULL);
    error = cluster_up(cluster, policy_file);
    if (!error) {
        error = run_in_cluster(&pr);
    }
    say_status_end();
    if (log_dir) {
        cluster_stop(cluster); /* The history is complete. */
        copy_logs(plan, log_dir);
    }
    error2 = cluster_down(cluster);
    if (error) {
        free(error2);
    } else {
        error = error2;
    }
    report_set(&policy->failure, error);
    return error;
}
