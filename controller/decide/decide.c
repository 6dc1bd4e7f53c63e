/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/decide.h"

#include <limits.h>
#include <stdlib.h>

#include "controller/decide/decide-ahead.h"
#include "controller/decide/decide-override.h"
#include "controller/decide/decide-problem.h"
#include "controller/decide/decide-rows.h"
#include "controller/decide/job-assignment.h"
#include "controller/decide/stage-history.h"
#include "controller/model/cluster.h"
#include "controller/model/cooldown.h"
#include "controller/model/demand.h"
#include "controller/model/rank-keys.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "order/order.h"
#include "order/primal-dual/primal-dual.h"
#include "policies/policy.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-put.h"

/* Time until an order is computed again without a change. */
#define REFRESH_MS 1000

/* Delay of an order after a metric sample, for orders that use metrics. */
#define SAMPLES_MS 250

/* Delay of an order after a change that affects no running stage.  It starts
 * again with each such change, up to MAX_MINOR_MS: a search that has announced
 * its jobs is about to begin its stage. */
#define MINOR_MS 250
#define MAX_MINOR_MS 1000

struct decide {
    struct cluster *cluster;
    struct decision_log *log;           /* NULL: none. */
    struct decide_ahead *ahead;
    const struct policy *policy;        /* NULL before the first. */

    unsigned int changes;       /* The cluster's, at the last order. */
    unsigned int minor;         /* The cluster's, at the last order. */
    unsigned int samples;       /* The cluster's, at the last order. */
    bool policy_is_new;         /* No order has been computed by it. */
    long long due;              /* time_msec() of the next order because of
                                 * changes, LLONG_MAX without changes. */
    long long minor_due;        /* The same for minor changes. */
    long long minor_since;      /* time_msec() of the first minor change. */
    long long refresh;          /* time_msec() of the next order without
                                 * changes. */
    long long retag;            /* time_msec() when a job may get the level
                                 * that 'retag_ms' has delayed, LLONG_MAX
                                 * without such a job. */

    struct order_problem *problem;      /* Kept to reuse its memory. */
    struct order_problem *whole;        /* Whole stages, if the entries of
                                 * 'problem' are not.  Kept to reuse its
                                 * memory. */
    struct order_result result;         /* Kept to reuse its memory. */
    struct decide_rows rows;    /* The last order. */
    double bound, estimate;     /* Of the last order, seconds; of weighted
                                 * iterations, by decide-ahead.h. */
    double strict;              /* Strict form of 'bound'; 0 if it has
                                 * none. */
    enum order_bound bound_kind;        /* The bound that 'bound' is. */

    uint64_t n_decisions;
    uint64_t n_changes; /* Stages that overtook another one. */
    uint64_t n_decided[ORDER_N_DECIDERS]; /* Those with stages, by what
                                           * decided. */
    long long us_max;         /* Longest computation, microseconds. */
    struct cooldown cooldown; /* After the last one. */
};

struct decide *
decide_create(struct cluster *cluster, struct decision_log *log)
{
    struct decide *d = xzalloc(sizeof *d);

    d->cluster = cluster;
    d->log = log;
    d->ahead = decide_ahead_create();
    d->problem = order_problem_create(0);
    d->whole = order_problem_create(0);
    order_result_init(&d->result);
    d->due = d->minor_due = d->retag = LLONG_MAX;
    return d;
}

void
decide_destroy(struct decide *d)
{
    if (d) {
        decide_ahead_destroy(d->ahead);
        decide_rows_clear(&d->rows);
        order_result_uninit(&d->result);
        order_problem_destroy(d->problem);
        order_problem_destroy(d->whole);
        free(d);
    }
}

void
decide_set_policy(struct decide *d, const struct policy *policy)
{
    d->policy = policy;
    d->policy_is_new = true;
    d->due = 0;
}

void
decide_touch(struct decide *d)
{
    d->due = 0;
}

/* Sets the stages' ranks after a restart from those of their jobs, which the
 * hosts have. */
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

