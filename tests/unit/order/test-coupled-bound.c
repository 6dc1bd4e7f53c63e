/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "order/order.h"
#include "order/primal-dual/ascent.h"
#include "order/primal-dual/coupled-bound.h"
#include "order/primal-dual/primal-dual.h"
#include "tests/unit/order/order-instance.h"
#include "tests/unit/unit-test.h"

#define SLACK (1 + 1e-9)        /* For sums in another order. */

static void
assert_between(double low, double x, double high)
{
    if (!(x >= low / SLACK && x <= high * SLACK)) {
        fail_msg("%.17g is not from %.17g to %.17g", x, low, high);
    }
}

static double
bound(const struct order_problem *op)
{
    return coupled_bound(op, ORDER_COUPLED_WORK);
}

static double
certify(const struct order_problem *op, enum order_bound *kind)
{
    return certificate_bound(op, ORDER_COUPLED_WORK, kind);
}

static void
is_at_most_the_optimum(void **state)
{
    static const struct instance_shape shapes[] = {
        { 6, 3, false, false, false },
        { 7, 3, false, false, true },
        { 6, 3, true, false, false },
        { 6, 3, true, false, true },
        { 6, 3, false, true, false },
        { 6, 3, true, true, false },
        { 6, 3, true, true, true },
    };
    uint64_t seed = 21;
    int n_better = 0;

    for (size_t i = 0; i < 100 * N_ELEMENTS(shapes); i++) {
        struct order_problem *op
            = instance_create(&seed, &shapes[i % N_ELEMENTS(shapes)]);
        double coupled = bound(op);
        enum order_bound kind;

        assert_between(0, coupled, instance_optimum(op));
        assert_between(coupled, certify(op, &kind), INFINITY);
        n_better += kind == ORDER_BOUND_COUPLED;
        order_problem_destroy(op);
    }
    assert_true(n_better > 40);
}

/* Without releases the best split is worth at least as much as that of
 * ascent.h. */
static void
comes_near_the_linear_program_or_above(void **state)
{
    static const struct instance_shape shapes[] = {
        { 7, 6, false, false, false },
        { 7, 6, true, false, true },
    };
    uint64_t seed = 22;

    for (int i = 0; i < 200; i++) {
        struct order_problem *op = instance_create(&seed, &shapes[i % 2]);

        if (op->n_stages > 1) {
            assert_between(0.99 * ascent_bound(op, 1000), bound(op), INFINITY);
        }
        order_problem_destroy(op);
    }
}

/* Adds two stages that want opposite orders on two ports: 3 seconds on one
 * port and 1 second on the other.  One has to wait for a second. */
static void
add_opposites(struct order_problem *op, double release)
{
    for (int i = 0; i < 2; i++) {
        int s = order_problem_add_stage(op, 1, op->n_stages);

        order_problem_add_demand(op, s, i, 1);
        order_problem_add_demand(op, s, 1 - i, 3);
        order_problem_set_release(op, s, release, 0);
    }
}

static void
sees_one_order_on_all_ports(void **state)
{
    struct order_problem *op = order_problem_create(2);
    enum order_bound kind;
    int order[2];

    add_opposites(op, 0);
    assert_between(7, instance_optimum(op), 7);
    assert_between(0, permute(op, 0, order), 6.51);
    assert_between(0, ascent_bound(op, 1000), 6.51);
    assert_between(6.99, bound(op), 7);
    assert_between(6.99, certify(op, &kind), 7);
    assert_int_equal(kind, ORDER_BOUND_COUPLED);
    order_problem_destroy(op);
}

/* A stage that has ended long ago delays none. */
static void
counts_from_the_release(void **state)
{
    struct order_problem *op = order_problem_create(2);
    enum order_bound kind;

    order_problem_add_stage(op, 1, 0);
    order_problem_add_demand(op, 0, 0, 2);
    add_opposites(op, 10);
    assert_between(2 + 27, instance_optimum(op), 2 + 27);
    assert_between(2 + 26.97, certify(op, &kind), 2 + 27);
    assert_int_equal(kind, ORDER_BOUND_COUPLED);
    order_problem_destroy(op);
}

static void
counts_isolated_times(void **state)
{
    struct order_problem *op = order_problem_create(2);

    add_opposites(op, 0);
    order_problem_set_release(op, 0, 0, 5);
    assert_between(8, instance_optimum(op), 8);
    assert_between(7.97, bound(op), 8);
    order_problem_destroy(op);
}

static void
names_the_best_bound(void **state)
{
    struct order_problem *op = order_problem_create(2);
    struct order_options options = ORDER_OPTIONS_INIT(ORDER_STAGE);
    struct order_result result;
    enum order_bound kind;

    order_result_init(&result);
    assert_true(certify(op, &kind) == 0);
    assert_string_equal(order_bound_names[kind], "none");

    order_problem_add_stage(op, 1, 0);
    order_problem_add_demand(op, 0, 0, 2);
    certify(op, &kind);
    assert_string_equal(order_bound_names[kind], "isolated");

    order_problem_add_stage(op, 1, 1);
    order_problem_add_demand(op, 1, 0, 3);
    certify(op, &kind);
    assert_string_equal(order_bound_names[kind], "ports");

    order_problem_clear(op);
    add_opposites(op, 0);
    order_compute(&options, op, &result);
    assert_string_equal(order_bound_names[result.bound_kind], "coupled");

    options.coupled_work = 0;
    order_compute(&options, op, &result);
    assert_string_equal(order_bound_names[result.bound_kind], "ports");

    options.uncertified = true;
    order_compute(&options, op, &result);
    assert_string_equal(order_bound_names[result.bound_kind], "none");
    order_result_uninit(&result);
    order_problem_destroy(op);
}

static void
does_no_more_than_the_work(void **state)
{
    struct order_problem *op = order_problem_create(2);

    assert_true(bound(op) == 0);
    add_opposites(op, 0);
    assert_true(bound(op) > 0);
    assert_true(coupled_bound(op, 100) == 0);
    order_problem_remove_stage(op, 0);
    assert_true(bound(op) == 0);
    while (op->n_stages < 63) {
        add_opposites(op, 0);
    }
    order_problem_remove_stage(op, 0);
    add_opposites(op, 0);
    assert_int_equal(op->n_stages, 64);
    assert_true(bound(op) > 0);
    order_problem_add_stage(op, 1, 64);
    assert_true(bound(op) == 0);
    order_problem_destroy(op);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_at_most_the_optimum),
        cmocka_unit_test(comes_near_the_linear_program_or_above),
        cmocka_unit_test(sees_one_order_on_all_ports),
        cmocka_unit_test(counts_from_the_release),
        cmocka_unit_test(counts_isolated_times),
        cmocka_unit_test(names_the_best_bound),
        cmocka_unit_test(does_no_more_than_the_work),
    };

    return cmocka_run_group_tests_name("coupled-bound", tests, NULL, NULL);
}
