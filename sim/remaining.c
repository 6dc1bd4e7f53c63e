/* SPDX-License-Identifier: Apache-2.0 */

/* What orders are told: what remains to be done, and of what kind it is. */

#include <math.h>

#include "controller/order/order.h"
#include "sim/live.h"
#include "sim/memory.h"
#include "sim/records.h"
#include "sim/simulate.h"
#include "sim/workload.h"

/* Seconds that 'job' takes from iteration to iteration if it is alone. */
static double
period_alone(const struct live_job *job)
{
    return job->job->compute + job->exchange_time;
}

/* Seconds that 'job' takes alone to the end of its rung. */
static double
job_alone(const struct live_job *job, double now)
{
    double whole = job->iterations_left;
    double alone = 0;

    if (job->state == LIVE_DONE) {
        return 0;
    }
    if (job->state == LIVE_EXCHANGING) {
        whole--;
    } else {
        alone = job->compute_end - now - job->job->compute;
    }
    return alone + whole * period_alone(job);
}

static double
unit_alone(const struct unit *unit, enum order_unit kind, double now)
{
    double alone = 0;

    if (kind == ORDER_UNIT_JOB) {
        return job_alone(unit->job, now);
    }
    for (size_t i = 0; kind == ORDER_UNIT_STAGE && i < unit->stage->n_jobs;
         i++) {
        alone = fmax(alone, job_alone(&unit->stage->jobs[i], now));
    }
    return alone;
}

/* How much the metric of 'job' will improve in 'period' seconds, of its
 * largest improvement in one iteration so far, and whether it is still below
 * 'theta' of its final value.  A job without a metric is taken to improve like
 * 1 / k and to be late. */
static void
early_traits(const struct live_job *job, double theta, double period,
             double now, struct order_traits *traits)
{
    const struct workload_curve *curve = &job->job->curve;
    double k = job->iterations_done;
    double value = curve_value(curve, k);
    double ahead, largest;

    if (job->state == LIVE_DONE) {
        return;
    }
    if (curve->final == 0) {
        traits->gain = fmax(traits->gain, 1 / ((k + 1) * (k + 1)));
        return;
    }
    traits->early |= value < theta * curve->final;
    if (k < 1) {
        traits->gain = INFINITY;
        return;
    }
    ahead = period * k / fmax(now - job->record->begin, period_alone(job));
    largest = curve_value(curve, 1) - curve_value(curve, 0);
    if (largest > 0) {
        traits->gain = fmax(traits->gain,
                            (curve_value(curve, k + ahead) - value)
                            / largest);
    }
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
    if (job->iterations_left > 1 && period_alone(job) > traits->period) {
        traits->period = period_alone(job);
        traits->burst = job->exchange_time;
    }
}

static void
get_traits(const struct live *live, const struct unit *unit,
           const struct early *early, struct order_traits *traits)
{
    const struct live_job *jobs = unit->job ? unit->job : unit->stage->jobs;
    size_t n_jobs = unit->job ? 1 : unit->stage->n_jobs;
    double compute = 0;
    double exchange = 0;

    *traits = (struct order_traits) {
        .arrival = live->now - unit->begin, .sent = unit->sent,
        .bytes = unit->left, .initial = unit->initial,
    };
    for (size_t i = 0; i < n_jobs; i++) {
        add_job_traits(&jobs[i], traits, &compute, &exchange);
        early_traits(&jobs[i], early->theta, early->period_s, live->now,
                     traits);
    }
    traits->intensity = exchange > 0 ? compute / exchange : 0;
}

/* Adds 'unit' to 'op'. */
static void
add_unit(struct order_problem *op, const struct live *live,
         const struct unit *unit, double aging_s,
         const struct early *early)
{
    double alone = unit_alone(unit, live->unit_kind, live->now);
    double weight = unit->stage->cojob->weight;
    struct order_traits traits;
    int s;

    if (aging_s > 0) {
        weight *= 1 + (live->now - unit->begin) / aging_s;
    }
    s = order_problem_add_stage(op, weight, unit->id);
    for (size_t i = 0; i < unit->n_work; i++) {
        const struct work *work = &unit->work[i];
        double seconds = unit->bytes[i] / live->fabric->capacity[work->port];

        order_problem_add_demand(op, s, work->port, seconds);
        alone = fmax(alone, seconds);
    }
    order_problem_set_release(op, s, 0, alone);
    get_traits(live, unit, early, &traits);
    order_problem_set_traits(op, s, &traits);
}

struct order_problem *
remaining_problem(const struct live *live, double aging_s,
                  const struct early *early)
{
    struct order_problem *op = order_problem_create(live->fabric->n_ports);

    op->now = live->now;
    for (size_t i = 0; i < live->n_units; i++) {
        add_unit(op, live, live->units[i], aging_s, early);
    }
    return op;
}

/* Adds up all of the work of a stage that has been. */
static void
add_record(struct unit_maker *maker, struct paths *paths,
           const struct workload *w, struct sim_stage *stage)
{
    const struct workload_cojob *cojob = &w->cojobs[stage->cojob];
    const struct workload_rung *rung = &cojob->rungs[stage->rung];
    int64_t iterations = rung->iterations
                         - (stage->rung ? rung[-1].iterations : 0);

    stage->isolated = 0;
    for (size_t i = 0; i < rung->n_jobs; i++) {
        const struct workload_job *job = &cojob->jobs[i];
        double exchange = workload_exchange_time(job, paths->fabric);

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
recorded_bound(const struct workload *w, struct paths *paths,
               struct sim_stage *stages, size_t n, double *port_bytes)
{
    struct order_problem *op = order_problem_create(paths->fabric->n_ports);
    struct unit_maker maker;
    double begins = 0;
    double bound;

    unit_maker_init(&maker, paths->fabric->n_ports);
    for (size_t i = 0; i < n; i++) {
        add_record(&maker, paths, w, &stages[i]);
        record_to_problem(&maker, paths->fabric, &stages[i], i, op,
                          port_bytes);
        begins += stages[i].begin;
    }
    bound = n ? (certificate_bound(op) - begins) / n : 0;
    order_problem_destroy(op);
    unit_maker_uninit(&maker);
    return fmax(bound, 0);
}
