/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "controller/cluster.h"
#include "controller/demand.h"
#include "controller/hysteresis.h"
#include "controller/order/order.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "policies/policy.h"
#include "timeval.h"
#include "util.h"

/* Progress alone makes a new order so often. */
#define REFRESH_MS 1000

/* Stages over which the bound after the fact is computed: the last ones. */
#define MAX_BOUND_STAGES 1000

/* One stage of the last order, for people. */
struct row {
    int level;
    uint8_t dscp;
    int rung;
    char *cojob;
    struct json *jobs;          /* Array of "COJOB/JOB". */
    double weight;              /* Of its cojob, as the intent has it. */
    double age;                 /* Seconds since it began. */
    size_t n_demands;
    struct order_demand *demands;       /* That are left. */
    double remaining;           /* Seconds of the port that it needs most. */
    char *bottleneck;           /* That port's name, or "". */
};

struct decide {
    struct cluster *cluster;
    const struct policy *policy;        /* NULL before there is one. */

    unsigned int changes;       /* Of the cluster, at the last order. */
    long long due;              /* When to compute, LLONG_MAX: not dirty. */
    long long refresh;          /* When to compute though nothing happened. */
    long long retag;            /* When a job may have the level that it could
                                 * not have yet, LLONG_MAX: none waits. */

    struct row *rows;           /* The last order, rank 0 first. */
    size_t n_rows;
    double bound, estimate;     /* Of the last order, seconds. */

    uint64_t n_decisions;
    long long us_max;           /* The longest computation. */
    uint64_t n_gaps;            /* Decisions with a bound above 0 ... */
    double gap_sum, gap_worst;  /* ... and their estimate / bound. */
};

struct decide *
decide_create(struct cluster *cluster)
{
    struct decide *d = xzalloc(sizeof *d);

    d->cluster = cluster;
    d->due = d->retag = LLONG_MAX;
    return d;
}

static void
clear_rows(struct decide *d)
{
    for (size_t i = 0; i < d->n_rows; i++) {
        free(d->rows[i].cojob);
        free(d->rows[i].bottleneck);
        json_destroy(d->rows[i].jobs);
        free(d->rows[i].demands);
    }
    free(d->rows);
    d->rows = NULL;
    d->n_rows = 0;
}

void
decide_destroy(struct decide *d)
{
    if (d) {
        clear_rows(d);
        free(d);
    }
}

/* Orders by 'policy' from the next order on, which is due at once. */
void
decide_set_policy(struct decide *d, const struct policy *policy)
{
    d->policy = policy;
    d->due = 0;
}

static double
age_of(const struct stage *stage)
{
    return MAX(0, time_wall_msec() - stage->began) / 1000.0;
}

/* The cojob's weight by the policy, which knows users too; the intent does
 * not. */
static double
aged_weight(const struct policy *policy, const struct stage *stage)
{
    return (stage->cojob->weight
            * policy_weight(policy, NULL, stage->cojob_name)
            * (policy->aging_s > 0 ? 1 + age_of(stage) / policy->aging_s
               : 1));
}

/* After a restart the stages' old ranks are those that the hosts have. */
static void
restore_ranks(struct stage **stages, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < stages[i]->n_jobs; j++) {
            const struct job *job = stages[i]->jobs[j];

            if (job->level >= 0 && (stages[i]->rank < 0
                                    || job->rank < stages[i]->rank)) {
                stages[i]->rank = job->rank;
            }
        }
    }
}

static void
fold(const struct policy *policy, const struct order_problem *problem,
     struct order_result *r)
{
    if (!policy->order.truncate) {
        levels_assign(problem, r->order, policy->n_levels, r->level);
        return;
    }
    for (size_t k = 0; k < r->n; k++) {
        r->level[r->order[k]] = MIN(k, policy->n_levels - 1);
    }
}

/* Puts back what is not worth swapping and follows up on it in 'r'. */
static void
keep_old_order(const struct decide *d, const struct order_problem *problem,
               struct stage **stages, struct order_result *r)
{
    int *old_rank = xcalloc(problem->n_stages, sizeof *old_rank);

