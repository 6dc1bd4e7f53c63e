/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/views/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "controller/controller.h"
#include "controller/decide/decide.h"
#include "controller/decide/decision-log.h"
#include "controller/decide/policy-file.h"
#include "controller/hosts/hosts-db.h"
#include "controller/hosts/telemetry.h"
#include "controller/intent/intent-db.h"
#include "controller/model/cluster.h"
#include "controller/northbound/views/users-report.h"
#include "controller/ovsdb/database-cluster.h"
#include "controller/ovsdb/database-folder.h"
#include "controller/southbound/switches.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "order/result/result.h"
#include "policies/policy.h"
#include "util.h"
#include "wire/json-get.h"

#define PREFIX "stagecoach_"

static void
describe(struct ds *out, const char *name, const char *type, const char *help)
{
    ds_put_format(out, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n",
                  name, help, name, type);
}

static void
put(struct ds *out, const char *name, const char *type, const char *help,
    double value)
{
    describe(out, name, type, help);
    ds_put_format(out, PREFIX "%s %.17g\n", name, value);
}

/* Reports how often the key of jobs that iterate, the primal-dual permutation
 * or the rule of a baseline decided an order, and which decided the last. */
static void
put_deciders(struct ds *out, const struct json *status)
{
    const struct json *counts = json_get(status, "ranked", JSON_OBJECT);
    const char *now = json_string(json_get(status, "ranked_by", JSON_STRING));

    describe(out, "order_ranked_total", "counter",
             "Number of orders with stages, by what decided them.");
    for (int i = 0; i < ORDER_BY_OVERRIDE; i++) {
        ds_put_format(out, PREFIX "order_ranked_total{by=\"%s\"} %.17g\n",
                      order_decider_names[i],
                      json_get_number(counts, order_decider_names[i]));
    }
    describe(out, "order_ranked_by", "gauge",
             "1 for what decided the order in force, 0 for the others.");
    for (int i = 0; i < ORDER_BY_OVERRIDE; i++) {
        ds_put_format(out, PREFIX "order_ranked_by{by=\"%s\"} %d\n",
                      order_decider_names[i],
                      !strcmp(now, order_decider_names[i]));
    }
}

static void
put_order(struct ds *out, const struct controller *ctl)
{
    struct json *status = json_object_create();

    decide_status(ctl->decide, status);
    put(out, "order_decisions_total", "counter", "Number of orders computed.",
        json_get_number(status, "decisions"));
    put(out, "order_decision_seconds_max", "gauge",
        "Longest computation of an order.",
        json_get_number(status, "decision_us_max") / 1e6);
    put(out, "order_estimate_seconds", "gauge",
        "Sum of the stages' completion times, estimated for the last "
        "order.",
        json_get_number(status, "estimate_s"));
    put(out, "order_bound_seconds", "gauge",
        "Lower bound of the sum of completion times for any order.",
        json_get_number(status, "bound_s"));
    put_deciders(out, status);
    put(out, "order_changes_total", "counter",
        "Stages that overtook another one.",
        json_get_number(status, "order_changes"));
    put(out, "order_plans_total", "counter", "Plans made by looking ahead.",
        json_get_number(status, "plans"));
    put(out, "order_plan_cpu_seconds_total", "counter",
        "Processor time of plans.", json_get_number(status, "plan_cpu_s"));
    json_destroy(status);
}

static void
put_controller(struct ds *out, const struct controller *ctl)
{
    static const char *const states[] = { "active", "standby", "starting",
                                          "disconnected" };
    const char *now = intent_db_state(ctl->intent);
    size_t n_stages;

    describe(out, "info", "gauge",
             "Always 1; version and policy of this controller.");
    ds_put_format(out, PREFIX "info{version=\"%s\",policy=\"%.64s\"} 1\n",
                  STAGECOACH_VERSION, policy_file_get(ctl->policy)->name);
    describe(out, "state", "gauge",
             "1 for the controller's current state, 0 for the others.");
    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        ds_put_format(out, PREFIX "state{state=\"%s\"} %d\n", states[i],
                      !strcmp(now, states[i]));
    }
    put(out, "leader_generation", "gauge",
        "Generation of this controller's leadership, 0 if it never led.",
        intent_db_generation(ctl->intent));
    put(out, "order_version", "gauge", "Version of the order in force.",
        hosts_db_version(ctl->hosts));
    put(out, "policy_refused", "gauge",
        "1 while the policy file is refused and the previous policy stays.",
        policy_file_error(ctl->policy) != NULL);
    put(out, "database_intent_connected", "gauge",
        "1 while the intent database is connected.",
        intent_db_answers(ctl->intent));
    put(out, "database_hosts_connected", "gauge",
        "1 while the hosts database is connected.",
        hosts_db_answers(ctl->hosts));
    put(out, "database_members_silent", "gauge",
        "Members of the databases that do not reply or have no leader.",
        database_members_alarms(ctl->intent_members, NULL)
            + database_members_alarms(ctl->hosts_members, NULL));
    put(out, "databases_damaged", "gauge",
        "Databases of this machine that have lost rows to a damaged file.",
        database_folder_n_damaged(ctl->folder));
    put(out, "database_free_bytes", "gauge",
        "Free space of the directory of the databases.",
        database_folder_space(ctl->folder));
    put(out, "agents_connected", "gauge", "Number of connected agents.",
        telemetry_n_agents(ctl->telemetry));
    put(out, "switches_applied", "gauge",
        "Share of the desired entries that the switches have, 0 to 1.",
        switches_applied(ctl->switches));
    put(out, "decisions_logged_total", "counter",
        "Number of entries in the decision log so far.",
        decision_log_last(ctl->log));
    free(cluster_running_stages(ctl->cluster, &n_stages));
    put(out, "stages_running", "gauge", "Number of running stages.", n_stages);
    put(out, "cojobs", "gauge", "Number of known cojobs.",
        shash_count(&ctl->cluster->cojobs));
}

