/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/views/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "controller/model/cluster.h"
#include "controller/northbound/views/control.h"
#include "controller/decide/decide.h"
#include "controller/decide/decision-log.h"
#include "controller/hosts/hosts-db.h"
#include "controller/intent/intent-db.h"
#include "controller/decide/policy-file.h"
#include "controller/southbound/switches.h"
#include "controller/hosts/telemetry.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "policies/policy.h"
#include "util.h"

#define PREFIX "stagecoach_"

/* What a metric's first lines say. */
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

/* A member of what "controller/status" replies, 0 if it has none. */
static double
status_number(const struct json *status, const char *name)
{
    const struct json *member = shash_find_data(json_object(status), name);

    return (!member ? 0
            : member->type == JSON_INTEGER ? member->integer
            : member->type == JSON_REAL ? member->real
            : 0);
}

static void
put_order(struct ds *out, const struct controller *ctl)
{
    struct json *status = json_object_create();

    decide_status(ctl->decide, status);
    put(out, "order_decisions_total", "counter",
        "Orders that have been computed.",
        status_number(status, "decisions"));
    put(out, "order_decision_seconds_max", "gauge",
        "The longest computation of an order.",
        status_number(status, "decision_us_max") / 1e6);
    put(out, "order_estimate_seconds", "gauge",
        "Sum of the completion times of the stages by the last order.",
        status_number(status, "estimate_s"));
    put(out, "order_bound_seconds", "gauge",
        "Lower bound of that sum for any order.",
        status_number(status, "bound_s"));
    json_destroy(status);
}

static void
put_controller(struct ds *out, const struct controller *ctl)
{
    static const char *const states[] = {
        "active", "standby", "starting", "disconnected",
    };
    const char *now = intent_db_state(ctl->intent);
    size_t n_stages;

    describe(out, "info", "gauge", "Always 1; what this controller is.");
    ds_put_format(out, PREFIX "info{version=\"%s\",policy=\"%.64s\"} 1\n",
                  STAGECOACH_VERSION, policy_file_get(ctl->policy)->name);
    describe(out, "state", "gauge", "1 for the state that it is in.");
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
        "1 while the policy's file is not the policy in force.",
        policy_file_error(ctl->policy) != NULL);
    put(out, "database_intent_connected", "gauge",
        "1 while the intent database answers.",
        intent_db_is_connected(ctl->intent));
    put(out, "database_hosts_connected", "gauge",
        "1 while the hosts database answers.",
        hosts_db_is_connected(ctl->hosts));
    put(out, "agents_connected", "gauge", "Agents that are connected.",
        telemetry_n_agents(ctl->telemetry));
    put(out, "switches_applied", "gauge",
        "Part of what is wanted in switches that is there, 0 to 1.",
        switches_applied(ctl->switches));
    put(out, "cables_wrong", "gauge",
        "Directions of links that do not lead where the topology has them.",
        switches_n_alarms(ctl->switches));
    put(out, "decisions_logged_total", "counter",
        "Entries that the log of decisions has had.",
        decision_log_last(ctl->log));
    free(cluster_running_stages(ctl->cluster, &n_stages));
    put(out, "stages_running", "gauge", "Stages that run.", n_stages);
    put(out, "cojobs", "gauge", "Cojobs that are known.",
        shash_count(&ctl->cluster->cojobs));
}

