/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <string.h>

#include "controller/decide/decide.h"
#include "controller/model/cluster.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "policies/policy.h"
#include "tests/unit/controller/decide/decide-world.h"
#include "tests/unit/unit-test.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-get.h"

FIXTURE_TEST(a_job_between_stages_keeps_its_level)
{
    int64_t now = time_wall_msec();

    give(f, "00", (int64_t[]) { 300, 200 }, NULL);
    assert_true(decide_run(f->d, 1000));
    give(f, "00", (int64_t[]) { 300, 200 }, (int64_t[]) { now, 0 });
    decides(f, 3000, "a/j -/1 b/j -/0");
}

/* Jobs "a/j" and "b/j" have 12.5 and 37.5 MB to go, "c/j" and, if 'two',
 * "c/k" have no stage. */
static void
give_a_starting_cojob(struct fixture *f, int64_t model_bytes, bool two)
{
    static const int64_t iterations[] = { 100, 300 };

    cluster_intent_begin(f->c);
    for (int i = 0; i < 3; i++) {
        const char *cojobs[] = { "a", "b", "c" };
        struct cojob *cojob = cluster_put_cojob(f->c, cojobs[i], 1, true);

        for (int k = 0; k < (i == 2 && two ? 2 : 1); k++) {
            struct job *job =
                cojob_put_job(f->c, cojob, k ? "k" : "j", true, 1000,
                              i < 2 ? 125000 : model_bytes);

            job_put_worker(f->c, job, "h0", ROLE_WORKER);
            if (i < 2) {
                stage_put_job(cojob_put_stage(f->c, cojob, 0, f->began, 0,
                                              iterations[i]),
                              job);
            }
        }
    }
    cluster_intent_end(f->c);
}

/* A small model makes no large transfer go first, nor do many jobs. */
FIXTURE_TEST(a_job_before_its_first_stage_goes_by_its_model)
{
    static const struct {
        int64_t model_bytes, moved;
        bool two;
        int rank, level;
    } cases[] = {
        { 125000, 0, false, 0, 0 },      { 20000000, 0, false, 1, 1 },
        { 50000000, 0, false, 2, 3 },    { 0, 0, false, 2, 3 },
        { 125000, 250000, false, 0, 0 }, { 125000, 20000000, false, 1, 1 },
        { 1, 50000000, false, 2, 3 },    { 7000000, 0, false, 0, 0 },
        { 7000000, 0, true, 1, 1 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct job_traffic *t;

        give_a_starting_cojob(f, cases[i].model_bytes, cases[i].two);
        t = job_get_traffic(find_job(f, "c/j"), cluster_get_host(f->c, "h0"));
        t->bytes[DIR_TX] = cases[i].moved;
        decides(f, 10000 * (i + 1), "a/j 0");
        assert_int_equal(rank(f, "c/j"), cases[i].rank);
        assert_int_equal(level(f, "c/j"), cases[i].level);
    }
}

/* A job keeps the rank of its stage before its first iteration, unless it
 * moves more than its model in the iterations that it has announced. */
FIXTURE_TEST(a_job_before_its_first_iteration_goes_by_its_demand)
{
    static const struct {
        int64_t moved;
        int rank;
    } cases[] = { { 0, 0 }, { 10000000, 0 }, { 100000000, 1 } };

    give(f, "00", (int64_t[]){ 300, 100 }, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct job_traffic *t =
            job_get_traffic(find_job(f, "b/j"), cluster_get_host(f->c, "h0"));

        t->bytes[DIR_TX] = cases[i].moved;
        assert_true(decide_run(f->d, 10000 * (i + 1)));
        assert_int_equal(rank(f, "b/j"), cases[i].rank);
    }
}

/* The first weights of "b", the longer search, go before the iterations of
 * "a", unless it has moved more, iterates, is idle, has an override or a model
 * that is larger than what "a" has left. */
FIXTURE_TEST(first_weights_go_first)
{
    static const struct {
        const char *order;
        int64_t model, moved, iteration;
        enum override_kind override;
        int rank;
    } cases[] = {
        { "stage", 125000, 0, -1, OVERRIDE_NONE, 0 },
        { "work", 125000, 0, 0, OVERRIDE_NONE, 0 },
        { "stage", 125000, 150000, 0, OVERRIDE_NONE, 0 },
        { "stage", 125000, 400000, 0, OVERRIDE_NONE, 1 },
        { "stage", 125000, 0, 1, OVERRIDE_NONE, 1 },
        { "stage", 125000, 0, -1, OVERRIDE_PAUSE, 1 },
        { "stage", 12000000, 0, -1, OVERRIDE_NONE, 0 },
        { "stage", 13000000, 0, -1, OVERRIDE_NONE, 1 },
        { "grouper", 125000, 0, -1, OVERRIDE_NONE, 1 },
    };

    give(f, "00", (int64_t[]){ 100, 300 }, NULL);
    find_job(f, "a/j")->iteration = 1;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct job *job = find_job(f, "b/j");
        struct json *json;

        set_order(f, cases[i].order, "");
        job->model_bytes = cases[i].model;
        job->moved = cases[i].moved;
        job->iteration = cases[i].iteration;
        job->override = cases[i].override;
        assert_true(decide_run(f->d, 10000 * (i + 1)));
        assert_int_equal(rank(f, "b/j"), cases[i].rank);
        assert_int_equal(level(f, "b/j") > 0, cases[i].rank);
        json = decide_explain(f->d, "b/j");
        assert_int_equal(
            !strcmp(json_string(json_get(json, "ranked_by", JSON_STRING)),
                    "start"),
            cases[i].rank == 0);
        json_destroy(json);
    }
}