    for (size_t i = 0; i < problem->n_stages; i++) {
        old_rank[i] = stages[i]->rank;
    }
    if (hysteresis_apply(problem, old_rank, d->policy->hysteresis, r->order)) {
        for (size_t k = 0; k < r->n; k++) {
            r->rank[r->order[k]] = k;
        }
        r->estimate = hysteresis_estimate(problem, r->order, r->completion);
        fold(d->policy, problem, r);
    }
    free(old_rank);
}

/* Gives 'job' the 'level', unless it got another one just now. */
static void
set_level(struct decide *d, struct job *job, int level, long long now)
{
    if (job->level == level) {
        return;
    }
    if (job->level >= 0 && now < job->level_since + d->policy->retag_ms) {
        d->retag = MIN(d->retag, job->level_since + d->policy->retag_ms);
        return;
    }
    job->level = level;
    job->level_since = now;
}

/* Without an order every job has level 0; with one, a job that is between two
 * stages keeps what it had, and one that waits for its first stage is behind
 * all others, but before what belongs to no job. */
static void
assign(struct decide *d, struct stage **stages, const struct order_result *r,
       long long now)
{
    struct shash_node *node;

    for (size_t k = 0; k < r->n; k++) {
        struct stage *stage = stages[r->order[k]];

        stage->rank = k;
        for (size_t i = 0; i < stage->n_jobs; i++) {
            set_level(d, stage->jobs[i], r->level[r->order[k]], now);
            stage->jobs[i]->rank = k;
        }
    }
    SHASH_FOR_EACH (node, &d->cluster->jobs) {
        struct job *job = node->data;

        if (d->policy->order.kind == ORDER_FAIR && job->live) {
            set_level(d, job, 0, now);
        } else if (job->level < 0 && job->live) {
            job->level = d->policy->n_levels - 1;
            job->rank = r->n;
        } else if (job->level >= d->policy->n_levels) {
            job->level = d->policy->n_levels - 1;
        }
    }
}

/* Returns the name of 'port', "" if it is -1; the caller frees. */
static char *
port_to_name(const struct cluster *c, int port)
{
    const struct shash_node *node;

    if (port < 0) {
        return xstrdup("");
    }
    SHASH_FOR_EACH (node, &c->hosts) {
        const struct host *host = node->data;

        if (host->index == port / N_DIRS) {
            return demand_port_name(host, port % N_DIRS);
        }
    }
    return xstrdup("");
}

static void
record_row(const struct decide *d, struct row *row, const struct stage *stage,
           const struct order_stage *os, int level)
{
    int bottleneck = -1;

    row->level = level;
    row->dscp = d->policy->dscp[level];
    row->cojob = xstrdup(stage->cojob_name);
    row->rung = stage->rung;
    row->weight = stage->cojob->weight;
    row->age = age_of(stage);
    row->n_demands = os->n_demands;
    row->demands = xmemdup(os->demands, os->n_demands * sizeof *os->demands);
    row->jobs = json_array_create_empty();
    for (size_t i = 0; i < stage->n_jobs; i++) {
        if (stage->jobs[i]->live) {
            json_array_add(row->jobs,
                           json_string_create(stage->jobs[i]->full_name));
        }
    }
    for (size_t i = 0; i < os->n_demands; i++) {
        if (os->demands[i].seconds > row->remaining) {
            row->remaining = os->demands[i].seconds;
            bottleneck = os->demands[i].port;
        }
    }
    row->bottleneck = port_to_name(d->cluster, bottleneck);
}

static void
record(struct decide *d, struct stage **stages,
       const struct order_problem *problem, const struct order_result *r)
{
    clear_rows(d);
    d->rows = xcalloc(MAX(r->n, 1), sizeof *d->rows);
    d->n_rows = r->n;
    for (size_t k = 0; k < r->n; k++) {
        int s = r->order[k];

        record_row(d, &d->rows[k], stages[s], &problem->stages[s],
                   r->level[s]);
    }
    d->bound = r->n ? r->bound : 0;
    d->estimate = r->n ? r->estimate : 0;
    if (r->n && r->bound > 0) {
        double gap = r->estimate / r->bound;

        d->n_gaps++;
        d->gap_sum += gap;
        d->gap_worst = MAX(d->gap_worst, gap);
    }
}

