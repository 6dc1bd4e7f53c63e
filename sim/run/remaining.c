/* SPDX-License-Identifier: Apache-2.0 */

/* Input of orders: remaining work and traits of units. */

#include <math.h>
#include <stdlib.h>

#include "order/order.h"
#include "order/primal-dual/ascent.h"
#include "order/primal-dual/primal-dual.h"
#include "order/problem/iteration-weight.h"
#include "order/problem/memory.h"
#include "sim/run/live.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload.h"

/* Seconds that 'job' takes from iteration to iteration if it is alone. */
static double
period_alone(const struct live_job *job)
{
    return job->job->compute + job->exchange_time;
}

double
remaining_alone(const struct live *live, const struct live_job *job)
{
    double whole = job->iterations_left;
    double alone = 0;

    if (job->state == LIVE_DONE) {
        return 0;
    }
    if (job->state == LIVE_EXCHANGING) {
        whole--;
    } else {
        alone = job->compute_end.key - live->now - job->job->compute;
    }
    return alone + whole * period_alone(job);
}

void
remaining_early(const struct live_job *job,
                const struct progress_options *progress, double now,
                struct order_traits *traits)
{
    struct progress_options options = *progress;
    double k = job->iterations_done;
    bool early = false;
    double gain;

    options.end = k + job->iterations_left
                  + job->stage->announcement.later / job->stage->n_jobs;
    if (job->state == LIVE_DONE) {
        return;
    }
    if (job->curve) {
        progress_curve_score(job->curve, &options, k, period_alone(job), now,
                             &gain, &early);
        traits->iterations_to_theta = fmax(
            traits->iterations_to_theta,
            progress_curve_to_theta(job->curve, &options, k));
    } else {
        gain = 1 / ((k + 1) * (k + 1));
    }
    traits->gain = fmax(traits->gain, gain);
    traits->early |= early;
}

/* Adds up what of 'job' counts for its unit: 'compute' and 'exchange' are
 * seconds of all its jobs' iterations. */
static void
add_job_traits(const struct live_job *job, struct order_traits *traits,
               double *compute, double *exchange)
{
    if (job->state == LIVE_DONE) {
        return;
    }
    *compute += job->job->compute * job->job->devices;
    *exchange += job->exchange_time;
    if (job->iterations_left > 1) {
        traits->period = fmax(traits->period, period_alone(job));
    }
}

/* Computes the traits of the 'n' 'jobs'; 'unit' is the unit of the first. */
static void
get_traits(const struct live *live, const struct unit *unit,
           const struct live_job *jobs, size_t n,
           const struct progress_options *early, struct order_traits *traits)
{
    double compute = 0;
    double exchange = 0;

    *traits = (struct order_traits){ .arrival = live->now - unit->begin,
                                     .initial = unit->initial };
    for (size_t i = 0; i < n; i++) {
        traits->sent += jobs[i].unit.sent;
        traits->bytes += jobs[i].unit.left;
        add_job_traits(&jobs[i], traits, &compute, &exchange);
        remaining_early(&jobs[i], early, live->now, traits);
    }
    if (live->ordered == ORDER_UNIT_ITERATION && !live->weighted) {
        traits->bytes /= fmax(jobs->iterations_left, 1);
        traits->initial = jobs->busiest;
    }
    traits->intensity = exchange > 0 ? compute / exchange : 0;
}

/* Seconds that what 'unit' has left on the port of its work 'i' takes. */
static double
work_seconds(const struct live *live, const struct unit *unit, size_t i)
{
    return unit->bytes[i] / live->fabric->capacity[unit->work[i].port];
}

/* Returns what the search of 'stage' still needs: the rest of this rung, the
 * rungs to come that it has announced, and what it owes for those that it hid.
 * Their jobs are assumed to need as much as the average job. */
static struct iteration_need
need_of(const struct live *live, const struct live_stage *stage)
{
    const struct sim_options *options = live->options;
    const struct plain_times *plain = &live->plain[stage->record->cojob];
    struct iteration_need need = { .weight = stage->cojob->weight };
    double age = live->now - stage->record->begin;
    double owed = stage->work > 0 ? 1 + stage->debt / stage->work : 1;
    double of_iterations = 0;

    for (size_t i = 0; i < stage->n_jobs; i++) {
        const struct live_job *job = &stage->jobs[i];

        double work = live_known_share(job) * job->work;

        need.work += (job->iterations_left + job->to_come) * work;
        if (!live_is_asynchronous(stage)) {
            need.slowest = fmax(need.slowest, remaining_alone(live, job));
        }
        of_iterations += work;
    }
    need.work += (stage->announcement.later
                  + announcement_debt(&stage->announcement, &live->candor))
                 * of_iterations / stage->n_jobs;
    need.work += stage->debt;
    need.weight *= order_aging(age, stage->whole * owed, options->aging_s,
                               options->aging_slowdown)
                   * lateness_weight(plain->spent, age, plain->before,
                                     plain->end, options->latest * owed);
    return need;
}

