/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/views/status-report.h"

#include <stdlib.h>

#include "controller/decide/decide-rows.h"
#include "controller/decide/decide.h"
#include "controller/decide/policy-file.h"
#include "controller/history/plain-comparison.h"
#include "controller/hosts/hosts-db.h"
#include "controller/hosts/pair-keys.h"
#include "controller/hosts/telemetry.h"
#include "controller/intent/intent-db.h"
#include "controller/model/cluster.h"
#include "controller/northbound/views/control.h"
#include "controller/ovsdb/database-cluster.h"
#include "controller/ovsdb/database-folder.h"
#include "controller/southbound/switches.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "timeval.h"
#include "util.h"
#include "wire/alarm.h"
#include "wire/json-put.h"

/* A share of bytes of known jobs below LEAST_COVERAGE raises an alarm, once
 * COVERAGE_BYTES have been sent. */
#define LEAST_COVERAGE 0.9
#define COVERAGE_BYTES 10000000

/* Maximum number of names that an alarm lists. */
#define MAX_NAMED 5

/* A list of names for an alarm. */
struct names {
    struct ds text;
    size_t n; /* Names, also those that are not listed. */
};

/* Time for which an alarm names a host that has refused jobs, a job whose
 * progress was refused, and one whose processes were not admitted: a host ends
 * squatting within a second. */
#define REFUSED_MS 600000

struct hosts_summary {
    long long lag_ms;           /* Largest host_lag_ms(). */
    double ip_bytes;            /* IP bytes sent by all hosts. */
    double tagged_bytes;        /* Part of 'ip_bytes' of known jobs. */
    struct names disconnected, bypass, lagging, refusing;
};

static void
add_name(struct names *names, const char *name)
{
    if (names->n < MAX_NAMED) {
        ds_put_format(&names->text, "%s%s", names->n ? ", " : "", name);
    } else if (names->n == MAX_NAMED) {
        ds_put_cstr(&names->text, " and others");
    }
    names->n++;
}

static void
add_host(struct hosts_summary *s, const struct host *host)
{
    s->lag_ms = MAX(s->lag_ms, host_lag_ms(host));
    s->ip_bytes += host->ip_bytes;
    s->tagged_bytes += (host->ip_bytes > host->default_bytes
                        ? host->ip_bytes - host->default_bytes : 0);
    if (host->named && !host->connected) {
        add_name(&s->disconnected, host->name);
    }
    if (host->bypass) {
        add_name(&s->bypass, host->name);
    }
    if (host_is_lagging(host)) {
        add_name(&s->lagging, host->name);
    }
    if (host->refused_at && time_msec() < host->refused_at + REFUSED_MS) {
        add_name(&s->refusing, host->name);
    }
}

static void
summary_init(struct hosts_summary *s, const struct cluster *c)
{
    size_t n;
    const struct host **hosts = cluster_known_hosts(c, &n);

    *s = (struct hosts_summary){ .lag_ms = 0 };
    for (size_t i = 0; i < n; i++) {
        add_host(s, hosts[i]);
    }
    free(hosts);
}

static void
summary_uninit(struct hosts_summary *s)
{
    ds_destroy(&s->disconnected.text);
    ds_destroy(&s->bypass.text);
    ds_destroy(&s->lagging.text);
    ds_destroy(&s->refusing.text);
}

/* Returns the share of the sent bytes that belong to known jobs, 0 to 1. */
static double
coverage(const struct hosts_summary *s)
{
    return s->ip_bytes > 0 ? s->tagged_bytes / s->ip_bytes : 1;
}

static bool
refuses_progress(const struct job *job)
{
    int64_t last = MAX(job->reports_refused_at, job->bound.refused_at);

    return last && time_msec() < last + REFUSED_MS;
}

/* Names the jobs that processes claim without being admitted. */
static void
add_refusals(struct json *alarms, const struct cluster *c)
{
    const struct shash_node **jobs = shash_sort(&c->jobs);
    size_t n = 0;

    for (size_t i = 0; i < shash_count(&c->jobs) && n < MAX_NAMED; i++) {
        const struct job *job = jobs[i]->data;
        const struct shash_node *node;

        if (job->live && refuses_progress(job)) {
            alarm_add(alarms, ALARM_PROGRESS_REFUSED,
                      "progress reports of %s were refused: "
                      "stagecoach explain %s has the reason",
                      job->full_name, job->full_name);
            n++;
        }
        SHASH_FOR_EACH (node, &job->refused) {
            const struct job_refusal *r = node->data;

            if (job->live && time_msec() < r->at + REFUSED_MS) {
                char *why = job_refusal_to_string(job, r);

                alarm_add(alarms, ALARM_CLAIM_REFUSED,
                          "processes on %s claim %s and have no "
                          "priority: they are %s",
                          node->name, job->full_name, why);
                free(why);
                n++;
                break;
            }
        }
    }
    free(jobs);
}

