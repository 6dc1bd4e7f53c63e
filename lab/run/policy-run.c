/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/run/policy-run.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "reporting/report.h"
#include "lab/cluster/cluster.h"
#include "lab/run/cojob-run.h"
#include "lab/run/faults.h"
#include "lab/cluster/console.h"
#include "lab/cluster/plan.h"
#include "lab/measure/sampler.h"
#include "scenario/scenario.h"
#include "lab/run/search-run.h"
#include "lab/cluster/spawn.h"
#include "lab/measure/stall-watch.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/poll-loop.h"
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
    struct search_run **searches;       /* Elements are NULL until they
                                         * begin. */
    struct cojob_run **cojobs;          /* Elements are NULL until they
                                         * begin. */
    struct sampler *sampler;
    struct stall_watch *stalls;
    struct faults *faults;              /* NULL without plan->ha. */
    long long next_plain_ms;
};

/* Returns the seconds since the start of the run. */
static double
elapsed(const struct policy_run *pr)
{
    return (time_wall_msec() - pr->epoch_ms) / 1000.0;
}

/* Starts the searches that are due. */
static char *
start_searches(struct policy_run *pr)
{
    for (size_t i = 0; i < pr->scenario->n_searches; i++) {
        const struct scenario_search *ss = &pr->scenario->searches[i];

        if (!pr->searches[i] && elapsed(pr) >= ss->start_s) {
            char *error;

            pr->searches[i] = search_run_create(pr->plan, ss, pr->policy,
                                                pr->epoch_ms);
            error = search_run_start(pr->searches[i]);
            if (error) {
                return error;
            }
        }
    }
    return NULL;
}

/* Starts the cojobs that are due. */
static char *
start_cojobs(struct policy_run *pr)
{
    for (size_t i = 0; i < pr->scenario->n_cojobs; i++) {
        const struct scenario_cojob *sc = &pr->scenario->cojobs[i];

        if (!pr->cojobs[i] && elapsed(pr) >= sc->start_s) {
            char *error;

            pr->cojobs[i] = cojob_run_create(pr->plan, pr->scenario, sc,
                                             pr->policy, pr->epoch_ms);
            error = cojob_run_start(pr->cojobs[i]);
            if (error) {
                return error;
            }
        }
    }
    return NULL;
}

/* Appends the state of the sockets of a stalled job's hosts to 'ds'. */
static void
put_sockets(const struct policy_run *pr, uint64_t hosts, struct ds *ds)
{
    static const char *const argv[] = { "ss", "-tinHO", NULL };

    for (int i = 0; i < pr->plan->n_hosts; i++) {
        char *netns = plan_host_ns(pr->plan, i);
        char *text = NULL;
        char *save = NULL;

        if (hosts & (UINT64_C(1) << i)) {
            free(tool_run(netns, argv, NULL, 2000, &text));
        }
        for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
             line = strtok_r(NULL, "\n", &save)) {
            unsigned int queued;

            if (sscanf(line, "%*s %*u %u", &queued) == 1 && queued) {
                ds_put_format(ds, "\n  h%d: %.200s", i, line);
            }
        }
        free(text);
        free(netns);
    }
}

/* A job 'of_command' may compute for a long time, so it is stalled only if a
 * socket has data to send. */
static void
watch_job(struct policy_run *pr, const struct search_job *job,
          bool of_command)
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
        if (ds.length || !of_command) {
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
    for (size_t i = 0; i < pr->scenario->n_searches; i++) {
        struct search_job jobs[MAX_JOBS];
        size_t n = pr->searches[i]
                   ? search_run_jobs(pr->searches[i], jobs, MAX_JOBS) : 0;

        for (size_t j = 0; j < n; j++) {
            watch_job(pr, &jobs[j], false);
        }
    }
    for (size_t i = 0; i < pr->scenario->n_cojobs; i++) {
        struct search_job jobs[MAX_JOBS];
        size_t n = pr->cojobs[i]
                   ? cojob_run_jobs(pr->cojobs[i], jobs, MAX_JOBS) : 0;

        for (size_t j = 0; j < n; j++) {
            watch_job(pr, &jobs[j], true);
        }
    }
}

static void
show_status(struct policy_run *pr)
{
    struct ds ds = DS_EMPTY_INITIALIZER;
    bool plain = time_msec() >= pr->next_plain_ms;

    ds_put_format(&ds, "%s %.0f s", pr->policy->name, elapsed(pr));
    for (size_t i = 0; i < pr->scenario->n_searches; i++) {
        if (pr->searches[i]) {
            ds_put_cstr(&ds, " | ");
            search_run_status(pr->searches[i], &ds);
        }
    }
    for (size_t i = 0; i < pr->scenario->n_cojobs; i++) {
        if (pr->cojobs[i]) {
            ds_put_cstr(&ds, " | ");
            cojob_run_status(pr->cojobs[i], &ds);
        }
    }
    say_status(ds_cstr(&ds), plain ? ds_cstr(&ds) : NULL);
    if (plain) {
        pr->next_plain_ms = time_msec() + PLAIN_STATUS_MS;
    }
    ds_destroy(&ds);
}

