/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/decide-rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/cluster.h"
#include "controller/decide/decide-places.h"
#include "controller/decide/decide-problem.h"
#include "controller/model/demand.h"
#include "openvswitch/json.h"
#include "policies/policy.h"
#include "util.h"

static const char *const unit_names[] = {
    [ORDER_UNIT_STAGE] = "stage",
    [ORDER_UNIT_JOB] = "job",
    [ORDER_UNIT_COFLOW] = "coflow",
};

void
decide_rows_clear(struct decide_rows *rows)
{
    for (size_t i = 0; i < rows->n_stages; i++) {
        free(rows->stages[i].cojob);
        free(rows->stages[i].demands);
    }
    for (size_t i = 0; i < rows->n_jobs; i++) {
        free(rows->jobs[i].name);
        free(rows->jobs[i].demands);
    }
    for (size_t i = 0; i < rows->n_ports; i++) {
        free(rows->ports[i]);
    }
    free(rows->stages);
    free(rows->jobs);
    free(rows->ports);
    free(rows->dscp);
    *rows = (struct decide_rows) { .n_stages = 0 };
}

static void
name_ports(struct decide_rows *rows, const struct cluster *c)
{
    const struct shash_node *node;

    rows->n_ports = demand_n_ports(c);
    rows->ports = xcalloc(MAX(rows->n_ports, 1), sizeof *rows->ports);
    SHASH_FOR_EACH (node, &c->hosts) {
        const struct host *host = node->data;

        for (int dir = 0; dir < N_DIRS; dir++) {
            rows->ports[demand_port(host, dir)] = demand_port_name(host, dir);
        }
    }
}

/* Returns the most of 'n' demands, times 'times', and its port, or 0 and
 * -1. */
static double
find_bottleneck(const struct order_demand *demands, size_t n, double times,
                int *portp)
{
    double most = 0;

    *portp = -1;
    for (size_t i = 0; i < n; i++) {
        if (times * demands[i].seconds > most) {
            most = times * demands[i].seconds;
            *portp = demands[i].port;
        }
    }
    return most;
}

static void
set_job(struct job_row *row, const struct decide_place *place, size_t stage)
{
    const struct decide_job *dj = place->dj;

    *row = (struct job_row) {
        .name = xstrdup(dj->job->full_name), .stage = stage,
        .level = place->level, .override = dj->job->override,
        .override_id = dj->job->override_id, .left = dj->left,
        .period = dj->job->progress.period, .alone = dj->foreseen,
        .slack = place->slack, .gain = dj->traits.gain,
        .early = dj->traits.early, .n_demands = dj->n_demands,
        .demands = xmemdup(dj->demands,
                           dj->n_demands * sizeof *dj->demands),
    };
    row->remaining = find_bottleneck(dj->demands, dj->n_demands, dj->left,
                                     &row->bottleneck);
}

/* The weight of stage 's' in the problem, or of its first job. */
static double
urgency_of(const struct decide_problem *dp, int s)
{
    size_t first = dp->first_job[s];

    return (dp->unit == ORDER_UNIT_STAGE ? dp->op->stages[s].weight
            : first < dp->first_job[s + 1]
            ? dp->op->stages[dp->jobs[first].entry].weight
            : dp->stages[s]->cojob->weight);
}

/* Adds up what the stage's jobs need; 'seconds' has an element for each
 * port. */
static void
set_demands(struct stage_row *row, const struct decide_problem *dp, int stage,
            double *seconds)
{
    int n_ports = dp->op->n_ports;

    memset(seconds, 0, n_ports * sizeof *seconds);
    for (size_t i = dp->first_job[stage]; i < dp->first_job[stage + 1]; i++) {
        const struct decide_job *dj = &dp->jobs[i];

        for (size_t k = 0; k < dj->n_demands; k++) {
            seconds[dj->demands[k].port] += dj->left * dj->demands[k].seconds;
        }
    }
    row->demands = xcalloc(MAX(n_ports, 1), sizeof *row->demands);
    for (int port = 0; port < n_ports; port++) {
        if (seconds[port] > 0) {
            row->demands[row->n_demands++] = (struct order_demand) {
                .port = port, .seconds = seconds[port],
            };
        }
    }
    row->remaining = find_bottleneck(row->demands, row->n_demands, 1,
                                     &row->bottleneck);
}