/* Updates the other members of 'r' after a change of its order. */
static void
follow_order(const struct policy *policy, const struct order_problem *op,
             struct order_result *r)
{
    order_result_ranked(&policy->order, op, r->order, r);
}

static bool
prefers_early_jobs(const struct policy *policy)
{
    return (policy->order.kind == ORDER_EARLY
            || policy->order.kind == ORDER_STAGE_EARLY);
}

/* Sets the order of 'r', the last result, to the ranks that the stages have.
 * Returns false if it must be computed: the policy is new or orders other than
 * whole stages, or a stage has begun or ended. */
static bool
keep_ranks(const struct decide *d, const struct decide_problem *dp,
           struct order_result *r)
{
    bool kept = order_is_whole(d->policy->order.kind) && !d->policy_is_new
                && r->n == dp->n_stages;

    for (size_t s = 0; kept && s < r->n; s++) {
        r->order[s] = -1;
    }
    for (size_t s = 0; kept && s < r->n; s++) {
        int rank = dp->stages[s]->rank;

        kept = rank >= 0 && (size_t) rank < r->n && r->order[rank] < 0;
        if (kept) {
            r->order[rank] = s;
        }
    }
    return kept;
}

/* Removes the isolated times.  They help to find an order, but they are
 * measured with competitors, so the bound must not use them. */
static void
remove_isolated_times(struct order_problem *op)
{
    for (size_t i = 0; i < op->n_stages; i++) {
        order_problem_set_release(op, i, 0, 0);
    }
}

/* Computes the order of 'dp', its estimate and its bound.  Returns false if
 * whole stages keep their order. */
static bool
compute_order(const struct decide *d, struct decide_problem *dp,
              struct order_result *r)
{
    bool kept = keep_ranks(d, dp, r);
    const struct order_class *class = &order_classes[d->policy->order.kind];
    struct order_options options = d->policy->order;

    options.uncertified = true;
    options.iterations = dp->unit == ORDER_UNIT_ITERATION;
    if (class->service == ORDER_SERVICE_SHARE) {
        remove_isolated_times(dp->op);
    }
    if (kept) {
        follow_order(d->policy, dp->op, r);
    } else {
        order_compute(&options, dp->op, r);
    }
    if (decide_override_order(dp, r)
        && class->service != ORDER_SERVICE_SHARE) {
        follow_order(d->policy, dp->op, r);
    }
    if (class->service != ORDER_SERVICE_SHARE) {
        remove_isolated_times(dp->op);
        r->estimate = order_estimate(dp->op, r->order, NULL);
    }
    if (dp->unit != ORDER_UNIT_ITERATION) {
        r->bound = certificate_bound(dp->op, &r->bound_kind);
    }
    return !kept;
}

/* Sets the level of 'job', unless it has changed within 'retag_ms'. */
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

static bool
is_before_stages(const struct job *job)
{
    return job->live && (job->level < 0 || !job->stage);
}

/* Returns the bytes that the jobs of 'cojob' without a stage still transfer,
 * as far as their models are known: about one iteration, unless they have
 * moved more already. */
static double
bytes_before_stages(const struct cojob *cojob)
{
    const struct shash_node *node;
    double bytes = 0;

    SHASH_FOR_EACH (node, &cojob->jobs) {
        const struct job *job = node->data;

        if (is_before_stages(job) && job->model_bytes) {
            bytes += demand_bytes_of_iteration(job);
        }
    }
    return bytes;
}

/* Gives the jobs of 'cojob' that have had no stage the rank and the level of
 * the first job, behind pinned ones, that has more bytes to transfer than all
 * of them: they fetch their first parameters, which is little.  Paused jobs
 * and jobs with unknown models are last, but early jobs are to get theirs
 * soon. */
