/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <time.h>

#include "base/clock.h"
#include "controller/decide/decide-ahead.h"
#include "controller/decide/decide-outlook.h"
#include "controller/decide/decide-problem.h"
#include "controller/decide/decide.h"
#include "controller/model/cluster.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "tests/unit/controller/decide/decide-world.h"
#include "tests/unit/unit-test.h"
#include "util.h"

#define WAIT_S 20
#define ITERATIONS 300

/* A plan takes milliseconds, so that the next one is not due for seconds, and
 * the first one not for SAVE_MS. */
#define AHEAD ", \"lookahead\": {\"core_share\": 0.001}"
#define SAVE_MS 100000

/* Adds a search of one job, a ring of 'hosts'. */
static void
add_search(struct fixture *f, const char *name, const char *hosts,
           int64_t model_bytes)
{
    struct cojob *cojob = cluster_put_cojob(f->c, name, 1, true);
    struct job *job =
        cojob_put_job(f->c, cojob, "j", true, f->began, model_bytes);

    for (; *hosts; hosts++) {
        job_put_worker(f->c, job, (char[]){ 'h', *hosts, '\0' }, ROLE_PEER);
    }
    stage_put_job(cojob_put_stage(f->c, cojob, 0, f->began, 0, ITERATIONS),
                  job);
}

/* Two searches that meet at h1.  "narrow" needs less of all ports together, so
 * that its key is less, but "wide" needs h1 for less time. */
static void
give_two(struct fixture *f)
{
    cluster_intent_begin(f->c);
    add_search(f, "narrow", "15", 1500000);
    add_search(f, "wide", "1234", 600000);
    cluster_intent_end(f->c);
}

static double
status_member(struct fixture *f, const char *name)
{
    struct json *json = json_object_create();
    double value;

    decide_status(f->d, json);
    value = member(json, name);
    json_destroy(json);
    return value;
}

static void
assert_ranked_by(struct fixture *f, const char *by)
{
    struct json *json = decide_explain(f->d, "wide/j");

    assert_string_equal(
        json_string(shash_find_data(json_object(json), "ranked_by")), by);
    json_destroy(json);
}

/* Decides until a plan has come, with a pause of 10 ms for each millisecond
 * after 'now'.  Returns the time of the last decision. */
static long long
decide_with_plan(struct fixture *f, long long now)
{
    double until = clock_monotonic_s() + WAIT_S;

    now += SAVE_MS;
    while (!status_member(f, "plans")) {
        assert_true(clock_monotonic_s() < until);
        nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000 * 1000 }, NULL);
        decide_touch(f->d);
        decide_run(f->d, ++now);
    }
    return now;
}

FIXTURE_TEST(decisions_use_the_last_plan)
{
    long long now = 1000;

    set_order(f, "stage", AHEAD);
    give_two(f);
    decides(f, now, "narrow/j 0");
    assert_ranked_by(f, "key");
    now = decide_with_plan(f, now);
    assert_int_equal(rank(f, "wide/j"), 0);
    assert_ranked_by(f, "plan");
    assert_true(status_member(f, "plan_runs") > 3);
    assert_true(status_member(f, "plan_cpu_s") > 0);
    assert_true(status_member(f, "order_changes") == 1);

    /* Without a newer one. */
    decides(f, now + AHEAD_MAX_AGE_MS + 1000, "narrow/j 0");
    assert_ranked_by(f, "key");
}

FIXTURE_TEST(a_policy_ends_looking_ahead)
{
    long long now = 1000;

    set_order(f, "stage", AHEAD);
    give_two(f);
    assert_true(decide_run(f->d, now));
    now = decide_with_plan(f, now);
    decide_set_policy(f->d, f->stage);
    decides(f, now + 1000, "narrow/j 0");
    assert_ranked_by(f, "key");
}

FIXTURE_TEST(a_pinned_job_stays_first)
{
    set_order(f, "stage", AHEAD);
    give_two(f);
    find_job(f, "narrow/j")->override = OVERRIDE_PIN;
    assert_true(decide_run(f->d, 1000));
    decide_with_plan(f, 1000);
    assert_int_equal(rank(f, "narrow/j"), 0);
}