/* Adds an alarm if 'ratio', of what was counted by what 'stage' announced, is
 * known to be wrong. */
static void
add_claim(struct json *alarms, const char *stage, const char *what,
          double ratio)
{
    if (ratio > 0) {
        alarm_add(alarms, ALARM_ANNOUNCEMENT_WRONG,
                  "stage %s: %.2g times the %s of an iteration that follow "
                  "from what was announced; what is counted decides",
                  stage, ratio, what);
    }
}

/* Names the running stages that show no sign of their jobs, and those that
 * were announced wrongly. */
static void
add_stages(struct json *alarms, const struct cluster *c)
{
    static const char *const why[N_STAGE_IDLES] = {
        [STAGE_NO_PROCESS] = "no process of their jobs has joined",
        [STAGE_NO_TRAFFIC] = "their jobs have neither sent bytes nor made "
                             "progress",
    };
    struct names idle[N_STAGE_IDLES] = { { .n = 0 } };
    size_t n;
    struct stage **stages = cluster_running_stages(c, &n);

    for (size_t i = 0; i < n; i++) {
        char *name = stage_name(stages[i]);

        add_name(&idle[stages[i]->idle], name);
        add_claim(alarms, name, "bytes", stages[i]->claim.bytes_ratio);
        add_claim(alarms, name, "seconds", stages[i]->claim.compute_ratio);
        free(name);
    }
    free(stages);
    for (int i = 0; i < N_STAGE_IDLES; i++) {
        if (why[i] && idle[i].n) {
            alarm_add(alarms, ALARM_STAGE_IDLE,
                      "stages behind all others: %s (%s)",
                      ds_cstr(&idle[i].text), why[i]);
        }
        ds_destroy(&idle[i].text);
    }
}

static void
add_alarms(struct json *alarms, const struct status_facts *facts,
           struct hosts_summary *s)
{
    if (!facts->intent_connected) {
        alarm_add(alarms, ALARM_INTENT_UNREACHABLE,
                  "the intent database is unreachable: new stages "
                  "are not scheduled");
    }
    if (!facts->hosts_connected) {
        alarm_add(alarms, ALARM_HOSTS_UNREACHABLE,
                  "the hosts database is unreachable: hosts keep "
                  "their last order");
    }
    if (facts->policy_error) {
        alarm_add(alarms, ALARM_POLICY_REFUSED,
                  "the policy file is refused, the previous policy "
                  "stays in force: %s",
                  facts->policy_error);
    }
    if (s->disconnected.n) {
        alarm_add(alarms, ALARM_AGENT_DISCONNECTED,
                  "agent disconnected on %s; live jobs run there",
                  ds_cstr(&s->disconnected.text));
    }
    if (s->bypass.n) {
        alarm_add(alarms, ALARM_SHIM_DOWN,
                  "shim down on %s: the kernel bypass forwards "
                  "traffic without priorities",
                  ds_cstr(&s->bypass.text));
    }
    if (s->lagging.n) {
        alarm_add(alarms, ALARM_ORDER_NOT_APPLIED,
                  "the last order is not in force on %s",
                  ds_cstr(&s->lagging.text));
    }
    if (s->refusing.n) {
        alarm_add(alarms, ALARM_JOBS_REFUSED,
                  "jobs were refused on %s: a user or the host has "
                  "too many, or processes name the job of another user",
                  ds_cstr(&s->refusing.text));
    }
    add_refusals(alarms, facts->cluster);
    add_stages(alarms, facts->cluster);
    if (s->ip_bytes >= COVERAGE_BYTES && coverage(s) < LEAST_COVERAGE
        && !facts->observes) {
        alarm_add(alarms, ALARM_COVERAGE,
                  "%.0f %% of the traffic belongs to no known job",
                  100 * (1 - coverage(s)));
    }
}

void
status_add_alarms(struct json *alarms, const struct status_facts *facts)
{
    struct hosts_summary s;

    summary_init(&s, facts->cluster);
    add_alarms(alarms, facts, &s);
    summary_uninit(&s);
}

/* Demand of one job on one port. */
struct need {
    int port;
    size_t job;
    double seconds;
};

static int
compare_needs(const void *a_, const void *b_)
{
    const struct need *a = a_, *b = b_;

    return (a->port != b->port ? (a->port < b->port ? -1 : 1)
            : a->seconds < b->seconds ? -1 : a->seconds > b->seconds);
}