/* "a" needs least and would be first, but no process has joined it. */
FIXTURE_TEST(an_idle_stage_is_behind_all_others)
{
    static const char *const orders[] = { "stage", "work", "las" };

    for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
        struct policy *policy = set_order(f, orders[i], "");
        struct stage *a;

        give(f, "00", (int64_t[]){ 100, 200 }, NULL);
        find_job(f, "b/j")->progress.last = 1;
        a = find_job(f, "a/j")->stage;
        shash_clear_free_data(&find_job(f, "a/j")->traffic);
        assert_true(decide_run(f->d, 1000 + 20000 * i));
        a->known_at = find_job(f, "b/j")->stage->known_at -= 60000;
        assert_true(decide_run(f->d, 3000 + 20000 * i));
        assert_int_equal(a->idle, STAGE_NO_PROCESS);
        assert_int_equal(rank(f, "a/j"), 1);
        assert_int_equal(level(f, "a/j"), policy->n_levels - 1);
        assert_int_equal(a->rank, 1);

        find_job(f, "a/j")->progress.last = 1;
        assert_true(decide_run(f->d, 5000 + 20000 * i));
        assert_int_equal(a->idle, STAGE_BUSY);
        assert_int_equal(rank(f, "a/j"), 0);
        a->known_at += 60000;
        find_job(f, "b/j")->stage->known_at += 60000;
        find_job(f, "a/j")->progress.last = -1;
    }
}

/* Of "a", which goes first, "fast" is done long before "slow" and so lets "b"
 * go before it. */
