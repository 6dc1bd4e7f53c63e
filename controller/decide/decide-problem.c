/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/decide-problem.h"

#include <math.h>
#include <stdlib.h>

#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "controller/model/inactive.h"
#include "controller/model/iteration-traffic.h"
#include "controller/model/owners.h"
#include "openvswitch/vlog.h"
#include "order/problem/lateness.h"
#include "policies/policy.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(decide_problem);

/* Compares what a search announced of an iteration with what is counted.
 *
 * An announcement helps until a job has been counted (demand.h has its bytes,
 * job-progress.h its pace); from then on what is counted decides.  One that is
 * wrong also costs the search its word: its other jobs are expected to move as
 * many times what was announced as those that have been counted, bytes that
 * were too few are a debt (announcement.h), and no computing time that it
 * announces is used any more.  "controller/status" has an alarm.
 *
 * Both count as wrong beyond STAGE_CLAIM_TOLERANCE: headers add up to 6 % to
 * what is announced, what was lost is sent again, and a measurement of eight
 * iterations begins and ends in the middle of one.
 *
 * A stage announces the mean of what its jobs send, so this is compared when
 * all of them have been counted.  An iteration cannot take less than its
 * computing time.  In a job that no other one delays it takes no more than
 * this and its transfers, at most two after each other at the busiest port.
 * The slowest job of the stage is compared. */

#define STAGE_CLAIM_TOLERANCE 1.25

/* Iterations of a job before its bytes have been counted. */
#define UNCOUNTED (1 + DEMAND_AVERAGE_ITERATIONS)

/* Stores 'ratio', of what was counted by what was announced, in '*wrong', or 0
 * if it is tolerable. */
static void
judge(const struct stage *stage, const char *what, double ratio, double *wrong)
{
    bool right =
        (ratio <= STAGE_CLAIM_TOLERANCE && ratio >= 1 / STAGE_CLAIM_TOLERANCE);

    if (!right && !(*wrong > 0)) {
        char *name = stage_name(stage);

        VLOG_WARN("stage %s: %.2f times the %s of an iteration that were "
                  "announced",
                  name, ratio, what);
        free(name);
    }
    *wrong = right ? 0 : ratio;
}

static void
check_bytes(struct stage *stage, const struct decide_job *jobs, size_t n)
{
    struct stage_claim *claim = &stage->claim;
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        double bytes = demand_counted_bytes(jobs[i].job);

        if (!(bytes > 0)) {
            return;
        }
        sum += bytes;
    }
    judge(stage, "bytes", sum / (n * claim->bytes), &claim->bytes_ratio);
    stage->cojob->bytes_ratio = claim->bytes_ratio;
    stage->announcement.understated =
        claim->bytes_ratio > 1 && !stage->first_iteration
            ? n * UNCOUNTED * (1 - 1 / claim->bytes_ratio)
            : 0;
}

static void
check_compute(struct stage *stage, const struct decide_job *jobs, size_t n)
{
    struct stage_claim *claim = &stage->claim;
    double period = 0, alone = 0, burst = 0, most;

    for (size_t i = 0; i < n; i++) {
        const struct job_progress *p = &jobs[i].job->progress;

        if (!(p->period > 0) || !(demand_counted_bytes(jobs[i].job) > 0)) {
            return;
        }
        period = MAX(period, p->period);
        alone = MAX(alone, p->first_period);
        burst = MAX(burst, jobs[i].burst);
    }
    most = claim->compute + 2 * burst;
    judge(stage, "seconds",
          period < claim->compute ? period / claim->compute
          : alone > most          ? alone / most
                                  : 1,
          &claim->compute_ratio);
    stage->cojob->compute_refuted |= claim->compute_ratio > 0;
}

static void
stage_claim_check(struct stage *stage, const struct decide_job *jobs, size_t n)
{
    if (!n || n < stage->n_jobs) {
        return;
    }
    if (stage->claim.bytes > 0) {
        check_bytes(stage, jobs, n);
    }
    if (stage->claim.compute > 0) {
        check_compute(stage, jobs, n);
    }
}

/* Returns the cojob's weight by the intent, multiplied by the policy's factors
 * of its owner and of itself. */
double
decide_stage_weight(const struct policy *policy, const struct stage *stage)
{
    return (stage->cojob->weight
            * policy_weight(policy, stage->cojob->owner, stage->cojob_name));
}

static double
age_of(const struct stage *stage, long long now)
{
    return MAX(0, now - stage->begin_ms) / 1000.0;
}

