/* SPDX-License-Identifier: Apache-2.0 */

#include "order/problem/problem.h"
#include "order/result/hysteresis.h"
#include "tests/unit/unit-test.h"

UNIT_TEST(hysteresis_only_swaps_back_what_is_cheap)
{
    struct order_problem *p = order_problem_create(1);
    int order[] = { 2, 1, 0 };
    int old_rank[] = { 0, 1, 2 };

    for (int i = 0; i < 3; i++) {
        order_problem_add_demand(p, order_problem_add_stage(p, 1, i), 0,
                                 i == 2 ? 1 : 10 - i * 0.01);
    }
    assert_true(hysteresis_apply(p, NULL, old_rank, 0.02, order));
    assert_int_equal(order[0], 2);      /* 1 s before 10 s stays. */
    assert_int_equal(order[1], 0);      /* 10.00 s and 9.99 s go back. */
    assert_int_equal(order[2], 1);
    order_problem_destroy(p);
}

/* The last one went first, which no swap of neighbours undoes for free. */
UNIT_TEST(hysteresis_keeps_an_order_that_is_as_good)
{
    struct order_problem *p = order_problem_create(2);
    int order[] = { 3, 2, 0, 1 };
    int old_rank[] = { 0, 1, 2, -1 };

    for (int i = 0; i < 3; i++) {
        int s = order_problem_add_stage(p, 1, i);

        order_problem_add_demand(p, s, 0, i == 1 ? 1.2 : 1);
    }
    order_problem_add_demand(p, order_problem_add_stage(p, 1, 3), 1, 1);
    assert_true(hysteresis_apply(p, NULL, old_rank, 0.05, order));
    assert_int_equal(order[0], 3);
    assert_int_equal(order[1], 0);
    assert_int_equal(order[2], 1);
    assert_int_equal(order[3], 2);
    order_problem_destroy(p);
}
