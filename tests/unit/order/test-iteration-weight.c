/* SPDX-License-Identifier: Apache-2.0 */

#include "order/order.h"
#include "order/problem/iteration-weight.h"
#include "tests/unit/unit-test.h"

/* Returns the first index in the order of the iterations in 'op', which it
 * destroys. */
static int
serve_first(struct order_problem *op)
{
    struct order_options options = ORDER_OPTIONS_INIT(ORDER_STAGE);
    struct order_result result;
    int first;

    options.iterations = true;
    order_result_init(&result);
    order_compute(&options, op, &result);
    first = result.order[0];
    order_result_uninit(&result);
    order_problem_destroy(op);
    return first;
}

/* Returns what decides the order of iterations at 'now' of 'n' jobs that need
 * more than a second of a port each and of one that needs a second of all
 * ports. */
static enum order_decider
decider_of(int n, double now, struct order_result *result)
{
    struct order_options options = ORDER_OPTIONS_INIT(ORDER_STAGE);
    struct order_problem *op = order_problem_create(n);
    enum order_decider decider;

    options.iterations = true;
    op->now = now;
    for (int s = 0; s <= n; s++) {
        order_problem_add_stage(op, 1, s);
        for (int p = 0; p < n; p++) {
            order_problem_add_demand(op, s, p, s == n ? 1 : s == p ? 1.01 : 0);
        }
    }
    order_compute(&options, op, result);
    decider = result->decider;
    assert_int_equal(result->order[0] == n, decider == ORDER_BY_KEY);
    order_problem_destroy(op);
    return decider;
}

/* The wide job has the smallest key.  If it goes first, all others end at 2.01
 * instead of 1.01 s.  A key that was good is compared again a second later. */
UNIT_TEST(the_permutation_decides_where_the_key_costs_much)
{
    static const struct {
        int n;
        double now;
        enum order_decider decider;
    } cases[] = {
        { 1, 0, ORDER_BY_KEY },         { 4, 0.9, ORDER_BY_KEY },
        { 4, 1, ORDER_BY_PERMUTATION }, { 4, 1.1, ORDER_BY_PERMUTATION },
        { 1, 2, ORDER_BY_KEY },         { 4, 0, ORDER_BY_PERMUTATION },
    };
    struct order_result result;

    order_result_init(&result);
    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        assert_int_equal(decider_of(cases[i].n, cases[i].now, &result),
                         cases[i].decider);
    }
    order_result_uninit(&result);
}

/* A search of one job, which needs one port. */
struct search {
    double seconds;             /* Of an iteration. */
    int iterations;             /* Left. */
};

/* Returns the index of the search that goes first. */
static int
first_of(struct search a, struct search b)
{
    const struct search searches[] = { a, b };
    struct order_problem *op = order_problem_create(1);

    for (int s = 0; s < 2; s++) {
        double left = searches[s].seconds * searches[s].iterations;
        struct iteration_need need = { 1, left, left };

        order_problem_add_stage(
            op, iteration_weight(&need, left, searches[s].seconds), s);
        order_problem_add_demand(op, s, 0, searches[s].seconds);
    }
    return serve_first(op);
}

UNIT_TEST(the_search_that_needs_least_goes_first)
{
    assert_int_equal(first_of((struct search) { 2, 10 },
                              (struct search) { 1, 19 }), 1);
    assert_int_equal(first_of((struct search) { 2, 10 },
                              (struct search) { 1, 21 }), 0);
    assert_int_equal(first_of((struct search) { 1, 20 },
                              (struct search) { 30, 1 }), 0);
}

/* The second search needs 12 s, the first 10 s. */
UNIT_TEST(splitting_an_iteration_gains_nothing)
{
    for (int parts = 1; parts <= 1000; parts *= 10) {
        assert_int_equal(first_of((struct search) { 1, 10 },
                                  (struct search) { 2.0 / parts, 6 * parts }),
                         0);
    }
}

UNIT_TEST(joining_iterations_gains_nothing)
{
    assert_int_equal(first_of((struct search) { 1, 10 },
                              (struct search) { 12, 1 }), 0);
}

UNIT_TEST(needless_bytes_gain_nothing)
{
    for (double factor = 1; factor < 10; factor *= 1.5) {
        assert_int_equal(first_of((struct search) { 1, 10 },
                                  (struct search) { 2 * factor, 6 }), 0);
    }
}

/* The weight is the weight of the search, not a division by zero. */
UNIT_TEST(unknown_work_counts_as_all_of_it)
{
    struct iteration_need need = { .weight = 3, .slowest = 10 };

    assert_true(iteration_weight(&need, 10, 1) == 3);
    need.work = 5;
    assert_true(iteration_weight(&need, 10, 0) == 3);
    assert_true(iteration_weight(&need, 10, 1) < 3);
}

UNIT_TEST(a_job_with_time_to_spare_has_less_weight)
{
    struct iteration_need need = { .weight = 1, .work = 4, .slowest = 10 };

    assert_true(iteration_urgency(&need, 10) == 1);
    assert_true(iteration_urgency(&need, 5) == 0.5);
    assert_true(iteration_urgency(&need, 20) == 1);
    assert_true(iteration_urgency(&need, 0) > 0);
    assert_true(iteration_weight(&need, 5, 1)
                < iteration_weight(&need, 10, 1));
}

UNIT_TEST(the_end_of_an_early_phase_weighs_less_for_wide_jobs)
{
    struct iteration_need need = { .weight = 6 };

    assert_true(iteration_early_weight(&need, 3, 1, 1) == 2);
    assert_true(iteration_early_weight(&need, 3, 1, 4) == 0.5);
    assert_true(iteration_early_weight(&need, 3, 0, 0) == 2);
}

/* Returns the index that is served first: 0, an iteration of a second of four
 * ports, of a search that needs 'wide' seconds of all ports, or 1, an
 * iteration of a second of one of these ports, of a search that needs
 * 'narrow'. */
static int
first_of_widths(double wide, double narrow)
{
    struct order_problem *op = order_problem_create(4);
    struct iteration_need needs[] = { { 1, wide, 1 }, { 1, narrow, 1 } };

    for (int s = 0; s < 2; s++) {
        order_problem_add_stage(op, iteration_weight(&needs[s], 1, 1), s);
        for (int port = 0; port < (s ? 1 : 4); port++) {
            order_problem_add_demand(op, s, port, 1);
        }
    }
    return serve_first(op);
}

UNIT_TEST(a_wide_iteration_goes_by_all_that_its_search_needs)
{
    assert_int_equal(first_of_widths(14, 12), 1);
    assert_int_equal(first_of_widths(10, 12), 0);
}

/* Returns the index that is served first: 0, the iteration that needs
 * 'seconds' of 20 ports, or another, one of 20 iterations that need a second
 * of one of the ports. */
static int
first_beside_narrow(double seconds)
{
    struct order_problem *op = order_problem_create(20);

    order_problem_add_stage(op, 1, 0);
    for (int port = 0; port < 20; port++) {
        order_problem_add_demand(op, 0, port, seconds);
        order_problem_add_stage(op, 1, 1 + port);
        order_problem_add_demand(op, 1 + port, port, 1);
    }
    return serve_first(op);
}

/* The sort would serve the wide iteration first, but all narrow ones would
 * wait for it: that costs more than it may unless it is short. */
UNIT_TEST(the_sort_costs_little_more_than_the_permutation)
{
    assert_int_equal(first_beside_narrow(0.1), 0);
    assert_int_not_equal(first_beside_narrow(0.9), 0);
}