/* Returns the shortest gap between two bursts that a host of 'job' has
 * measured, in seconds; 0 if unknown.  In a gap the job computes, or waits for
 * another link. */
static double
burst_gap(const struct job *job)
{
    const struct shash_node *node;
    double shortest = 0;

    SHASH_FOR_EACH (node, &job->traffic) {
        const struct job_traffic *t = node->data;
        double s = t->burst_period * (1 - t->burst_duty);

        if (s > 0 && (shortest <= 0 || s < shortest)) {
            shortest = s;
        }
    }
    return shortest;
}

/* Returns the seconds of an iteration of 'job' in which it does not transfer,
 * as its search announced them, or else as its bursts show them. */
static double
compute_of(const struct job *job)
{
    double announced =
        (job->stage && !job->cojob->compute_refuted ? job->stage->claim.compute
                                                    : 0);

    return announced > 0 ? announced : burst_gap(job);
}

/* Returns the predicted isolated seconds per iteration of 'job'; 'burst' is
 * its longest transfer.  The period of a job that has always waited depends
 * on the other jobs, so it is only an upper limit. */
static double
predicted_period(const struct job *job, double burst)
{
    const struct job_progress *p = &job->progress;
    double limit = p->period > 0 ? p->period : INFINITY;
    double period =
        (p->first_period > 0 ? p->first_period
                             : MIN(limit, compute_of(job) + burst));

    return MAX(period, burst);
}

void
decide_job_measure(struct decide_job *dj, const struct cluster *c)
{
    dj->n_demands = iteration_traffic_demand(c, dj->job, &dj->demands);
    for (size_t i = 0; i < dj->n_demands; i++) {
        dj->burst = MAX(dj->burst, dj->demands[i].seconds);
    }
    dj->predicted = dj->iterations * predicted_period(dj->job, dj->burst);
}

/* Sets the other members of 'dj', a job of 'stage'. */
static void
describe_job(struct decide_job *dj, const struct policy *policy,
             const struct stage *stage, long long now)
{
    struct job *job = dj->job;
    struct order_traits *traits = &dj->traits;
    double period = job->progress.period;

    dj->isolated = dj->iterations * MAX(job->progress.first_period, dj->burst);
    traits->arrival = age_of(stage, now);
    traits->sent = job->sent;
    traits->bytes = dj->iterations * demand_bytes_of_iteration(job);
    if (period > 0 && dj->burst > 0) {
        traits->intensity = MAX(0, period - dj->burst) * demand_devices(job)
                            / dj->burst;
    }
    if (period > 0 && dj->iterations > 1) {
        traits->period = MAX(period, dj->burst);
    }
    job_progress_score(&job->progress, policy, job->iteration, dj->iterations,
                       stage_iterations_after(stage, job), now, traits);
}

/* Finds out what 'stage' lacks.  An order of whole stages must not keep the
 * rank that it had while it was idle. */
static void
update_idle(struct stage *stage, long long now)
{
    enum stage_idle idle = stage_find_idle(stage, now);

    if (stage->idle && !idle) {
        stage->rank = -1;
    }
    stage->idle = idle;
}

/* Keeps the longest computing time of an iteration for the history. */
static void
note_compute(struct stage *stage, const struct decide_job *jobs, size_t n)
{
    double compute = 0;

    for (size_t i = 0; i < n; i++) {
        compute = MAX(compute,
                      jobs[i].predicted / jobs[i].iterations - jobs[i].burst);
    }
    if (compute > 0) {
        stage->compute = compute;
    }
}

static void
collect_job(struct decide_problem *dp, const struct cluster *c,
            const struct policy *policy, int stage, struct job *job,
            long long now)
{
    int64_t n = demand_remaining_iterations(dp->stages[stage], job);
    struct decide_job *dj;

    if (!n) {
        return;
    }
    if (dp->n_jobs >= dp->allocated_jobs) {
        dp->jobs = x2nrealloc(dp->jobs, &dp->allocated_jobs, sizeof *dp->jobs);
    }
    dj = &dp->jobs[dp->n_jobs++];
    *dj = (struct decide_job){
        .job = job,
        .stage = stage,
        .iterations = n,
        .urgency = 1,
        .promise = 1,
        .starting = demand_is_starting(job),
    };
    decide_job_measure(dj, c);
    describe_job(dj, policy, dp->stages[stage], now);
}

