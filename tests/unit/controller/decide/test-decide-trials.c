/* SPDX-License-Identifier: Apache-2.0 */

/* Searches that judge their trials one by one. */

#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "controller/decide/decide-outlook.h"
#include "controller/decide/decide-problem.h"
#include "controller/decide/decide.h"
#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "order/order.h"
#include "tests/unit/controller/decide/decide-world.h"
#include "tests/unit/unit-test.h"
#include "timeval.h"
#include "util.h"

#define SEARCH 3 /* Iterations from rung to rung grow by as much. */
static const int64_t rungs[] = { 10, 30, 90 };

/* Expected iterations of a trial that begins. */
#define EXPECTED (10 + 20 / 3. + 60 / 9.)

/* Seconds of both ports of "h0" in an iteration of any job. */
#define WORK 0.002

/* Gives cojob "a" with the trials 'names', of a letter each, 'to_come' others
 * and an 'order' of them, and "b", which has 'others' iterations left. */
static void
give_trials(struct fixture *f, const char *names, int64_t to_come, int order,
            int64_t others)
{
    struct cojob *cojob;
    struct stage *stage;

    cluster_intent_begin(f->c);
    cojob = cluster_put_cojob(f->c, "a", 1, true);
    stage = cojob_put_stage(f->c, cojob, 0, f->began, 0, rungs[2]);
    stage->trials.eta = SEARCH;
    stage->trials.order = order;
    stage->trials.to_come = to_come;
    stage_trials_set(&stage->trials, rungs, ARRAY_SIZE(rungs));
    for (const char *t = "tuvw"; *t; t++) {
        const char name[] = { *t, '\0' };
        bool runs = strchr(names, *t);
        struct job *job;

        if (runs || shash_find(&cojob->jobs, name)) {
            job = cojob_put_job(f->c, cojob, name, true, 1000, 125000);
            job_put_worker(f->c, job, "h0", ROLE_WORKER);
        }
        if (runs) {
            stage_put_job(stage, job);
        }
    }
    stage_trials_announced(stage);
    cojob = cluster_put_cojob(f->c, "b", 1, true);
    stage = cojob_put_stage(f->c, cojob, 0, f->began, 0, others);
    stage_put_job(stage, cojob_put_job(f->c, cojob, "j", true, 1000, 125000));
    job_put_worker(f->c, stage->jobs[0], "h0", ROLE_WORKER);
    cluster_intent_end(f->c);
}

/* Reports that 'job' has the metric 'value' after 'iteration'. */
static void
report(struct fixture *f, const char *job, int64_t iteration, double value)
{
    assert_true(demand_progress(f->c, find_job(f, job),
                                &find_job(f, job)->rest, iteration, "accuracy",
                                value, time_msec()));
}

/* Lets 'job' report from iteration 'from' to 'to' what rises to 'limit'. */
static void
let_learn(struct fixture *f, const char *job, int from, int to, double limit)
{
    for (int k = from; k <= to; k++) {
        report(f, job, k, limit - limit / (1 + k));
    }
}

static double
explained(struct fixture *f, const char *job, const char *name)
{
    struct json *json = decide_explain(f->d, job);
    double value =
        shash_find(json_object(json), name) ? member(json, name) : NAN;

    json_destroy(json);
    return value;
}

/* Whatever their progress is, and also beside what was decided before. */
FIXTURE_TEST(trials_of_a_search_are_equal)
{
    set_order(f, "stage", ", \"retag_ms\": 0");
    give_trials(f, "tuv", 0, -1, 1000);
    let_learn(f, "a/t", 1, 50, 0.1);
    let_learn(f, "a/u", 1, 12, 0.9);
    let_learn(f, "a/v", 1, 1, 0.5);
    report(f, "b/j", 1, 0);
    decides(f, 1000, "a/t 0/0 a/u 0/0 a/v 0/0 b/j 1/1");
    assert_true(isnan(explained(f, "a/t", "chance")));

    give_trials(f, "uvw", 0, -1, 40); /* A trial begins, and one has ended. */
    report(f, "a/w", 1, 0);
    decides(f, 11000, "b/j 0/0 a/u 1/1 a/v 1/1 a/w 1/1");
    give_trials(f, "uvw", 0, -1, 1000);
    decides(f, 21000, "a/u 0/0 a/v 0/0 a/w 0/0 b/j 1/1");
}

