/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "controller/history/fair-comparison.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/shash.h"
#include "policies/policy.h"
#include "util.h"

/* A stage of an hour's recording that began at 0 and took two hosts' links. */
#define STAGE(COJOB, ENDED, SECONDS)                                    \
    "{\"cojob\": \"" COJOB "\", \"rung\": 0, \"began\": 1000,"          \
    " \"ended\": " ENDED ", \"policy\": \"stage\","                     \
    " \"demand\": {\"h0:tx\": " SECONDS ", \"h1:rx\": " SECONDS "}}"

static struct policy *
read_policy(const char *order)
{
    char *text = xasprintf("{\"name\": \"p\", \"order\": \"%s\","
                           " \"min_share\": 0}", order);
    struct policy *policy;

    assert_null(policy_from_string("p", text, &policy));
    free(text);
    return policy;
}

/* Returns the answer after 'text' was asked about. */
static struct json *
ask(struct fair_comparison *fc, const char *text, int64_t newest)
{
    struct policy *policy = read_policy("stage");

    assert_true(fair_comparison_is_due(fc, newest));
    fair_comparison_run(fc, json_from_string(text), newest, policy);
    while (fair_comparison_is_running(fc)) {
        assert_false(fair_comparison_is_due(fc, newest + 1));
        fair_comparison_wait(fc, newest);
        poll_block();
        fair_comparison_run(fc, NULL, newest, policy);
    }
    policy_destroy(policy);
    return fair_comparison_to_json(fc);
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
the_order_is_compared_with_fair_sharing(void **state OVS_UNUSED)
{
    struct fair_comparison *fc = fair_comparison_create();
    struct json *json = ask(fc, "{\"stages\": [" STAGE("a", "3000", "1")
                            ", " STAGE("b", "6000", "3") "]}", 6000);

    assert_near(number(json, "stages"), 2);
    assert_near(number(json, "measured_mean_s"), 3.5);
    assert_near(number(json, "policy_mean_s"), 2.5);
    assert_near(number(json, "fair_mean_s"), 3);
    assert_near(number(json, "ratio"), 2.5 / 3);
    json_destroy(json);
    assert_false(fair_comparison_is_due(fc, 6000));      /* Nothing new, */
    assert_false(fair_comparison_is_due(fc, 7000));      /* and not yet. */
    fair_comparison_destroy(fc);
}

static void
nothing_that_ended_is_no_answer(void **state OVS_UNUSED)
{
    struct fair_comparison *fc = fair_comparison_create();
    struct json *json = ask(fc, "{\"stages\": []}", 0);

    assert_int_equal(shash_count(json_object(json)), 0);
    json_destroy(json);
    assert_false(fair_comparison_is_due(fc, 0));
    assert_true(fair_comparison_is_due(fc, 1));
    fair_comparison_destroy(fc);
}

/* The child cannot read it. */
static void
a_simulation_that_fails_is_no_answer(void **state OVS_UNUSED)
{
    struct fair_comparison *fc = fair_comparison_create();
    struct json *json = ask(
        fc, "{\"stages\": [{\"began\": 0, \"ended\": 9}]}", 9);

    assert_int_equal(shash_count(json_object(json)), 0);
    json_destroy(json);
    fair_comparison_destroy(fc);
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
        cmocka_unit_test(the_order_is_compared_with_fair_sharing),
        cmocka_unit_test(nothing_that_ended_is_no_answer),
        cmocka_unit_test(a_simulation_that_fails_is_no_answer),
    };

    return cmocka_run_group_tests(tests, set_path, NULL);
}
