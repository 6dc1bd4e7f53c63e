/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/views/cojobs-report.h"

#include <stdlib.h>

#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "controller/model/fabric.h"
#include "openvswitch/json.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-put.h"

/* Adds to 'busy' the ports that traffic from 't''s host to others crosses. */
static void
add_crossings(const struct cluster *c, const struct job_traffic *t,
              double *busy)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &t->sent_to) {
        const struct host *to = shash_find_data(&c->hosts, node->name);
        const struct fabric_pair *pair;

        if (!to || to->leaf < 0 || t->host->leaf < 0) {
            continue;
        }
        pair = fabric_get_pair(c->fabric, t->host->leaf, to->leaf);
        for (size_t i = 0; i < pair->n; i++) {
            const struct fabric_crossing *crossing = &pair->crossings[i];

            busy[demand_link_port(c, crossing->port)] +=
                *(const uint64_t *) node->data * 8.0
                * crossing->seconds_per_bit;
        }
    }
}

static void
add_links(const struct cluster *c, double *busy)
{
    const struct shash_node *job_node, *node;

    SHASH_FOR_EACH (job_node, &c->jobs) {
        const struct job *job = job_node->data;

        if (job->live) {
            SHASH_FOR_EACH (node, &job->traffic) {
                add_crossings(c, node->data, busy);
            }
        }
    }
}

struct json *
ports_report(const struct cluster *c)
{
    int n = demand_n_ports(c);
    double *busy = xcalloc(n + 1, sizeof *busy);
    char **names = demand_port_names(c);
    struct json *ports = json_array_create_empty();
    struct json *json = json_object_create();
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &c->hosts) {
        const struct host *host = node->data;

        for (int dir = 0; dir < N_DIRS; dir++) {
            busy[demand_port(host, dir)] =
                host->moved[dir] * 8.0 / host_capacity(host);
        }
    }
    if (c->fabric) {
        add_links(c, busy);
    }
    for (int i = 0; i < n; i++) {
        struct json *port = json_object_create();

        json_object_put_string(port, "port", names[i]);
        json_put_real(port, "busy_s", busy[i]);
        json_array_add(ports, port);
        free(names[i]);
    }
    free(names);
    free(busy);
    json_object_put(json, "ports", ports);
    return json;
}

/* Adds members that are absent while unknown. */
static void
put_progress(struct json *json, const struct job *job)
{
    if (job->iteration >= 0) {
        json_put_integer(json, "iteration", job->iteration);
        json_put_boolean(json, "counted", job->estimated);
    }
    if (job->progress.metric) {
        json_object_put_string(json, "metric", job->progress.metric);
    }
    if (job->progress.period > 0) {
        json_put_real(json, "period_s", job->progress.period);
    }
}

/* Returns the array of what 'to_json' makes of 'map', sorted by name. */
static struct json *
map_to_array(const struct shash *map,
             struct json *(*to_json)(const struct shash_node *))
{
    const struct shash_node **nodes = shash_sort(map);
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < shash_count(map); i++) {
        json_array_add(array, to_json(nodes[i]));
    }
    free(nodes);
    return array;
}

static struct json *
name_to_json(const struct shash_node *node)
{
    return json_string_create(node->name);
}

static struct json *
job_to_json(const struct shash_node *node)
{
    const struct job *job = node->data;
    struct json *json = json_object_create();

    json_object_put_string(json, "job", job->full_name);
    json_put_boolean(json, "live", job->live);
    json_put_integer(json, "began", job->began);
    json_put_integer(json, "model_bytes", job->model_bytes);
    if (job->level >= 0) {
        json_put_integer(json, "level", job->level);
        json_put_integer(json, "rank", job->rank);
    }
    if (job->stage && stage_is_running(job->stage)) {
        json_put_integer(json, "rung", job->stage->rung);
        json_put_integer(json, "sent_bytes", job->sent);
    }
    if (job->gpu_held > 0) {
        json_put_integer(json, "gpus", demand_gpus(job));
        json_put_real(json, "gpu_s", job->gpu_held);
        json_put_real(json, "gpu_waited_s", job->gpu_waited);
    }
    json_object_put(json, "hosts", map_to_array(&job->traffic, name_to_json));
    put_progress(json, job);
    return json;
}

