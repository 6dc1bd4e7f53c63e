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
#include "controller/order/slack.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "policies/policy.h"
#include "sim/workload-recording.h"
#include "sim/workload.h"
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
    f->d = decide_create(f->c, NULL);
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

static struct job *
find_job(struct fixture *f, const char *name)
{
    return shash_find_data(&f->c->jobs, name);
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

/* What has ended is a workload for the simulator; what runs is not yet. */
static void
stages_can_be_replayed(void **state)
{
    struct fixture *f = *state;
    struct stage_bytes *b;
    struct workload *w;
    struct json *json;
    char *text;

    give(f, "001", (int64_t[]) { 300, 100, 1 }, NULL);
    assert_true(decide_run(f->d, 1000));
    b = stage_get_bytes(find_job(f, "a/j")->stage,
                        cluster_get_host(f->c, "h0"));
    b->bytes[DIR_TX] = 125000000;
    b->bytes[DIR_RX] = 7;
    give(f, "001", (int64_t[]) { 300, 100, 1 },
         (int64_t[]) { f->began + 1500, 0, f->began + 1 });
    json = decide_stages_to_json(f->d);
    text = json_to_string(json, JSSF_SORT);
    assert_null(workload_recording_from_string("stages.json", text, &w));
    assert_int_equal(w->n_cojobs, 2);
    workload_destroy(w);
    free(text);
    json_destroy(json);
}

/* One job of a stage that has just begun, of 'iterations' of 1 ms on its
 * host. */
struct given {
    const char *cojob, *job, *host;
    int64_t iterations;
};

/* Gives the jobs; those of a cojob come together and are one stage. */
static void
give_jobs(struct fixture *f, const struct given *given, size_t n)
{
    struct cojob *cojob = NULL;
    struct stage *stage = NULL;

    cluster_intent_begin(f->c);
    for (size_t i = 0; i < n; i++) {
        struct job *job;

        if (!i || strcmp(given[i].cojob, given[i - 1].cojob)) {
            cojob = cluster_put_cojob(f->c, given[i].cojob, 1, true);
            stage = cojob_put_stage(cojob, 0, f->began, 0, 1000);
        }
        job = cojob_put_job(f->c, cojob, given[i].job, true, f->began,
                            125 * given[i].iterations);
        job_put_worker(f->c, job, given[i].host, ROLE_WORKER);
        stage_put_job(stage, job);
    }
    cluster_intent_end(f->c);
}

static struct policy *
set_order(struct fixture *f, const char *order, const char *members)
{
    char *text = xasprintf("{\"name\": \"p\", \"order\": \"%s\"%s}",
                           order, members);
    struct policy *policy;

    assert_null(policy_from_string("p", text, &policy));
    decide_set_policy(f->d, policy);
    free(text);
    return policy;
}

/* Of "a", which goes first, "fast" is done long before "slow" and so lets "b"
 * go before it. */
static void
a_job_with_slack_waits(void **state)
{
    static const struct given given[] = {
        { "a", "slow", "h0", 1000 }, { "a", "fast", "h1", 100 },
        { "b", "j", "h1", 1500 },
    };
    struct fixture *f = *state;
    struct json *json, *order, *levels;

    give_jobs(f, given, ARRAY_SIZE(given));
    assert_true(decide_run(f->d, 1000));
    assert_int_equal(level(f, "a/slow"), 0);
    assert_int_equal(level(f, "b/j"), 0);
    assert_int_equal(level(f, "a/fast"), 1);
    assert_true(rank(f, "b/j") < rank(f, "a/fast"));

    json = decide_order_to_json(f->d);
    order = shash_find_data(json_object(json), "order");
    assert_true(member(order->array.elems[0], "level") == 0);
    assert_float_equal(member(order->array.elems[0], "completion_s"), 1,
                       1e-9);
    levels = shash_find_data(json_object(order->array.elems[0]), "levels");
    assert_true(member(levels, "a/slow") == 0);
    assert_true(member(levels, "a/fast") == 1);
    json_destroy(json);
}

/* Slack is measured, and about equal slack is no reason to swap. */
static void
jobs_of_about_equal_slack_keep_their_places(void **state)
{
    struct given given[] = {
        { "a", "x", "h0", 1000 }, { "a", "y", "h0", 1010 },
    };
    struct fixture *f = *state;

    give_jobs(f, given, ARRAY_SIZE(given));
    assert_true(decide_run(f->d, 1000));
    assert_int_equal(rank(f, "a/y"), 0);
    given[0].iterations = 1030;
    give_jobs(f, given, ARRAY_SIZE(given));
    assert_true(decide_run(f->d, 3000));
    assert_int_equal(rank(f, "a/y"), 0);
    assert_int_equal(level(f, "a/y"), 0);
    assert_int_equal(level(f, "a/x"), 1);
    given[0].iterations = 1500;
    give_jobs(f, given, ARRAY_SIZE(given));
    assert_true(decide_run(f->d, 5000));
    assert_int_equal(rank(f, "a/x"), 0);
    assert_int_equal(level(f, "a/x"), 0);
}

/* What is at its end has nothing to do: it is in nobody's way and keeps what
 * it had. */
static void
a_job_at_its_end_is_not_ordered(void **state)
{
    static const struct given given[] = {
        { "a", "x", "h0", 1000 }, { "a", "y", "h0", 500 },
    };
    struct fixture *f = *state;

    give_jobs(f, given, ARRAY_SIZE(given));
    assert_true(decide_run(f->d, 1000));
    assert_int_equal(level(f, "a/y"), 1);
    find_job(f, "a/x")->iteration = 1000;
    assert_true(decide_run(f->d, 3000));
    assert_int_equal(level(f, "a/y"), 0);
    assert_int_equal(level(f, "a/x"), 0);
    assert_int_equal(rank(f, "a/y"), 0);
    assert_null(decide_explain(f->d, "a/x"));
}

/* What others published is for jobs, or for what they exchange in one
 * iteration. */
static void
orders_of_jobs_place_jobs(void **state)
{
    static const struct given given[] = {
        { "a", "x", "h0", 1000 }, { "a", "y", "h0", 100 },
        { "b", "j", "h0", 500 },
    };
    static const struct {
        const char *order;
        const char *by_rank[3];
        int levels[3];
    } cases[] = {
        { "sincronia", { "a/y", "b/j", "a/x" }, { 0, 1, 2 } },
        { "sebf", { "a/y", "b/j", "a/x" }, { 0, 1, 2 } },
        { "las", { "b/j", "a/x", "a/y" }, { 0, 1, 2 } },
        { "dclas", { "a/x", "b/j", "a/y" }, { 0, 1, 2 } },
        { "intensity", { "b/j", "a/x", "a/y" }, { 0, 1, 2 } },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct policy *policy = set_order(f, cases[i].order,
                                          ", \"retag_ms\": 0");

        give_jobs(f, given, ARRAY_SIZE(given));
        find_job(f, "a/x")->sent = 2e6;
        find_job(f, "a/y")->sent = 20e6;
        find_job(f, "b/j")->sent = 1e6;
        find_job(f, "b/j")->progress.period = 8e-3;
        find_job(f, "a/x")->progress.period = 8e-3;
        assert_true(decide_run(f->d, 1000 + 2000 * i));
        for (size_t k = 0; k < 3; k++) {
            assert_int_equal(level(f, cases[i].by_rank[k]),
                             cases[i].levels[k]);
        }
        assert_int_equal(rank(f, cases[i].by_rank[2]), 2);
        policy_destroy(policy);
    }
}

/* Gives 'job' a metric that has come close to its end. */
static void
let_converge(struct fixture *f, const char *name)
{
    struct job *job = find_job(f, name);
    int64_t last = -1;

    for (int k = 0; k < 20; k++) {
        job_progress_sample(&job->progress, &last, "accuracy", k,
                            0.9 - 0.8 / (1 + k * k * k), f->began + k);
    }
    job->iteration = 20;
}

static void
early_jobs_go_first(void **state)
{
    struct fixture *f = *state;
    struct policy *policy = set_order(f, "early", "");

    give(f, "00", (int64_t[]) { 100, 300 }, NULL);
    let_converge(f, "a/j");
    assert_true(decide_run(f->d, 1000));
    assert_int_equal(rank(f, "b/j"), 0);
    assert_int_equal(level(f, "a/j"), 1);
    policy_destroy(policy);
}

/* Also against an old order that the estimate likes better. */
static void
early_stages_weigh_more(void **state)
{
    struct fixture *f = *state;
    struct policy *policy;

    give(f, "00", (int64_t[]) { 100, 110 }, NULL);
    find_job(f, "a/j")->model_bytes = 130000;
    assert_true(decide_run(f->d, 1000));
    assert_int_equal(rank(f, "a/j"), 0);
    policy = set_order(f, "stage+early", "");
    let_converge(f, "a/j");
    assert_true(decide_run(f->d, 3000));
    assert_int_equal(rank(f, "b/j"), 0);
    policy_destroy(policy);
}

static void
early_improvement_is_believed_for_a_period(void **state)
{
    struct fixture *f = *state;
    struct policy *policy = set_order(f, "early",
                                      ", \"early\": {\"period_s\": 3}");

    give(f, "00", (int64_t[]) { 100, 300 }, NULL);
    assert_true(decide_run(f->d, 1000));
    assert_false(decide_run(f->d, 3900));
    assert_true(decide_run(f->d, 4000));
    policy_destroy(policy);
}

/* But what is news is looked at soon, however much of it there is. */
static void
a_metric_makes_a_new_order_soon(void **state)
{
    struct fixture *f = *state;
    struct policy *policy = set_order(f, "early", "");

    give(f, "00", (int64_t[]) { 100, 300 }, NULL);
    assert_true(decide_run(f->d, 1000));
    f->c->samples++;
    assert_false(decide_run(f->d, 1100));
    f->c->samples++;
    assert_false(decide_run(f->d, 1300));
    assert_true(decide_run(f->d, 1350));
    assert_false(decide_run(f->d, 1900));
    policy_destroy(policy);

    policy = set_order(f, "stage", "");
    assert_true(decide_run(f->d, 3000));
    f->c->samples++;
    assert_false(decide_run(f->d, 3400));
    policy_destroy(policy);
}

static void
explains_a_place(void **state)
{
    struct fixture *f = *state;
    struct json *json, *before;

    give(f, "00", (int64_t[]) { 300, 100 }, NULL);
    assert_true(decide_run(f->d, 1000));
    assert_null(decide_explain(f->d, "a/none"));
    json = decide_explain(f->d, "a/j");
    assert_true(member(json, "rank") == 1);
    assert_true(member(json, "level") == 1);
    assert_true(member(json, "iterations_left") == 300);
    assert_float_equal(member(json, "completion_s"), 0.4, 1e-9);
    assert_float_equal(member(json, "alone_s"), 0.3, 1e-9);
    assert_float_equal(member(json, "slack_s"), 0.4 - SLACK_SHARE * 0.3, 1e-9);
    assert_string_equal(json_string(shash_find_data(json_object(json),
                                                    "bottleneck")), "h0:tx");
    before = shash_find_data(json_object(json), "before");
    assert_int_equal(before->array.n, 1);
    before = before->array.elems[0];
    assert_string_equal(json_string(shash_find_data(json_object(before),
                                                    "job")), "b/j");
    assert_float_equal(member(before, "seconds"), 0.1, 1e-9);
    json_destroy(json);
}

/* A pace that was measured helps to order, but proves nothing: 0.1 s and 0.4 s
 * of the network, with weights that have grown a little with age. */
static void
the_certificate_is_of_the_network_alone(void **state)
{
    struct fixture *f = *state;
    struct json *json;

    give(f, "00", (int64_t[]) { 300, 100 }, NULL);
    find_job(f, "b/j")->progress.period = 0.1;
    find_job(f, "b/j")->progress.first_period = 0.1;
    assert_true(decide_run(f->d, 1000));
    json = decide_order_to_json(f->d);
    assert_true(member(json, "bound_s") < 0.51);
    assert_true(member(json, "estimate_s") < 0.71);
    json_destroy(json);
    json = decide_explain(f->d, "b/j");
    assert_float_equal(member(json, "alone_s"), 10, 1e-9);
    assert_float_equal(member(json, "completion_s"), 10, 1e-9);
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

/* The last one went first, which no swap of neighbours undoes for free. */
static void
hysteresis_keeps_an_order_that_is_as_good(void **state OVS_UNUSED)
{
    struct order_problem *p = order_problem_create(2);
    int order[] = { 3, 2, 0, 1 };
    int old_rank[] = { 0, 1, 2, -1 };

    for (int i = 0; i < 3; i++) {
        int s = order_problem_add_stage(p, 1, i);

        order_problem_add_demand(p, s, 0, i == 1 ? 1.2 : 1);
    }
    order_problem_add_demand(p, order_problem_add_stage(p, 1, 3), 1, 1);
    assert_true(hysteresis_apply(p, old_rank, 0.05, order));
    assert_int_equal(order[0], 3);
    assert_int_equal(order[1], 0);
    assert_int_equal(order[2], 1);
    assert_int_equal(order[3], 2);
    order_problem_destroy(p);
}

/* What a search tells of itself. */
struct news {
    const char *what;
    double weight;
    bool live, staged;
    int64_t model_bytes, iterations;
    int n_hosts;
    bool urgent;                /* It concerns a stage that runs. */
};

/* Gives cojob "a" with job "j" on 'n_hosts' hosts, and its stage. */
static void
give_news(struct fixture *f, const struct news *news)
{
    struct cojob *cojob;
    struct job *job;

    cluster_intent_begin(f->c);
    cojob = cluster_put_cojob(f->c, "a", news->weight, true);
    job = cojob_put_job(f->c, cojob, "j", news->live, 1000,
                        news->model_bytes);
    for (int i = 0; i < news->n_hosts; i++) {
        char host[] = { 'h', '0' + i, '\0' };

        job_put_worker(f->c, job, host, ROLE_WORKER);
    }
    if (news->staged) {
        stage_put_job(cojob_put_stage(cojob, 0, f->began, 0,
                                      news->iterations), job);
    }
    cluster_intent_end(f->c);
}

static void
only_stages_that_run_are_in_a_hurry(void **state)
{
    static const struct news all[] = {
        { "a search and its job", 1, true, false, 1000, 0, 1, false },
        { "the job has another host", 1, true, false, 1000, 0, 2, false },
        { "its stage begins", 1, true, true, 1000, 50, 2, true },
        { "nothing", 1, true, true, 1000, 50, 2, false },
        { "a longer stage", 1, true, true, 1000, 60, 2, true },
        { "another weight", 2, true, true, 1000, 60, 2, true },
        { "another model", 2, true, true, 2000, 60, 2, true },
        { "another host", 2, true, true, 2000, 60, 3, true },
        { "a host less", 2, true, true, 2000, 60, 2, true },
        { "the job ends", 2, false, true, 2000, 60, 2, true },
        { "the stage goes", 2, false, false, 2000, 60, 2, true },
        { "the job begins again", 2, true, false, 2000, 60, 2, false },
    };
    struct fixture *f = *state;
    long long now = 10000;

    assert_true(decide_run(f->d, now));
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        now += 400;
        give_news(f, &all[i]);
        assert_false(decide_is_settled(f->d));
        assert_false(decide_run(f->d, now));
        if (decide_run(f->d, now + 20) != all[i].urgent) {
            fail_msg("%s: %s", all[i].what, all[i].urgent
                     ? "no order at once" : "an order at once");
        }
        assert_true(all[i].urgent || decide_run(f->d, now + 250));
        assert_true(decide_is_settled(f->d));
    }
}

static void
what_is_in_no_hurry_waits_for_more_of_it(void **state)
{
    static const struct news job = { "a job", 1, true, false, 1000, 0, 1,
                                     false };
    struct fixture *f = *state;

    assert_true(decide_run(f->d, 1000));
    for (int ms = 0; ms < 1000; ms += 200) {
        give_news(f, &job);
        assert_false(decide_run(f->d, 1001 + ms));
    }
    assert_true(decide_run(f->d, 2001));
}

static double
explained(struct fixture *f, const char *job, const char *name)
{
    struct json *json = decide_explain(f->d, job);
    double value = member(json, name);

    json_destroy(json);
    return value;
}

/* Of a job that has only seen what a slow iteration takes behind others, the
 * ports foresee the end: 0.1 s of those before it and 0.3 s of its own. */
static void
who_has_always_waited_is_foreseen_by_ports(void **state)
{
    struct fixture *f = *state;
    struct job_traffic *t;

    give(f, "00", (int64_t[]) { 300, 100 }, NULL);
    assert_true(decide_run(f->d, 1000));
    assert_true(find_job(f, "a/j")->progress.waits);
    assert_false(find_job(f, "b/j")->progress.waits);

    find_job(f, "a/j")->progress.period = 0.5;
    assert_true(decide_run(f->d, 3000));
    assert_float_equal(explained(f, "a/j", "completion_s"), 0.4, 1e-9);
    assert_float_equal(explained(f, "a/j", "alone_s"), 0.3, 1e-9);
    assert_float_equal(explained(f, "a/j", "period_s"), 0.5, 1e-9);

    /* Its host sees it silent for 9 ms at a time. */
    t = shash_first(&find_job(f, "a/j")->traffic)->data;
    t->burst_period = 0.05;
    t->burst_duty = 0.82;
    assert_true(decide_run(f->d, 5000));
    assert_float_equal(explained(f, "a/j", "completion_s"), 3, 1e-9);

    /* It was first for some time. */
    find_job(f, "a/j")->progress.first_period = 0.02;
    assert_true(decide_run(f->d, 7000));
    assert_float_equal(explained(f, "a/j", "completion_s"), 6, 1e-9);
}

static void
who_shares_waits_for_all(void **state)
{
    struct fixture *f = *state;

    decide_set_policy(f->d, f->fair);
    give(f, "001", (int64_t[]) { 300, 100, 100 }, NULL);
    assert_true(decide_run(f->d, 1000));
    assert_true(find_job(f, "a/j")->progress.waits);
    assert_true(find_job(f, "b/j")->progress.waits);
    assert_false(find_job(f, "c/j")->progress.waits);
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
        TEST(stages_can_be_replayed),
        TEST(a_job_with_slack_waits),
        TEST(jobs_of_about_equal_slack_keep_their_places),
        TEST(a_job_at_its_end_is_not_ordered),
        TEST(orders_of_jobs_place_jobs),
        TEST(early_jobs_go_first),
        TEST(early_stages_weigh_more),
        TEST(early_improvement_is_believed_for_a_period),
        TEST(a_metric_makes_a_new_order_soon),
        TEST(explains_a_place),
        TEST(the_certificate_is_of_the_network_alone),
        TEST(only_stages_that_run_are_in_a_hurry),
        TEST(what_is_in_no_hurry_waits_for_more_of_it),
        TEST(who_has_always_waited_is_foreseen_by_ports),
        TEST(who_shares_waits_for_all),
        cmocka_unit_test(hysteresis_keeps_an_order_that_is_as_good),
        cmocka_unit_test(hysteresis_only_swaps_back_what_is_cheap),
    };

    return cmocka_run_group_tests_name("decide", tests, NULL, NULL);
}