static void
place_before_stages(struct decide *d, const struct cojob *cojob,
                    const struct job_assignments *assigned, long long now)
{
    double bytes = bytes_before_stages(cojob);
    const struct shash_node *node;
    size_t k = 0;

    while (k < assigned->n_jobs
           && (assigned->jobs[k].dj->traits.bytes <= bytes
               || assigned->jobs[k].dj->job->override == OVERRIDE_PIN)) {
        k++;
    }
    SHASH_FOR_EACH (node, &cojob->jobs) {
        struct job *job = node->data;
        double age = now / 1000.0 - job->progress.curve.begin;
        bool first =
            (prefers_early_jobs(d->policy) && age < d->policy->early_boot_s);
        bool last = !job->model_bytes || job->override == OVERRIDE_PAUSE;
        size_t rank = first ? 0 : last ? assigned->n_jobs : k;

        if (is_before_stages(job)) {
            set_level(d, job,
                      (first                     ? 0
                       : rank < assigned->n_jobs ? assigned->jobs[rank].level
                                                 : d->policy->n_levels - 1),
                      now);
            job->rank =
                rank < assigned->n_jobs ? assigned->jobs[rank].rank : rank;
        }
    }
}

/* Of one rank, jobs that have had a key are first. */
static int
compare_ranks(const void *a_, const void *b_)
{
    const struct job *const *a = a_, *const *b = b_;

    return ((*a)->rank != (*b)->rank ? ((*a)->rank < (*b)->rank ? -1 : 1)
            : (*a)->key > (*b)->key  ? -1
                                     : (*a)->key < (*b)->key);
}

/* Gives hosts the ranks of all jobs that have a level. */
static void
store_keys(const struct cluster *c)
{
    struct job **jobs = xcalloc(shash_count(&c->jobs) + 1, sizeof *jobs);
    const struct shash_node *node;
    size_t n = 0;

    SHASH_FOR_EACH (node, &c->jobs) {
        struct job *job = node->data;

        if (job->live && job->level >= 0) {
            jobs[n++] = job;
        }
    }
    qsort(jobs, n, sizeof *jobs, compare_ranks);
    rank_keys_update(jobs, n);
    free(jobs);
}

/* Copies ranks and levels to the cluster.  With the order "fair", each job has
 * level 0 unless it has an override.  Otherwise a job between two stages keeps
 * its level. */
static void
store_assignments(struct decide *d, const struct decide_problem *dp,
                  const struct job_assignments *assigned, long long now)
{
    int first = (decide_override_pins(d->cluster)
                 ? MIN(1, d->policy->n_levels - 1) : 0);
    struct shash_node *node;

    for (size_t k = 0; k < assigned->n_stages; k++) {
        dp->stages[assigned->stages[k]]->rank = k;
    }
    for (size_t k = 0; k < assigned->n_jobs; k++) {
        struct job *job = assigned->jobs[k].dj->job;

        set_level(d, job, assigned->jobs[k].level, now);
        job->rank = assigned->jobs[k].rank;
        job_progress_wait(&job->progress, assigned->jobs[k].waits);
    }
    SHASH_FOR_EACH (node, &d->cluster->jobs) {
        struct job *job = node->data;

        if (d->policy->order.kind == ORDER_FAIR && job->live) {
            set_level(d, job,
                      (job->override == OVERRIDE_PAUSE
                           ? d->policy->n_levels - 1
                       : job->override == OVERRIDE_PIN ? 0
                                                       : first),
                      now);
        } else if (job->level >= d->policy->n_levels) {
            job->level = d->policy->n_levels - 1;
        }
    }
    SHASH_FOR_EACH (node, &d->cluster->cojobs) {
        if (d->policy->order.kind != ORDER_FAIR) {
            place_before_stages(d, node->data, assigned, now);
        }
    }
    store_keys(d->cluster);
}

/* Returns true if a factor of the last plan is in the keys of 'dp'. */
static bool
follows_plan(const struct decide_problem *dp)
{
    for (size_t i = 0; i < dp->n_jobs; i++) {
        if (dp->jobs[i].job->factor != 1) {
            return true;
        }
    }
    return false;
}

