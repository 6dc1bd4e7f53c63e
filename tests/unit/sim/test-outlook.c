/* SPDX-License-Identifier: Apache-2.0 */

/* The judge of orders against the simulator: ten searches that begin
 * together, as the main scenario draws them. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "order/lookahead/judge.h"
#include "order/order.h"
#include "order/problem/memory.h"
#include "order/result/slack.h"
#include "scenario/scenario.h"
#include "sim/rates/rates.h"
#include "sim/run/by-policy.h"
#include "sim/run/live.h"
#include "sim/run/outlook.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload-generate.h"
#include "sim/workload/workload-training.h"
#include "sim/workload/workload.h"
#include "tests/unit/unit-test.h"

#define N_SEEDS 100
#define N_GENERATED 6

/* Largest difference of the mean stage completion times, in the mean over the
 * seeds. */
#define TOLERANCE 0.005

/* For least_work_keys(). */
static const struct judge_situation *situation;

static struct workload *
open_workload(int64_t seed)
{
    struct scenario *scenario;
    struct workload *w;

    assert_null(
        scenario_from_file("lab/scenarios/main.json", &seed, &scenario));
    w = workload_training_create(scenario);
    scenario_destroy(scenario);
    workload_make_offline(w);
    return w;
}

/* Lets everything that is live end. */
static void
finish(struct live *live)
{
    const struct rates_class *class = live->rates->class;
    struct flow *flow;

    while (live->n_ended < live->workload->n_stages) {
        class->update(live->rates, live->now);
        live->now = fmin(live_next_event(live), class->next(live->rates));
        while ((flow = class->pop(live->rates, live->now))) {
            live_flow_ended(live, flow);
        }
        live_run_events(live);
    }
}

/* The order of "work": stages by their remaining work, and their jobs by
 * slack. */
static void
least_work_keys(const struct judge *judge, double keys[])
{
    struct order_options options = ORDER_OPTIONS_INIT(ORDER_WORK);
    struct order_problem *op = order_problem_create(situation->n_ports);
    struct slack_job *jobs = order_alloc(situation->n_jobs, sizeof *jobs);
    struct order_result result;
    size_t n = 0;

    order_result_init(&result);
    options.uncertified = true;
    for (size_t i = 0; i < situation->n_searches; i++) {
        const struct judge_search *search = &situation->searches[i];
        int stage = -1;
        double alone = 0;

        for (size_t k = search->first_job;
             k < search->first_job + search->n_jobs; k++) {
            const struct judge_job_state *state = judge_job(judge, k);
            const struct judge_job *job = &situation->jobs[k];

            if (state->state == JUDGE_DONE) {
                continue;
            }
            if (stage < 0) {
                stage = order_problem_add_stage(op, 1, i);
            }
            for (size_t d = 0; d < job->n_demands; d++) {
                const struct judge_demand *demand = &job->demands[d];

                order_problem_add_demand(
                    op, stage, demand->port,
                    state->iterations * demand->bytes
                        / situation->capacity[demand->port]);
            }
            alone = fmax(alone, judge_alone(judge, k));
            jobs[n++] = (struct slack_job){ .stage = stage,
                                            .id = k,
                                            .isolated = judge_alone(judge, k),
                                            .ports = &job->demands->port,
                                            .n_ports = job->n_demands,
                                            .stride = sizeof *job->demands };
        }
        if (stage >= 0) {
            order_problem_set_release(op, stage, 0, alone);
        }
    }
    order_compute(&options, op, &result);
    slack_assign(op, &result, &options, jobs, n);
    for (size_t i = 0; i < n; i++) {
        keys[jobs[i].id] = i;
    }
    free(jobs);
    order_result_uninit(&result);
    order_problem_destroy(op);
}

struct comparison {
    double ratio; /* Sum of the stages' times, judge /
                   * simulator. */
    double error; /* Mean of |difference| of the ends of rungs,
                   * relative to the simulator's. */
};

/* Fills 'ends' of all rungs by search.  Returns the sum of the ends of the
 * searches. */
