/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controller/cluster.h"
#include "controller/decide.h"
#include "controller/hysteresis.h"
#include "controller/order/order.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "policies/policy.h"
#include "timeval.h"
#include "util.h"

#define POLICY(ORDER)                                                   \
    "{\"name\": \"" ORDER "\", \"order\": \"" ORDER "\","                \
    " \"levels\": {\"dscp\": [48, 40, 32, 24], \"default_dscp\": 0,"     \
    " \"control_dscp\": 56}, \"lease_ms\": 10000, \"coalesce_ms\": 20,"  \
    " \"retag_ms\": 100, \"aging_s\": 600}"

/* Cojobs "a", "b", ..., each with one job "j" that one worker on one host
 * makes, and a stage of 'iterations[i]' iterations. */
struct fixture {
    struct cluster *c;
    struct decide *d;
    struct policy *stage, *fair;
    int64_t began;              /* Of all stages, epoch ms. */
};

static void
give(struct fixture *f, const char *hosts, const int64_t *iterations,
     const int64_t *ended)
{
    cluster_intent_begin(f->c);
    for (size_t i = 0; i < strlen(hosts); i++) {
        char cojob_name[] = { 'a' + i, '\0' };
        char host_name[] = { 'h', hosts[i], '\0' };
        struct cojob *cojob = cluster_put_cojob(f->c, cojob_name, 1, true);
        struct job *job = cojob_put_job(f->c, cojob, "j", true, 1000, 125000);
        struct stage *stage;

        job_put_worker(f->c, job, host_name, ROLE_WORKER);
        stage = cojob_put_stage(cojob, 0, f->began, ended ? ended[i] : 0,
                                iterations[i]);
        if (stage) {
            stage_put_job(stage, job);
        }
    }
    cluster_intent_end(f->c);
}

static int
set_up(void **state)
{
    struct fixture *f = xzalloc(sizeof *f);

    f->began = time_wall_msec();
    f->c = cluster_create();
    f->d = decide_create(f->c);
    assert_null(policy_from_string("stage", POLICY("stage"), &f->stage));
    assert_null(policy_from_string("fair", POLICY("fair"), &f->fair));
    decide_set_policy(f->d, f->stage);
    *state = f;
    return 0;
}

static int
tear_down(void **state)
{
    struct fixture *f = *state;

    decide_destroy(f->d);
    cluster_destroy(f->c);
    policy_destroy(f->stage);
    policy_destroy(f->fair);
    free(f);
    return 0;
}

static int
level(struct fixture *f, const char *job)
{
    const struct job *j = shash_find_data(&f->c->jobs, job);

    return j->level;
}

static int
rank(struct fixture *f, const char *job)
{
    const struct job *j = shash_find_data(&f->c->jobs, job);

    return j->rank;
}

static double
member(struct json *json, const char *name)
{
    const struct json *m = shash_find_data(json_object(json), name);

    return m->type == JSON_INTEGER ? m->integer : m->real;
}

static void
the_smaller_stage_goes_first(void **state)
{
    struct fixture *f = *state;

    give(f, "000", (int64_t[]) { 300, 100, 200 }, NULL);
    assert_true(decide_run(f->d, 1000));
    assert_int_equal(level(f, "b/j"), 0);
    assert_int_equal(level(f, "c/j"), 1);
    assert_int_equal(level(f, "a/j"), 2);
    assert_int_equal(rank(f, "a/j"), 2);
}

static void
stages_that_share_no_port_share_a_level(void **state)
{
    struct fixture *f = *state;

    give(f, "012", (int64_t[]) { 300, 100, 200 }, NULL);
    assert_true(decide_run(f->d, 1000));
    assert_int_equal(level(f, "a/j"), 0);
    assert_int_equal(level(f, "b/j"), 0);
    assert_int_equal(level(f, "c/j"), 0);
}