static void
set_stages(struct decide_rows *rows, const struct decide_problem *dp,
           const struct decide_places *places, int64_t now)
{
    double *seconds = xcalloc(MAX(dp->op->n_ports, 1), sizeof *seconds);

    rows->n_stages = places->n_stages;
    rows->stages = xcalloc(MAX(rows->n_stages, 1), sizeof *rows->stages);
    for (size_t k = 0; k < rows->n_stages; k++) {
        int s = places->stages[k];
        const struct stage *stage = dp->stages[s];

        rows->stages[k] = (struct stage_row) {
            .level = places->stage_levels[s],
            .cojob = xstrdup(stage->cojob_name), .rung = stage->rung,
            .override = stage->override, .weight = stage->cojob->weight,
            .urgency = urgency_of(dp, s),
            .age = MAX(0, now - stage->began) / 1000.0,
            .completion = places->completions[s],
        };
        set_demands(&rows->stages[k], dp, s, seconds);
    }
    free(seconds);
}

/* Replaces 'rows' by what was ordered, 'dp', and what came out, 'places'. */
void
decide_rows_set(struct decide_rows *rows, const struct cluster *c,
                const struct policy *policy, const struct decide_problem *dp,
                const struct decide_places *places, int64_t now)
{
    size_t *rank = xcalloc(MAX(places->n_stages, 1), sizeof *rank);

    decide_rows_clear(rows);
    rows->kind = policy->order.kind;
    rows->dscp = xmemdup(policy->dscp,
                         policy->n_levels * sizeof *policy->dscp);
    name_ports(rows, c);
    set_stages(rows, dp, places, now);
    for (size_t k = 0; k < places->n_stages; k++) {
        rank[places->stages[k]] = k;
    }
    rows->n_jobs = places->n_jobs;
    rows->jobs = xcalloc(MAX(rows->n_jobs, 1), sizeof *rows->jobs);
    for (size_t k = 0; k < rows->n_jobs; k++) {
        set_job(&rows->jobs[k], &places->jobs[k],
                rank[places->jobs[k].dj->stage]);
    }
    free(rank);
}

static void
put_integer(struct json *json, const char *name, long long value)
{
    json_object_put(json, name, json_integer_create(value));
}

static void
put_real(struct json *json, const char *name, double value)
{
    json_object_put(json, name, json_real_create(value));
}

static void
put_port(struct json *json, const char *name, const struct decide_rows *rows,
         int port)
{
    json_object_put_string(json, name, port < 0 ? "" : rows->ports[port]);
}

/* Returns an object, port's name -> seconds. */
static struct json *
demands_to_json(const struct decide_rows *rows, const struct stage_row *row)
{
    struct json *json = json_object_create();

    for (size_t i = 0; i < row->n_demands; i++) {
        put_real(json, rows->ports[row->demands[i].port],
                 row->demands[i].seconds);
    }
    return json;
}

/* Adds the names and the places of the jobs of the stage of 'rank'. */
static void
put_jobs(struct json *json, const struct decide_rows *rows, size_t rank)
{
    struct json *jobs = json_array_create_empty();
    struct json *ranks = json_object_create();
    struct json *levels = json_object_create();

    for (size_t k = 0; k < rows->n_jobs; k++) {
        const struct job_row *job = &rows->jobs[k];

        if (job->stage == rank) {
            put_integer(ranks, job->name, k);
            put_integer(levels, job->name, job->level);
            json_array_add(jobs, json_string_create(job->name));
        }
    }
    json_object_put(json, "jobs", jobs);
    json_object_put(json, "ranks", ranks);
    json_object_put(json, "levels", levels);
}

