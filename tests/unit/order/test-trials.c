/* SPDX-License-Identifier: Apache-2.0 */

#include "order/problem/trials.h"

#include <math.h>

#include "order/order.h"
#include "tests/unit/assert-near.h"

/* Each metric, in the order of arrival, and whether its trial goes on if half
 * or a third of them do. */
UNIT_TEST(keeps_the_best_of_those_that_have_arrived)
{
    static const struct {
        double metric;
        bool half, third;
    } cases[] = {
        { 5, true, true },     { 4, false, false }, { 6, true, true },
        { NAN, false, false }, { 5, true, false },  { 7, true, true },
        { 5.5, true, false },  { 6.5, true, true }, { 6.4, true, true },
    };
    struct trial_rung half = { .n = 0 }, third = { .n = 0 };

    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        assert_int_equal(trial_rung_judge(&half, cases[i].metric, 2),
                         cases[i].half);
        assert_int_equal(trial_rung_judge(&third, cases[i].metric, 3),
                         cases[i].third);
    }
    for (size_t i = 1; i < half.n; i++) {
        assert_true(half.metrics[i - 1] >= half.metrics[i]);
    }
    trial_rung_uninit(&half);
    trial_rung_uninit(&third);
}

UNIT_TEST(expects_fewer_trials_at_each_rung)
{
    static const struct trial_rung rungs[] = { { 3 }, { 9 }, { 27 } };

    assert_near(trials_after(rungs, 3, 3), 6 / 3. + 18 / 9.);
    assert_near(trials_after(&rungs[1], 2, 3), 18 / 3.);
    assert_near(trials_after(&rungs[2], 1, 3), 0);
}

/* Three have been at the rung with 1, 2 and 3, and as long as two others are
 * predicted three of six go on. */
UNIT_TEST(promises_by_chance_over_work)
{
    double metrics[] = { 3, 2, 1 };
    struct trial_rung rung = { .iterations = 4, .n = 3, .metrics = metrics };
    struct trial_rung empty = { .iterations = 9 };
    struct trial trials[] = {
        { &rung, 1, true, 3, 1 },   { &rung, 1, true, 2, 1 },
        { &rung, 2, false },        { &empty, 4, true, 9, 1 },
        { &rung, 1, true, -99, 1 },
    };

    double first = (5 * erfc((2 - 3) / sqrt(2)) / 2 + 1) / 7;

    trials_promise(trials, 5, 2);
    assert_near(trials[0].promise, 1);
    assert_near(trials[1].promise, pow(1. / 2 / first, 4));
    assert_near(trials[2].promise, pow(1. / 2 / first, 4) / 2);
    assert_near(trials[3].promise, pow(1. / 2 / first, 4) / 4 * 3 / 2);
    assert_near(trials[4].promise, pow(1. / 7 / first, 4));
}

/* Adds an iteration of weight 1 that needs 'seconds' of both ports. */
static void
add(struct order_problem *op, double seconds, size_t group)
{
    int s = order_problem_add_stage(op, 1, op->n_stages);

    order_problem_add_demand(op, s, 0, seconds);
    order_problem_add_demand(op, s, 1, seconds);
    order_problem_set_traits(op, s, &(struct order_traits){ .group = group });
}

/* The order of iterations is 0, 2, 4, 1, 3: those of group 7 follow its first
 * one, and have its level. */
UNIT_TEST(a_group_has_one_level)
{
    static const int order[] = { 0, 2, 4, 1, 3 }, level[] = { 0, 2, 1, 3, 1 };
    struct order_options options = ORDER_OPTIONS_INIT(ORDER_STAGE);
    struct order_problem *op = order_problem_create(2);
    struct order_result result;

    add(op, 1, 0);
    add(op, 3, 0);
    add(op, 2, 7);
    add(op, 4, 0);
    add(op, 5, 7);
    options.iterations = true;
    order_result_init(&result);
    order_compute(&options, op, &result);
    for (size_t i = 0; i < N_ELEMENTS(order); i++) {
        assert_int_equal(result.order[i], order[i]);
        assert_int_equal(result.level[i], level[i]);
    }
    order_result_uninit(&result);
    order_problem_destroy(op);
}