/* Returns, by the current rank, the previous rank of each stage. */
static int *
ranks_before(const struct decide_problem *dp,
             const struct job_assignments *assigned)
{
    int *ranks = xcalloc(MAX(assigned->n_stages, 1), sizeof *ranks);

    for (size_t k = 0; k < assigned->n_stages; k++) {
        ranks[k] = dp->stages[assigned->stages[k]]->rank;
    }
    return ranks;
}

/* Records the bound of the order, and its estimate.  Those of weighted
 * iterations are the last that are ready. */
static void
record_quality(struct decide *d, bool weighted, const struct order_result *r,
               long long now)
{
    struct decide_ahead_bound ahead;

    d->bound = d->strict = d->estimate = 0;
    d->bound_kind = ORDER_BOUND_NONE;
    if (!weighted && r->n) {
        d->bound = r->bound;
        d->bound_kind = r->bound_kind;
        d->estimate = r->estimate;
    } else if (weighted && decide_ahead_bound(d->ahead, now, &ahead)) {
        d->bound = ahead.bound.fluid;
        d->strict = ahead.bound.strict;
        d->bound_kind = ahead.bound.kind;
        d->estimate = ahead.estimate;
    }
}

static void
decide_now(struct decide *d, long long now)
{
    long long began = time_usec();
    long long ms = time_msec();
    struct job_assignments assigned;
    struct decide_problem dp;
    bool planned = decide_ahead_take(d->ahead, d->cluster, d->policy, now);
    int *old_ranks;

    decide_problem_init(&dp, d->problem, d->whole, d->cluster, d->policy,
                        order_unit(d->policy->order.kind,
                                   decide_problem_iterates(d->cluster)),
                        ms);
    if (!d->n_decisions) {
        restore_ranks(dp.stages, dp.n_stages);
    }
    if (compute_order(d, &dp, &d->result)) {
        if (d->result.decider == ORDER_BY_KEY && planned
            && follows_plan(&dp)) {
            d->result.decider = ORDER_BY_PLAN;
        }
        d->policy_is_new = false;
        d->n_decisions++;
        d->n_decided[d->result.decider] += dp.n_stages > 0;
    }
    job_assignments_init(&assigned, &dp, d->policy, &d->result);
    if (dp.unit == ORDER_UNIT_ITERATION) {
        job_assignments_predict(&assigned, &dp, d->whole);
    }
    old_ranks = ranks_before(&dp, &assigned);
    store_assignments(d, &dp, &assigned, now);
    decide_rows_set(&d->rows, d->cluster, d->policy, &dp, d->result.decider,
                    &assigned, ms);
    d->n_changes += decide_rows_log_changes(&d->rows, old_ranks, d->log);
    free(old_ranks);
    record_quality(d, dp.unit == ORDER_UNIT_ITERATION && dp.n_stages,
                   &d->result, now);
    decide_ahead_offer(d->ahead, &dp, d->cluster, d->policy,
                       assigned.completions, now);

    job_assignments_uninit(&assigned);
    decide_problem_uninit(&dp);
    d->us_max = MAX(d->us_max, time_usec() - began);
    cooldown_after(&d->cooldown, now, time_usec() - began);
}

/* Returns the time until the next order without changes.  Improvement is
 * predicted for 'early_period_s'. */
static long long
refresh_ms(const struct policy *policy)
{
    long long ms = order_uses_metrics(policy->order.kind)
                   ? policy->early_period_s * 1000 : REFRESH_MS;

    return (order_unit(policy->order.kind, true) == ORDER_UNIT_ITERATION
            ? MIN(ms, policy->refresh_ms) : ms);
}

/* Computes an order if one is due at 'now', time_msec(), and stores it in the
 * cluster's jobs and stages.  Returns true if it did. */
