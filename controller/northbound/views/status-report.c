/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/views/status-report.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "controller/decide/decide-rows.h"
#include "controller/hosts/pair-keys.h"
#include "controller/intent/controllers.h"
#include "controller/model/cluster.h"
#include "controller/model/host-names.h"
#include "controller/model/host-word.h"
#include "controller/model/overrides.h"
#include "controller/ovsdb/database-cluster.h"
#include "controller/ovsdb/database-folder.h"
#include "controller/southbound/switches.h"
#include "openvswitch/json.h"
#include "timeval.h"
#include "util.h"
#include "wire/alarm.h"
#include "wire/json-put.h"

struct newer *
newer_find(const struct cluster *c, const struct switches *switches, size_t *n)
{
    size_t n_hosts, n_switches = switches ? switches_count(switches) : 0;
    const struct host **hosts = cluster_known_hosts(c, &n_hosts);
    struct newer *newer = xcalloc(n_hosts + n_switches + 1, sizeof *newer);

    *n = 0;
    for (size_t i = 0; i < n_hosts; i++) {
        if (host_refuses(c, hosts[i])) {
            newer[(*n)++] =
                (struct newer){ hosts[i]->name, hosts[i]->generation };
        }
    }
    for (size_t i = 0; i < n_switches; i++) {
        struct newer *next = &newer[*n];

        next->generation = switches_newest(switches, i, &next->name);
        *n += c->generation && next->generation > c->generation;
    }
    free(hosts);
    return newer;
}

int64_t
newer_to_raise(const struct newer *newer, size_t n, int64_t generation)
{
    int64_t newest = generation;

    for (size_t i = 0; i < n; i++) {
        if (newer[i].generation - generation <= NEWER_MAX_RAISE) {
            newest = MAX(newest, newer[i].generation);
        }
    }
    return newest;
}

/* A share of bytes of known jobs below LEAST_COVERAGE raises an alarm, once
 * COVERAGE_BYTES have been sent. */
#define LEAST_COVERAGE 0.9
#define COVERAGE_BYTES 10000000

/* Time for which an alarm names a host that has refused jobs, a job with
 * refused progress, and one with refused processes: a host ends squatting
 * within a second. */
#define REFUSED_MS 600000

/* The same for a host that was silent: its agent tries again. */
#define SILENT_MS 60000

struct hosts_summary {
    long long lag_ms;           /* Largest host_lag_ms(). */
    double ip_bytes;            /* IP bytes sent by all hosts. */
    double tagged_bytes;        /* Part of 'ip_bytes' of known jobs. */
    struct alarm_names disconnected, bypass, lagging, refusing, oversized,
        twins, ambiguous, later, silent, hogs;
};

static bool
is_recent(long long at)
{
    return at && time_msec() < at + REFUSED_MS;
}

static void
add_host(struct hosts_summary *s, const struct host *host)
{
    s->lag_ms = MAX(s->lag_ms, host_lag_ms(host));
    s->ip_bytes += host->ip_bytes;
    s->tagged_bytes += (host->ip_bytes > host->default_bytes
                        ? host->ip_bytes - host->default_bytes : 0);
    if (host->named && !host->connected && !host->revoked) {
        alarm_name(&s->disconnected, "%s", host->name);
    }
    if (host->bypass) {
        alarm_name(&s->bypass, "%s", host->name);
    }
    if (host_is_lagging(host)) {
        alarm_name(&s->lagging, "%s", host->name);
    }
    if (is_recent(host->oversized_at)) {
        alarm_name(&s->oversized, "%s", host->name);
    }
    if (host->twins && time_msec() < host->twins_at + REFUSED_MS) {
        alarm_name(&s->twins, "%s (%s)", host->name, host->twins);
    }
    if (host->later || is_recent(host->later_at)) {
        alarm_name(&s->later, "%s", host->name);
    }
    if (host->silent_at && time_msec() < host->silent_at + SILENT_MS) {
        alarm_name(&s->silent, "%s", host->name);
    }
    if (is_recent(host->refused_at)) {
        alarm_name(&s->refusing, "%s", host->name);
    }
    for (size_t i = 0; i < host->n_users; i++) {
        const struct telemetry_user *user = &host->users[i];

        if (user->pod[0]) {
            alarm_name(&s->hogs, "pod %s on %s", user->pod, host->name);
        } else {
            alarm_name(&s->hogs, "user %" PRIu64 " on %s", user->uid,
                       host->name);
        }
    }
}

static void
summary_init(struct hosts_summary *s, const struct cluster *c)
{
    size_t n;
    const struct host **hosts = cluster_known_hosts(c, &n);
    const struct shash_node *node;

    *s = (struct hosts_summary){ .lag_ms = 0 };
    for (size_t i = 0; i < n; i++) {
        add_host(s, hosts[i]);
    }
    free(hosts);
    SHASH_FOR_EACH (node, &c->labels) {
        const struct host *host = node->data;

        if (cluster_is_ambiguous(c, node->name)) {
            alarm_name(&s->ambiguous, "%s (%s, %s)", node->name, host->name,
                       host->alike->name);
        }
    }
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

    return is_recent(last);
}

