/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/run/simulate.h"

#include <assert.h>
#include <limits.h>
#include <math.h>

#include "base/clock.h"
#include "base/compare.h"
#include "order/lookahead/plain-network.h"
#include "order/lookahead/plan.h"
#include "order/problem/memory.h"
#include "order/problem/problem.h"
#include "order/problem/scratch.h"
#include "order/result/slack.h"
#include "sim/rates/rates.h"
#include "sim/run/live.h"
#include "sim/run/outlook.h"
#include "sim/workload/workload.h"

/* A unit that has sent its limit but for such a share has sent it. */
#define TOGETHER 1e-9

/* Time between two orders of coflows, as in the controller, seconds. */
#define REFRESH_S 1

/* Time between two plans, seconds. */
#define PLAN_S 0.5

struct simulation {
    const struct sim_options *options;
    struct order_options order_options;
    struct progress_options early;
    struct live live;
    double next_period;         /* Time of the next order without a change,
                                 * INFINITY without one. */
    double due;                 /* Time of the next late decision, INFINITY
                                 * without one. */
    size_t n_stage_events;      /* Begins of jobs and ends of stages before the
                                 * last decision. */
    struct plain_network *plain; /* NULL without a limit of lateness. */
    size_t n_in_plain;           /* Stages that had begun when it was last
                                  * simulated. */
    double next_in_plain;        /* Time of the next simulation, seconds. */
    double next_plan;            /* Time of the next plan, seconds. */
    uint64_t n_plans;
    struct order_problem *problem;
    struct order_result order;
    double sum_improvement;
    size_t allocated_slack;
    struct slack_job *slack;    /* For orders of stages. */
    size_t allocated_placed;
    struct unit **placed;       /* The live units in their order. */
    size_t allocated_times;
    double *times;              /* Of each decision, microseconds. */
    size_t allocated_flows;
    struct sim_flow *flows;     /* For the observer. */
};

/* Remembers how good the last decision was, which took 'us'. */
static void
count_decision(struct simulation *sim, double us, struct sim_result *result)
{
    sim->times = order_grow(sim->times, result->decisions + 1,
                            &sim->allocated_times, sizeof *sim->times);
    sim->times[result->decisions++] = us;
    sim->sum_improvement += sim->order.improvement;
}

/* What has sent as much as its limit but for rounding has sent it all. */
static void
round_sent(struct live *live)
{
    for (size_t i = 0; i < live->n_units; i++) {
        struct unit *unit = live->units[i];

        if (unit->sent >= unit->sent_limit * (1 - TOGETHER)) {
            unit->sent = fmax(unit->sent, unit->sent_limit);
        }
    }
}

/* Sorts the live units as they were ordered. */
static void
place_units(struct simulation *sim)
{
    struct live *live = &sim->live;

    for (size_t k = 0; k < live->n_units; k++) {
        int i = sim->order.order[k];

        sim->placed[k] = live->units[i];
        live->units[i]->level = sim->order.level[i];
        live->units[i]->sent_limit = sim->order.sent_limit[i];
    }
}

/* Sorts the jobs of the stages that were ordered. */
static void
place_jobs(struct simulation *sim)
{
    struct live *live = &sim->live;

    sim->slack = order_grow(sim->slack, live->n_units, &sim->allocated_slack,
                            sizeof *sim->slack);
    for (size_t i = 0; i < live->n_units; i++) {
        struct unit *unit = live->units[i];

        sim->slack[i] = (struct slack_job) {
            .stage = unit->stage->place, .id = unit->id,
            .isolated = remaining_alone(live, unit->job),
            .ports = &unit->work->port, .n_ports = unit->n_work,
            .stride = sizeof *unit->work, .owner = unit,
        };
    }
    slack_assign(sim->problem, &sim->order, &sim->order_options,
                 sim->slack, live->n_units);
    for (size_t k = 0; k < live->n_units; k++) {
        sim->placed[k] = sim->slack[k].owner;
        sim->placed[k]->level = sim->slack[k].level;
        sim->placed[k]->sent_limit = INFINITY;
    }
}