/* What it has done, has to do to the next rungs, and is to come. */
FIXTURE_TEST(a_search_goes_by_all_that_it_needs)
{
    give_trials(f, "t", 2, -1, 3 * EXPECTED + 1);
    decides(f, 1000, "a/t 0 b/j 1");
    assert_float_equal(explained(f, "a/t", "search_work_s"),
                       3 * EXPECTED * WORK, 1e-9);
    give_trials(f, "t", 5, -1, 3 * EXPECTED + 1);
    assert_true(decide_run(f->d, 11000));
    assert_float_equal(explained(f, "a/t", "search_work_s"),
                       6 * EXPECTED * WORK, 1e-9);

    /* Of 20 iterations to the next rung a third go on for 60. */
    give_trials(f, "t", 0, -1, 100);
    report(f, "a/t", 10, 0);
    assert_true(decide_run(f->d, 21000));
    assert_float_equal(explained(f, "a/t", "iterations_left"), 20, 0);
    assert_float_equal(explained(f, "a/t", "search_work_s"), 40 * WORK, 1e-9);
    report(f, "a/t", 29, 0);
    assert_true(decide_run(f->d, 31000));
    assert_float_equal(explained(f, "a/t", "iterations_left"), 1, 0);
}

/* Two have been at the first rung, with 0.3 and 0.4. */
FIXTURE_TEST(promising_trials_go_first)
{
    static const struct {
        const char *policy;
        int owner; /* The owner's choice. */
        bool promising;
    } cases[] = {
        { "neutral", -1, false },
        { "promising", -1, true },
        { "promising", ORDER_TRIALS_NEUTRAL, false },
        { "neutral", ORDER_TRIALS_PROMISING, true },
    };

    give_trials(f, "vw", 0, -1, 1000);
    report(f, "a/v", 10, 0.3);
    report(f, "a/w", 10, 0.4);
    report(f, "b/j", 1, 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *trials = xasprintf(", \"retag_ms\": 0, "
                                 "\"trials\": \"%s\"",
                                 cases[i].policy);

        set_order(f, "stage", trials);
        free(trials);
        give_trials(f, "tu", 0, cases[i].owner, 1000);
        let_learn(f, "a/t", 1, 8, 0.2);
        let_learn(f, "a/u", 1, 8, 0.9);
        assert_true(decide_run(f->d, 1000 + 10000 * i));
        assert_int_equal(rank(f, "a/u"), 0);
        assert_int_equal(rank(f, "a/t") > 0, cases[i].promising);
        assert_int_equal(level(f, "a/t") > 0, cases[i].promising);
        if (cases[i].promising) {
            assert_true(explained(f, "a/u", "chance") > 0.5);
            assert_true(explained(f, "a/t", "chance") < 0.2);
            assert_float_equal(explained(f, "a/t", "next_rung"), 10, 0);
        }
    }
}

/* Each metric counts at the last rung that its trial has passed, once, for
 * ever, and if rungs become known later. */