static void
fair_gives_every_job_level_0(void **state)
{
    struct fixture *f = *state;

    decide_set_policy(f->d, f->fair);
    give(f, "000", (int64_t[]) { 300, 100, 200 }, NULL);
    assert_true(decide_run(f->d, 1000));
    assert_int_equal(level(f, "a/j"), 0);
    assert_int_equal(level(f, "b/j"), 0);
    assert_int_equal(level(f, "c/j"), 0);
}

static void
events_within_a_moment_make_one_order(void **state)
{
    struct fixture *f = *state;

    assert_true(decide_run(f->d, 1000));
    give(f, "0", (int64_t[]) { 300 }, NULL);
    assert_false(decide_run(f->d, 1005));
    give(f, "00", (int64_t[]) { 300, 100 }, NULL);
    assert_false(decide_run(f->d, 1015));
    assert_true(decide_run(f->d, 1025));
    assert_int_equal(level(f, "b/j"), 0);
    assert_false(decide_run(f->d, 1050));
    assert_true(decide_run(f->d, 2100));        /* The refresh. */
}

static void
a_level_changes_once_in_retag_ms(void **state)
{
    struct fixture *f = *state;

    give(f, "00", (int64_t[]) { 300, 200 }, NULL);
    assert_true(decide_run(f->d, 1000));
    assert_int_equal(level(f, "a/j"), 1);
    give(f, "00", (int64_t[]) { 100, 200 }, NULL);
    assert_false(decide_run(f->d, 1010));
    assert_true(decide_run(f->d, 1030));
    assert_int_equal(rank(f, "a/j"), 0);
    assert_int_equal(level(f, "a/j"), 1);       /* Not yet. */
    assert_false(decide_run(f->d, 1099));
    assert_true(decide_run(f->d, 1100));
    assert_int_equal(level(f, "a/j"), 0);
    assert_int_equal(level(f, "b/j"), 1);
}

static void
nearly_equal_stages_keep_their_order(void **state)
{
    struct fixture *f = *state;

    give(f, "00", (int64_t[]) { 1000, 1010 }, NULL);
    assert_true(decide_run(f->d, 1000));
    assert_int_equal(rank(f, "a/j"), 0);
    give(f, "00", (int64_t[]) { 1020, 1010 }, NULL);
    assert_true(decide_run(f->d, 3000));
    assert_int_equal(rank(f, "a/j"), 0);        /* Not worth it. */
    give(f, "00", (int64_t[]) { 1200, 1010 }, NULL);
    assert_true(decide_run(f->d, 5000));
    assert_int_equal(rank(f, "a/j"), 1);
}

/* Lets decisions follow a policy of "stage" with more members. */
static struct policy *
set_policy(struct fixture *f, const char *members)
{
    char *text = xasprintf("{\"name\": \"p\", \"order\": \"stage\", %s}",
                           members);
    struct policy *policy;

    assert_null(policy_from_string("p", text, &policy));
    decide_set_policy(f->d, policy);
    free(text);
    return policy;
}

static void
the_policy_says_how_equal_is_nearly(void **state)
{
    struct fixture *f = *state;
    struct policy *policy = set_policy(f, "\"hysteresis\": 0");

    give(f, "00", (int64_t[]) { 1000, 1010 }, NULL);
    assert_true(decide_run(f->d, 1000));
    give(f, "00", (int64_t[]) { 1020, 1010 }, NULL);
    assert_true(decide_run(f->d, 3000));
    assert_int_equal(rank(f, "a/j"), 1);
    policy_destroy(policy);

    policy = set_policy(f, "\"hysteresis\": 0.5");
    give(f, "00", (int64_t[]) { 900, 1010 }, NULL);
    assert_true(decide_run(f->d, 5000));
    assert_int_equal(rank(f, "a/j"), 1);        /* Where it was. */
    policy_destroy(policy);
}

static void
the_policy_says_who_weighs_more(void **state)
{
    struct fixture *f = *state;
    struct policy *policy = set_policy(
        f, "\"weights\": {\"cojobs\": {\"a\": 4}}");

    give(f, "00", (int64_t[]) { 300, 100 }, NULL);
    assert_true(decide_run(f->d, 1000));
    assert_int_equal(rank(f, "a/j"), 0);
    policy_destroy(policy);
}