static double
judge_workload(const struct workload *w, const struct sim_options *options,
               double *ends)
{
    struct sim_fabric *fabric =
        sim_fabric_scale(w->fabric, options->efficiency);
    struct outlook outlook;
    struct live live;
    struct judge *judge;
    size_t *places;
    double sum;

    live_init(&live, w, fabric, options, RATES_SHARE);
    live_run_events(&live);
    outlook_init(&outlook, &live, NULL);
    situation = &outlook.situation;
    if (options->order.kind == ORDER_WORK) {
        outlook.situation.keys = least_work_keys;
    } else if (options->order.kind == ORDER_PLAIN) {
        outlook.situation.n_levels = 1;
    }
    places = order_alloc(situation->n_jobs, sizeof *places);
    for (size_t k = 0; k < situation->n_jobs; k++) {
        places[k] = outlook.jobs[k] - outlook.jobs[k]->stage->jobs;
    }
    judge = judge_create(situation);
    sum = judge_run(judge, NULL, places, INFINITY, ends);
    judge_destroy(judge);
    outlook_uninit(&outlook);
    finish(&live);
    free(live.stages);
    free(live.jobs);
    live_uninit(&live);
    free(places);
    sim_fabric_destroy(fabric);
    return sum;
}

static struct comparison
compare(const struct workload *w, const struct sim_options *options)
{
    double *ends = order_alloc(w->n_stages, sizeof *ends);
    size_t *first = order_alloc(w->n_cojobs + 1, sizeof *first);
    struct comparison c = { .ratio = judge_workload(w, options, ends) };
    struct sim_result result;

    for (size_t i = 0; i < w->n_cojobs; i++) {
        first[i + 1] = first[i] + w->cojobs[i].n_rungs;
    }
    simulate(w, options, &result);
    for (size_t i = 0; i < result.n_stages; i++) {
        const struct sim_stage *stage = &result.stages[i];
        double end = ends[first[stage->cojob] + stage->rung];

        c.error += fabs(end / stage->end - 1) / result.n_stages;
    }
    c.ratio /= result.mean * result.n_stages;
    sim_result_uninit(&result);
    free(first);
    free(ends);
    return c;
}

static void
agrees(enum order_kind kind, double refresh_s, enum sim_service service)
{
    struct sim_options options = { .order = ORDER_OPTIONS_INIT(kind),
                                   .min_share = 0.02,
                                   .refresh_s = refresh_s,
                                   .aging_slowdown =
                                       kind == ORDER_STAGE ? 3 : 0 };
    double ratio = 0, error = 0;

    sim_options_like_lab(&options, 1);
    options.service = service;
    options.late_s = service == SIM_SERVICE_LEVELS ? options.late_s : 0;
    for (int64_t seed = 1; seed <= N_SEEDS; seed++) {
        struct workload *w = open_workload(seed);
        struct comparison c = compare(w, &options);

        ratio += c.ratio / N_SEEDS;
        error += c.error / N_SEEDS;
        workload_destroy(w);
    }
    assert_float_equal(ratio, 1, TOLERANCE);
    assert_true(error < 0.05);
}

UNIT_TEST(agrees_on_stage)
{
    agrees(ORDER_STAGE, 0.2, SIM_SERVICE_LEVELS);
}

UNIT_TEST(agrees_on_stage_by_rank)
{
    agrees(ORDER_STAGE, 0.2, SIM_SERVICE_EXACT);
}

UNIT_TEST(agrees_on_work)
{
    agrees(ORDER_WORK, 0, SIM_SERVICE_LEVELS);
}

UNIT_TEST(agrees_on_plain)
{
    agrees(ORDER_PLAIN, 0, SIM_SERVICE_LEVELS);
}

/* Returns the mean of the stages' times. */
static double
mean_of(const struct workload *w, int lookahead_runs)
{
    struct sim_options options = { .order = ORDER_OPTIONS_INIT(ORDER_STAGE),
                                   .min_share = 0.02,
                                   .refresh_s = 0.2,
                                   .late_s = 0.04,
                                   .lookahead_runs = lookahead_runs };
    struct sim_result result;
    double mean;

    simulate(w, &options, &result);
    mean = result.mean;
    sim_result_uninit(&result);
    return mean;
}

/* By 2 % in the mean of these seeds. */
UNIT_TEST(looking_ahead_ends_stages_earlier)
{
    double ratio = 0;

    for (uint64_t seed = 1; seed <= N_GENERATED; seed++) {
        struct generate_options options;
        struct workload *w;
        char text[64];

        snprintf(text, sizeof text, "%d,hosts=6,cojobs=4,jobs=3", (int) seed);
        assert_null(generate_options_parse(text, &options));
        w = workload_generate(&options);
        ratio += mean_of(w, 120) / mean_of(w, 0) / N_GENERATED;
        assert_true(mean_of(w, 120) == mean_of(w, 120));
        workload_destroy(w);
    }
    assert_true(ratio < 0.99);
}