bool
decide_run(struct decide *d, long long now)
{
    if (!d->policy || now < d->cooldown.until) {
        return false;
    }
    if (d->changes != d->cluster->changes) {
        d->changes = d->cluster->changes;
        d->due = MIN(d->due, now + d->policy->coalesce_ms);
    }
    if (d->minor != d->cluster->minor) {
        d->minor = d->cluster->minor;
        d->minor_since = d->minor_due < LLONG_MAX ? d->minor_since : now;
        d->minor_due = MIN(now + MINOR_MS, d->minor_since + MAX_MINOR_MS);
    }
    if (d->samples != d->cluster->samples) {
        d->samples = d->cluster->samples;
        if (order_uses_metrics(d->policy->order.kind)) {
            d->due = MIN(d->due, now + SAMPLES_MS);
        }
    }
    if (now < MIN(d->due, d->minor_due) && now < d->refresh
        && now < d->retag) {
        return false;
    }
    d->due = d->minor_due = d->retag = LLONG_MAX;
    d->refresh = now + refresh_ms(d->policy);
    decide_now(d, now);
    return true;
}

/* Returns true if the last order includes all changes of the cluster. */
bool
decide_is_settled(const struct decide *d)
{
    return d->policy && d->changes == d->cluster->changes
           && d->minor == d->cluster->minor && d->due == LLONG_MAX
           && d->minor_due == LLONG_MAX;
}

void
decide_wait(const struct decide *d)
{
    if (d->policy) {
        long long due =
            MIN(MIN(d->refresh, d->minor_due), MIN(d->due, d->retag));

        if (d->changes != d->cluster->changes || d->minor != d->cluster->minor
            || d->samples != d->cluster->samples) {
            due = 0;
        }
        poll_timer_wait_until(MAX(due, d->cooldown.until));
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
    json_put_real(json, "bound_s", d->bound);
    if (d->strict > 0) {
        json_put_real(json, "bound_strict_s", d->strict);
    }
    json_object_put_string(json, "bound_kind",
                           order_bound_names[d->bound_kind]);
    json_put_real(json, "estimate_s", d->estimate);
    json_put_real(json, "gap", ratio(d->estimate, d->bound));
}

const struct decide_rows *
decide_last(const struct decide *d)
{
    return &d->rows;
}

/* Adds what decided the order in force, and how often each decided. */
static void
put_deciders(const struct decide *d, struct json *json)
{
    struct json *counts = json_object_create();

    for (int i = 0; i < ORDER_BY_OVERRIDE; i++) {
        json_put_integer(counts, order_decider_names[i], d->n_decided[i]);
    }
    json_object_put(json, "ranked", counts);
    json_object_put_string(
        json, "ranked_by",
        d->rows.n_stages ? order_decider_names[d->rows.decider] : "none");
}

/* Adds statistics of the decisions to 'json'. */
void
decide_status(const struct decide *d, struct json *json)
{
    struct decide_ahead_counts ahead = decide_ahead_counts(d->ahead);

    json_put_integer(json, "decisions", d->n_decisions);
    json_put_integer(json, "order_changes", d->n_changes);
    json_put_integer(json, "plans", ahead.plans);
    json_put_integer(json, "plan_runs", ahead.runs);
    json_put_real(json, "plan_cpu_s", ahead.cpu_s);
    json_put_integer(json, "decision_us_max", d->us_max);
    put_quality(d, json);
    put_deciders(d, json);
}

/* Returns the members of "controller/order", without the version and the
 * policy. */
struct json *
decide_order_to_json(const struct decide *d)
{
    struct json *json = json_object_create();

    json_object_put(json, "order", decide_rows_to_json(&d->rows));
    put_quality(d, json);
    return json;
}

/* Returns the members of "controller/explain", without the version and the
 * policy; NULL if 'job' is not in the last order. */
struct json *
decide_explain(const struct decide *d, const char *job)
{
    struct json *json = decide_rows_explain(&d->rows, job);

    if (json) {
        put_quality(d, json);
    }
    return json;
}

/* Returns the reply of "controller/stages". */
struct json *
decide_stages_to_json(const struct decide *d)
{
    struct json *json = stage_history_to_json(d->cluster);

    json_put_integer(json, "decisions", d->n_decisions);
    return json;
}
