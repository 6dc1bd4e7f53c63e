/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/simulate.h"

#include <assert.h>
#include <math.h>

#include "sim/live.h"
#include "sim/memory.h"
#include "sim/rates.h"
#include "sim/workload.h"

/* Flows that would end within this share of the step to the next event end
 * with it: they would have ended together but for rounding. */
#define TOGETHER 1e-9

struct simulation {
    const struct sim_options *options;
    struct live live;
    struct rates *rates;
    struct order_result order;
    size_t n_gaps;              /* Decisions that had demand. */
    double sum_gaps;
    size_t allocated_ended;
    struct sim_flow *ended;         /* Flows that ended at this event. */
};

/* Orders the live stages by what remains of them. */
static void
decide(struct simulation *sim, struct sim_result *result)
{
    struct live *live = &sim->live;
    struct order_problem *op;

    live->stages_changed = false;
    if (!live->n_stages) {
        return;
    }
    op = remaining_problem(live, sim->options->aging_s);
    order_compute(&sim->options->order, op, &sim->order);
    for (size_t i = 0; i < live->n_stages; i++) {
        live->stages[i]->level = sim->order.level[i];
    }
    for (size_t i = 0; i < live->n_flows; i++) {
        struct live_job *job = live->flows[i].owner;

        live->flows[i].level = job->stage->level;
    }
    live->flows_changed = true;
    result->decisions++;
    if (sim->order.bound > 0) {
        double gap = sim->order.estimate / sim->order.bound;

        if (!sim->n_gaps++) {
            result->decision_gap_first = gap;
        }
        sim->sum_gaps += gap;
    }
    order_problem_destroy(op);
}

/* Seconds until the first flow ends. */
static double
first_flow_end(const struct live *live)
{
    double first = INFINITY;

    for (size_t i = 0; i < live->n_flows; i++) {
        const struct sim_flow *f = &live->flows[i];

        if (f->rate > 0) {
            double seconds = f->remaining / f->rate;

            first = seconds < first ? seconds : first;
        }
    }
    return first;
}

/* Lets all flows go on for 'seconds' and takes out those that end, which are
 * stored in 'sim->ended'.  Returns their number. */
static size_t
advance_flows(struct simulation *sim, double seconds)
{
    struct live *live = &sim->live;
    size_t n_ended = 0;
    size_t n = 0;

    for (size_t i = 0; i < live->n_flows; i++) {
        struct sim_flow *f = &live->flows[i];

        f->remaining -= f->rate * seconds;
        if (f->remaining <= f->rate * seconds * TOGETHER && f->rate > 0) {
            sim->ended = sim_grow(sim->ended, n_ended + 1,
                                  &sim->allocated_ended, sizeof *sim->ended);
            sim->ended[n_ended++] = *f;
        } else {
            if (n != i) {
                live->flows[n] = *f;
            }
            n++;
        }
    }
    live->n_flows = n;
    live->flows_changed |= n_ended > 0;
    return n_ended;
}

/* Goes on to the next event. */
static void
step(struct simulation *sim)
{
    const struct sim_options *options = sim->options;
    struct live *live = &sim->live;
    double event, seconds;
    size_t n_ended;

    if (live->flows_changed) {
        rates_compute(sim->rates, live->flows, live->n_flows);
        live->flows_changed = false;
    }
    event = event_queue_next(&live->events);
    seconds = fmin(event - live->now, first_flow_end(live));
    assert(isfinite(seconds));
    if (options->observe) {
        options->observe(options->aux, seconds, live->flows, live->n_flows);
    }
    live->now = fmin(live->now + seconds, event);
    n_ended = advance_flows(sim, seconds);
    for (size_t i = 0; i < n_ended; i++) {
        live_flow_ended(live, &sim->ended[i]);
    }
    live_run_events(live);
}

static int
compare_doubles(const void *a_, const void *b_)
{
    double a = *(const double *) a_;
    double b = *(const double *) b_;

    return a < b ? -1 : a > b;
}

static double
percentile(const double *sorted, size_t n, int percent)
{
    return sorted[(n * percent + 99) / 100 - 1];
}

static void
summarize(struct sim_result *r)
{
    double *times = sim_calloc(r->n_stages, sizeof *times);
    double sum = 0;

    for (size_t i = 0; i < r->n_stages; i++) {
        times[i] = r->stages[i].end - r->stages[i].begin;
        sum += times[i];
    }
    if (r->n_stages) {
        qsort(times, r->n_stages, sizeof *times, compare_doubles);
        r->mean = sum / r->n_stages;
        r->p50 = percentile(times, r->n_stages, 50);
        r->p95 = percentile(times, r->n_stages, 95);
        r->p99 = percentile(times, r->n_stages, 99);
        r->max = times[r->n_stages - 1];
    }
    r->gap = r->bound > 0 ? r->mean / r->bound : 1;
    free(times);
}

void
simulate(const struct workload *w, const struct sim_options *options,
         struct sim_result *result)
{
    struct simulation sim = { .options = options };

    *result = (struct sim_result) { .decision_gap_first = 1 };
    live_init(&sim.live, w);
    sim.rates = rates_create(w->fabric);
    order_result_init(&sim.order);
    while (sim.live.n_ended < w->n_stages) {
        if (sim.live.stages_changed) {
            decide(&sim, result);
        }
        step(&sim);
        if (options->progress) {
            options->progress(options->aux, sim.live.n_ended, w->n_stages);
        }
    }
    result->n_stages = sim.live.n_records;
    result->stages = sim.live.records;
    result->bound = recorded_bound(w, result->stages, result->n_stages);
    result->decision_gap_mean = sim.n_gaps ? sim.sum_gaps / sim.n_gaps : 1;
    summarize(result);

    order_result_uninit(&sim.order);
    rates_destroy(sim.rates);
    live_uninit(&sim.live);
    free(sim.ended);
}

void
sim_result_uninit(struct sim_result *r)
{
    free(r->stages);
    r->stages = NULL;
}