/* Returns the array "order" of "controller/order". */
struct json *
decide_rows_to_json(const struct decide_rows *rows)
{
    struct json *order = json_array_create_empty();

    for (size_t k = 0; k < rows->n_stages; k++) {
        const struct stage_row *row = &rows->stages[k];
        struct json *o = json_object_create();

        put_integer(o, "rank", k);
        put_integer(o, "level", row->level);
        put_integer(o, "dscp", rows->dscp[row->level]);
        json_object_put_string(o, "cojob", row->cojob);
        put_integer(o, "rung", row->rung);
        put_jobs(o, rows, k);
        json_object_put_string(o, "override", override_names[row->override]);
        put_real(o, "weight", row->weight);
        put_real(o, "age_s", row->age);
        put_real(o, "completion_s", row->completion);
        json_object_put(o, "demand", demands_to_json(rows, row));
        put_real(o, "remaining_s", row->remaining);
        put_port(o, "bottleneck", rows, row->bottleneck);
        json_array_add(order, o);
    }
    return order;
}

/* Seconds that 'job' still needs of 'port'. */
static double
seconds_on(const struct job_row *job, int port)
{
    for (size_t i = 0; i < job->n_demands; i++) {
        if (job->demands[i].port == port) {
            return job->left * job->demands[i].seconds;
        }
    }
    return 0;
}

/* Returns those that go before the job of 'rank' on its bottleneck. */
static struct json *
before_to_json(const struct decide_rows *rows, size_t rank)
{
    struct json *before = json_array_create_empty();
    int port = rows->jobs[rank].bottleneck;

    for (size_t k = 0; k < rank; k++) {
        const struct job_row *job = &rows->jobs[k];
        double seconds = seconds_on(job, port);

        if (seconds > 0) {
            struct json *o = json_object_create();

            json_object_put_string(o, "job", job->name);
            put_integer(o, "rank", k);
            put_integer(o, "level", job->level);
            put_real(o, "seconds", seconds);
            json_array_add(before, o);
        }
    }
    return before;
}

/* Returns why 'job' has its place, the members of "controller/explain" but the
 * version and the policy; NULL if it is not in the order. */
struct json *
decide_rows_explain(const struct decide_rows *rows, const char *job)
{
    const struct stage_row *stage;
    const struct job_row *row;
    struct json *json;
    size_t k = 0;

    while (k < rows->n_jobs && strcmp(rows->jobs[k].name, job)) {
        k++;
    }
    if (k >= rows->n_jobs) {
        return NULL;
    }
    row = &rows->jobs[k];
    stage = &rows->stages[row->stage];
    json = json_object_create();
    json_object_put_string(json, "job", row->name);
    json_object_put_string(json, "cojob", stage->cojob);
    put_integer(json, "rung", stage->rung);
    json_object_put_string(json, "order", order_names[rows->kind]);
    json_object_put_string(json, "unit",
                           unit_names[order_classes[rows->kind].unit]);
    put_integer(json, "rank", k);
    put_integer(json, "level", row->level);
    put_integer(json, "dscp", rows->dscp[row->level]);
    json_object_put_string(json, "override", override_names[row->override]);
    put_integer(json, "override_id", row->override_id);
    put_integer(json, "stage_rank", row->stage);
    put_real(json, "completion_s", stage->completion);
    put_integer(json, "iterations_left", row->left);
    put_real(json, "period_s", row->period);
    put_real(json, "alone_s", row->alone);
    put_real(json, "slack_s", row->slack);
    put_real(json, "remaining_s", row->remaining);
    put_port(json, "bottleneck", rows, row->bottleneck);
    json_object_put(json, "early", json_boolean_create(row->early));
    if (isfinite(row->gain)) {
        put_real(json, "gain", row->gain);
    }
    json_object_put(json, "before", before_to_json(rows, k));
    return json;
}