static void
put_process(struct ds *out, const struct rest_counts *counts)
{
    struct rusage usage;

    if (!getrusage(RUSAGE_SELF, &usage)) {
        put(out, "process_cpu_seconds_total", "counter",
            "Processor time of the controller.",
            usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
            + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
        put(out, "process_resident_memory_max_bytes", "gauge",
            "The most memory that the controller has had.",
            usage.ru_maxrss * 1024.0);
    }
    describe(out, "http_answers_total", "counter",
             "Answers to HTTP requests, by their class.");
    for (int i = 2; i < 6; i++) {
        ds_put_format(out, PREFIX "http_answers_total{class=\"%dxx\"} %"
                      PRIu64"\n", i, counts->answers[i]);
    }
    put(out, "http_refused_total", "counter",
        "Requests of clients that are not allowed.", counts->refused);
    put(out, "http_hung_up_total", "counter",
        "HTTP connections that were too slow.", counts->hung_up);
    put(out, "http_connections", "gauge", "HTTP connections.",
        counts->connections);
    put(out, "http_streams", "gauge", "Clients that follow events.",
        counts->streams);
}

static double
get_connected(const struct host *host)
{
    return host->connected;
}

static double
get_ordered(const struct host *host)
{
    return host->state && !strcmp(host->state, "ordered");
}

static double
get_bypass(const struct host *host)
{
    return host->bypass;
}

static double
get_wanted(const struct host *host)
{
    return host->wanted;
}

static double
get_applied(const struct host *host)
{
    return host->applied;
}

static double
get_capacity(const struct host *host)
{
    return host->capacity_bps / 8;
}

static double
get_ip_bytes(const struct host *host)
{
    return host->ip_bytes;
}

static double
get_default_bytes(const struct host *host)
{
    return host->default_bytes;
}

static double
get_sent(const struct host *host)
{
    return host->moved[DIR_TX];
}

static double
get_received(const struct host *host)
{
    return host->moved[DIR_RX];
}

/* Metrics of a host: agent and shim. */
static const struct host_metric {
    const char *name, *type, *help;
    double (*get)(const struct host *);
} host_metrics[] = {
    { "agent_connected", "gauge", "1 while the host's agent is connected.",
      get_connected },
    { "agent_ordered", "gauge", "1 while the host obeys an order.",
      get_ordered },
    { "agent_wanted_version", "gauge",
      "Version of the order that the host shall have.", get_wanted },
    { "agent_applied_version", "gauge",
      "Version of the order that the host has put in force.", get_applied },
    { "shim_bypassed", "gauge",
      "1 while the kernel forwards in the shim's place, without order.",
      get_bypass },
    { "shim_capacity_bytes_per_second", "gauge",
      "Rate of the host's ports, 0 while it is not known.", get_capacity },
    { "shim_ip_bytes_total", "counter",
      "Bytes sent that could be of a job.", get_ip_bytes },
    { "shim_untagged_bytes_total", "counter",
      "Bytes sent that were of no job.", get_default_bytes },
    { "shim_jobs_sent_bytes_total", "counter",
      "Bytes that jobs sent, since the controller began.", get_sent },
    { "shim_jobs_received_bytes_total", "counter",
      "Bytes that jobs received, since the controller began.",
      get_received },
};

/* Metrics of the shims of the first 'n' hosts of 'nodes'. */
static void
put_shims(struct ds *out, const struct shash_node *const nodes[], size_t n)
{
    for (size_t m = 0; m < SHIM_COUNTERS_N; m++) {
        const struct shim_counter *counter = &shim_counters_list[m];

        describe(out, counter->metric, counter->type, counter->help);
        for (size_t i = 0; i < n; i++) {
            const struct host *host = nodes[i]->data;

            if (host->shim.known) {
                ds_put_format(out, PREFIX "%s{host=\"%s\"} %"PRIu64"\n",
                              counter->metric, host->name,
                              host->shim.values[m]);
            }
        }
    }
}

/* The same by level: 'name' with 'counts' at 'offset' in a host's. */
static void
put_levels(struct ds *out, const struct shash_node *const nodes[], size_t n,
           const char *name, const char *help, size_t offset)
{
    describe(out, name, "counter", help);
    for (size_t i = 0; i < n; i++) {
        const struct host *host = nodes[i]->data;
        const uint64_t *counts = (const void *) ((const char *) &host->shim
                                                 + offset);

        for (size_t l = 0; host->shim.known && l < SHIM_COUNTERS_LEVELS;
             l++) {
            ds_put_format(out, PREFIX "%s{host=\"%s\",queue=\"%"PRIuSIZE
                          "\"} %"PRIu64"\n", name, host->name, l, counts[l]);
        }
    }
}

static void
put_hosts(struct ds *out, const struct cluster *c)
{
    const struct shash_node **nodes = shash_sort(&c->hosts);
    size_t n = shash_count(&c->hosts);
    size_t shown = MIN(n, METRICS_MAX_HOSTS);

    put(out, "hosts_known", "gauge", "Hosts that are known.", n);
    put(out, "hosts_left_out", "gauge",
        "Hosts that are too many for metrics of their own.", n - shown);
    for (size_t m = 0; m < ARRAY_SIZE(host_metrics); m++) {
        const struct host_metric *metric = &host_metrics[m];

        describe(out, metric->name, metric->type, metric->help);
        for (size_t i = 0; i < shown; i++) {
            const struct host *host = nodes[i]->data;

            ds_put_format(out, PREFIX "%s{host=\"%s\"} %.17g\n",
                          metric->name, host->name, metric->get(host));
        }
    }
    put_shims(out, nodes, shown);
    put_levels(out, nodes, shown, "shim_queue_sent_bytes_total",
               "Bytes of jobs that the host sent, by the shim's queue.",
               offsetof(struct shim_counters, level_bytes));
    put_levels(out, nodes, shown, "shim_queue_jobs_dropped_packets_total",
               "Packets of jobs that were dropped, by the shim's queue.",
               offsetof(struct shim_counters, level_dropped));
    free(nodes);
}

static double
get_iteration(const struct job *job)
{
    return job->iteration;
}

static double
get_level(const struct job *job)
{
    return job->level;
}

static double
get_stage_bytes(const struct job *job)
{
    return job->sent;
}

static const struct job_metric {
    const char *name, *help;
    double (*get)(const struct job *);
} job_metrics[] = {
    { "job_iteration", "Iterations that the job has done, -1: not known.",
      get_iteration },
    { "job_level", "Level that the job has, 0 first, -1: none yet.",
      get_level },
    { "job_stage_sent_bytes", "Bytes that the job has sent in its stage.",
      get_stage_bytes },
};

static bool
is_live(const struct shash_node *node)
{
    const struct job *job = node->data;

    return job->live;
}

static void
put_jobs(struct ds *out, const struct cluster *c)
{
    const struct shash_node **nodes = shash_sort(&c->jobs);
    size_t n = 0, shown;

    for (size_t i = 0; i < shash_count(&c->jobs); i++) {
        if (is_live(nodes[i])) {
            nodes[n++] = nodes[i];
        }
    }
    shown = MIN(n, METRICS_MAX_JOBS);
    put(out, "jobs_live", "gauge", "Jobs that have not ended.", n);
    put(out, "jobs_left_out", "gauge",
        "Jobs that are too many for metrics of their own.", n - shown);
    for (size_t m = 0; m < ARRAY_SIZE(job_metrics); m++) {
        describe(out, job_metrics[m].name, "gauge", job_metrics[m].help);
        for (size_t i = 0; i < shown; i++) {
            const struct job *job = nodes[i]->data;

            ds_put_format(out, PREFIX "%s{cojob=\"%s\",job=\"%s\"} %.17g\n",
                          job_metrics[m].name, job->cojob->name, job->name,
                          job_metrics[m].get(job));
        }
    }
    free(nodes);
}

char *
metrics_to_string(const struct controller *ctl,
                  const struct rest_counts *counts)
{
    struct ds out = DS_EMPTY_INITIALIZER;

    put_controller(&out, ctl);
    put_order(&out, ctl);
    put_process(&out, counts);
    put_hosts(&out, ctl->cluster);
    put_jobs(&out, ctl->cluster);
    return ds_steal_cstr(&out);
}