static void
add_demands(struct order_problem *op, int entry, const struct decide_job *dj,
            double iterations)
{
    for (size_t i = 0; i < dj->n_demands; i++) {
        order_problem_add_demand(op, entry, dj->demands[i].port,
                                 iterations * dj->demands[i].seconds);
    }
}

/* Adds the traits of a job to those of its stage. */
static void
merge_traits(struct order_traits *traits, const struct order_traits *job)
{
    traits->sent += job->sent;
    traits->bytes += job->bytes;
    traits->intensity = MAX(traits->intensity, job->intensity);
    traits->gain = MAX(traits->gain, job->gain);
    traits->early |= job->early;
    traits->period = MAX(traits->period, job->period);
}

/* Returns the ratio of the debt of 'stage' to its own work.  So the debt ages
 * as slowly as the work: small slices would soon be old. */
static double
debt_share(const struct stage *stage)
{
    double own =
        stage->work
        * (stage_iterations(stage) + stage_trials_later(&stage->trials));

    return own > 0 ? stage->debt / own : 0;
}

/* Adds stage 's' as a whole to 'op'.  An asynchronous search has as many
 * trials at a time as run now, which do equal parts of it. */
static void
add_stage(const struct decide_problem *dp, const struct policy *policy,
          int s, long long now, struct order_problem *op)
{
    const struct stage *stage = dp->stages[s];
    double age = age_of(stage, now);
    struct order_traits traits = { .arrival = age };
    int entry =
        order_problem_add_stage(op, decide_stage_weight(policy, stage), s);
    double isolated = 0, left = stage_trials_left(stage);
    size_t n_jobs = dp->first_job[s + 1] - dp->first_job[s];

    for (size_t i = dp->first_job[s]; i < dp->first_job[s + 1]; i++) {
        const struct decide_job *dj = &dp->jobs[i];
        double n = left > 0 ? left / n_jobs : dj->iterations;
        struct order_traits own = dj->traits;

        own.bytes *= n / dj->iterations;
        add_demands(op, entry, dj, n);
        isolated = MAX(isolated, dj->isolated * (n / dj->iterations));
        merge_traits(&traits, &own);
    }
    if (left > 0) {
        traits.sent = traits.bytes * stage_trials_done(stage) / left;
    }
    traits.sent += (traits.sent + traits.bytes) * debt_share(stage);
    order_problem_set_release(op, entry, 0, isolated);
    order_problem_set_traits(op, entry, &traits);
}

/* Sets 'op' to the problem of whole stages, with weights that grow with their
 * age. */
static void
add_stages(const struct decide_problem *dp, const struct policy *policy,
           long long now, struct order_problem *op)
{
    order_problem_restart(op, dp->op->n_ports);
    op->now = now / 1000.0;
    for (size_t s = 0; s < dp->n_stages; s++) {
        add_stage(dp, policy, s, now, op);
    }
    order_problem_age(op, policy->aging_s, policy->aging_slowdown);
}

bool
decide_problem_iterates(const struct cluster *c)
{
    size_t n;
    struct stage **stages = cluster_running_stages(c, &n);
    bool iterates = false;

    for (size_t i = 0; i < n; i++) {
        iterates |= stages[i]->iterations > 1;
    }
    free(stages);
    return iterates;
}

/* Returns the seconds of all ports that an iteration of 'dj' takes. */
static double
work_of_iteration(const struct decide_job *dj)
{
    double work = 0;

    for (size_t i = 0; i < dj->n_demands; i++) {
        work += dj->demands[i].seconds;
    }
    return work;
}

/* Returns the work of the search of stage 's' from its begin to its announced
 * end, and keeps the work of an iteration. */
static double
work_of_search(const struct decide_problem *dp, size_t s)
{
    struct stage *stage = dp->stages[s];
    size_t n_jobs = dp->first_job[s + 1] - dp->first_job[s];
    double work = 0;

    for (size_t i = dp->first_job[s]; i < dp->first_job[s + 1]; i++) {
        work += work_of_iteration(&dp->jobs[i]) / n_jobs;
    }
    stage->work = n_jobs ? work : stage->work;
    return (
        stage->cojob->served
        + stage->work
              * (MAX(stage_iterations(stage), 0) + stage->announcement.later));
}

/* Returns what the search of stage 's', of 'weight', still needs, and what it
 * owes for stages that it hid.  Later iterations are assumed to be as those of
 * the average job. */