/* Lets the live units know their places. */
static void
apply_order(struct simulation *sim)
{
    struct live *live = &sim->live;
    bool watches = false;

    sim->placed = order_grow(sim->placed, live->n_units,
                             &sim->allocated_placed, sizeof *sim->placed);
    if (live->ordered == ORDER_UNIT_STAGE) {
        place_jobs(sim);
    } else {
        place_units(sim);
    }
    units_set_ranks(sim->placed, live->n_units);
    for (size_t i = 0; i < live->n_units; i++) {
        struct unit *unit = live->units[i];

        unit->until = unit->sent;
        unit->since = live->now;
        unit->rate = 0;
        watches |= isfinite(unit->sent_limit);
    }
    live->rates->watches = watches;
    live->rates->class->reorder(live->rates, live->now);
}

/* When the first unit will have sent as much as its limit. */
static double
next_limit(const struct live *live)
{
    double next = INFINITY;

    for (size_t i = 0; live->rates->watches && i < live->n_units; i++) {
        next = fmin(next, unit_limit_time(live->units[i]));
    }
    return next;
}

/* Returns the time between two orders if progress alone changes the order,
 * else INFINITY. */
static double
period(const struct simulation *sim)
{
    const struct live *live = &sim->live;
    double period = order_uses_metrics(sim->order_options.kind)
                    ? sim->early.period_s : INFINITY;
    double refresh = live->weighted ? sim->options->refresh_s
                     : live->ordered == ORDER_UNIT_ITERATION ? REFRESH_S : 0;

    return refresh > 0 ? fmin(period, refresh) : period;
}

/* Lets the stages that have begun begin in the plain network, too, at most
 * each PLAN_S, as in the controller. */
static void
follow_in_plain(struct simulation *sim)
{
    struct live *live = &sim->live;
    struct outlook outlook;

    if (!sim->plain || sim->n_in_plain == live->n_stages
        || live->now < sim->next_in_plain) {
        return;
    }
    sim->n_in_plain = live->n_stages;
    sim->next_in_plain = live->now + PLAN_S;
    outlook_init(&outlook, live, NULL);
    plain_network_follow(sim->plain, &outlook.situation, live->now);
    for (size_t i = 0; i < outlook.situation.n_searches; i++) {
        const struct judge_search *search = &outlook.situation.searches[i];

        live->plain[search->id] = search->plain;
        sim->n_in_plain -= search->unknown;
    }
    outlook_uninit(&outlook);
}

/* Plans ahead, if a plan is due.  The next decision uses the plan, as in the
 * controller. */
static void
plan_ahead(struct simulation *sim, struct sim_result *result)
{
    struct live *live = &sim->live;
    const struct plan_options options = {
        .n_runs = sim->options->lookahead_runs * PLAN_S,
        .seed = sim->n_plans,
    };
    struct outlook outlook;
    struct plan_result plan;
    double *factors;

    if (live->now < sim->next_plan) {
        return;
    }
    sim->next_plan = live->now + PLAN_S;
    sim->n_plans++;
    outlook_init(&outlook, live, &sim->early);
    factors = order_alloc(outlook.situation.n_jobs, sizeof *factors);
    for (size_t i = 0; i < outlook.situation.n_jobs; i++) {
        factors[i] = live->factors[outlook.jobs[i]->record - live->jobs];
    }
    plan = plan_improve(&outlook.situation, &options, factors);
    result->plan_runs += plan.n_runs;
    result->plan_s += plan.cpu_s;
    for (size_t i = 0; i < outlook.situation.n_jobs; i++) {
        const struct live_stage *stage = outlook.jobs[i]->stage;

        if (i && stage == outlook.jobs[i - 1]->stage
            && live_is_asynchronous(stage) && !live_is_promising(live)) {
            factors[i] = factors[i - 1];
        }
        live->factors[outlook.jobs[i]->record - live->jobs] = factors[i];
    }
    free(factors);
    outlook_uninit(&outlook);
}

