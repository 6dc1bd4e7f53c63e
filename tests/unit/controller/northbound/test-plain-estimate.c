/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/decide.h"
#include "controller/model/cluster.h"
#include "controller/northbound/views/status-report.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "tests/unit/controller/decide/decide-world.h"
#include "tests/unit/unit-test.h"

static void
assert_compared(struct json *json, const char *name, double seconds)
{
    assert_float_equal(member(json, "stages"), 2, 0);
    assert_float_equal(member(json, name), seconds, 0.05);
    assert_float_equal(member(json, "plain_mean_s"), 4, 1e-9);
    assert_float_equal(member(json, "ratio"), member(json, name) / 4, 1e-9);
    json_destroy(json);
}

static void
assert_empty(struct json *json)
{
    assert_int_equal(shash_count(json_object(json)), 0);
    json_destroy(json);
}

/* Stages that need 1, 2 and 4 s of one port end in that order.  The first ones
 * take 5 and 3 s without an order; the time of the third one is not known. */
FIXTURE_TEST(stages_are_compared_with_the_plain_network)
{
    int64_t ends[] = { f->began + 4000, f->began + 2000, f->began + 9000 };
    const struct plain_times plain[] = { { .id = 1, .before = 7, .end = 12 },
                                         { .id = 2, .end = 3 },
                                         { .id = 0 } };
    const char *names[] = { "a/j", "b/j", "c/j" };
    struct job *job;

    set_order(f, "stage", ", \"aging_slowdown\": 0");
    give(f, "000", (int64_t[]){ 1000, 2000, 4000 }, NULL);
    assert_true(decide_run(f->d, 1000));
    assert_empty(status_predicted(decide_last(f->d)));
    assert_empty(status_gain(f->c));
    job = find_job(f, "a/j");
    /* The simulation that the first decision began may replace them once. */
    for (int i = 0; i < 2 && job->stage->plain.id != plain[0].id; i++) {
        for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
            find_job(f, names[k])->stage->plain = plain[k];
        }
        decide_touch(f->d);
        assert_true(decide_run(f->d, 1400));
    }
    assert_compared(status_predicted(decide_last(f->d)), "order_mean_s", 2);
    give(f, "000", (int64_t[]){ 1000, 2000, 4000 }, ends);
    assert_compared(status_gain(f->c), "measured_mean_s", 3);
}
