/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/job-assignment.h"

#include <stdlib.h>
#include <string.h>

#include "controller/decide/decide-override.h"
#include "controller/decide/decide-problem.h"
#include "controller/model/cluster.h"
#include "order/order.h"
#include "order/result/job-ends.h"
#include "order/result/slack.h"
#include "policies/policy.h"
#include "util.h"

/* Puts jobs that still move their first parameters first.
 *
 * All jobs of a stage wait for the last one to start, and starting moves
 * little, whatever rank the stage has.  Measured in the main scenario: with
 * the rank of their stage, jobs take 1.6 times as long as in a plain network
 * until their first iteration.
 *
 * The jobs of a stage that start go before the first job that has more bytes
 * to its end than an iteration of all of them.  So a large model goes first
 * only before longer work, and one that moves more than its announced model
 * has the rank of its demand again, see demand_is_starting().  Overrides and
 * idle stages keep their places.  Neither policies that serve all jobs alike
 * nor orders of whole stages are affected.
 *
 * Pure computation. */

static bool
is_starting(const struct job_assignment *a)
{
    return a->dj->starting && !decide_override_class(a->dj);
}

/* Returns, by stage, the bytes of an iteration of all its jobs that start; the
 * caller frees. */
static double *
bytes_of_starts(const struct job_assignments *assigned)
{
    double *bytes = xcalloc(MAX(assigned->n_stages, 1), sizeof *bytes);

    for (size_t k = 0; k < assigned->n_jobs; k++) {
        const struct decide_job *dj = assigned->jobs[k].dj;

        if (is_starting(&assigned->jobs[k])) {
            bytes[dj->stage] += dj->traits.bytes / dj->iterations;
        }
    }
    return bytes;
}

/* Moves the job of place 'k' before those that have more than 'bytes' to
 * their end.  The level of no other job changes. */
static void
move_forward(struct job_assignments *assigned, size_t k, double bytes)
{
    struct job_assignment *jobs = assigned->jobs, job = jobs[k];
    size_t to = 0;

    while (to < k
           && (decide_override_class(jobs[to].dj) || is_starting(&jobs[to])
               || jobs[to].dj->traits.bytes <= bytes)) {
        to++;
    }
    if (to < k) {
        job.level = MIN(job.level, jobs[to].level);
        job.moved = true;
        memmove(&jobs[to + 1], &jobs[to], (k - to) * sizeof *jobs);
        jobs[to] = job;
    }
}

static void
first_weights_place(struct job_assignments *assigned,
                    const struct policy *policy)
{
    enum order_kind kind = policy->order.kind;
    double *bytes;

    if (order_is_whole(kind)
        || order_classes[kind].service == ORDER_SERVICE_SHARE) {
        return;
    }
    bytes = bytes_of_starts(assigned);
    for (size_t k = 1; k < assigned->n_jobs; k++) {
        if (is_starting(&assigned->jobs[k])) {
            move_forward(assigned, k, bytes[assigned->jobs[k].dj->stage]);
        }
    }
    free(bytes);
}

/* Returns true if 'a' and 'b' are of one stage in an order of 'whole' stages,
 * or equal trials of one search. */
static bool
are_alike(const struct job_assignment *a, const struct job_assignment *b,
          bool whole)
{
    size_t group = a->dj->traits.group;

    return ((whole ? a->dj->stage == b->dj->stage
                   : group && group == b->dj->traits.group)
            && a->moved == b->moved
            && decide_override_class(a->dj) == decide_override_class(b->dj));
}

static void
number_ranks(struct job_assignments *assigned, bool whole)
{
    struct job_assignment *jobs = assigned->jobs;

    for (size_t k = 1; k < assigned->n_jobs; k++) {
        jobs[k].rank =
            jobs[k - 1].rank + !are_alike(&jobs[k - 1], &jobs[k], whole);
    }
}

static int
override_class(const struct slack_job *job)
{
    return decide_override_class(job->owner);
}

/* Sorts by the class of the override; a stable sort. */
static void
sort_by_override(struct slack_job *jobs, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct slack_job job = jobs[i];
        size_t k = i;

        while (k > 0 && override_class(&jobs[k - 1]) > override_class(&job)) {
            jobs[k] = jobs[k - 1];
            k--;
        }
        jobs[k] = job;
    }
}

/* If the ports of the job are unknown, uses those of its stage. */
static struct slack_job
to_slack_job(const struct decide_problem *dp, const struct decide_job *dj)
{
    const struct order_stage *os = &dp->op->stages[dj->entry];
    const struct order_demand *d = dj->n_demands ? dj->demands : os->demands;

    return (struct slack_job) {
        .stage = dj->entry, .id = dj - dp->jobs, .isolated = dj->isolated,
        .ports = d ? &d->port : NULL, .stride = sizeof *d,
        .n_ports = dj->n_demands ? dj->n_demands : os->n_demands,
        .owner = CONST_CAST(struct decide_job *, dj),
    };
}