/* Orders the live units by what remains of them. */
static void
decide(struct simulation *sim, struct sim_result *result)
{
    struct live *live = &sim->live;
    double begin;

    live->units_changed = false;
    sim->next_period = live->now + period(sim);
    if (!live->n_units || order_is_equal(sim->order_options.kind)
        || (order_is_whole(sim->order_options.kind)
            && sim->n_stage_events == live->n_begun_units + live->n_ended)) {
        return;
    }
    sim->n_stage_events = live->n_begun_units + live->n_ended;
    if (live->ordered != ORDER_UNIT_ITERATION || !live->weighted) {
        live->rates->class->settle(live->rates, live->now);
        round_sent(live);
    }
    follow_in_plain(sim);
    if (live->weighted) {
        live_find_debts(live);
    }
    remaining_problem(live, &sim->early, sim->problem);
    if (!live->weighted) {
        order_problem_age(sim->problem, sim->options->aging_s,
                          sim->options->aging_slowdown);
    }
    if (sim->options->input) {
        sim->options->input(sim->options->aux, sim->problem);
    }
    begin = clock_monotonic_s();
    order_compute(&sim->order_options, sim->problem, &sim->order);
    count_decision(sim, (clock_monotonic_s() - begin) * 1e6, result);
    apply_order(sim);
    if (live->factors) {
        plan_ahead(sim, result);
    }
}

static void
observe(struct simulation *sim, double seconds)
{
    const struct rates *rates = sim->live.rates;
    size_t n = rates->class->list(rates, &sim->flows, &sim->allocated_flows);

    sim->options->observe(sim->options->aux, seconds, sim->flows, n);
}

/* Returns true if an order is due now. */
static bool
decision_is_due(struct simulation *sim)
{
    struct live *live = &sim->live;

    if (live->units_changed && sim->options->late_s > 0) {
        sim->due = fmin(sim->due, live->now + sim->options->late_s);
        live->units_changed = false;
    }
    if (sim->due <= live->now) {
        sim->due = INFINITY;
        return true;
    }
    return live->units_changed;
}

/* Goes on to the next event. */
static void
step(struct simulation *sim, struct sim_result *result)
{
    struct live *live = &sim->live;
    const struct rates_class *class = live->rates->class;
    double next = fmin(live_next_event(live), class->next(live->rates));
    double decision = isinf(sim->due) ? next_limit(live) : INFINITY;
    struct flow *flow;

    if (live->n_units && isinf(sim->due)) {
        decision = fmin(decision, sim->next_period);
    }
    if (decision <= next) {
        next = decision;
        live->units_changed = true;
    }
    next = fmin(next, sim->due);
    assert(isfinite(next));
    next = fmax(next, live->now);
    if (sim->options->observe) {
        observe(sim, next - live->now);
    }
    live->now = next;
    while ((flow = class->pop(live->rates, live->now))) {
        live_flow_ended(live, flow);
    }
    live_run_events(live);
    if (decision_is_due(sim)) {
        decide(sim, result);
    }
    class->update(live->rates, live->now);
}

static double
percentile(const double *sorted, size_t n, int percent)
{
    return sorted[(n * percent + 99) / 100 - 1];
}