/* Also where the old order is kept and levels are made again: that the third
 * stage meets nobody does not matter to "truncate". */
static void
the_policy_says_how_to_fold(void **state)
{
    struct fixture *f = *state;
    struct policy *policy = set_policy(
        f, "\"levels\": {\"dscp\": [40, 24], \"fold\": \"truncate\"}");

    give(f, "001", (int64_t[]) { 1000, 1010, 2000 }, NULL);
    assert_true(decide_run(f->d, 1000));
    give(f, "001", (int64_t[]) { 1020, 1010, 2000 }, NULL);
    assert_true(decide_run(f->d, 3000));
    assert_true(rank(f, "a/j") < rank(f, "b/j"));
    assert_int_equal(level(f, "a/j"), MIN(rank(f, "a/j"), 1));
    assert_int_equal(level(f, "b/j"), MIN(rank(f, "b/j"), 1));
    assert_int_equal(level(f, "c/j"), MIN(rank(f, "c/j"), 1));
    assert_int_equal(level(f, "a/j") + level(f, "b/j") + level(f, "c/j"), 2);
    policy_destroy(policy);
}

static void
a_job_between_stages_keeps_its_level(void **state)
{
    struct fixture *f = *state;
    int64_t now = time_wall_msec();

    give(f, "00", (int64_t[]) { 300, 200 }, NULL);
    assert_true(decide_run(f->d, 1000));
    give(f, "00", (int64_t[]) { 300, 200 }, (int64_t[]) { now, 0 });
    assert_true(decide_run(f->d, 3000));
    assert_int_equal(level(f, "a/j"), 1);
    assert_int_equal(level(f, "b/j"), 0);
}

/* Its first bytes are tagged, and nobody who is in a stage waits for them. */
static void
a_job_before_its_first_stage_is_behind_all_others(void **state)
{
    struct fixture *f = *state;
    struct cojob *cojob;
    struct job *job;
    struct stage *stage;

    for (int round = 0; round < 2; round++) {
        cluster_intent_begin(f->c);
        cojob = cluster_put_cojob(f->c, "a", 1, true);
        job = cojob_put_job(f->c, cojob, "j", true, 1000, 125000);
        job_put_worker(f->c, job, "h0", ROLE_WORKER);
        stage = cojob_put_stage(cojob, 0, f->began, 0, 300);
        stage_put_job(stage, job);
        cojob = cluster_put_cojob(f->c, "b", 1, true);
        job = cojob_put_job(f->c, cojob, "j", true, 1000, 125000);
        job_put_worker(f->c, job, "h0", ROLE_WORKER);
        if (round) {
            stage = cojob_put_stage(cojob, 0, f->began, 0, 100);
            stage_put_job(stage, job);
        }
        cluster_intent_end(f->c);
        assert_true(decide_run(f->d, 1000 + 2000 * round));
        assert_int_equal(level(f, "a/j"), round ? 1 : 0);
        assert_int_equal(level(f, "b/j"), round ? 0 : 3);
        assert_int_equal(rank(f, "b/j"), round ? 0 : 1);
    }
}

static void
tells_the_order_and_its_quality(void **state)
{
    struct fixture *f = *state;
    struct json *json, *order, *demand;

    give(f, "00", (int64_t[]) { 300, 100 }, NULL);
    assert_true(decide_run(f->d, 1000));
    json = decide_order_to_json(f->d);
    order = shash_find_data(json_object(json), "order");
    assert_int_equal(order->array.n, 2);
    /* 125 kB at 1 Gbit/s are 1 ms, so 0.1 s and 0.4 s. */
    assert_float_equal(member(order->array.elems[0], "remaining_s"), 0.1,
                       1e-9);
    assert_true(member(order->array.elems[1], "weight") == 1);
    assert_in_range(member(order->array.elems[1], "age_s"), 0, 60);
    demand = shash_find_data(json_object(order->array.elems[1]), "demand");
    assert_float_equal(member(demand, "h0:tx"), 0.3, 1e-9);
    assert_true(member(json, "estimate_s") >= 0.5 - 1e-9);
    assert_true(member(json, "bound_s") <= member(json, "estimate_s") + 1e-9);
    assert_true(member(json, "gap") >= 1 - 1e-9);
    assert_true(member(json, "gap") < 1.2);
    json_destroy(json);
}