/* Runs the searches.  Returns true if all have ended, and stores the reason of
 * a failure in '*errorp'. */
static bool
run_searches(struct policy_run *pr, char **errorp)
{
    bool over = true;

    *errorp = start_searches(pr);
    for (size_t i = 0; !*errorp && i < pr->scenario->n_searches; i++) {
        struct search_run *sr = pr->searches[i];

        if (sr) {
            search_run_run(sr);
            *errorp = search_run_error(sr);
        }
        over = over && sr && search_run_is_over(sr);
    }
    return over || *errorp;
}

/* Runs the cojobs.  Returns true if all have ended, and stores the reason of a
 * failure in '*errorp'. */
static bool
run_cojobs(struct policy_run *pr, char **errorp)
{
    bool over = true;

    *errorp = start_cojobs(pr);
    for (size_t i = 0; !*errorp && i < pr->scenario->n_cojobs; i++) {
        struct cojob_run *cr = pr->cojobs[i];

        if (cr) {
            cojob_run_run(cr);
            *errorp = cojob_run_error(cr);
        }
        over = over && cr && cojob_run_is_over(cr);
    }
    return over || *errorp;
}

/* Returns true if all searches and cojobs have ended, or one has failed. */
static bool
run_all(struct policy_run *pr, char **errorp)
{
    bool searched = run_searches(pr, errorp);

    return *errorp || (run_cojobs(pr, errorp) && (searched || *errorp));
}

static void
wait_for_news(struct policy_run *pr)
{
    for (size_t i = 0; i < pr->scenario->n_searches; i++) {
        if (pr->searches[i]) {
            search_run_wait(pr->searches[i]);
        }
    }
    for (size_t i = 0; i < pr->scenario->n_cojobs; i++) {
        if (pr->cojobs[i]) {
            cojob_run_wait(pr->cojobs[i]);
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

/* Returns true if the controller has the end of 'n' stages. */
static bool
all_ended(const cJSON *stages, size_t n)
{
    const cJSON *stage;
    size_t n_ended = 0;

    cJSON_ArrayForEach (stage, stages) {
        n_ended += cJSON_GetNumberValue(cJSON_GetObjectItem(stage,
                                                            "ended")) > 0;
    }
    return n_ended >= n;
}

static cJSON *
ask(const struct policy_run *pr, const char *command)
{
    char *reply;
    char *error = cluster_ask(pr->plan, command, &reply);
    cJSON *json = error ? NULL : cJSON_Parse(reply);

    if (error) {
        say("%s: %s", command, error);
    }
    free(error);
    free(reply);
    return json;
}

/* Reads the certificate and the statistics of the controller. */
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

    pr->policy->bound_mean_s = cJSON_GetNumberValue(
        cJSON_GetObjectItem(json, "bound_mean_s"));
    pr->policy->gap_mean = cJSON_GetNumberValue(
        cJSON_GetObjectItem(json, "gap_mean"));
    pr->policy->decisions = cJSON_GetNumberValue(
        cJSON_GetObjectItem(json, "decisions"));
    cJSON_Delete(json);

    json = ask(pr, "controller/status");
    pr->policy->decision_us_max = cJSON_GetNumberValue(
        cJSON_GetObjectItem(json, "decision_us_max"));
    cJSON_Delete(json);
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
    pr->next_plain_ms = time_msec() + PLAIN_STATUS_MS;
    pr->searches = xcalloc(pr->scenario->n_searches, sizeof *pr->searches);
    pr->cojobs = xcalloc(pr->scenario->n_cojobs, sizeof *pr->cojobs);
    pr->stalls = stall_watch_create(pr->plan->rate_bps);
    pr->faults = pr->plan->ha ? faults_create(pr->plan, pr->cluster) : NULL;
    pr->sampler = sampler_create(pr->plan, pr->policy, pr->epoch_ms);

    error = main_loop(pr);
    say_status_end();
    if (!interrupt_signal()) {
        sampler_finish(pr->sampler);
        if (pr->faults) {
            faults_finish(pr->faults, pr->policy);
        }
        ask_controller(pr);
    }

    sampler_destroy(pr->sampler);
    faults_destroy(pr->faults);
    stall_watch_destroy(pr->stalls);
    for (size_t i = 0; i < pr->scenario->n_searches; i++) {
        search_run_destroy(pr->searches[i]);
    }
    for (size_t i = 0; i < pr->scenario->n_cojobs; i++) {
        cojob_run_destroy(pr->cojobs[i]);
    }
    free(pr->searches);
    free(pr->cojobs);
    pr->policy->restarts = cluster_restarts(pr->cluster);
    return error;
}

static void
copy_logs(const struct plan *plan, const char *log_dir)
{
    char *from = xasprintf("%s/log", plan->rundir);
    const char *const make[] = { "mkdir", "-p", log_dir, NULL };
    const char *const copy[] = { "cp", "-R", "-T", from, log_dir, NULL };
    char *error = tool_run(NULL, make, NULL, 5000, NULL);

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
