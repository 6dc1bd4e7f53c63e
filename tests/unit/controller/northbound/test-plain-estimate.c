/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "controller/decide/decide.h"
#include "controller/northbound/views/status-report.h"
#include "policies/policy.h"
#include "tests/unit/controller/decide/decide-world.h"
#include "tests/unit/unit-test.h"

/* Stages that need 100, 200 and 400 ms of one port complete after 100, 300 and
 * 700 ms in the order, and after 300, 500 and 700 ms if all share. */
static void
sharing_delays_the_short_stages(void **state)
{
    struct fixture *f = *state;
    struct policy *policy = set_order(f, "stage", ", \"aging_slowdown\": 0");
    double order_s, plain_s;

    give(f, "000", (int64_t[]){ 100, 200, 400 }, NULL);
    assert_true(decide_run(f->d, 1000));
    status_estimate_plain(decide_last(f->d), &order_s, &plain_s);
    assert_float_equal(order_s, 1.1 / 3, 1e-3);
    assert_float_equal(plain_s, 1.5 / 3, 1e-3);
    decide_set_policy(f->d, f->stage);
    policy_destroy(policy);
}

static void
an_empty_order_takes_no_time(void **state)
{
    struct fixture *f = *state;
    double order_s, plain_s;

    decide_run(f->d, 1000);
    status_estimate_plain(decide_last(f->d), &order_s, &plain_s);
    assert_float_equal(order_s, 0, 0);
    assert_float_equal(plain_s, 0, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sharing_delays_the_short_stages),
        TEST(an_empty_order_takes_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