static struct json *
stage_to_json(const struct stage *stage)
{
    struct json *json = json_object_create();
    struct json *jobs = json_array_create_empty();

    for (size_t i = 0; i < stage->n_jobs; i++) {
        json_array_add(jobs, json_string_create(stage->jobs[i]->name));
    }
    json_put_integer(json, "rung", stage->rung);
    json_put_integer(json, "began", stage->began);
    json_put_integer(json, "iterations", stage->iterations);
    if (stage->trials.n) {
        json_object_put_string(json, "method", "asynchronous");
        json_put_integer(json, "to_come", stage->trials.to_come);
    }
    json_object_put(json, "jobs", jobs);
    return json;
}

static struct json *
cojob_to_json(const struct shash_node *node)
{
    const struct cojob *cojob = node->data;
    struct json *json = json_object_create();
    struct json *stages = json_array_create_empty();
    const struct stage *stage;

    LIST_FOR_EACH (stage, node, &cojob->stages) {
        json_array_add(stages, stage_to_json(stage));
    }
    json_object_put_string(json, "cojob", cojob->name);
    json_object_put_string(json, "owner", cojob->owner ? cojob->owner : "");
    if (cojob->uid && cojob->uid <= MEMBERSHIP_MAX_UID) {
        json_put_integer(json, "owner_uid", cojob->uid);
    }
    json_object_put_string(json, "state", cojob->running ? "running" : "done");
    json_put_real(json, "weight", cojob->weight);
    json_object_put(json, "jobs", map_to_array(&cojob->jobs, job_to_json));
    json_object_put(json, "stages", stages);
    return json;
}

static struct json *
host_to_json(const struct cluster *c, const struct host *host)
{
    double tagged = (host->ip_bytes > host->default_bytes
                     ? host->ip_bytes - host->default_bytes : 0);
    struct json *ports = json_object_create();
    struct json *moved = json_object_create();
    struct json *json = json_object_create();
    const struct simap_node *node;

    SIMAP_FOR_EACH (node, &host->ports) {
        json_put_integer(ports, node->name, node->data * 1000LL);
    }
    json_object_put_string(json, "host", host->name);
    json_put_boolean(json, "connected", host->connected);
    if (host->reported_at) {
        json_put_integer(json, "silent_ms", time_msec() - host->reported_at);
        json_put_integer(json, "clock_ms", host->clock_ms);
    }
    json_object_put_string(json, "state",
                           host->revoked           ? "revoked"
                           : host_refuses(c, host) ? "refusing"
                                                   : host->state);
    if (host->generation >= 0) {
        json_put_integer(json, "generation", host->generation);
    }
    json_put_boolean(json, "bypass", host->bypass);
    json_put_integer(json, "wanted", host->wanted);
    json_put_integer(json, "applied", host->applied);
    json_object_put(json, "ports", ports);
    json_put_integer(moved, "tx", host->moved[DIR_TX]);
    json_put_integer(moved, "rx", host->moved[DIR_RX]);
    json_object_put(json, "moved", moved);
    if (host->connected && host->queued_bytes >= 0) {
        json_put_integer(json, "queued_bytes", host->queued_bytes);
    }
    json_put_real(json, "lag_s", host_lag_ms(host) / 1000.0);
    if (host->ip_bytes) {
        json_put_real(json, "coverage", tagged / host->ip_bytes);
    }
    return json;
}

/* Returns {'name': [...]} with the objects in 'map', sorted by name. */
static struct json *
map_to_json(const struct shash *map, const char *name,
            struct json *(*to_json)(const struct shash_node *))
{
    struct json *json = json_object_create();

    json_object_put(json, name, map_to_array(map, to_json));
    return json;
}

struct json *
cojobs_report(const struct cluster *c)
{
    return map_to_json(&c->cojobs, "cojobs", cojob_to_json);
}

struct json *
cojobs_report_jobs(const struct cluster *c)
{
    return map_to_json(&c->jobs, "jobs", job_to_json);
}

struct json *
cojobs_report_hosts(const struct cluster *c)
{
    size_t n;
    const struct host **hosts = cluster_known_hosts(c, &n);
    struct json *array = json_array_create_empty();
    struct json *json = json_object_create();

    for (size_t i = 0; i < n; i++) {
        json_array_add(array, host_to_json(c, hosts[i]));
    }
    free(hosts);
    json_object_put(json, "hosts", array);
    return json;
}

struct json *
cojobs_report_cojob(const struct cluster *c, const char *name)
{
    const struct shash_node *node = shash_find(&c->cojobs, name);

    return node ? cojob_to_json(node) : NULL;
}

struct json *
cojobs_report_job(const struct cluster *c, const char *name)
{
    const struct shash_node *node = shash_find(&c->jobs, name);

    return node ? job_to_json(node) : NULL;
}