static void
compute(struct decide *d, long long now)
{
    long long began = time_usec();
    struct order_problem *problem;
    struct order_result result;
    struct stage **stages;
    size_t n;

    stages = cluster_running_stages(d->cluster, &n);
    if (!d->n_decisions) {
        restore_ranks(stages, n);
    }
    problem = order_problem_create(demand_n_ports(d->cluster));
    for (size_t i = 0; i < n; i++) {
        demand_add_stage(stages[i], problem,
                         aged_weight(d->policy, stages[i]), i);
    }
    order_result_init(&result);
    if (n) {
        order_compute(&d->policy->order, problem, &result);
        if (order_classes[d->policy->order.kind].service
            != ORDER_SERVICE_SHARE) {
            keep_old_order(d, problem, stages, &result);
        }
    }
    assign(d, stages, &result, now);
    record(d, stages, problem, &result);

    order_result_uninit(&result);
    order_problem_destroy(problem);
    free(stages);
    d->n_decisions++;
    d->us_max = MAX(d->us_max, time_usec() - began);
}

/* Computes an order if one is due at 'now' (time_msec()).  Returns true if it
 * did, with the result in the cluster's jobs. */
bool
decide_run(struct decide *d, long long now)
{
    if (!d->policy) {
        return false;
    }
    if (d->changes != d->cluster->changes) {
        d->changes = d->cluster->changes;
        d->due = MIN(d->due, now + d->policy->coalesce_ms);
    }
    if (now < d->due && now < d->refresh && now < d->retag) {
        return false;
    }
    d->due = d->retag = LLONG_MAX;
    d->refresh = now + REFRESH_MS;
    compute(d, now);
    return true;
}

void
decide_wait(const struct decide *d)
{
    if (d->policy) {
        poll_timer_wait_until(MIN(d->refresh, MIN(d->due, d->retag)));
        if (d->changes != d->cluster->changes) {
            poll_immediate_wake();
        }
    }
}

static double
ratio(double estimate, double bound)
{
    return bound > 0 ? estimate / bound : 1;
}

static void
put_quality(const struct decide *d, struct json *json)
{
    json_object_put(json, "bound_s", json_real_create(d->bound));
    json_object_put(json, "estimate_s", json_real_create(d->estimate));
    json_object_put(json, "gap",
                    json_real_create(ratio(d->estimate, d->bound)));
}

/* Adds to the object 'json' what the decisions were like. */
void
decide_status(const struct decide *d, struct json *json)
{
    json_object_put(json, "decisions", json_integer_create(d->n_decisions));
    json_object_put(json, "decision_us_max", json_integer_create(d->us_max));
    put_quality(d, json);
}

/* Returns the hosts by their index; the caller frees. */
static const struct host **
hosts_by_index(const struct cluster *c)
{
    const struct host **hosts = xcalloc(MAX(c->n_hosts, 1), sizeof *hosts);
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &c->hosts) {
        const struct host *host = node->data;

        hosts[host->index] = host;
    }
    return hosts;
}

/* Returns an object, port's name -> seconds. */
static struct json *
demands_to_json(const struct row *row, const struct host **hosts)
{
    struct json *json = json_object_create();

    for (size_t i = 0; i < row->n_demands; i++) {
        int port = row->demands[i].port;
        char *name = demand_port_name(hosts[port / N_DIRS], port % N_DIRS);

        json_object_put_nocopy(json, name,
                               json_real_create(row->demands[i].seconds));
    }
    return json;
}

/* Returns the last order: the members of "controller/order" but the version
 * and the policy. */