FIXTURE_TEST(a_job_with_slack_waits)
{
    static const struct given given[] = {
        { "a", "slow", "h0", 1000 },
        { "a", "fast", "h1", 100 },
        { "b", "j", "h1", 1500 },
    };
    struct json *json, *order, *levels;

    set_order(f, "work", "");
    give_jobs(f, given, ARRAY_SIZE(given));
    decides(f, 1000, "a/slow -/0 b/j -/0 a/fast -/1");
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

/* A job that waits has the pace of those before it: if it counted, "b" would
 * be urgent because it waits, pass "a", and let that wait. */
FIXTURE_TEST(a_job_does_not_pass_by_its_pace_behind_others)
{
    static const struct given given[] = {
        { "a", "x", "h0", 400 },
        { "a", "y", "h0", 400 },
        { "a", "z", "h0", 400 },
        { "b", "j", "h0", 1500 },
    };

    set_order(f, "work", "");
    give_jobs(f, given, ARRAY_SIZE(given));
    decides(f, 1000, "b/j 3");
    find_job(f, "b/j")->progress.period = 0.0027;
    decides(f, 3000, "b/j 3");

    /* It was as slow without a job before it, so it has no time to lose. */
    find_job(f, "b/j")->progress.first_period = 0.0027;
    decides(f, 5000, "b/j 0");
}

/* Jobs that iterate: "a" still needs 100 iterations of 1 ms on two ports, "b"
 * 20 of 2 ms.  If "b" has more to do in later stages, "a" goes first. */
FIXTURE_TEST(iterations_go_by_what_their_search_needs)
{
    static const struct given given[] = {
        { "a", "j", "h0", 1000 },
        { "b", "j", "h0", 2000 },
    };
    struct json *json;

    give_jobs(f, given, ARRAY_SIZE(given));
    find_job(f, "a/j")->iteration = 900;
    find_job(f, "b/j")->iteration = 980;
    decides(f, 1000, "b/j 0");
    json = decide_explain(f->d, "b/j");
    assert_string_equal(json_string(shash_find_data(json_object(json),
                                                    "unit")), "iteration");
    assert_float_equal(member(json, "search_work_s"), 0.08, 1e-9);
    assert_float_equal(member(json, "urgency"), 1, 1e-9);
    json_destroy(json);

    find_job(f, "b/j")->stage->announcement.later = 1000;
    decides(f, 3000, "a/j 0");
    json = decide_explain(f->d, "b/j");
    assert_float_equal(member(json, "search_work_s"), 4.08, 1e-9);
    json_destroy(json);
}

/* Both searches still need 1000 iterations on two ports, "a" of 80 us, "b" of
 * 50 us, which only "a" has announced before.  "b" owes 1500 more. */
FIXTURE_TEST(a_search_owes_for_the_stages_that_it_hid)
{
    static const struct given given[] = {
        { "a", "j", "h0", 80 },
        { "b", "j", "h0", 50 },
    };
    struct json *json;

    give_jobs(f, given, ARRAY_SIZE(given));
    announcement_next(&find_job(f, "b/j")->stage->announcement,
                      1000, 0);
    decides(f, 1000, "b/j 0");

    announcement_init(&find_job(f, "a/j")->stage->announcement,
                      1000);
    announcement_next(&find_job(f, "a/j")->stage->announcement,
                      1000, 0);
    decides(f, 3000, "a/j 0");
    json = decide_explain(f->d, "b/j");
    assert_float_equal(member(json, "search_work_s"), 2 * (50 + 75) * 1e-3,
                       1e-9);
    json_destroy(json);
}

/* "b" announces a tenth of what it sends, and a longer computing time than an
 * iteration takes.  Both count until they are found to be wrong. */
FIXTURE_TEST(what_is_counted_refutes_an_announcement)
{
    static const struct given given[] = {
        { "a", "j", "h0", 80 },
        { "b", "j", "h0", 50 },
    };
    struct job *b;
    struct stage_claim *claim;
    struct job_traffic *t;

    give_jobs(f, given, ARRAY_SIZE(given));
    b = find_job(f, "b/j");
    claim = &b->stage->claim;
    t = job_get_traffic(b, cluster_get_host(f->c, "h0"));
    claim->bytes = 2000;
    claim->compute = 0.5;
    decides(f, 1000, "b/j 0");
    assert_true(b->stage->compute >= 0.5);
    t->measured = 8;
    t->per_iteration[DIR_TX] = t->per_iteration[DIR_RX] = 20000;
    b->progress.period = 0.1;
    decides(f, 3000, "a/j 0");
    assert_float_equal(claim->bytes_ratio, 10, 1e-9);
    assert_float_equal(b->cojob->bytes_ratio, 10, 1e-9);
    assert_float_equal(b->stage->announcement.understated, 8.1, 1e-9);
    assert_float_equal(claim->compute_ratio, 0.2, 1e-9);
    assert_true(decide_run(f->d, 5000));
    assert_true(b->stage->compute < 0.1);

    /* Within the tolerance. */
    claim->bytes = 16500;
    claim->compute = 0.12;
    assert_true(decide_run(f->d, 7000));
    assert_float_equal(claim->bytes_ratio, 0, 0);
    assert_float_equal(b->cojob->bytes_ratio, 0, 0);
    assert_float_equal(claim->compute_ratio, 0, 0);

    /* No job is before it. */
    claim->compute = 0.01;
    b->progress.first_period = 0.1;
    assert_true(decide_run(f->d, 9000));
    assert_true(claim->compute_ratio > 1.25);
}

/* "fast" ends long before the slowest job of its stage, so it waits for the
 * iterations of "b", although "b" as a whole needs more. */
FIXTURE_TEST(an_iteration_with_time_to_spare_waits)
{
    static const struct given given[] = {
        { "a", "slow", "h0", 1000 },
        { "a", "fast", "h1", 300 },
        { "b", "j", "h1", 1500 },
    };
    struct json *json;

    give_jobs(f, given, ARRAY_SIZE(given));
    assert_true(decide_run(f->d, 1000));
    assert_true(rank(f, "b/j") < rank(f, "a/fast"));
    json = decide_explain(f->d, "a/fast");
    assert_float_equal(member(json, "urgency"), 0.3, 1e-9);
    json_destroy(json);
    give_jobs(f, given, ARRAY_SIZE(given));
    find_job(f, "a/slow")->iteration = 900;
    assert_true(decide_run(f->d, 3000));
    assert_true(rank(f, "a/fast") < rank(f, "b/j"));
}

/* The second search needs less.  The first one is 9 s old, needs 2 s alone and
 * 5 s in a network without an order. */
FIXTURE_TEST(a_late_search_goes_first)
{
    static const struct {
        const char *members, *first;
    } cases[] = {
        { ", \"retag_ms\": 0, \"aging_slowdown\": 0,"
          " \"objective\": {\"latest\": 0}",
          "b/j" },
        { ", \"retag_ms\": 0, \"aging_slowdown\": 50,"
          " \"objective\": {\"latest\": 50}",
          "b/j" },
        { ", \"retag_ms\": 0, \"aging_slowdown\": 2,"
          " \"objective\": {\"latest\": 0}",
          "a/j" },
        { ", \"retag_ms\": 0, \"aging_slowdown\": 0,"
          " \"objective\": {\"latest\": 1.5}",
          "a/j" },
    };
    static const struct given given[] = {
        { "a", "j", "h0", 2000 },
        { "b", "j", "h0", 1000 },
    };

    give_jobs(f, given, ARRAY_SIZE(given));
    find_job(f, "a/j")->stage->begin_ms -= 9000;
    find_job(f, "a/j")->stage->plain.end = 5;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {

        set_order(f, "stage", cases[i].members);
        assert_true(decide_run(f->d, 1000 + 2000 * i));
        assert_int_equal(rank(f, cases[i].first), 0);
    }
}

/* Stages of one iteration are coflows and are ordered as a whole. */
FIXTURE_TEST(stages_of_one_iteration_are_coflows)
{
    struct json *json;

    give(f, "00", (int64_t[]) { 1, 1 }, NULL);
    assert_true(decide_run(f->d, 1000));
    json = decide_explain(f->d, "a/j");
    assert_string_equal(json_string(shash_find_data(json_object(json),
                                                    "unit")), "stage");
    json_destroy(json);
}

/* What is at its end has nothing to do: it delays no job and keeps what it
 * had. */
FIXTURE_TEST(a_job_at_its_end_is_not_ordered)
{
    static const struct given given[] = {
        { "a", "x", "h0", 1000 },
        { "a", "y", "h0", 500 },
    };

    give_jobs(f, given, ARRAY_SIZE(given));
    decides(f, 1000, "a/y -/1");
    find_job(f, "a/x")->iteration = 1000;
    decides(f, 3000, "a/y 0/0 a/x -/0");
    assert_null(decide_explain(f->d, "a/x"));
}

/* "a" has made progress and needs less than "b", but no stage has begun or
 * ended before "c" does. */
FIXTURE_TEST(whole_stages_are_ordered_when_one_begins_or_ends)
{
    set_order(f, "grouper", "");
    give(f, "00", (int64_t[]){ 300, 200 }, NULL);
    decides(f, 1000, "b/j 0");
    give(f, "00", (int64_t[]){ 100, 200 }, NULL);
    decides(f, 3000, "b/j 0 a/j -/1");
    give(f, "000", (int64_t[]){ 100, 200, 150 }, NULL);
    decides(f, 5000, "a/j 0 c/j 1 b/j 2");

    give(f, "000", (int64_t[]){ 100, 50, 150 }, NULL);
    decides(f, 7000, "b/j 2");
    give(f, "000", (int64_t[]){ 100, 50, 150 },
         (int64_t[]){ 0, 0, time_wall_msec() });
    decides(f, 9000, "b/j 0");
}

FIXTURE_TEST(jobs_of_a_whole_stage_share_its_rank)
{
    static const struct given given[] = {
        { "a", "x", "h0", 400 },
        { "a", "y", "h0", 100 },
        { "b", "j", "h0", 1500 },
    };
    struct json *json, *before;

    set_order(f, "grouper", "");
    give_jobs(f, given, ARRAY_SIZE(given));
    decides(f, 1000, "a/x 0 a/y 0/0 b/j 1/1");
    json = decide_explain(f->d, "a/y");
    before = shash_find_data(json_object(json), "before");
    assert_int_equal(before->array.n, 0);
    json_destroy(json);

    find_job(f, "a/y")->override = OVERRIDE_PAUSE;
    decides(f, 3000, "a/x 0 b/j 1 a/y 2");
}

/* What others published is for jobs, or for what they exchange in one
 * iteration. */
FIXTURE_TEST(orders_of_jobs_place_jobs)
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

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {

        set_order(f, cases[i].order, ", \"retag_ms\": 0");
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

static const char *const by_metrics[] = { "early", "maif" };

FIXTURE_TEST(early_jobs_go_first)
{
    for (size_t i = 0; i < ARRAY_SIZE(by_metrics); i++) {

        set_order(f, by_metrics[i], "");
        give(f, "00", (int64_t[]) { 100, 300 }, NULL);
        let_converge(f, "a/j");
        find_job(f, "b/j")->iteration = 1;
        decides(f, 10000 * (i + 1), "b/j 0 a/j -/1");
        decide_set_policy(f->d, f->stage);
        decides(f, 10000 * (i + 1) + 5000, "a/j 0");
    }
}

/* It fetches its first parameters, but not for ever. */
FIXTURE_TEST(a_job_before_its_first_stage_is_early)
{
    struct policy *policy = set_order(f, "early",
                                      ", \"early\": {\"boot_s\": 60}");
    struct cojob *cojob;
    struct job *job;

    cluster_intent_begin(f->c);
    cojob = cluster_put_cojob(f->c, "a", 1, true);
    job = cojob_put_job(f->c, cojob, "j", true, f->began, 125000);
    job_put_worker(f->c, job, "h0", ROLE_WORKER);
    cluster_intent_end(f->c);
    job->progress.curve.begin = 1;
    decides(f, 1000, "a/j 0/0");
    assert_true(decide_run(f->d, 62000));
    assert_int_equal(level(f, "a/j"), policy->n_levels - 1);
}

/* Also against an old order that the estimate likes better. */
FIXTURE_TEST(early_stages_weigh_more)
{
    give(f, "00", (int64_t[]) { 100, 110 }, NULL);
    find_job(f, "a/j")->model_bytes = 130000;
    decides(f, 1000, "a/j 0");
    set_order(f, "stage+early", "");
    let_converge(f, "a/j");
    decides(f, 3000, "b/j 0");
}

/* Weights of iterations follow the progress more often. */
FIXTURE_TEST(early_improvement_is_believed_for_a_period)
{
    static const struct {
        const char *order;
        int period_ms;
    } cases[] = { { "maif", 3000 }, { "early", 200 }, { "stage+early", 200 } };

    give(f, "00", (int64_t[]) { 100, 300 }, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        long long now = 10000 * i + 1000;

        set_order(f, cases[i].order, ", \"early\": {\"period_s\": 3}");
        assert_true(decide_run(f->d, now));
        assert_false(decide_run(f->d, now + cases[i].period_ms - 100));
        assert_true(decide_run(f->d, now + cases[i].period_ms));
    }
}

/* But what is news is looked at soon, however much of it there is. */
FIXTURE_TEST(a_metric_makes_a_new_order_soon)
{
    set_order(f, "maif", "");
    give(f, "00", (int64_t[]) { 100, 300 }, NULL);
    assert_true(decide_run(f->d, 1000));
    f->c->samples++;
    assert_false(decide_run(f->d, 1100));
    f->c->samples++;
    assert_false(decide_run(f->d, 1300));
    assert_true(decide_run(f->d, 1350));
    assert_false(decide_run(f->d, 1900));

    set_order(f, "stage", ", \"refresh_ms\": 500");
    assert_true(decide_run(f->d, 3000));
    f->c->samples++;
    assert_false(decide_run(f->d, 3400));
}

/* A job counts as one iteration of the bytes that it has moved if neither its
 * iterations nor its model are known: it goes first before it has moved much,
 * then behind a smaller search, and before it again once it has aged. */
FIXTURE_TEST(a_job_of_unknown_size_is_not_last_for_ever)
{
    static const struct {
        uint64_t moved;
        int64_t age_s;
        int rank;
    } cases[] = {
        { 1000, 0, 0 },
        { 500000000, 0, 1 },
        { 500000000, 10, 1 },
        { 500000000, 100, 0 },
    };
    struct job *job;

    give(f, "00", (int64_t[]) { 1000, 1000 }, NULL);
    find_job(f, "a/j")->iteration = 1;
    job = find_job(f, "b/j");
    job->model_bytes = 0;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct job_traffic *t = job_get_traffic(
            job, cluster_get_host(f->c, "h0"));

        t->bytes[DIR_TX] = cases[i].moved;
        job->stage->begin_ms = time_msec() - 1000 * cases[i].age_s;
        assert_true(decide_run(f->d, 10000 * (i + 1)));
        assert_int_equal(rank(f, "b/j"), cases[i].rank);
        assert_int_equal(level(f, "b/j"), cases[i].rank);
    }
}