static void
assign_by_slack(struct job_assignments *assigned,
                const struct decide_problem *dp,
               const struct policy *policy, const struct order_result *r)
{
    struct slack_job *jobs = xcalloc(MAX(dp->n_jobs, 1), sizeof *jobs);
    bool whole = order_is_whole(policy->order.kind);

    for (size_t i = 0; i < dp->n_jobs; i++) {
        jobs[i] = to_slack_job(dp, &dp->jobs[i]);
    }
    slack_assign(dp->op, r, &policy->order, jobs, dp->n_jobs);
    sort_by_override(jobs, dp->n_jobs);
    if (!whole) {
        slack_set_levels(dp->op, policy->n_levels, jobs, dp->n_jobs);
        for (size_t k = 0; k < dp->n_jobs; k++) {
            jobs[k].level =
                (policy->order.kind == ORDER_FAIR ? 0
                 : policy->order.truncate ? MIN((int) k, policy->n_levels - 1)
                                          : jobs[k].level);
        }
    }
    for (size_t k = 0; k < dp->n_jobs; k++) {
        assigned->jobs[k] = (struct job_assignment){
            .dj = jobs[k].owner,
            .level = jobs[k].level,
            .slack = jobs[k].slack,
        };
    }
    free(jobs);
}

static void
assign_by_order(struct job_assignments *assigned,
                const struct decide_problem *dp, const struct order_result *r)
{
    for (size_t k = 0; k < r->n; k++) {
        assigned->jobs[k] =
            (struct job_assignment){ .dj = &dp->jobs[r->order[k]],
                                     .level = r->level[r->order[k]] };
    }
}

/* Ranks stages by their first jobs; stages without jobs are last. */
static void
rank_stages(struct job_assignments *assigned)
{
    bool *seen = xcalloc(MAX(assigned->n_stages, 1), sizeof *seen);
    size_t n = 0;

    for (size_t k = 0; k < assigned->n_jobs; k++) {
        int s = assigned->jobs[k].dj->stage;

        if (!seen[s]) {
            seen[s] = true;
            assigned->stages[n++] = s;
        }
    }
    for (size_t s = 0; s < assigned->n_stages; s++) {
        if (!seen[s]) {
            assigned->stages[n++] = s;
        }
    }
    free(seen);
}

/* Sets 'waits' of all jobs.  'share' is true if all jobs are served alike. */
static void
mark_waiting(struct job_assignments *assigned, int n_ports, bool share)
{
    int *users = xcalloc(MAX(n_ports, 1), sizeof *users);
    size_t n = assigned->n_jobs, counted = 0;

    for (size_t k = 0; k < n; k++) {
        struct job_assignment *a = &assigned->jobs[k];

        for (;
             counted < n && (share || assigned->jobs[counted].rank <= a->rank);
             counted++) {
            const struct decide_job *dj = assigned->jobs[counted].dj;

            for (size_t i = 0; i < dj->n_demands; i++) {
                users[dj->demands[i].port]++;
            }
        }
        for (size_t i = 0; i < a->dj->n_demands; i++) {
            a->waits |= users[a->dj->demands[i].port] > 1;
        }
    }
    free(users);
}

/* Stores in 'ends' when each stage of 'op' ends if they are served in 'order',
 * at least its isolated time.  A job counts for the entry that it has in
 * 'op': its own if that is the problem of 'dp', or its stage. */
static void
predict_ends(const struct decide_problem *dp, struct order_problem *op,
             const int *order, double *ends)
{
    double *isolated = xcalloc(MAX(op->n_stages, 1), sizeof *isolated);

    for (size_t i = 0; i < dp->n_jobs; i++) {
        const struct decide_job *dj = &dp->jobs[i];
        double *entry = &isolated[op == dp->op ? dj->entry : dj->stage];

        *entry = MAX(*entry, dj->predicted);
    }
    for (size_t i = 0; i < op->n_stages; i++) {
        order_problem_set_release(op, i, 0, isolated[i]);
    }
    order_estimate(op, order, ends);
    for (size_t i = 0; i < op->n_stages; i++) {
        order_problem_set_release(op, i, 0, 0);
    }
    free(isolated);
}

/* Place of a job in the prediction. */
struct place {
    const struct decide_job *dj;
    double need;                /* Of its search, by weight. */
};

static int
compare_places(const void *a_, const void *b_)
{
    const struct place *a = a_, *b = b_;

    return (a->need != b->need ? (a->need < b->need ? -1 : 1)
            : a->dj->stage != b->dj->stage ? a->dj->stage - b->dj->stage
            : a->dj->predicted != b->dj->predicted
            ? (a->dj->predicted > b->dj->predicted ? -1 : 1)
            : a->dj < b->dj ? -1 : a->dj > b->dj);
}

/* Stores in 'ends' when each stage of 'dp' ends if its iterations are ordered
 * and no other stage begins; see job-ends.h. */