/* Sets the demand of entry 's' unless orders do not see 'port'. */
static void
set_demand(struct order_problem *op, const struct live *live, int s, int port,
           double seconds)
{
    if (port < live->n_seen_ports) {
        order_problem_set_demand(op, s, port, seconds);
    }
}

/* Adds 'unit', of one job, to 'op'.  Its exchanges may be looked at one by
 * one, and then they take no time alone. */
static void
add_unit(struct order_problem *op, const struct live *live,
         const struct unit *unit, double weight)
{
    int s = order_problem_add_stage(op, weight, unit->id);
    double alone = live->ordered != ORDER_UNIT_JOB ? 0
        : remaining_alone(live, unit->job);
    double share = live_known_share(unit->job);

    for (size_t i = 0; i < unit->n_work; i++) {
        set_demand(op, live, s, unit->work[i].port,
                   live->ordered == ORDER_UNIT_ITERATION
                       ? share * unit->work[i].seconds
                       : work_seconds(live, unit, i));
    }
    order_problem_set_release(op, s, 0, alone);
}

/* Adds 'stage' to 'op'. */
static void
add_stage(struct order_problem *op, const struct live *live,
          struct live_stage *stage, double weight)
{
    int s = order_problem_add_stage(op, weight, stage->jobs[0].unit.id);
    double alone = 0;

    memset(stage->seconds, 0, stage->n_ports * sizeof *stage->seconds);
    for (size_t i = 0; i < stage->n_jobs; i++) {
        const struct live_job *job = &stage->jobs[i];

        alone = fmax(alone, remaining_alone(live, job));
        for (size_t j = 0; job->state != LIVE_DONE && j < job->unit.n_work;
             j++) {
            stage->seconds[job->place[j]] += work_seconds(live, &job->unit, j);
        }
    }
    for (size_t i = 0; i < stage->n_ports; i++) {
        set_demand(op, live, s, stage->ports[i], stage->seconds[i]);
    }
    order_problem_set_release(op, s, 0, alone);
}

/* Sets how promising the running trials of 'stage' are. */
static void
find_promises(struct live_stage *stage)
{
    struct trial *trials = order_alloc(stage->n_begun, sizeof *trials);
    struct live_job **jobs = order_alloc(stage->n_begun, sizeof *jobs);
    size_t n = 0;

    for (size_t i = 0; i < stage->n_begun; i++) {
        struct live_job *job = &stage->jobs[i];
        struct trial *trial = &trials[n];

        if (job->state != LIVE_DONE) {
            jobs[n++] = job;
            trial->rung = job->next;
            trial->work =
                job->iterations_left
                * fmax(live_known_share(job) * job->work, ORDER_MIN_SECONDS);
            trial->known =
                job->curve
                && progress_curve_predict(job->curve, job->next->iterations,
                                          &trial->mean, &trial->sd);
        }
    }
    trials_promise(trials, n, stage->cojob->trials.eta);
    for (size_t i = 0; i < n; i++) {
        jobs[i]->promise = trials[i].promise;
    }
    free(jobs);
    free(trials);
}

/* Returns what the search of 'job' still needs.  The last plan multiplies the
 * key of the job by its factor. */
static struct iteration_need
planned_need(const struct live *live, const struct live_job *job)
{
    struct iteration_need need = job->stage->need;

    need.weight *= job->promise;
    if (live->factors) {
        need.weight /= live->factors[job->record - live->jobs];
    }
    return need;
}

/* Adds 'unit', a job, as an entry of its own. */
static void
add_job(const struct live *live, const struct unit *unit,
        const struct progress_options *early, struct order_problem *op,
        struct order_traits *traits)
{
    const struct live_job *job = unit->job;
    struct iteration_need need = planned_need(live, job);
    double share = live_known_share(job);

    add_unit(op, live, unit,
             live->weighted ? iteration_weight(
                 &need, remaining_alone(live, job), share * job->busiest)
                            : job->stage->cojob->weight);
    get_traits(live, unit, job, 1, early, traits);
    traits->early_weight = iteration_early_weight(
        &need, job->stage->n_jobs, share * job->busiest, share * job->work);
    if (live->weighted && live_is_asynchronous(job->stage)
        && !live_is_promising(live)) {
        traits->group = 1 + job->stage->record->cojob;
    }
}

