/* SPDX-License-Identifier: Apache-2.0 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <limits.h>
#include <math.h>

#include "order/baselines/interleave.h"
#include "order/order.h"
#include "tests/unit/order/order-instance.h"

static void
assert_within(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance)) {
        fail_msg("%.17g is not within %g of %.17g", a, tolerance, b);
    }
}

/* Adds a job that communicates for 'burst' of each 'period' and needs so many
 * seconds of ports 0, 1 and 2 until it ends. */
static void
add(struct order_problem *op, double period, double burst, double seconds_0,
    double seconds_1, double seconds_2)
{
    int s = order_problem_add_stage(op, 1, op->n_stages + 1);

    order_problem_add_demand(op, s, 0, seconds_0);
    order_problem_add_demand(op, s, 1, seconds_1);
    order_problem_add_demand(op, s, 2, seconds_2);
    order_problem_set_traits(op, s, &(struct order_traits) {
        .period = period, .burst = burst,
    });
}

/* The report. */

static void
turns_two_halves_apart(void **state)
{
    struct order_problem *op = order_problem_create(3);
    struct interleave *il;

    add(op, 2, 1, 10, 0, 0);
    add(op, 2, 1, 20, 5, 0);
    add(op, 0, 0, 7, 5, 0);             /* Not periodic. */
    il = interleave_create(op);
    assert_int_equal(il->n_stages, 3);
    assert_int_equal(il->n_ports, 1);
    assert_int_equal(il->ports[0].port, 0);
    assert_int_equal(il->ports[0].n_stages, 2);
    assert_int_equal(il->ports[0].stages[0], 0);
    assert_int_equal(il->ports[0].stages[1], 1);
    assert_within(il->ports[0].utilisation, 1, 1e-12);
    assert_true(il->ports[0].compatible);
    assert_within(il->ports[0].unshifted, 0.5, 1e-9);
    assert_within(il->ports[0].excess, 0, 1e-9);
    assert_within(il->shift[0], 0, 0);
    assert_within(il->shift[1], 1, 1e-9);
    assert_within(il->shift[2], 0, 0);
    interleave_destroy(il);
    order_problem_destroy(op);
}

static void
says_when_jobs_do_not_fit(void **state)
{
    struct order_problem *op = order_problem_create(3);
    struct interleave *il;

    for (int i = 0; i < 3; i++) {
        add(op, 1, 0.4375, 10, 0, 0);   /* 14 of 32 slots. */
    }
    il = interleave_create(op);
    assert_within(il->ports[0].utilisation, 1.3125, 1e-12);
    assert_false(il->ports[0].compatible);
    assert_within(il->ports[0].unshifted, 2 * 0.4375, 1e-9);
    assert_within(il->ports[0].excess, 0.3125, 1e-9);
    interleave_destroy(il);
    order_problem_destroy(op);
}

/* Periods of 2 and 3 seconds: modulo 1 second, the bursts must not meet. */
static void
finds_the_common_multiple(void **state)
{
    struct order_problem *op = order_problem_create(3);
    struct interleave *il;
    double apart;

    add(op, 2, 0.5, 10, 0, 0);
    add(op, 3, 0.5, 10, 0, 0);
    il = interleave_create(op);
    assert_true(il->ports[0].compatible);
    assert_true(il->ports[0].unshifted > 0.05);
    assert_within(il->ports[0].excess, 0, 1e-9);
    apart = il->shift[1] - il->shift[0];
    assert_within(apart - floor(apart), 0.5, 1e-9);
    interleave_destroy(il);
    order_problem_destroy(op);
}