static void
predict_iterating(const struct decide_problem *dp, double *ends)
{
    struct place *places = xcalloc(MAX(dp->n_jobs, 1), sizeof *places);
    struct job_end *jobs = xcalloc(MAX(dp->n_jobs, 1), sizeof *jobs);

    for (size_t i = 0; i < dp->n_jobs; i++) {
        const struct iteration_need *need = &dp->needs[dp->jobs[i].stage];

        places[i] = (struct place) { &dp->jobs[i], need->work / need->weight };
    }
    qsort(places, dp->n_jobs, sizeof *places, compare_places);
    for (size_t i = 0; i < dp->n_jobs; i++) {
        const struct decide_job *dj = places[i].dj;

        jobs[i] = (struct job_end){ .iterations = dj->iterations,
                                    .period = dj->predicted / dj->iterations,
                                    .demands = dj->demands,
                                    .n_demands = dj->n_demands };
    }
    job_ends_predict(jobs, dp->n_jobs, dp->op->n_ports);
    memset(ends, 0, dp->n_stages * sizeof *ends);
    for (size_t i = 0; i < dp->n_jobs; i++) {
        double *end = &ends[places[i].dj->stage];

        *end = MAX(*end, jobs[i].end);
    }
    free(places);
    free(jobs);
}

void
job_assignments_predict(struct job_assignments *assigned,
                        const struct decide_problem *dp,
                        struct order_problem *whole)
{
    predict_ends(dp, whole, assigned->stages, assigned->completions);
    if (dp->n_jobs <= JOB_ENDS_MAX) {
        predict_iterating(dp, assigned->completions);
    }
}

/* Returns the predicted completion time of each entry of 'dp' if they are
 * served in the order of 'r', at least its isolated time; the caller frees.
 * For orders of coflows, which are about single iterations, and for policies
 * that share the network, returns the order's own completion times. */
static double *
predict_completions(const struct decide_problem *dp,
                    const struct policy *policy, const struct order_result *r)
{
    const struct order_class *class = &order_classes[policy->order.kind];
    double *ends = xmemdup(r->completion, r->n * sizeof *ends);

    if (dp->unit == ORDER_UNIT_COFLOW || dp->unit == ORDER_UNIT_ITERATION
        || class->service == ORDER_SERVICE_SHARE) {
        return ends;
    }
    predict_ends(dp, dp->op, r->order, ends);
    return ends;
}

/* Sets the level of each stage to its best job's and the completion time to
 * its last job's. */
static void
describe_stages(struct job_assignments *assigned,
                const struct decide_problem *dp,
                const struct policy *policy, const struct order_result *r)
{
    double *ends = predict_completions(dp, policy, r);
    bool *seen = xcalloc(MAX(assigned->n_stages, 1), sizeof *seen);

    for (size_t s = 0; dp->unit == ORDER_UNIT_STAGE && s < r->n; s++) {
        assigned->stage_levels[s] = r->level[s];
        assigned->completions[s] = ends[s];
    }
    for (size_t k = 0; k < assigned->n_jobs; k++) {
        const struct job_assignment *a = &assigned->jobs[k];
        int s = a->dj->stage;
        int *level = &assigned->stage_levels[s];

        *level = seen[s] ? MIN(*level, a->level) : a->level;
        assigned->completions[s] = MAX(assigned->completions[s],
                                     ends[a->dj->entry]);
        seen[s] = true;
    }
    free(ends);
    free(seen);
}

/* Assigns the jobs of 'dp'; 'r' is its order by 'policy'. */
void
job_assignments_init(struct job_assignments *assigned,
                     const struct decide_problem *dp,
                     const struct policy *policy, const struct order_result *r)
{
    *assigned = (struct job_assignments) {
        .jobs = xcalloc(MAX(dp->n_jobs, 1), sizeof *assigned->jobs),
        .n_jobs = dp->n_jobs,
        .stages = xcalloc(MAX(dp->n_stages, 1), sizeof *assigned->stages),
        .stage_levels = xcalloc(MAX(dp->n_stages, 1),
                                sizeof *assigned->stage_levels),
        .completions = xcalloc(MAX(dp->n_stages, 1),
                               sizeof *assigned->completions),
        .n_stages = dp->n_stages,
    };
    if (dp->unit == ORDER_UNIT_STAGE) {
        assign_by_slack(assigned, dp, policy, r);
        for (size_t k = 0; k < r->n; k++) {
            assigned->stages[k] = r->order[k];
        }
    } else {
        assign_by_order(assigned, dp, r);
        rank_stages(assigned);
    }
    decide_override_levels(policy, assigned->jobs, assigned->n_jobs);
    first_weights_place(assigned, policy);
    number_ranks(assigned, order_is_whole(policy->order.kind));
    mark_waiting(assigned, dp->op->n_ports,
                 order_classes[policy->order.kind].service
                 == ORDER_SERVICE_SHARE);
    describe_stages(assigned, dp, policy, r);
}

void
job_assignments_uninit(struct job_assignments *assigned)
{
    free(assigned->jobs);
    free(assigned->stages);
    free(assigned->stage_levels);
    free(assigned->completions);
}
