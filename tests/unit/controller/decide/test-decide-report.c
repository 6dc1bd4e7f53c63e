/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "controller/decide/decide.h"
#include "controller/decide/stage-history.h"
#include "controller/model/cluster.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "policies/policy.h"
#include "sim/workload/workload-recording.h"
#include "sim/workload/workload.h"
#include "tests/unit/controller/decide/decide-world.h"
#include "tests/unit/unit-test.h"
#include "timeval.h"

#define WAIT_S 20

static const char *
kind_of(const struct json *json)
{
    return json_string(shash_find_data(json_object(json), "bound_kind"));
}

/* Returns what decided the rank or the order that 'json' is about. */
static const char *
ranked_by(const struct json *json)
{
    return json_string(shash_find_data(json_object(json), "ranked_by"));
}

/* Checks what decided the order in force, and how often each did. */
static void
assert_decided(struct fixture *f, const char *now, int key, int permutation,
               int rule)
{
    struct json *json = json_object_create(), *counts;

    decide_status(f->d, json);
    counts = shash_find_data(json_object(json), "ranked");
    assert_string_equal(ranked_by(json), now);
    assert_true(member(counts, "key") == key);
    assert_true(member(counts, "permutation") == permutation);
    assert_true(member(counts, "rule") == rule);
    json_destroy(json);
}

FIXTURE_TEST(counts_what_decided_orders)
{
    struct json *json, *order;

    assert_true(decide_run(f->d, 1000));
    assert_decided(f, "none", 0, 0, 0);
    give(f, "00", (int64_t[]){ 300, 200 }, NULL);
    assert_true(decide_run(f->d, 3000));
    assert_true(decide_run(f->d, 5000));
    assert_decided(f, "key", 2, 0, 0);

    find_job(f, "a/j")->override = OVERRIDE_PIN;
    assert_true(decide_run(f->d, 7000));
    assert_decided(f, "key", 3, 0, 0);
    json = decide_explain(f->d, "a/j");
    assert_string_equal(ranked_by(json), "override");
    json_destroy(json);
    json = decide_explain(f->d, "b/j");
    assert_string_equal(ranked_by(json), "key");
    json_destroy(json);

    set_order(f, "grouper", "");
    assert_true(decide_run(f->d, 9000));
    assert_true(decide_run(f->d, 11000));
    assert_decided(f, "permutation", 3, 1, 0);
    json = decide_order_to_json(f->d);
    order = shash_find_data(json_object(json), "order");
    assert_string_equal(ranked_by(order->array.elems[0]), "permutation");
    json_destroy(json);

    decide_set_policy(f->d, f->fair);
    assert_true(decide_run(f->d, 13000));
    assert_decided(f, "rule", 3, 1, 1);
}

/* Decides until a bound of jobs that iterate is ready. */
static void
decide_with_bound(struct fixture *f)
{
    double until = clock_monotonic_s() + WAIT_S;
    long long now = 1000;
    bool ready;

    do {
        struct json *json;

        assert_true(clock_monotonic_s() < until);
        nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000 * 1000 }, NULL);
        decide_touch(f->d);
        decide_run(f->d, ++now);
        json = decide_order_to_json(f->d);
        ready = strcmp(kind_of(json), "none") != 0;
        json_destroy(json);
    } while (!ready);
}

FIXTURE_TEST(tells_the_order_and_its_quality)
{
    struct json *json, *order, *demand;

    give(f, "00", (int64_t[]) { 300, 100 }, NULL);
    assert_true(decide_run(f->d, 1000));
    json = decide_order_to_json(f->d);
    order = shash_find_data(json_object(json), "order");
    assert_int_equal(order->array.n, 2);
    /* 125 kB at 1 Gbit/s are 1 ms, so 0.1 s and 0.4 s. */
    assert_float_equal(member(order->array.elems[0], "remaining_s"), 0.1,
                       1e-9);
    assert_true(member(order->array.elems[0], "iterations") == 100);
    assert_true(member(order->array.elems[1], "iterations_left") == 300);
    assert_true(member(order->array.elems[1], "weight") == 1);
    assert_in_range(member(order->array.elems[1], "age_s"), 0, 60);
    demand = shash_find_data(json_object(order->array.elems[1]), "demand");
    assert_float_equal(member(demand, "h0:tx"), 0.3, 1e-9);
    assert_string_equal(kind_of(json), "none");
    assert_true(member(json, "bound_s") == 0 && member(json, "gap") == 1);
    json_destroy(json);

    decide_with_bound(f);
    json = decide_order_to_json(f->d);
    assert_true(member(json, "bound_s") >= 0.499);
    assert_true(member(json, "estimate_s") >= 0.5 - 1e-9);
    assert_true(member(json, "bound_s") >= member(json, "bound_strict_s"));
    assert_true(member(json, "gap") >= 1 && member(json, "gap") < 1.5);
    assert_string_equal(kind_of(json), "fluid");
    json_destroy(json);
    json = decide_explain(f->d, "b/j");
    assert_string_equal(kind_of(json), "fluid");
    json_destroy(json);
}