static void
put_process(struct ds *out, const struct rest_counts *counts)
{
    struct rusage usage;

    if (!getrusage(RUSAGE_SELF, &usage)) {
        put(out, "process_cpu_seconds_total", "counter",
            "CPU time of the controller.",
            usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
            + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
        put(out, "process_resident_memory_max_bytes", "gauge",
            "Largest resident memory of the controller so far.",
            usage.ru_maxrss * 1024.0);
    }
    describe(out, "http_replies_total", "counter",
             "HTTP replies, by class of the status.");
    for (int i = 2; i < 6; i++) {
        ds_put_format(
            out, PREFIX "http_replies_total{class=\"%dxx\"} %" PRIu64 "\n", i,
            counts->replies[i]);
    }
    put(out, "http_refused_total", "counter",
        "HTTP requests of unauthorized clients.", counts->refused);
    put(out, "http_incomplete_total", "counter",
        "Reports of progress without a member that was no number or name.",
        counts->incomplete);
    put(out, "http_hung_up_total", "counter",
        "HTTP connections closed by a timeout or to make room.",
        counts->hung_up);
    put(out, "http_connections", "gauge", "Open HTTP connections.",
        counts->connections);
}

/* Writes the metric NAME of the first 'n' of 'hosts'; VALUE is an
 * expression of 'host'. */
#define PUT_HOSTS(NAME, TYPE, HELP, VALUE)                              \
    describe(out, NAME, TYPE, HELP);                                    \
    for (size_t i_ = 0; i_ < n; i_++) {                                 \
        const struct host *host = hosts[i_];                            \
                                                                        \
        ds_put_format(out, PREFIX NAME "{host=\"%s\"} %.17g\n",         \
                      host->name, (double) (VALUE));                    \
    }

static void
put_agents(struct ds *out, const struct host *const hosts[], size_t n)
{
    PUT_HOSTS("agent_connected", "gauge",
              "1 while the host's agent is connected.", host->connected);
    PUT_HOSTS("agent_ordered", "gauge", "1 while the host applies an order.",
              host->state && !strcmp(host->state, "ordered"));
    PUT_HOSTS("agent_wanted_version", "gauge",
              "Desired version of the order on the host.", host->wanted);
    PUT_HOSTS("agent_applied_version", "gauge",
              "Version of the order that the host has applied.",
              host->applied);
    PUT_HOSTS("agent_lag_seconds", "gauge",
              "Time for which the host has not applied a newer order.",
              host_lag_ms(host) / 1000.0);
    PUT_HOSTS("shim_bypassed", "gauge",
              "1 while the kernel bypass forwards traffic without priorities.",
              host->bypass);
    PUT_HOSTS("shim_capacity_bytes_per_second", "gauge",
              "Rate of the host's ports, 0 while unknown.",
              host->capacity_bps / 8);
    PUT_HOSTS("shim_ip_bytes_total", "counter", "IP bytes sent.",
              host->ip_bytes);
    PUT_HOSTS("shim_untagged_bytes_total", "counter",
              "IP bytes sent that belong to no known job.",
              host->default_bytes);
    PUT_HOSTS("shim_jobs_sent_bytes_total", "counter",
              "Bytes sent by jobs since the controller started.",
              host->moved[DIR_TX]);
    PUT_HOSTS("shim_jobs_received_bytes_total", "counter",
              "Bytes received by jobs since the controller started.",
              host->moved[DIR_RX]);
}

/* Writes the metrics of the shims of the first 'n' of 'hosts'. */
static void
put_shims(struct ds *out, const struct host *const hosts[], size_t n)
{
    for (size_t m = 0; m < SHIM_COUNTERS_N; m++) {
        const struct shim_counter *counter = &shim_counters_list[m];

        describe(out, counter->metric, counter->type, counter->help);
        for (size_t i = 0; i < n; i++) {
            const struct host *host = hosts[i];

            if (host->shim.known) {
                ds_put_format(out, PREFIX "%s{host=\"%s\"} %"PRIu64"\n",
                              counter->metric, host->name,
                              host->shim.values[m]);
            }
        }
    }
}

/* Writes metric 'name' by queue, from the array at 'offset' in the hosts'
 * struct shim_counters. */
static void
put_levels(struct ds *out, const struct host *const hosts[], size_t n,
           const char *name, const char *help, size_t offset)
{
    describe(out, name, "counter", help);
    for (size_t i = 0; i < n; i++) {
        const struct host *host = hosts[i];
        const uint64_t *counts = (const void *) ((const char *) &host->shim
                                                 + offset);

        for (size_t l = 0; host->shim.known && l < SHIM_COUNTERS_LEVELS;
             l++) {
            ds_put_format(out, PREFIX "%s{host=\"%s\",queue=\"%"PRIuSIZE
                          "\"} %"PRIu64"\n", name, host->name, l, counts[l]);
        }
    }
}

/* Writes how many connected hosts are how many versions behind. */
static void
put_behind(struct ds *out, const struct host *const hosts[], size_t n)
{
    static const struct {
        const char *label;
        int64_t most;
    } classes[] = { { "1", 1 }, { "2-10", 10 }, { "more", INT64_MAX } };
    size_t counts[ARRAY_SIZE(classes)] = { 0 };

    for (size_t i = 0; i < n; i++) {
        int64_t behind = host_behind(hosts[i]);
        size_t c = 0;

        while (behind > classes[c].most) {
            c++;
        }
        counts[c] += hosts[i]->connected && behind > 0;
    }
    describe(out, "hosts_behind", "gauge",
             "Connected hosts that have not applied their order, by versions "
             "since the one that they have applied.");
    for (size_t c = 0; c < ARRAY_SIZE(classes); c++) {
        ds_put_format(out,
                      PREFIX "hosts_behind{versions=\"%s\"} %" PRIuSIZE "\n",
                      classes[c].label, counts[c]);
    }
}

static void
put_hosts(struct ds *out, const struct cluster *c)
{
    size_t n;
    const struct host **hosts = cluster_known_hosts(c, &n);
    size_t shown = MIN(n, METRICS_MAX_HOSTS);

    put(out, "hosts_known", "gauge", "Number of known hosts.", n);
    put(out, "hosts_left_out", "gauge",
        "Number of hosts beyond the limit, without metrics of their own.",
        n - shown);
    put_behind(out, hosts, n);
    put_agents(out, hosts, shown);
    put_shims(out, hosts, shown);
    put_levels(out, hosts, shown, "shim_queue_sent_bytes_total",
               "Bytes sent by jobs, by queue of the shim.",
               offsetof(struct shim_counters, level_bytes));
    put_levels(out, hosts, shown, "shim_queue_jobs_dropped_packets_total",
               "Dropped packets of jobs, by queue of the shim.",
               offsetof(struct shim_counters, level_dropped));
    free(hosts);
}

/* Writes the metric NAME of the first 'n' jobs of 'nodes'; VALUE is an
 * expression of 'job'. */
#define PUT_JOBS(NAME, HELP, VALUE)                                         \
    describe(out, NAME, "gauge", HELP);                                     \
    for (size_t i_ = 0; i_ < n; i_++) {                                     \
        const struct job *job = nodes[i_]->data;                            \
                                                                            \
        ds_put_format(out,                                                  \
                      PREFIX NAME "{cojob=\"%s\",job_name=\"%s\"} %.17g\n", \
                      job->cojob->name, job->name, (double) (VALUE));       \
    }

static void
put_jobs(struct ds *out, const struct cluster *c)
{
    const struct shash_node **nodes = shash_sort(&c->jobs);
    size_t n_live = 0, n;

    for (size_t i = 0; i < shash_count(&c->jobs); i++) {
        const struct job *job = nodes[i]->data;

        if (job->live) {
            nodes[n_live++] = nodes[i];
        }
    }
    n = MIN(n_live, METRICS_MAX_JOBS);
    put(out, "jobs_live", "gauge", "Number of jobs that have not ended.",
        n_live);
    put(out, "jobs_left_out", "gauge",
        "Number of jobs beyond the limit, without metrics of their own.",
        n_live - n);
    PUT_JOBS("job_iteration",
             "Completed iterations of the job, -1 if unknown.",
             job->iteration);
    PUT_JOBS("job_level",
             "Level of the job, 0 is the best, -1 if it has none yet.",
             job->level);
    put(out, "gpu_seconds_total", "counter", "GPU seconds for which jobs ran.",
        c->gpu_held);
    put(out, "gpu_waited_seconds_total", "counter",
        "Those in which jobs waited for the traffic of others.",
        c->gpu_waited);
    PUT_JOBS("job_gpu_seconds", "GPU seconds for which the job ran.",
             job->gpu_held);
    PUT_JOBS("job_gpu_waited_seconds",
             "Those in which the job waited for the traffic of others.",
             job->gpu_waited);
    PUT_JOBS("job_stage_sent_bytes", "Bytes sent by the job in its stage.",
             job->sent);
    free(nodes);
}

/* Appends the labels of a user with any characters in the name, and ends
 * them with 'more'. */
static void
put_user(struct ds *out, const char *metric, const struct user_row *row,
         const char *more)
{
    ds_put_format(out, PREFIX "%s{user=\"", metric);
    for (const char *p = row->name; *p; p++) {
        ds_put_char(out, strchr("\"\\\n", *p) ? '?' : *p);
    }
    ds_put_format(out, "\",uid=\"%" PRIu64 "\",pod_space=\"%s\"%s} ", row->uid,
                  row->pod, more);
}

#define PUT_USERS(NAME, HELP, VALUE)                     \
    describe(out, NAME, "gauge", HELP);                  \
    for (size_t i_ = 0; i_ < n; i_++) {                  \
        const struct user_row *user = &users[i_];        \
                                                         \
        put_user(out, NAME, user, "");                   \
        ds_put_format(out, "%.17g\n", (double) (VALUE)); \
    }

static void
put_users(struct ds *out, const struct cluster *c)
{
    size_t n_all;
    struct user_row *users = users_collect(c, &n_all);
    size_t n = MIN(n_all, METRICS_MAX_USERS);

    put(out, "users_left_out", "gauge",
        "Number of users beyond the limit, without metrics of their own.",
        n_all - n);
    PUT_USERS("user_weight", "Sum of the weights of the running cojobs.",
              user->weight);
    PUT_USERS("user_places", "Processes of the live jobs, by the intent.",
              user->places);
    PUT_USERS("user_served_seconds",
              "What counts for the next searches, seconds of all ports.",
              user->served);
    PUT_USERS("user_table_entries",
              "Entries of hosts' tables, where they exceed the share.",
              user->entries);
    describe(out, "user_refused", "gauge",
             "Requests, claims of processes and entries of tables that were "
             "refused.");
    for (size_t i = 0; i < n; i++) {
        for (int what = 0; what < N_USER_REFUSALS; what++) {
            char *label = xasprintf(",what=\"%s\"", user_refusal_names[what]);

            put_user(out, "user_refused", &users[i], label);
            ds_put_format(out, "%" PRIu64 "\n", users[i].refused[what]);
            free(label);
        }
    }
    free(users);
}

void
metrics_put_starts(struct ds *out, const struct stage_starts *starts)
{
    describe(out, "stage_start_seconds", "histogram",
             "Time from the begin of a stage until its hosts have applied its "
             "order, by step.");
    for (int step = 0; step < N_STAGE_STEPS; step++) {
        const char *name = stage_step_names[step];
        uint64_t n = 0;

        for (size_t i = 0; i < STAGE_START_N_CLASSES; i++) {
            n += starts->steps[step].n[i];
            ds_put_format(out,
                          PREFIX "stage_start_seconds_bucket{step=\"%s\","
                                 "le=\"%s\"} %" PRIu64 "\n",
                          name, stage_start_classes[i].limit, n);
        }
        ds_put_format(out,
                      PREFIX "stage_start_seconds_sum{step=\"%s\"} "
                             "%.17g\n",
                      name, starts->steps[step].sum);
        ds_put_format(out,
                      PREFIX "stage_start_seconds_count{step=\"%s\"} "
                             "%" PRIu64 "\n",
                      name, n);
    }
}

void
metrics_put_cluster(struct ds *out, const struct cluster *c)
{
    put_hosts(out, c);
    put_jobs(out, c);
    put_users(out, c);
}

char *
metrics_to_string(const struct controller *ctl,
                  const struct rest_counts *counts)
{
    struct ds out = DS_EMPTY_INITIALIZER;

    put_controller(&out, ctl);
    put_order(&out, ctl);
    metrics_put_starts(&out, &ctl->starts);
    put_process(&out, counts);
    metrics_put_cluster(&out, ctl->cluster);
    return ds_steal_cstr(&out);
}
