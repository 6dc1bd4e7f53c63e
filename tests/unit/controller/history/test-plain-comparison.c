/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/history/plain-comparison.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/shash.h"
#include "policies/policy.h"
#include "tests/unit/unit-test.h"
#include "util.h"

/* A stage of an hour's recording that began at 0 and took two hosts' links. */
#define STAGE(COJOB, ENDED, SECONDS)                           \
    "{\"cojob\": \"" COJOB "\", \"rung\": 0, \"began\": 1000," \
    " \"ended\": " ENDED ", \"policy\": \"stage\","            \
    " \"demand\": {\"h0:tx\": " SECONDS ", \"h1:rx\": " SECONDS "}}"

static struct policy *
read_policy(const char *order)
{
    char *text = xasprintf("{\"name\": \"p\", \"order\": \"%s\","
                           " \"min_share\": 0}",
                           order);
    struct policy *policy;

    assert_null(policy_from_string("p", text, &policy));
    free(text);
    return policy;
}

/* Returns the answer after 'text' was asked about. */
static struct json *
ask(struct plain_comparison *pc, const char *text, int64_t newest)
{
    struct policy *policy = read_policy("stage");

    assert_true(plain_comparison_is_due(pc, newest));
    plain_comparison_run(pc, json_from_string(text), newest, policy);
    while (plain_comparison_is_running(pc)) {
        assert_false(plain_comparison_is_due(pc, newest + 1));
        plain_comparison_wait(pc, newest);
        poll_block();
        plain_comparison_run(pc, NULL, newest, policy);
    }
    policy_destroy(policy);
    return plain_comparison_to_json(pc);
}

static double
number(const struct json *json, const char *name)
{
    const struct json *m = shash_find_data(json_object(json), name);

    assert_non_null(m);
    return m->type == JSON_INTEGER ? m->integer : m->real;
}

static void
assert_near(double a, double b)
{
    if (a < b - 1e-6 || a > b + 1e-6) {
        fail_msg("%.9g is not %.9g", a, b);
    }
}

/* 1 s and 3 s of the same ports: in order they take 1 s and 4 s, by sharing
 * 2 s and 4 s. */
static void
the_order_is_compared_with_no_stagecoach(void **state OVS_UNUSED)
{
    struct plain_comparison *pc = plain_comparison_create();
    struct json *json =
        ask(pc,
            "{\"stages\": [" STAGE("a", "3000", "1") ", " STAGE("b", "6000",
                                                                "3") "]}",
            6000);

    assert_near(number(json, "stages"), 2);
    assert_near(number(json, "measured_mean_s"), 3.5);
    assert_near(number(json, "policy_mean_s"), 2.5);
    assert_near(number(json, "plain_mean_s"), 3);
    assert_near(number(json, "ratio"), 2.5 / 3);
    json_destroy(json);
    assert_false(plain_comparison_is_due(pc, 6000)); /* Nothing new, */
    assert_false(plain_comparison_is_due(pc, 7000)); /* and not yet. */
    plain_comparison_destroy(pc);
}

static void
nothing_that_ended_is_no_answer(void **state OVS_UNUSED)
{
    struct plain_comparison *pc = plain_comparison_create();
    struct json *json = ask(pc, "{\"stages\": []}", 0);

    assert_int_equal(shash_count(json_object(json)), 0);
    json_destroy(json);
    assert_false(plain_comparison_is_due(pc, 0));
    assert_true(plain_comparison_is_due(pc, 1));
    plain_comparison_destroy(pc);
}

/* The child cannot read it. */
static void
a_simulation_that_fails_is_no_answer(void **state OVS_UNUSED)
{
    struct plain_comparison *pc = plain_comparison_create();
    struct json *json =
        ask(pc, "{\"stages\": [{\"began\": 0, \"ended\": 9}]}", 9);

    assert_int_equal(shash_count(json_object(json)), 0);
    json_destroy(json);
    plain_comparison_destroy(pc);
}

/* The simulator is beside the tests: ../../cli/stagecoach. */
static int
set_path(void **state OVS_UNUSED)
{
    char exe[4096];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    char *path;

    assert_true(n > 0);
    exe[n] = '\0';
    *strrchr(exe, '/') = '\0';
    path = xasprintf("%s/../../cli:%s", exe, getenv("PATH"));
    setenv("PATH", path, 1);
    free(path);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_compared_with_no_stagecoach),
        cmocka_unit_test(nothing_that_ended_is_no_answer),
        cmocka_unit_test(a_simulation_that_fails_is_no_answer),
    };

    return cmocka_run_group_tests(tests, set_path, NULL);
}