FIXTURE_TEST(a_stage_without_demand_has_no_bottleneck)
{
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

/* What has ended is a workload for the simulator; what runs is not yet. */
FIXTURE_TEST(stages_can_be_replayed)
{
    struct stage_bytes *b;
    struct workload *w;
    struct json *json;
    char *text;

    give(f, "001", (int64_t[]) { 300, 100, 1 }, NULL);
    assert_true(decide_run(f->d, 1000));
    b = stage_get_bytes(&find_job(f, "a/j")->stage->moved,
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

/* Gives the rung of search "a" that began 'ms' after all others. */
static void
give_rung(struct fixture *f, int rung, int64_t ms, int64_t iterations,
          bool ended)
{
    struct cojob *cojob;
    struct stage *stage;
    struct job *job;

    cluster_intent_begin(f->c);
    cojob = cluster_put_cojob(f->c, "a", 1, true);
    job = cojob_put_job(f->c, cojob, "j", true, 1000, 125000);
    job_put_worker(f->c, job, "h0", ROLE_WORKER);
    stage = cojob_put_stage(f->c, cojob, rung, f->began + ms,
                            ended ? f->began + ms + 500 : 0, iterations);
    stage_put_job(stage, job);
    cluster_intent_end(f->c);
}

/* Checks the row of the 'i'th stage that has ended. */
static void
assert_ended(struct fixture *f, size_t i, int64_t iterations, double compute)
{
    struct json *json = stage_history_to_json(f->c);
    struct json *rows = shash_find_data(json_object(json), "stages");

    assert_true(i < rows->array.n);
    assert_true(member(rows->array.elems[i], "iterations") == iterations);
    assert_float_equal(member(rows->array.elems[i], "compute_s"), compute,
                       1e-9);
    json_destroy(json);
}

/* An iteration takes 20 ms without competitors, 1 ms for its transfer.  A job
 * may go on beyond the end of its stage. */
FIXTURE_TEST(an_ended_stage_has_its_iterations_and_computing)
{
    struct job *job;

    give_rung(f, 0, 0, 300, false);
    job = find_job(f, "a/j");
    job->progress.period = job->progress.first_period = 0.02;
    assert_true(decide_run(f->d, 1000));
    job->iteration = 310;
    give_rung(f, 0, 0, 300, true);
    assert_ended(f, 0, 300, 0.019);

    give_rung(f, 1, 1000, 500, false);
    job->progress.period = job->progress.first_period = 0.03;
    assert_true(decide_run(f->d, 3000));
    job->iteration = 420;
    give_rung(f, 1, 1000, 500, true);
    assert_ended(f, 1, 110, 0.029);
}

/* Of its 500 ms, the job was in bursts for 440 ms at its busier host, in 300
 * iterations: that leaves 0.2 ms for computing.  At the other host it was
 * silent for longer, because it waited for the busier one. */
FIXTURE_TEST(an_ended_stage_has_what_its_jobs_did)
{
    struct stage_part *part;
    struct json *json, *job;
    char *text;

    give_rung(f, 0, 0, 300, false);
    part = stage_get_part(find_job(f, "a/j")->stage, "j");
    part->devices = 3;
    *stage_get_bytes(&part->moved, cluster_get_host(f->c, "h0")) =
        (struct stage_bytes){ .host = cluster_get_host(f->c, "h0"),
                              .bytes = { 9000, 4 },
                              .busy = 0.44,
                              .waited = 0.3,
                              .gpus = 4 };
    *stage_get_bytes(&part->moved, cluster_get_host(f->c, "h1")) =
        (struct stage_bytes){ .host = cluster_get_host(f->c, "h1"),
                              .bytes = { 0, 8000 },
                              .busy = 0.1,
                              .waited = 0.05,
                              .gpus = 2 };
    find_job(f, "a/j")->iteration = 300;
    give_rung(f, 0, 0, 300, true);
    assert_ended(f, 0, 300, 0.0002);

    json = stage_history_to_json(f->c);
    job = shash_find_data(json_object(json), "stages");
    job = shash_find_data(json_object(job->array.elems[0]), "jobs");
    text = json_to_string(job, JSSF_SORT);
    assert_is(text, "[{\"busy_s\":0.44,\"bytes\":{\"h0:rx\":4,\"h0:tx\":9000,"
                    "\"h1:rx\":8000},\"devices\":3,\"gpus\":6,"
                    "\"hosts\":2,"
                    "\"job\":\"j\",\"waited_s\":0.3}]");
    json_destroy(json);
}

/* An exchange, then, without computing. */
FIXTURE_TEST(an_ended_stage_without_reports_has_one_iteration)
{
    give_rung(f, 0, 0, 300, false);
    assert_true(decide_run(f->d, 1000));
    give_rung(f, 0, 0, 300, true);
    assert_ended(f, 0, 1, 0);
}

FIXTURE_TEST(explains_a_place)
{
    struct json *json, *before;

    set_order(f, "work", "");
    give(f, "00", (int64_t[]) { 300, 100 }, NULL);
    assert_true(decide_run(f->d, 1000));
    assert_null(decide_explain(f->d, "a/none"));
    json = decide_explain(f->d, "a/j");
    assert_true(member(json, "rank") == 1);
    assert_true(member(json, "level") == 1);
    assert_true(member(json, "iterations_left") == 300);
    assert_float_equal(member(json, "completion_s"), 0.4, 1e-9);
    assert_float_equal(member(json, "alone_s"), 0.3, 1e-9);
    assert_float_equal(member(json, "slack_s"), 0.4 - 0.85 * 0.3, 1e-9);
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
FIXTURE_TEST(the_certificate_is_of_the_network_alone)
{
    struct json *json;

    set_order(f, "work", "");
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
FIXTURE_TEST(who_has_always_waited_is_foreseen_by_ports)
{
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

    /* Its host sees it silent for 9 ms at a time.  Alone it needs 3 s, and it
     * does no iteration in the 0.1 s in which the port is full. */
    t = shash_first(&find_job(f, "a/j")->traffic)->data;
    t->burst_period = 0.05;
    t->burst_duty = 0.82;
    assert_true(decide_run(f->d, 5000));
    assert_float_equal(explained(f, "a/j", "completion_s"), 3.1, 1e-9);

    /* It was first for some time. */
    find_job(f, "a/j")->progress.first_period = 0.02;
    assert_true(decide_run(f->d, 7000));
    assert_float_equal(explained(f, "a/j", "completion_s"), 6.1, 1e-9);
}

FIXTURE_TEST(who_shares_waits_for_all)
{
    decide_set_policy(f->d, f->fair);
    give(f, "001", (int64_t[]) { 300, 100, 100 }, NULL);
    assert_true(decide_run(f->d, 1000));
    assert_true(find_job(f, "a/j")->progress.waits);
    assert_true(find_job(f, "b/j")->progress.waits);
    assert_false(find_job(f, "c/j")->progress.waits);
}

/* It moves bytes for ever, and its iterations are not counted. */
FIXTURE_TEST(an_unknown_number_of_iterations_is_not_reported)
{
    struct json *json, *row;

    for (int round = 0; round < 2; round++) {
        give(f, "0", (int64_t[]){ 100 }, NULL);
        find_job(f, "a/j")->moved = round ? 2e6 : 0;
        assert_true(decide_run(f->d, 1000 + 2000 * round));
        json = decide_order_to_json(f->d);
        row = shash_find_data(json_object(json), "order");
        row = row->array.elems[0];
        assert_int_equal(!shash_find(json_object(row), "iterations_left"),
                         round);
        assert_int_equal(!shash_find(json_object(row), "completion_s"), round);
        json_destroy(json);
        json = decide_explain(f->d, "a/j");
        assert_int_equal(!shash_find(json_object(json), "iterations_left"),
                         round);
        assert_int_equal(!shash_find(json_object(json), "completion_s"),
                         round);
        json_destroy(json);
    }
}