static struct iteration_need
need_of(const struct decide_problem *dp, int s, double weight)
{
    const struct stage *stage = dp->stages[s];
    const struct announcement *a = &stage->announcement;
    size_t n_jobs = dp->first_job[s + 1] - dp->first_job[s];
    struct iteration_need need = { .weight = weight };
    double of_iterations = 0;

    for (size_t i = dp->first_job[s]; i < dp->first_job[s + 1]; i++) {
        const struct decide_job *dj = &dp->jobs[i];

        need.work += dj->iterations * work_of_iteration(dj);
        of_iterations += work_of_iteration(dj);
        if (stage->trials.n) {
            need.work += (stage_iterations_after(stage, dj->job)
                          * work_of_iteration(dj));
        } else {
            need.slowest = MAX(need.slowest, dj->isolated);
        }
    }
    if (n_jobs) {
        need.work += (a->later + announcement_debt(a, &dp->candor))
                     * of_iterations / n_jobs;
    }
    need.work += stage->debt;
    return need;
}

/* Sets 'work' and 'debt' of the stages. */
static void
find_debts(struct decide_problem *dp, const struct cluster *c, long long now)
{
    struct account_search *searches =
        xcalloc(MAX(dp->n_stages, 1), sizeof *searches);
    struct account *accounts = xcalloc(MAX(dp->n_stages, 1), sizeof *accounts);

    for (size_t s = 0; s < dp->n_stages; s++) {
        struct owner *owner = dp->stages[s]->cojob->account;

        if (owner) {
            owner->place = s;
        }
    }
    for (size_t s = 0; s < dp->n_stages; s++) {
        const struct owner *owner = dp->stages[s]->cojob->account;

        searches[s].owner = owner ? owner->place : s;
        searches[s].work = work_of_search(dp, s);
        if (owner) {
            accounts[owner->place] = owner->account;
        }
    }
    account_debts(accounts, dp->n_stages, now / 1000.0, c->owner_memory_s,
                  searches, dp->n_stages);
    for (size_t s = 0; s < dp->n_stages; s++) {
        dp->stages[s]->debt = searches[s].debt;
    }
    free(accounts);
    free(searches);
}

/* Returns true if the promising trials of an asynchronous 'stage' go first. */
static bool
is_promising(const struct policy *policy, const struct stage *stage)
{
    int own = stage->trials.order;

    return (own < 0 ? (int) policy->order.trials : own)
           == ORDER_TRIALS_PROMISING;
}

/* Sets 'chance' and 'promise' of the 'n' jobs of 'stage'. */
static void
find_promises(const struct stage *stage, struct decide_job *jobs, size_t n)
{
    struct trial *trials = xcalloc(MAX(n, 1), sizeof *trials);

    for (size_t i = 0; i < n; i++) {
        const struct trial_rung *rung = stage_next_rung(stage, jobs[i].job);
        struct trial *trial = &trials[i];

        trial->rung = rung;
        trial->work = MAX(jobs[i].iterations * work_of_iteration(&jobs[i]),
                          ORDER_MIN_SECONDS);
        trial->known =
            progress_curve_predict(&jobs[i].job->progress.curve,
                                   rung->iterations, &trial->mean, &trial->sd);
    }
    trials_promise(trials, n, stage->trials.eta);
    for (size_t i = 0; i < n; i++) {
        jobs[i].chance = trials[i].chance;
        jobs[i].promise = trials[i].promise;
    }
    free(trials);
}

/* Orders the trials of each asynchronous search: by their promise, or as one
 * group. */
static void
order_trials(struct decide_problem *dp, const struct policy *policy)
{
    for (size_t s = 0; s < dp->n_stages; s++) {
        const struct stage *stage = dp->stages[s];
        size_t group = 0;

        if (!stage->trials.n) {
            continue;
        } else if (is_promising(policy, stage)) {
            find_promises(stage, &dp->jobs[dp->first_job[s]],
                          dp->first_job[s + 1] - dp->first_job[s]);
            continue;
        }
        while (dp->stages[group]->cojob != stage->cojob
               || !dp->stages[group]->trials.n) {
            group++;
        }
        for (size_t i = dp->first_job[s]; i < dp->first_job[s + 1]; i++) {
            dp->jobs[i].traits.group = group + 1;
        }
    }
}