/* Returns the demands of all jobs, sorted by port and then by size. */
static struct need *
collect(const struct decide_rows *rows, size_t *np)
{
    struct need *needs;
    size_t n = 0;

    for (size_t i = 0; i < rows->n_jobs; i++) {
        n += rows->jobs[i].n_demands;
    }
    needs = xcalloc(MAX(n, 1), sizeof *needs);
    *np = n;
    n = 0;
    for (size_t i = 0; i < rows->n_jobs; i++) {
        const struct job_row *job = &rows->jobs[i];

        for (size_t k = 0; k < job->n_demands; k++) {
            needs[n++] = (struct need) {
                .port = job->demands[k].port, .job = i,
                .seconds = job->iterations * job->demands[k].seconds,
            };
        }
    }
    qsort(needs, n, sizeof *needs, compare_needs);
    return needs;
}

/* Raises the 'ends' of jobs to the time at which their port has served them.
 * The first 'n' of 'needs' are of this port. */
static void
share_port(const struct need *needs, size_t n, double *ends)
{
    double served = 0;

    for (size_t i = 0; i < n; i++) {
        double end = served + needs[i].seconds * (n - i);

        ends[needs[i].job] = MAX(ends[needs[i].job], end);
        served += needs[i].seconds;
    }
}

/* Returns the completion time of each job, which the caller frees. */
static double *
find_ends(const struct decide_rows *rows)
{
    double *ends = xcalloc(MAX(rows->n_jobs, 1), sizeof *ends);
    size_t n;
    struct need *needs = collect(rows, &n);

    for (size_t i = 0; i < rows->n_jobs; i++) {
        ends[i] = rows->jobs[i].isolated;
    }
    for (size_t i = 0, k = 0; i < n; i = k) {
        while (k < n && needs[k].port == needs[i].port) {
            k++;
        }
        share_port(&needs[i], k - i, ends);
    }
    free(needs);
    return ends;
}

void
status_estimate_plain(const struct decide_rows *rows, double *order_s,
                      double *plain_s)
{
    double *ends = find_ends(rows);
    double *stages = xcalloc(MAX(rows->n_stages, 1), sizeof *stages);
    size_t n = 0;

    for (size_t i = 0; i < rows->n_jobs; i++) {
        double *stage = &stages[rows->jobs[i].stage];

        *stage = MAX(*stage, ends[i]);
    }
    *order_s = *plain_s = 0;
    for (size_t k = 0; k < rows->n_stages; k++) {
        n += rows->stages[k].counted;
    }
    for (size_t k = 0; k < rows->n_stages; k++) {
        if (rows->stages[k].counted) {
            *order_s += rows->stages[k].completion / n;
            *plain_s += stages[k] / n;
        }
    }
    free(stages);
    free(ends);
}

static struct json *
prediction_to_json(const struct controller *ctl)
{
    struct json *json = json_object_create();
    double order_s, plain_s;

    status_estimate_plain(decide_last(ctl->decide), &order_s, &plain_s);
    json_put_real(json, "order_mean_s", order_s);
    json_put_real(json, "plain_mean_s", plain_s);
    json_put_real(json, "ratio", plain_s > 0 ? order_s / plain_s : 1);
    return json;
}

static void
put_overrides(struct json *json, const struct controller *ctl)
{
    const struct override *observe = overrides_observe(&ctl->overrides);
    const struct override *ov;
    size_t n = 0;

    LIST_FOR_EACH (ov, node, &ctl->overrides.all) {
        n += !ov->ended && ov->kind != OVERRIDE_OBSERVE;
    }
    json_put_integer(json, "overrides", n);
    json_put_boolean(json, "observe", control_observes(ctl));
    if (observe) {
        json_object_put(json, "observed_by", override_to_json(observe));
    }
}

void
status_report_put(struct json *json, const struct controller *ctl)
{
    struct status_facts facts = {
        .cluster = ctl->cluster,
        .intent_connected = intent_db_answers(ctl->intent),
        .hosts_connected = hosts_db_answers(ctl->hosts),
        .policy_error = policy_file_error(ctl->policy),
        .observes = control_observes(ctl),
    };
    struct json *alarms = json_array_create_empty();
    double age = hosts_db_order_age(ctl->hosts);
    struct hosts_summary s;

    summary_init(&s, ctl->cluster);
    add_alarms(alarms, &facts, &s);
    pair_keys_alarms(telemetry_keys(ctl->telemetry), alarms);
    switches_alarms(ctl->switches, alarms);
    database_members_alarms(ctl->intent_members, alarms);
    database_members_alarms(ctl->hosts_members, alarms);
    database_folder_alarms(ctl->folder, alarms);
    if (age >= 0) {
        json_put_real(json, "order_age_s", age);
    }
    json_put_real(json, "order_lag_s", s.lag_ms / 1000.0);
    if (s.ip_bytes > 0) {
        json_put_real(json, "coverage", coverage(&s));
    }
    json_object_put(json, "predicted", prediction_to_json(ctl));
    json_object_put(json, "gain", plain_comparison_to_json(ctl->plain));
    put_overrides(json, ctl);
    json_object_put(json, "alarms", alarms);
    summary_uninit(&s);
}