/* Names a host on which processes claim 'job' without being admitted. */
static void
add_claim_refusal(struct alarm_names *claims, const struct job *job)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &job->refused) {
        const struct job_refusal *r = node->data;

        if (time_msec() < r->at + REFUSED_MS
            && (r->reason != MEMBERSHIP_ELSEWHERE
                || r->at >= r->since + HOST_WORD_GRACE_MS)) {
            char *why = job_refusal_to_string(job, r);

            alarm_name(claims, "%s on %s (%s)", job->full_name, node->name,
                       why);
            free(why);
            return;
        }
    }
}

/* Names the jobs with refused progress or processes. */
static void
add_refusals(struct json *alarms, const struct cluster *c)
{
    const struct shash_node **jobs = shash_sort(&c->jobs);
    struct alarm_names progress = { .n = 0 }, claims = { .n = 0 };

    for (size_t i = 0; i < shash_count(&c->jobs); i++) {
        const struct job *job = jobs[i]->data;

        if (job->live && refuses_progress(job)) {
            const struct host *host =
                (job->bound.refused_at > job->reports_refused_at
                     ? job->refused_host
                     : NULL);

            alarm_name(&progress, "%s%s%s", job->full_name,
                       host ? " from " : "", host ? host->name : "");
        }
        if (job->live) {
            add_claim_refusal(&claims, job);
        }
    }
    free(jobs);
    alarm_about(alarms, ALARM_PROGRESS_REFUSED, &progress,
                "progress reports of ",
                " were refused: stagecoach explain JOB has the reason");
    alarm_about(alarms, ALARM_CLAIM_REFUSED, &claims,
                "claims of processes do not count: ", "");
}

/* Names 'stage' if 'ratio', of what was counted by what it announced, is known
 * to be wrong. */
static void
add_claim(struct alarm_names *names, const char *stage, const char *what,
          double ratio)
{
    if (ratio > 0) {
        alarm_name(names, "%s (%.2g times the %s of an iteration)", stage,
                   ratio, what);
    }
}

/* Names the running stages that show no sign of their jobs, and those that
 * were announced wrongly. */
static void
add_stages(struct json *alarms, const struct cluster *c)
{
    static const char *const why[N_STAGE_IDLES] = {
        [STAGE_NO_PROCESS] = " (no process of their jobs has joined)",
        [STAGE_NO_TRAFFIC] = " (their jobs have neither sent bytes nor made "
                             "progress)",
    };
    struct alarm_names idle[N_STAGE_IDLES] = { { .n = 0 } },
                       wrong = { .n = 0 };
    size_t n;
    struct stage **stages = cluster_running_stages(c, &n);

    for (size_t i = 0; i < n; i++) {
        char *name = stage_name(stages[i]);

        if (why[stages[i]->idle]) {
            alarm_name(&idle[stages[i]->idle], "%s", name);
        }
        add_claim(&wrong, name, "bytes", stages[i]->claim.bytes_ratio);
        add_claim(&wrong, name, "seconds", stages[i]->claim.compute_ratio);
        free(name);
    }
    free(stages);
    for (int i = 0; i < N_STAGE_IDLES; i++) {
        alarm_about(alarms, ALARM_STAGE_IDLE, &idle[i],
                    "stages behind all others: ", why[i]);
    }
    alarm_about(alarms, ALARM_ANNOUNCEMENT_WRONG, &wrong,
                "stages announced wrongly: ", "; what is counted decides");
}

/* Names what refuses the orders of the leader because of a newer one. */
static void
add_newer(struct json *alarms, const struct status_facts *facts)
{
    struct alarm_names names = { .n = 0 };
    size_t n;
    struct newer *newer = newer_find(facts->cluster, facts->switches, &n);

    for (size_t i = 0; i < n; i++) {
        alarm_name(&names, "%s (%" PRId64 ")", newer[i].name,
                   newer[i].generation);
    }
    free(newer);
    alarm_about(alarms, ALARM_GENERATION, &names,
                "orders of this generation are refused for a newer one by ",
                ": stagecoach controller raise-generation goes above");
}

static void
add_connections(struct json *alarms, const struct status_facts *facts)
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
}

static void
add_hosts(struct json *alarms, struct hosts_summary *s)
{
    alarm_about(alarms, ALARM_AGENT_DISCONNECTED, &s->disconnected,
                "agent disconnected on ", "; live jobs run there");
    alarm_about(alarms, ALARM_SHIM_DOWN, &s->bypass, "shim down on ",
                ": the kernel bypass forwards traffic without priorities");
    alarm_about(alarms, ALARM_ORDER_NOT_APPLIED, &s->lagging,
                "the last order is not in force on ", "");
    alarm_about(alarms, ALARM_JOBS_REFUSED, &s->refusing,
                "jobs were refused on ",
                ": a user or the host has too many, or processes name the job "
                "of another user, or copy a connection");
    alarm_about(alarms, ALARM_TABLE_FULL, &s->hogs,
                "more than a share of a table is requested by ",
                ": others lose nothing by it");
}