static void
a_stage_without_demand_has_no_bottleneck(void **state)
{
    struct fixture *f = *state;
    struct json *json, *order, *bottleneck;

    give(f, "0", (int64_t[]) { 0 }, NULL);
    assert_true(decide_run(f->d, 1000));
    json = decide_order_to_json(f->d);
    order = shash_find_data(json_object(json), "order");
    assert_int_equal(order->array.n, 1);
    bottleneck = shash_find_data(json_object(order->array.elems[0]),
                                 "bottleneck");
    assert_string_equal(json_string(bottleneck), "");
    json_destroy(json);
}

/* Two stages of 1 s and 3 s on one port that began together take 2.5 s on
 * average at least. */
static void
bounds_what_has_ended(void **state)
{
    struct fixture *f = *state;
    int64_t now = time_wall_msec();
    const char *jobs[] = { "a/j", "b/j" };
    uint64_t bytes[] = { 125000000, 375000000 };
    struct json *json, *stages;

    give(f, "00", (int64_t[]) { 300, 100 }, NULL);
    for (size_t i = 0; i < 2; i++) {
        struct job *job = shash_find_data(&f->c->jobs, jobs[i]);

        stage_get_bytes(job->stage, cluster_get_host(f->c, "h0"))
            ->bytes[DIR_TX] = bytes[i];
    }
    give(f, "00", (int64_t[]) { 300, 100 }, (int64_t[]) { now, now });
    json = decide_stages_to_json(f->d);
    stages = shash_find_data(json_object(json), "stages");
    assert_int_equal(stages->array.n, 2);
    assert_float_equal(member(json, "bound_mean_s"), 2.5, 0.01);
    json_destroy(json);
}

static void
hysteresis_only_swaps_back_what_is_cheap(void **state OVS_UNUSED)
{
    struct order_problem *p = order_problem_create(1);
    int order[] = { 2, 1, 0 };
    int old_rank[] = { 0, 1, 2 };

    for (int i = 0; i < 3; i++) {
        order_problem_add_demand(p, order_problem_add_stage(p, 1, i), 0,
                                 i == 2 ? 1 : 10 - i * 0.01);
    }
    assert_true(hysteresis_apply(p, old_rank, 0.02, order));
    assert_int_equal(order[0], 2);      /* 1 s before 10 s stays. */
    assert_int_equal(order[1], 0);      /* 10.00 s and 9.99 s go back. */
    assert_int_equal(order[2], 1);
    order_problem_destroy(p);
}

int
main(void)
{
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_smaller_stage_goes_first),
        TEST(stages_that_share_no_port_share_a_level),
        TEST(fair_gives_every_job_level_0),
        TEST(events_within_a_moment_make_one_order),
        TEST(a_level_changes_once_in_retag_ms),
        TEST(nearly_equal_stages_keep_their_order),
        TEST(the_policy_says_how_equal_is_nearly),
        TEST(the_policy_says_who_weighs_more),
        TEST(the_policy_says_how_to_fold),
        TEST(a_job_between_stages_keeps_its_level),
        TEST(a_job_before_its_first_stage_is_behind_all_others),
        TEST(tells_the_order_and_its_quality),
        TEST(a_stage_without_demand_has_no_bottleneck),
        TEST(bounds_what_has_ended),
        cmocka_unit_test(hysteresis_only_swaps_back_what_is_cheap),
    };

    return cmocka_run_group_tests_name("decide", tests, NULL, NULL);
}