/* "b" has announced two rungs, and one of its three jobs waits. */
FIXTURE_TEST(plans_go_through_announced_rungs)
{
    static const struct given given[] = {
        { "a", "x", "0", 10 },
        { "b", "x", "0", 20 },
        { "b", "y", "1", 20 },
        { "b", "z", "2", 20 },
    };
    static const struct announced_rung later[] = { { 30, 2 }, { 50, 9 } };
    static const double ends[] = { 3, 4 };
    struct order_problem *op = order_problem_create(1);
    struct order_problem *whole = order_problem_create(1);
    struct decide_outlook *outlook;
    const struct judge_search *b;
    struct decide_problem dp;
    struct stage *stage;

    give_jobs(f, given, ARRAY_SIZE(given));
    find_job(f, "a/x")->stage->iterations = 10;
    find_job(f, "b/y")->iteration = 20;
    stage = find_job(f, "b/x")->stage;
    stage->iterations = 20;
    stage->later = xmemdup(later, sizeof later);
    stage->n_later = ARRAY_SIZE(later);
    decide_problem_init(&dp, op, whole, f->c, f->stage, ORDER_UNIT_ITERATION,
                        1000);
    outlook = decide_outlook_create(&dp, f->c, f->stage, ends, 1000);
    assert_int_equal(outlook->situation.n_searches, 2);
    b = outlook->situation.searches;
    b += b->n_rungs == 1;
    assert_int_equal(b->n_rungs, 3);
    assert_int_equal(b->n_jobs, 3);
    assert_int_equal(b->rungs[0].iterations, 20);
    assert_int_equal(b->rungs[1].iterations, 30);
    assert_int_equal(b->rungs[1].n_jobs, 2);
    assert_int_equal(b->rungs[2].n_jobs, 2);
    assert_string_equal(outlook->jobs[b->first_job + 1], "b/y");
    assert_int_equal(outlook->situation.jobs[b->first_job + 1].state,
                     JUDGE_DONE);
    assert_int_equal(outlook->situation.jobs[b->first_job + 2].iterations, 20);
    assert_true(outlook->left[b->first_job + 1] == 0);
    assert_true(outlook->left[b->first_job + 2] == 20);
    decide_outlook_destroy(outlook);
    decide_problem_uninit(&dp);
    order_problem_destroy(whole);
    order_problem_destroy(op);
}

/* The description of a job on many hosts is as long as their number. */
FIXTURE_TEST(large_jobs_have_a_flow_for_each_port)
{
    static const struct {
        int hosts;
        size_t n_flows;
    } cases[] = { { 3, 3 * 2 }, { 500, 500 * 2 } };
    static const double ends[] = { 3 };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct order_problem *op = order_problem_create(1);
        struct order_problem *whole = order_problem_create(1);
        struct decide_outlook *outlook;
        struct decide_problem dp;
        struct job *job;

        give_jobs(f, &(struct given){ "a", "x", "h0", 10 }, 1);
        job = find_job(f, "a/x");
        for (int h = 1; h < cases[i].hosts; h++) {
            char name[16];

            snprintf(name, sizeof name, "h%d", h);
            job_put_worker(f->c, job, name, ROLE_WORKER);
        }
        decide_problem_init(&dp, op, whole, f->c, f->stage,
                            ORDER_UNIT_ITERATION, 1000);
        outlook = decide_outlook_create(&dp, f->c, f->stage, ends, 1000);
        assert_int_equal(outlook->situation.jobs[0].n_flows, cases[i].n_flows);
        assert_true(outlook->situation.jobs[0].exchange > 0);
        decide_outlook_destroy(outlook);
        decide_problem_uninit(&dp);
        order_problem_destroy(whole);
        order_problem_destroy(op);
    }
}

/* Decides until the plain network has the stage of 'job'. */
static const struct plain_times *
decide_with_times(struct fixture *f, const char *job, long long *now)
{
    const struct plain_times *t = &find_job(f, job)->stage->plain;
    double until = clock_monotonic_s() + WAIT_S;

    while (!t->id) {
        assert_true(clock_monotonic_s() < until);
        nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000 * 1000 }, NULL);
        decide_run(f->d, *now += 1000);
    }
    return t;
}

/* A stage begins in the plain network when the period of its job is known, and
 * takes longer there than alone.  The next one of its search follows it. */
FIXTURE_TEST(stages_have_times_without_an_order)
{
    const struct plain_times *t = NULL;
    long long now = 1000;
    struct cojob *cojob;
    struct json *json;

    give_two(f);
    find_job(f, "wide/j")->stage->iterations = 1000 * ITERATIONS;
    find_job(f, "wide/j")->progress.period = 0.1;
    decide_with_times(f, "wide/j", &now);
    assert_true(!find_job(f, "narrow/j")->stage->plain.id);
    find_job(f, "narrow/j")->progress.period = 0.1;
    t = decide_with_times(f, "narrow/j", &now);
    json = decide_explain(f->d, "narrow/j");
    assert_true(t->end > 1.02 * member(json, "alone_s"));
    assert_true(t->before == 0 && t->whole == t->end);
    json_destroy(json);

    cluster_intent_begin(f->c);
    cojob = cluster_put_cojob(f->c, "narrow", 1, true);
    cojob_put_stage(f->c, cojob, 0, f->began, f->began + 2000, ITERATIONS);
    cluster_intent_end(f->c);
    assert_true(cojob->plain.last > 0 && cojob->plain.spent >= 0);
}

FIXTURE_TEST(one_search_needs_no_plan)
{
    set_order(f, "stage", AHEAD);
    give(f, "0", (int64_t[]){ ITERATIONS }, NULL);
    for (int i = 1; i <= 20; i++) {
        assert_true(decide_run(f->d, SAVE_MS * i));
    }
    assert_true(status_member(f, "plans") == 0);
}