/* Names what hosts do that none of them should. */
static void
add_faulty_hosts(struct json *alarms, struct hosts_summary *s)
{
    alarm_about(alarms, ALARM_HOST_ROW, &s->oversized, "the row of ",
                " in the hosts database was larger than an agent writes and "
                "has been dropped");
    alarm_about(alarms, ALARM_TWIN_HOSTS, &s->twins,
                "two machines report in turns as ",
                ": give one of them another name and certificate");
    alarm_about(alarms, ALARM_HOST_NAME, &s->ambiguous,
                "jobs or the topology name a host by a first label that two "
                "hosts have: ",
                ": give the whole name");
    alarm_about(alarms, ALARM_AGENT_VERSION, &s->later,
                "an agent of a later version than this controller runs on ",
                ": update the controllers first");
    alarm_about(alarms, ALARM_AGENT_SILENT, &s->silent,
                "the agent is connected and sends nothing on ",
                ": restart it, or find what blocks it");
}

static void
add_alarms(struct json *alarms, const struct status_facts *facts,
           struct hosts_summary *s)
{
    add_connections(alarms, facts);
    add_newer(alarms, facts);
    add_hosts(alarms, s);
    add_faulty_hosts(alarms, s);
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
}

/* Returns the means of 'n' times with the sums 'seconds' and 'plain'; without
 * members if 'n' is 0. */
static struct json *
compare_to_plain(const char *name, double seconds, double plain, int n)
{
    struct json *json = json_object_create();

    if (n) {
        json_put_integer(json, "stages", n);
        json_put_real(json, name, seconds / n);
        json_put_real(json, "plain_mean_s", plain / n);
        json_put_real(json, "ratio", seconds / plain);
    }
    return json;
}

struct json *
status_predicted(const struct decide_rows *rows)
{
    double seconds = 0, plain = 0;
    int n = 0;

    for (size_t k = 0; k < rows->n_stages; k++) {
        const struct stage_row *row = &rows->stages[k];

        if (row->counted && row->plain > 0) {
            seconds += row->age + row->completion;
            plain += row->plain;
            n++;
        }
    }
    return compare_to_plain("order_mean_s", seconds, plain, n);
}

struct json *
status_gain(const struct cluster *c)
{
    double seconds = 0, plain = 0;
    const struct stage *stage;
    int n = 0;

    LIST_FOR_EACH (stage, node, &c->ended) {
        double own = plain_stage(&stage->plain);

        if (own > 0 && n < STATUS_GAIN_STAGES) {
            seconds += (stage->ended - stage->began) / 1000.0;
            plain += own;
            n++;
        }
    }
    return compare_to_plain("measured_mean_s", seconds, plain, n);
}

static void
put_overrides(struct json *json, const struct status_facts *facts)
{
    const struct override *observe = overrides_observe(facts->overrides);
    const struct override *ov;
    size_t n = 0;

    LIST_FOR_EACH (ov, node, &facts->overrides->all) {
        n += !ov->ended && ov->kind < OVERRIDE_OBSERVE;
    }
    json_put_integer(json, "overrides", n);
    json_put_boolean(json, "observe", facts->observes);
    if (observe) {
        json_object_put(json, "observed_by", override_to_json(observe));
    }
}

void
status_report_put(struct json *json, const struct status_facts *facts)
{
    struct json *alarms = json_array_create_empty();
    struct hosts_summary s;

    summary_init(&s, facts->cluster);
    add_alarms(alarms, facts, &s);
    pair_keys_alarms(facts->keys, alarms);
    switches_alarms(facts->switches, alarms);
    database_members_alarms(facts->members[0], alarms);
    database_members_alarms(facts->members[1], alarms);
    database_folder_alarms(facts->folder, alarms);
    controllers_alarms(facts->controllers, alarms);
    if (facts->order_age >= 0) {
        json_put_real(json, "order_age_s", facts->order_age);
    }
    json_put_real(json, "order_lag_s", s.lag_ms / 1000.0);
    if (s.ip_bytes > 0) {
        json_put_real(json, "coverage", coverage(&s));
    }
    json_put_real(json, "gpu_s", facts->cluster->gpu_held);
    json_put_real(json, "gpu_waited_s", facts->cluster->gpu_waited);
    json_object_put(json, "predicted", status_predicted(facts->rows));
    json_object_put(json, "gain", status_gain(facts->cluster));
    put_overrides(json, facts);
    json_object_put(json, "alarms", alarms);
}