static void
a_job_has_one_shift_for_all_its_ports(void **state)
{
    struct order_problem *op = order_problem_create(3);
    struct interleave *il;

    /* Each two meet on a port of their own. */
    add(op, 1, 0.3125, 10, 10, 0);
    add(op, 1, 0.3125, 10, 0, 10);
    add(op, 1, 0.3125, 0, 10, 10);
    il = interleave_create(op);
    assert_int_equal(il->n_ports, 3);
    for (int i = 0; i < 3; i++) {
        assert_within(il->ports[i].unshifted, 0.3125, 1e-9);
        assert_within(il->ports[i].excess, 0, 1e-9);
        for (int j = 0; j < i; j++) {
            double apart = fabs(il->shift[i] - il->shift[j]);

            assert_true(fmin(apart, 1 - apart) >= 0.3125 - 1e-9);
        }
    }
    interleave_destroy(il);
    order_problem_destroy(op);
}

/* Two jobs that take half of port 0 as long as they fill ports of their
 * own. */
static void
counts_the_part_of_a_port(void **state)
{
    struct order_problem *op = order_problem_create(3);
    struct interleave *il;

    add(op, 1, 1, 5, 10, 0);
    add(op, 1, 1, 5, 0, 10);
    il = interleave_create(op);
    assert_int_equal(il->n_ports, 1);
    assert_within(il->ports[0].utilisation, 1, 1e-12);
    assert_true(il->ports[0].compatible);
    assert_within(il->ports[0].unshifted, 0, 1e-9);
    interleave_destroy(il);
    order_problem_destroy(op);
}

static void
shifts_never_make_it_worse(void **state)
{
    uint64_t seed = 1;

    for (int i = 0; i < 30; i++) {
        struct order_problem *op = order_problem_create(3);
        double excess = 0, unshifted = 0;
        struct interleave *il;

        for (int j = instance_random(&seed) % 8; j >= 0; j--) {
            double period = exp10(instance_uniform(&seed)
                                  * (i % 3 ? 1 : 6) - 3);

            add(op, i % 5 ? 1 + instance_random(&seed) % 3 : period,
                instance_uniform(&seed), instance_random(&seed) % 3,
                instance_random(&seed) % 3, instance_random(&seed) % 3);
        }
        il = interleave_create(op);
        for (size_t j = 0; j < il->n_ports; j++) {
            assert_true(il->ports[j].n_stages > 1);
            assert_true(il->ports[j].excess >= 0);
            excess += il->ports[j].excess;
            unshifted += il->ports[j].unshifted;
        }
        assert_true(excess <= unshifted + 1e-9);
        for (size_t s = 0; s < il->n_stages; s++) {
            assert_true(il->shift[s] >= 0);
            assert_true(il->shift[s] <= op->stages[s].traits.period);
        }
        interleave_destroy(il);
        order_problem_destroy(op);
    }
    interleave_destroy(NULL);
}

static void
reports_nothing_of_nothing(void **state)
{
    struct order_problem *op = order_problem_create(0);
    struct interleave *il = interleave_create(op);

    assert_int_equal(il->n_ports, 0);
    interleave_destroy(il);
    order_problem_destroy(op);
}

/* The order. */

static void
compute(enum order_kind kind, const struct order_problem *op, int n_levels,
        struct order_result *result)
{
    struct order_options options = ORDER_OPTIONS_INIT(kind);

    options.n_levels = n_levels;
    options.improve_moves = 0;
    order_compute(&options, op, result);
}

/* Returns which of two jobs on a port goes first that compute until 'isolated'
 * and of which the second, with the burst of 0.3 seconds, needs more. */
static int
first_of_two(double burst, double isolated)
{
    struct order_problem *op = order_problem_create(3);
    struct order_result result;
    int first;

    order_result_init(&result);
    add(op, 1, burst, 10, 0, 0);
    add(op, 1, 0.3, 12, 0, 0);
    order_problem_set_release(op, 0, 0, isolated);
    order_problem_set_release(op, 1, 0, isolated);
    compute(ORDER_WORK, op, INT_MAX, &result);
    assert_int_equal(result.order[0], 0);
    compute(ORDER_INTERLEAVE, op, INT_MAX, &result);
    first = result.order[0];
    order_result_uninit(&result);
    order_problem_destroy(op);
    return first;
}

