/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/views/cojobs-report.h"

#include <stdlib.h>

#include "controller/model/cluster.h"
#include "openvswitch/json.h"
#include "util.h"
#include "wire/json-put.h"

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

static struct json *
job_hosts_to_json(const struct job *job)
{
    const struct shash_node **nodes = shash_sort(&job->traffic);
    struct json *hosts = json_array_create_empty();

    for (size_t i = 0; i < shash_count(&job->traffic); i++) {
        json_array_add(hosts, json_string_create(nodes[i]->name));
    }
    free(nodes);
    return hosts;
}

static struct json *
job_to_json(const void *job_)
{
    const struct job *job = job_;
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
    json_object_put(json, "hosts", job_hosts_to_json(job));
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
    json_object_put(json, "jobs", jobs);
    return json;
}

static struct json *
cojob_to_json(const void *cojob_)
{
    const struct cojob *cojob = cojob_;
    const struct shash_node **nodes = shash_sort(&cojob->jobs);
    struct json *json = json_object_create();
    struct json *jobs = json_array_create_empty();
    struct json *stages = json_array_create_empty();
    const struct stage *stage;

    for (size_t i = 0; i < shash_count(&cojob->jobs); i++) {
        json_array_add(jobs, job_to_json(nodes[i]->data));
    }
    free(nodes);
    LIST_FOR_EACH (stage, node, &cojob->stages) {
        json_array_add(stages, stage_to_json(stage));
    }
    json_object_put_string(json, "cojob", cojob->name);
    json_object_put_string(json, "state",
                           cojob->running ? "running" : "done");
    json_put_real(json, "weight", cojob->weight);
    json_object_put(json, "jobs", jobs);
    json_object_put(json, "stages", stages);
    return json;
}

static struct json *
host_to_json(const void *host_)
{
    const struct host *host = host_;
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
    json_object_put_string(json, "state", host->state);
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
    json_put_real(json, "coverage",
                  host->ip_bytes ? tagged / host->ip_bytes : 1);
    return json;
}

/* Returns {'name': [...]} with the objects in 'map', sorted by name. */
static struct json *
map_to_json(const struct shash *map, const char *name,
            struct json *(*to_json)(const void *))
{
    const struct shash_node **nodes = shash_sort(map);
    struct json *array = json_array_create_empty();
    struct json *json = json_object_create();

    for (size_t i = 0; i < shash_count(map); i++) {
        json_array_add(array, to_json(nodes[i]->data));
    }
    free(nodes);
    json_object_put(json, name, array);
    return json;
}

struct json *
cojobs_report(const struct cluster *c)
{
    return map_to_json(&c->cojobs, "cojobs", cojob_to_json);
}

struct json *
cojobs_report_cojob(const struct cluster *c, const char *name)
{
    const struct cojob *cojob = shash_find_data(&c->cojobs, name);

    return cojob ? cojob_to_json(cojob) : NULL;
}

struct json *
cojobs_report_jobs(const struct cluster *c)
{
    return map_to_json(&c->jobs, "jobs", job_to_json);
}

struct json *
cojobs_report_job(const struct cluster *c, const char *name)
{
    const struct job *job = shash_find_data(&c->jobs, name);

    return job ? job_to_json(job) : NULL;
}

struct json *
cojobs_report_hosts(const struct cluster *c)
{
    return map_to_json(&c->hosts, "hosts", host_to_json);
}