/* Weights each entry by what its stage still needs. */
static void
weigh_iterations(struct decide_problem *dp, const struct policy *policy,
                 long long now)
{
    dp->needs = xcalloc(MAX(dp->n_stages, 1), sizeof *dp->needs);
    for (size_t s = 0; s < dp->n_stages; s++) {
        const struct stage *stage = dp->stages[s];
        const struct plain_times *plain = &stage->plain;
        double late = lateness_weight(
            plain->spent, age_of(stage, now), plain->before, plain->end,
            policy->objective_latest * (1 + debt_share(stage)));

        dp->needs[s] = need_of(dp, s, dp->whole->stages[s].weight * late);
    }
    for (size_t i = 0; i < dp->n_jobs; i++) {
        struct decide_job *dj = &dp->jobs[i];
        const struct iteration_need *need = &dp->needs[dj->stage];
        struct iteration_need planned = *need;

        planned.weight /= dj->job->factor;
        planned.weight *= dj->promise;
        dj->urgency = iteration_urgency(need, dj->isolated);
        order_problem_set_weight(
            dp->op, dj->entry,
            iteration_weight(&planned, dj->isolated, dj->burst));
        dp->op->stages[dj->entry].traits.early_weight =
            iteration_early_weight(&planned, dp->stages[dj->stage]->n_jobs,
                                   dj->burst, work_of_iteration(dj));
    }
}

/* Adds a job to the end of its rung or, for an order of coflows, one
 * iteration of it. */
static void
add_job(struct decide_problem *dp, const struct policy *policy,
        struct decide_job *dj)
{
    const struct stage *stage = dp->stages[dj->stage];
    struct order_traits traits = dj->traits;
    int64_t iterations = dj->iterations;

    dj->entry = order_problem_add_stage(
        dp->op, decide_stage_weight(policy, stage), dj - dp->jobs);
    if (dp->unit == ORDER_UNIT_COFLOW || dp->unit == ORDER_UNIT_ITERATION) {
        iterations = 1;
        traits.bytes /= dj->iterations;
        traits.initial = dj->burst;
    } else {
        order_problem_set_release(dp->op, dj->entry, 0, dj->isolated);
    }
    add_demands(dp->op, dj->entry, dj, iterations);
    order_problem_set_traits(dp->op, dj->entry, &traits);
}

/* Sets 'op' to the problem of the running stages of 'c'; its entries are of
 * 'unit'.  For iterations, sets 'whole' to the problem of whole stages, with
 * which stages age.  'now' is time_msec(). */
void
decide_problem_init(struct decide_problem *dp, struct order_problem *op,
                    struct order_problem *whole, const struct cluster *c,
                    const struct policy *policy, enum order_unit unit,
                    long long now)
{
    *dp = (struct decide_problem) { .unit = unit, .op = op, .whole = whole };
    order_problem_restart(op, demand_n_ports(c));
    dp->op->now = now / 1000.0;
    dp->stages = cluster_running_stages(c, &dp->n_stages);
    dp->first_job = xcalloc(dp->n_stages + 1, sizeof *dp->first_job);
    for (size_t i = 0; i < dp->n_stages; i++) {
        candor_add(&dp->candor, &dp->stages[i]->announcement);
        dp->stages[i]->debt = 0;
        update_idle(dp->stages[i], now);
        for (size_t j = 0; j < dp->stages[i]->n_jobs; j++) {
            collect_job(dp, c, policy, i, dp->stages[i]->jobs[j], now);
        }
        dp->first_job[i + 1] = dp->n_jobs;
        note_compute(dp->stages[i], &dp->jobs[dp->first_job[i]],
                     dp->n_jobs - dp->first_job[i]);
        stage_claim_check(dp->stages[i], &dp->jobs[dp->first_job[i]],
                          dp->n_jobs - dp->first_job[i]);
    }
    if (unit == ORDER_UNIT_STAGE) {
        add_stages(dp, policy, now, op);
        for (size_t i = 0; i < dp->n_jobs; i++) {
            dp->jobs[i].entry = dp->jobs[i].stage;
        }
        return;
    }
    if (unit == ORDER_UNIT_ITERATION) {
        order_trials(dp, policy);
    }
    for (size_t i = 0; i < dp->n_jobs; i++) {
        add_job(dp, policy, &dp->jobs[i]);
    }
    if (unit == ORDER_UNIT_ITERATION) {
        find_debts(dp, c, now);
        add_stages(dp, policy, now, whole);
        weigh_iterations(dp, policy, now);
    } else {
        order_problem_age(dp->op, policy->aging_s, policy->aging_slowdown);
    }
}

void
decide_problem_uninit(struct decide_problem *dp)
{
    for (size_t i = 0; i < dp->n_jobs; i++) {
        free(dp->jobs[i].demands);
    }
    free(dp->jobs);
    free(dp->needs);
    free(dp->first_job);
    free(dp->stages);
}