FIXTURE_TEST(metrics_count_at_rungs)
{
    struct stage *stage;
    static const int64_t more[] = { 10, 20, 30 };

    give_trials(f, "tuv", 0, -1, 1000);
    stage = find_job(f, "a/t")->stage;
    report(f, "a/t", 9, 0.1);
    report(f, "a/t", 11, 0.2);
    report(f, "a/t", 12, 0.3);
    report(f, "a/u", 10, 0.4);
    report(f, "a/v", 35, 0.5);
    assert_int_equal(stage->trials.rungs[0].n, 2);
    assert_float_equal(stage->trials.rungs[0].metrics[0], 0.4, 0);
    assert_float_equal(stage->trials.rungs[0].metrics[1], 0.2, 0);
    assert_int_equal(stage->trials.rungs[1].n, 1);

    give_trials(f, "v", 0, -1, 1000);
    assert_int_equal(stage->trials.rungs[0].n, 2);
    stage_trials_set(&stage->trials, more, ARRAY_SIZE(more));
    assert_int_equal(stage->trials.rungs[0].n, 2);
    assert_int_equal(stage->trials.rungs[1].n, 0);
    assert_int_equal(stage->trials.rungs[2].n, 1);
    report(f, "a/v", 95, 0.6);
    assert_int_equal(stage->trials.rungs[2].n, 1);
    assert_float_equal(stage_trials_done(stage), 12 + 10 + 95, 0);
}

/* Two of them run and do equal parts of it. */
FIXTURE_TEST(plans_go_through_all_that_a_search_needs)
{
    static const double ends[] = { 3, 4 };
    struct order_problem *op = order_problem_create(1);
    struct order_problem *whole = order_problem_create(1);
    struct decide_outlook *outlook;
    const struct judge_search *a;
    struct decide_problem dp;

    give_trials(f, "tu", 4, -1, 100);
    report(f, "a/t", 10, 0);
    decide_problem_init(&dp, op, whole, f->c, f->stage, ORDER_UNIT_ITERATION,
                        1000);
    outlook = decide_outlook_create(&dp, f->c, f->stage, ends, 1000);
    a = outlook->situation.searches;
    a += a->n_jobs == 1;
    assert_int_equal(a->n_jobs, 2);
    assert_int_equal(a->n_rungs, 1);
    assert_int_equal(a->rungs[0].iterations,
                     lround((10 + 40 + 5 * EXPECTED) / 2));
    assert_int_equal(outlook->situation.jobs[a->first_job].iterations,
                     lround((40 + 5 * EXPECTED) / 2));
    decide_outlook_destroy(outlook);
    decide_problem_uninit(&dp);
    order_problem_destroy(whole);
    order_problem_destroy(op);
}

/* It looked smaller than it is. */
FIXTURE_TEST(trials_that_were_not_announced_were_hidden)
{
    const struct announcement *a;

    give_trials(f, "t", 2, -1, 1000);
    a = &find_job(f, "a/t")->stage->announcement;
    give_trials(f, "tu", 1, -1, 1000);
    give_trials(f, "uv", 0, -1, 1000);
    assert_float_equal(a->after_first, 2 * EXPECTED, 1e-9);
    assert_float_equal(a->hidden + a->later, 0, 0);
    give_trials(f, "vw", 5, -1, 1000);
    assert_float_equal(a->after_first, 3 * EXPECTED, 1e-9);
    assert_float_equal(a->later, 5 * EXPECTED, 1e-9);
    assert_float_equal(a->hidden, 6 * EXPECTED, 1e-9);
}

/* What its trials did counts for the owner, also that of those that left. */
FIXTURE_TEST(all_trials_were_served)
{
    struct cojob *cojob;
    struct stage *stage;

    give_trials(f, "tu", 0, -1, 1000);
    report(f, "a/t", 10, 0.1);
    report(f, "a/u", 10, 0.4);
    give_trials(f, "u", 0, -1, 1000);
    report(f, "a/u", 30, 0.4);
    assert_true(decide_run(f->d, 1000));
    cojob = find_job(f, "a/u")->cojob;
    stage = find_job(f, "a/u")->stage;
    cluster_intent_begin(f->c);
    cluster_put_cojob(f->c, "a", 1, true);
    cojob_put_stage(f->c, cojob, 0, f->began, f->began + 1, rungs[2]);
    cluster_intent_end(f->c);
    assert_float_equal(cojob->served, 40 * WORK, 1e-9);
    assert_int_equal(stage->done, 30);
}