void
remaining_problem(const struct live *live,
                  const struct progress_options *early,
                  struct order_problem *op)
{
    struct order_traits traits;

    order_problem_clear(op);
    op->now = live->now;
    for (size_t i = 0; i < live->n_units; i++) {
        live->units[i]->stage->place = -1;
    }
    for (size_t i = 0; i < live->n_units; i++) {
        const struct unit *unit = live->units[i];
        struct live_stage *stage = unit->stage;

        if (live->weighted && stage->place < 0) {
            stage->place = 0;
            stage->need = need_of(live, stage);
            if (live_is_promising(live) && live_is_asynchronous(stage)) {
                find_promises(stage);
            }
        }
        if (live->ordered != ORDER_UNIT_STAGE) {
            add_job(live, unit, early, op, &traits);
        } else if (stage->place < 0) {
            unit = &stage->jobs[0].unit;
            stage->place = op->n_stages;
            add_stage(op, live, stage, stage->cojob->weight);
            get_traits(live, unit, stage->jobs, stage->n_jobs, early, &traits);
        } else {
            continue;
        }
        order_problem_set_traits(op, op->n_stages - 1, &traits);
    }
}

/* Adds up all of the work of a stage that has been. */
static void
add_record(struct unit_maker *maker, struct live *live,
           struct sim_stage *stage)
{
    const struct workload_cojob *cojob = &live->workload->cojobs[stage->cojob];
    const struct workload_rung *rung = &cojob->rungs[stage->rung];
    const struct sim_job *records = &live->jobs[live->first_job[stage->cojob]];
    struct paths *paths = &live->paths;

    stage->isolated = 0;
    for (size_t i = 0; i < rung->n_jobs; i++) {
        const struct workload_job *job = &cojob->jobs[i];
        double exchange = workload_exchange_time(job, paths->fabric);
        int64_t iterations =
            cojob->trials.places
                ? records[i].iterations
                : rung->iterations - (stage->rung ? rung[-1].iterations : 0);

        stage->isolated = fmax(stage->isolated,
                               iterations * (job->compute + exchange));
        for (size_t j = 0; j < job->n_transfers; j++) {
            const struct workload_transfer *t = &job->transfers[j];
            uint32_t path = paths_find(paths, t->src, t->dst);

            unit_maker_add(maker, &paths->paths[path], t->bytes, iterations);
        }
    }
}

/* Adds what 'maker' has added up for 'stage' to 'op', as stage 'id', and to
 * 'port_bytes'. */
static void
record_to_problem(struct unit_maker *maker, const struct sim_fabric *fabric,
                  struct sim_stage *stage, uint64_t id,
                  struct order_problem *op, double *port_bytes)
{
    struct unit unit;
    int s = order_problem_add_stage(op, 1, id);

    unit_maker_finish(maker, &unit);
    for (size_t i = 0; i < unit.n_work; i++) {
        const struct work *work = &unit.work[i];
        double seconds = work->whole / fabric->capacity[work->port];

        port_bytes[work->port] += work->whole;
        order_problem_add_demand(op, s, work->port, seconds);
        stage->isolated = fmax(stage->isolated, seconds);
    }
    order_problem_set_release(op, s, stage->begin, stage->isolated);
    unit_uninit(&unit);
    unit_maker_clear(maker);
}

double
recorded_bound(struct live *live, int rounds, double *port_bytes,
               enum order_bound *kind)
{
    int n_ports = live->fabric->n_ports;
    struct order_problem *op = order_problem_create(n_ports);
    size_t n = live->n_stages;
    struct unit_maker maker;
    double begins = 0;
    double bound;

    unit_maker_init(&maker, n_ports);
    for (size_t i = 0; i < n; i++) {
        struct sim_stage *stage = &live->stages[i];

        add_record(&maker, live, stage);
        record_to_problem(&maker, live->fabric, stage, i, op, port_bytes);
        begins += stage->begin;
    }
    bound = certificate_bound(op, kind);
    if (rounds) {
        double lp = ascent_bound(op, rounds);

        *kind = lp > bound ? ORDER_BOUND_LP : *kind;
        bound = fmax(bound, lp);
    }
    bound = n ? (bound - begins) / n : 0;
    order_problem_destroy(op);
    unit_maker_uninit(&maker);
    return fmax(bound, 0);
}
