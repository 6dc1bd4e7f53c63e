/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/decide-rows.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stage-name.h"
#include "controller/decide/decide-problem.h"
#include "controller/decide/decision-log.h"
#include "controller/decide/job-assignment.h"
#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "openvswitch/json.h"
#include "policies/policy.h"
#include "util.h"
#include "wire/json-put.h"

/* Changes of an order that are logged. */
#define MAX_LOGGED 50

static const char *const unit_names[] = {
    [ORDER_UNIT_STAGE] = "stage",
    [ORDER_UNIT_JOB] = "job",
    [ORDER_UNIT_COFLOW] = "coflow",
    [ORDER_UNIT_ITERATION] = "iteration",
};

void
decide_rows_clear(struct decide_rows *rows)
{
    for (size_t i = 0; i < rows->n_stages; i++) {
        free(rows->stages[i].cojob);
        free(rows->stages[i].owner);
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

/* Returns the largest of 'n' demands, multiplied by 'times', and its port, or
 * 0 and -1. */
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

/* Returns what decided a rank in 'rows': an override, or what decided the
 * order. */
static enum order_decider
decider_of(const struct decide_rows *rows, enum override_kind override)
{
    return override ? ORDER_BY_OVERRIDE : rows->decider;
}

static void
set_job(const struct decide_rows *rows, struct job_row *row,
        const struct job_assignment *a, size_t stage)
{
    const struct decide_job *dj = a->dj;

    *row = (struct job_row){
        .name = xstrdup(dj->job->full_name),
        .stage = stage,
        .rank = a->rank,
        .level = a->level,
        .override = dj->job->override,
        .decider = decider_of(rows, dj->job->override),
        .override_id = dj->job->override_id,
        .iterations = dj->iterations,
        .period = dj->job->progress.period,
        .isolated = dj->predicted,
        .slack = a->slack,
        .urgency = dj->urgency,
        .chance = dj->chance,
        .target = MAX(0, dj->job->iteration) + dj->iterations,
        .equal = dj->traits.group > 0,
        .counted = demand_counts_iterations(dj->job),
        .gain = dj->traits.gain,
        .early = dj->traits.early,
        .n_demands = dj->n_demands,
        .demands = xmemdup(dj->demands, dj->n_demands * sizeof *dj->demands)
    };
    row->decider = a->moved ? ORDER_BY_START : row->decider;
    row->remaining = find_bottleneck(dj->demands, dj->n_demands,
                                     dj->iterations, &row->bottleneck);
}

/* Returns the weight of stage 's', or of its first job, in the problem. */
static double
urgency_of(const struct decide_problem *dp, int s)
{
    size_t first = dp->first_job[s];

    return (dp->unit == ORDER_UNIT_STAGE ? dp->op->stages[s].weight
            : dp->unit == ORDER_UNIT_ITERATION ? dp->needs[s].weight
            : first < dp->first_job[s + 1]
            ? dp->op->stages[dp->jobs[first].entry].weight
            : dp->stages[s]->cojob->weight);
}

/* Sets the stage's demands to the sums of its jobs.  'seconds' is scratch
 * memory with a zero for each port, and has that again afterwards. */
static void
set_demands(struct stage_row *row, const struct decide_problem *dp, int stage,
            double *seconds)
{
    const struct decide_job *first = &dp->jobs[dp->first_job[stage]];
    const struct decide_job *end = &dp->jobs[dp->first_job[stage + 1]];
    size_t max = 1;

    for (const struct decide_job *dj = first; dj < end; dj++) {
        max += dj->n_demands;
    }
    row->demands = xcalloc(max, sizeof *row->demands);
    for (const struct decide_job *dj = first; dj < end; dj++) {
        for (size_t k = 0; k < dj->n_demands; k++) {
            const struct order_demand *d = &dj->demands[k];
            double needed = dj->iterations * d->seconds;

            if (needed > 0 && !seconds[d->port]) {
                row->demands[row->n_demands++].port = d->port;
            }
            seconds[d->port] += needed;
        }
    }
    for (size_t k = 0; k < row->n_demands; k++) {
        row->demands[k].seconds = seconds[row->demands[k].port];
        seconds[row->demands[k].port] = 0;
    }
    row->remaining = find_bottleneck(row->demands, row->n_demands, 1,
                                     &row->bottleneck);
}

static void
set_stages(struct decide_rows *rows, const struct decide_problem *dp,
           const struct job_assignments *assigned, long long now)
{
    double *seconds = xcalloc(MAX(dp->op->n_ports, 1), sizeof *seconds);

    rows->n_stages = assigned->n_stages;
    rows->stages = xcalloc(MAX(rows->n_stages, 1), sizeof *rows->stages);
    for (size_t k = 0; k < rows->n_stages; k++) {
        int s = assigned->stages[k];
        const struct stage *stage = dp->stages[s];

        rows->stages[k] =
            (struct stage_row){ .level = assigned->stage_levels[s],
                                .cojob = xstrdup(stage->cojob_name),
                                .rung = stage->rung,
                                .iterations = stage->iterations,
                                .owner = nullable_xstrdup(stage->cojob->owner),
                                .override = stage->override,
                                .decider = decider_of(rows, stage->override),
                                .weight = stage->cojob->weight,
                                .urgency = urgency_of(dp, s),
                                .work = dp->needs ? dp->needs[s].work : 0,
                                .debt = stage->debt,
                                .age = MAX(0, now - stage->begin_ms) / 1000.0,
                                .completion = assigned->completions[s],
                                .plain = plain_stage(&stage->plain),
                                .idle = stage->idle,
                                .counted = true };
        set_demands(&rows->stages[k], dp, s, seconds);
    }
    free(seconds);
}

/* Replaces 'rows' by the problem 'dp' and its result 'assigned'. */
void
decide_rows_set(struct decide_rows *rows, const struct cluster *c,
                const struct policy *policy, const struct decide_problem *dp,
                enum order_decider decider,
                const struct job_assignments *assigned, long long now)
{
    size_t *rank = xcalloc(MAX(assigned->n_stages, 1), sizeof *rank);

    decide_rows_clear(rows);
    rows->kind = policy->order.kind;
    rows->unit = dp->unit;
    rows->decider = decider;
    rows->dscp = xmemdup(policy->dscp,
                         policy->n_levels * sizeof *policy->dscp);
    rows->n_ports = demand_n_ports(c);
    rows->ports = demand_port_names(c);
    set_stages(rows, dp, assigned, now);
    for (size_t k = 0; k < assigned->n_stages; k++) {
        rank[assigned->stages[k]] = k;
    }
    rows->n_jobs = assigned->n_jobs;
    rows->jobs = xcalloc(MAX(rows->n_jobs, 1), sizeof *rows->jobs);
    for (size_t k = 0; k < rows->n_jobs; k++) {
        set_job(rows, &rows->jobs[k], &assigned->jobs[k],
                rank[assigned->jobs[k].dj->stage]);
        rows->stages[rows->jobs[k].stage].counted &= rows->jobs[k].counted;
    }
    free(rank);
}

static void
put_port(struct json *json, const char *name, const struct decide_rows *rows,
         int port)
{
    json_object_put_string(json, name, port < 0 ? "" : rows->ports[port]);
}

static struct json *
demands_to_json(const struct decide_rows *rows, const struct stage_row *row)
{
    struct json *json = json_object_create();

    for (size_t i = 0; i < row->n_demands; i++) {
        json_put_real(json, rows->ports[row->demands[i].port],
                 row->demands[i].seconds);
    }
    return json;
}

/* Adds the names, ranks and levels of the jobs of the stage of 'rank', and the
 * iterations that the slowest of them has left. */
static void
put_jobs(struct json *json, const struct decide_rows *rows, size_t rank)
{
    struct json *jobs = json_array_create_empty();
    struct json *ranks = json_object_create();
    struct json *levels = json_object_create();
    int64_t left = 0;

    for (size_t k = 0; k < rows->n_jobs; k++) {
        const struct job_row *job = &rows->jobs[k];

        if (job->stage == rank) {
            left = MAX(left, job->iterations);
            json_put_integer(ranks, job->name, job->rank);
            json_put_integer(levels, job->name, job->level);
            json_array_add(jobs, json_string_create(job->name));
        }
    }
    json_object_put(json, "jobs", jobs);
    json_object_put(json, "ranks", ranks);
    json_object_put(json, "levels", levels);
    if (rows->stages[rank].counted) {
        json_put_integer(json, "iterations_left", left);
    }
}

struct json *
decide_rows_to_json(const struct decide_rows *rows)
{
    struct json *order = json_array_create_empty();

    for (size_t k = 0; k < rows->n_stages; k++) {
        const struct stage_row *row = &rows->stages[k];
        struct json *o = json_object_create();

        json_put_integer(o, "rank", k);
        json_put_integer(o, "level", row->level);
        json_put_integer(o, "dscp", rows->dscp[row->level]);
        json_object_put_string(o, "cojob", row->cojob);
        json_object_put_string(o, "owner", row->owner ? row->owner : "");
        json_put_integer(o, "rung", row->rung);
        json_put_integer(o, "iterations", row->iterations);
        put_jobs(o, rows, k);
        json_object_put_string(o, "override", override_names[row->override]);
        json_object_put_string(o, "ranked_by",
                               order_decider_names[row->decider]);
        json_put_real(o, "weight", row->weight);
        json_put_real(o, "age_s", row->age);
        if (row->idle) {
            json_object_put_string(o, "idle", stage_idle_names[row->idle]);
        }
        if (row->counted) {
            json_put_real(o, "completion_s", row->completion);
        }
        json_object_put(o, "demand", demands_to_json(rows, row));
        json_put_real(o, "remaining_s", row->remaining);
        put_port(o, "bottleneck", rows, row->bottleneck);
        json_array_add(order, o);
    }
    return order;
}

/* Returns the remaining demand of 'job' on 'port', in seconds. */
static double
seconds_on(const struct job_row *job, int port)
{
    for (size_t i = 0; i < job->n_demands; i++) {
        if (job->demands[i].port == port) {
            return job->iterations * job->demands[i].seconds;
        }
    }
    return 0;
}

/* Returns the jobs that have priority over the job of 'row' on its
 * bottleneck. */
static struct json *
before_to_json(const struct decide_rows *rows, const struct job_row *row)
{
    struct json *before = json_array_create_empty();
    int port = row->bottleneck;

    for (size_t k = 0; rows->jobs[k].rank < row->rank; k++) {
        const struct job_row *job = &rows->jobs[k];
        double seconds = seconds_on(job, port);

        if (seconds > 0) {
            struct json *o = json_object_create();

            json_object_put_string(o, "job", job->name);
            json_put_integer(o, "rank", job->rank);
            json_put_integer(o, "level", job->level);
            json_put_real(o, "seconds", seconds);
            json_array_add(before, o);
        }
    }
    return before;
}

/* Returns the members of "controller/explain" of 'job', without the version
 * and the policy; NULL if it is not in the order. */
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
    json_put_integer(json, "rung", stage->rung);
    json_object_put_string(json, "order", order_names[rows->kind]);
    json_object_put_string(json, "unit", unit_names[rows->unit]);
    json_put_integer(json, "rank", row->rank);
    json_object_put_string(json, "ranked_by",
                           order_decider_names[row->decider]);
    json_put_integer(json, "level", row->level);
    json_put_integer(json, "dscp", rows->dscp[row->level]);
    json_object_put_string(json, "override", override_names[row->override]);
    json_put_integer(json, "override_id", row->override_id);
    json_put_integer(json, "stage_rank", row->stage);
    if (stage->idle) {
        json_object_put_string(json, "idle", stage_idle_names[stage->idle]);
    }
    if (stage->counted) {
        json_put_real(json, "completion_s", stage->completion);
    }
    if (row->counted) {
        json_put_integer(json, "iterations_left", row->iterations);
        json_put_real(json, "alone_s", row->isolated);
    }
    json_put_real(json, "period_s", row->period);
    json_put_real(json, "slack_s", row->slack);
    json_put_real(json, "urgency", row->urgency);
    if (row->chance > 0) {
        json_put_real(json, "chance", row->chance);
        json_put_integer(json, "next_rung", row->target);
    }
    json_put_real(json, "search_work_s", stage->work);
    json_put_real(json, "owner_debt_s", stage->debt);
    json_put_real(json, "remaining_s", row->remaining);
    put_port(json, "bottleneck", rows, row->bottleneck);
    json_put_boolean(json, "early", row->early);
    if (isfinite(row->gain)) {
        json_put_real(json, "gain", row->gain);
    }
    json_object_put(json, "before", before_to_json(rows, row));
    return json;
}

static char *
row_name(const struct stage_row *row)
{
    return xasprintf(STAGE_NAME_FMT, row->cojob, row->rung);
}

/* Returns the rank of the first stage that the stage of rank 'k' has
 * overtaken, or -1. */
static int
overtaken(const struct decide_rows *rows, const int *old_ranks, size_t k)
{
    for (size_t i = k + 1; i < rows->n_stages; i++) {
        if (old_ranks[i] >= 0 && old_ranks[i] < old_ranks[k]) {
            return i;
        }
    }
    return -1;
}

/* Returns why the stage of 'row' has its rank, before 'other' if that is not
 * NULL: its override, or its demand. */
static char *
reason_for(const struct decide_rows *rows, const struct stage_row *row,
           const struct stage_row *other)
{
    return (row->override
                ? xasprintf("override (%s)", override_names[row->override])
            : row->idle
                ? xasprintf("it is idle (%s)", stage_idle_names[row->idle])
            : other && other->override
                ? xasprintf("override of the other stage (%s)",
                            override_names[other->override])
            : row->bottleneck < 0
                ? xstrdup("its traffic is unknown so far")
                : xasprintf("it needs %.1f s of %s, weight %g", row->remaining,
                            rows->ports[row->bottleneck], row->weight));
}

/* Returns, for each rank, the smallest previous rank of the stages behind it;
 * the caller frees. */
static int *
least_behind(const struct decide_rows *rows, const int *old_ranks)
{
    int *least = xmalloc((rows->n_stages + 1) * sizeof *least);

    least[rows->n_stages] = INT_MAX;
    for (size_t k = rows->n_stages; k-- > 0;) {
        least[k] = least[k + 1];
        if (old_ranks[k] >= 0) {
            least[k] = MIN(least[k], old_ranks[k]);
        }
    }
    return least;
}

/* Logs the stages that are new or have overtaken another stage, the first
 * MAX_LOGGED of them, and returns how many have overtaken one.  A rank that
 * changed only because an earlier stage ended is not logged. */
int
decide_rows_log_changes(const struct decide_rows *rows, const int *old_ranks,
                        struct decision_log *log)
{
    int *least = least_behind(rows, old_ranks);
    int n = 0, n_logged = 0;

    for (size_t k = 0; k < rows->n_stages; k++) {
        const struct stage_row *row = &rows->stages[k];
        bool overtakes = old_ranks[k] > least[k + 1];
        int behind;
        char *name, *other, *why;

        n += overtakes;
        if (!log || (old_ranks[k] >= 0 && !overtakes)
            || n_logged++ >= MAX_LOGGED) {
            continue;
        }
        behind = overtakes ? overtaken(rows, old_ranks, k) : -1;
        name = row_name(row);
        why = reason_for(rows, row,
                         behind >= 0 ? &rows->stages[behind] : NULL);
        other = behind >= 0 ? row_name(&rows->stages[behind]) : NULL;
        decision_log_append(log, DECISION_ORDER, name, program_name,
                            "rank %"PRIuSIZE" of %"PRIuSIZE", %s%s: %s", k,
                            rows->n_stages, other ? "now before " : "new",
                            other ? other : "", why);
        free(other);
        free(why);
        free(name);
    }
    free(least);
    return n;
}