struct json *
decide_order_to_json(const struct decide *d)
{
    const struct host **hosts = hosts_by_index(d->cluster);
    struct json *order = json_array_create_empty();
    struct json *json = json_object_create();

    for (size_t k = 0; k < d->n_rows; k++) {
        const struct row *row = &d->rows[k];
        struct json *o = json_object_create();

        json_object_put(o, "rank", json_integer_create(k));
        json_object_put(o, "level", json_integer_create(row->level));
        json_object_put(o, "dscp", json_integer_create(row->dscp));
        json_object_put_string(o, "cojob", row->cojob);
        json_object_put(o, "rung", json_integer_create(row->rung));
        json_object_put(o, "jobs", json_clone(row->jobs));
        json_object_put(o, "weight", json_real_create(row->weight));
        json_object_put(o, "age_s", json_real_create(row->age));
        json_object_put(o, "demand", demands_to_json(row, hosts));
        json_object_put(o, "remaining_s", json_real_create(row->remaining));
        json_object_put_string(o, "bottleneck", row->bottleneck);
        json_array_add(order, o);
    }
    free(hosts);
    json_object_put(json, "order", order);
    put_quality(d, json);
    return json;
}

static struct json *
stage_to_json(const struct stage *stage)
{
    struct json *demand = json_object_create();
    struct json *json = json_object_create();
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &stage->moved) {
        const struct stage_bytes *b = node->data;

        for (int dir = 0; dir < N_DIRS; dir++) {
            json_object_put_nocopy(
                demand, demand_port_name(b->host, dir),
                json_real_create(b->bytes[dir] * 8.0
                                 / host_capacity(b->host)));
        }
    }
    json_object_put_string(json, "cojob", stage->cojob_name);
    json_object_put(json, "rung", json_integer_create(stage->rung));
    json_object_put(json, "began", json_integer_create(stage->began));
    json_object_put(json, "ended", json_integer_create(stage->ended));
    json_object_put(json, "demand", demand);
    return json;
}

/* Returns a lower bound on the mean completion time, in seconds, of the last
 * ended stages under any schedule, given when they began; 0 if none ended. */
static double
bound_mean(const struct cluster *c)
{
    struct order_problem *problem = order_problem_create(demand_n_ports(c));
    const struct stage *stage;
    int64_t first = INT64_MAX;
    double releases = 0, bound = 0;
    size_t n = 0;

    LIST_FOR_EACH (stage, node, &c->ended) {
        first = MIN(first, stage->began);
        if (++n >= MAX_BOUND_STAGES) {
            break;
        }
    }
    n = 0;
    LIST_FOR_EACH (stage, node, &c->ended) {
        double release = (stage->began - first) / 1000.0;

        demand_add_ended(stage, problem, release, n);
        releases += release;
        if (++n >= MAX_BOUND_STAGES) {
            break;
        }
    }
    if (n) {
        bound = MAX(0, certificate_bound(problem) - releases) / n;
    }
    order_problem_destroy(problem);
    return bound;
}

/* Returns the answer of "controller/stages". */
struct json *
decide_stages_to_json(const struct decide *d)
{
    struct json *array = json_array_create_empty();
    struct json *json = json_object_create();
    const struct stage *stage;
    struct stage **running;
    size_t n;

    LIST_FOR_EACH_REVERSE (stage, node, &d->cluster->ended) {
        json_array_add(array, stage_to_json(stage));
    }
    running = cluster_running_stages(d->cluster, &n);
    for (size_t i = 0; i < n; i++) {
        json_array_add(array, stage_to_json(running[i]));
    }
    free(running);

    json_object_put(json, "stages", array);
    json_object_put(json, "bound_mean_s",
                    json_real_create(bound_mean(d->cluster)));
    json_object_put(json, "gap_mean",
                    json_real_create(d->n_gaps ? d->gap_sum / d->n_gaps : 1));
    json_object_put(json, "gap_worst",
                    json_real_create(d->n_gaps ? d->gap_worst : 1));
    json_object_put(json, "decisions", json_integer_create(d->n_decisions));
    return json;
}