static void
short_bursts_go_first_where_it_costs_nothing(void **state)
{
    assert_int_equal(first_of_two(0.4, 100), 1);

    assert_int_equal(first_of_two(0.2, 100), 0);    /* It has the shorter. */
    assert_int_equal(first_of_two(0.8, 100), 0);    /* They do not fit. */
    assert_int_equal(first_of_two(0, 100), 0);      /* Not periodic. */
    assert_int_equal(first_of_two(0.4, 0), 0);      /* It would cost. */
    assert_int_equal(first_of_two(0.4, 11), 0);     /* It would cost some. */
}

static void
jobs_that_fit_share_when_levels_are_few(void **state)
{
    static const int few[] = { 0, 0, 1, 1 }, many[] = { 0, 1, 2, 3 };
    struct order_problem *op = order_problem_create(3);
    struct order_result result;

    /* The fourth fits with the third, but not with the first two. */
    order_result_init(&result);
    add(op, 1, 0.5, 10, 0, 0);
    add(op, 1, 0.5, 12, 0, 0);
    add(op, 1, 0.4, 14, 0, 0);
    add(op, 1, 0.6, 16, 0, 0);
    for (int n = 2; n <= 4; n++) {
        compute(ORDER_INTERLEAVE, op, n, &result);
        for (int s = 0; s < 4; s++) {
            assert_int_equal(result.level[s], n < 4 ? few[s] : many[s]);
        }
    }

    /* Somebody who is not periodic shares with nobody. */
    op->stages[1].traits.period = 0;
    compute(ORDER_INTERLEAVE, op, 3, &result);
    assert_int_equal(result.level[0], 0);
    assert_int_equal(result.level[1], 1);
    assert_int_equal(result.level[2], 2);
    assert_int_equal(result.level[3], 2);
    order_result_uninit(&result);
    order_problem_destroy(op);
}

static void
is_never_worse_than_the_order_of_stages(void **state)
{
    static const struct instance_shape shapes[] = {
        { 7, 3, true, false, false },
        { 7, 2, false, false, true },
        { 7, 3, true, true, false },
    };
    uint64_t seed = 2;
    int n_swapped = 0;

    for (int i = 0; i < 300; i++) {
        struct order_problem *op = instance_create(&seed, &shapes[i % 3]);
        struct order_result stage, interleave;

        for (size_t s = 0; s < op->n_stages; s++) {
            op->stages[s].traits.period = 1;
            op->stages[s].traits.burst = instance_uniform(&seed) / 2;
            if (i % 3 < 2) {
                order_problem_set_release(op, s, 0,
                                          30 * instance_uniform(&seed));
            }
        }
        order_result_init(&stage);
        order_result_init(&interleave);
        compute(ORDER_WORK, op, INT_MAX, &stage);
        compute(ORDER_INTERLEAVE, op, INT_MAX, &interleave);
        assert_true(interleave.estimate <= stage.estimate * (1 + 1e-9));
        for (size_t s = 0; s < op->n_stages; s++) {
            n_swapped += interleave.rank[s] != stage.rank[s];
        }
        order_result_uninit(&stage);
        order_result_uninit(&interleave);
        order_problem_destroy(op);
    }
    assert_true(n_swapped > 50);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_two_halves_apart),
        cmocka_unit_test(says_when_jobs_do_not_fit),
        cmocka_unit_test(finds_the_common_multiple),
        cmocka_unit_test(a_job_has_one_shift_for_all_its_ports),
        cmocka_unit_test(counts_the_part_of_a_port),
        cmocka_unit_test(shifts_never_make_it_worse),
        cmocka_unit_test(reports_nothing_of_nothing),
        cmocka_unit_test(short_bursts_go_first_where_it_costs_nothing),
        cmocka_unit_test(jobs_that_fit_share_when_levels_are_few),
        cmocka_unit_test(is_never_worse_than_the_order_of_stages),
    };

    return cmocka_run_group_tests_name("interleave", tests, NULL, NULL);
}