static void
summarize(struct sim_result *r)
{
    double *times = order_alloc(r->n_stages, sizeof *times);
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

/* Returns how flows get their rates.  The jobs of a whole stage share its
 * level. */
static enum rates_rule
choose_rates(const struct sim_options *options)
{
    enum order_service service = order_classes[options->order.kind].service;

    if (options->order.kind == ORDER_FAIR) {
        return RATES_TURNS;
    } else if (options->order.kind == ORDER_MLTCP) {
        return RATES_MLTCP;
    } else if (options->service == SIM_SERVICE_LEVELS
               || service == ORDER_SERVICE_SHARE
               || order_is_whole(options->order.kind)) {
        return RATES_SHARE;
    }
    return service == ORDER_SERVICE_MADD ? RATES_MADD : RATES_FILL;
}

static void
collect(struct simulation *sim, struct sim_result *result)
{
    struct live *live = &sim->live;

    result->n_stages = live->n_stages;
    result->n_jobs = live->n_jobs;
    result->n_ports = live->fabric->n_ports;
    result->port_bytes = order_alloc(result->n_ports,
                                     sizeof *result->port_bytes);
    result->bound = recorded_bound(live, sim->options->bound_rounds,
                                   result->port_bytes, &result->bound_kind);
    if (result->decisions) {
        qsort(sim->times, result->decisions, sizeof *sim->times,
              compare_doubles);
        result->decision_us_p99 = percentile(sim->times, result->decisions,
                                             99);
        result->gained = sim->sum_improvement / result->decisions;
    }
    summarize(result);
}

void
simulate(const struct workload *w, const struct sim_options *options,
         struct sim_result *result)
{
    struct simulation sim = {
        .options = options, .order_options = options->order,
        .early = options->early, .next_period = INFINITY, .due = INFINITY,
    };

    struct sim_fabric *fabric = sim_fabric_scale(
        w->fabric, options->efficiency > 0 ? options->efficiency : 1);

    memset(result, 0, sizeof *result);
    if (sim.early.period_s <= 0) {
        sim.early = (struct progress_options) PROGRESS_OPTIONS_INIT;
    }
    sim.early.theta = options->order.early_theta;
    live_init(&sim.live, w, fabric, options, choose_rates(options));
    if (options->service == SIM_SERVICE_EXACT) {
        sim.order_options.n_levels = INT_MAX;
    } else {
        sim.live.rates->min_share = options->min_share;
    }
    sim.order_options.iterations = sim.live.weighted;
    sim.order_options.uncertified = true;
    if (sim.live.weighted && sim.live.ordered == ORDER_UNIT_ITERATION
        && options->latest > 0) {
        sim.plain = plain_network_create();
    }
    sim.problem = order_problem_create(fabric->n_ports);
    order_result_init(&sim.order);
    while (sim.live.n_ended < w->n_stages
           && !(options->stopped && options->stopped())) {
        step(&sim, result);
        if (options->progress) {
            options->progress(options->aux, sim.live.n_ended, w->n_stages);
        }
    }
    result->stages = sim.live.stages;
    result->jobs = sim.live.jobs;
    result->bests = sim.live.bests;
    result->n_cojobs = w->n_cojobs;
    if (sim.live.n_ended == w->n_stages) {
        collect(&sim, result);
    } else {
        sim_result_uninit(result);
    }

    order_result_uninit(&sim.order);
    order_problem_destroy(sim.problem);
    live_uninit(&sim.live);
    plain_network_destroy(sim.plain);
    free(sim.slack);
    free(sim.placed);
    sim_fabric_destroy(fabric);
    free(sim.times);
    free(sim.flows);
}

static int
compare_stages(const void *a_, const void *b_)
{
    const struct sim_stage *a = a_, *b = b_;

    return (a->cojob != b->cojob ? (a->cojob < b->cojob ? -1 : 1)
                                 : (a->rung > b->rung) - (a->rung < b->rung));
}

void
sim_result_sort(struct sim_result *r)
{
    qsort(r->stages, r->n_stages, sizeof *r->stages, compare_stages);
}

void
sim_result_uninit(struct sim_result *r)
{
    free(r->stages);
    free(r->jobs);
    free(r->port_bytes);
    for (size_t i = 0; i < r->n_cojobs; i++) {
        free(r->bests[i].bests);
    }
    free(r->bests);
    r->n_cojobs = 0;
    r->bests = NULL;
    r->stages = NULL;
    r->jobs = NULL;
    r->port_bytes = NULL;
}
