/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "order/order.h"
#include "order/primal-dual/primal-dual.h"
#include "order/result/improve.h"
#include "tests/unit/assert-near.h"
#include "tests/unit/order/order-instance.h"

#define MANY_MOVES 1000000
#define NO_HURRY 1e9

static const struct instance_shape small = { 7, 4, true, false, false };

/* A problem of 'n' stages that each need some of 'n_ports'. */
static struct order_problem *
big_problem(uint64_t *seed, int n, int n_ports)
{
    struct order_problem *op = order_problem_create(n_ports);

    for (int s = 0; s < n; s++) {
        order_problem_add_stage(op, 1, s);
        for (int i = 0; i < 6; i++) {
            order_problem_add_demand(op, s, instance_random(seed) % n_ports,
                                     exp(6 * instance_uniform(seed)));
        }
    }
    return op;
}

static void
assert_is_permutation(const int *order, size_t n)
{
    bool *seen = test_calloc(n, sizeof *seen);

    for (size_t k = 0; k < n; k++) {
        assert_in_range(order[k], 0, n - 1);
        assert_false(seen[order[k]]);
        seen[order[k]] = true;
    }
    test_free(seen);
}

/* The cost of improver's order is the result of a plain evaluation. */
UNIT_TEST(comes_close_to_the_optimum_and_knows_the_cost)
{
    double cost = 0, optimum = 0, start = 0;
    struct improver im;
    uint64_t seed = 2;

    improver_init(&im);
    for (int i = 0; i < 300; i++) {
        struct order_problem *op = instance_create(&seed, &small);
        int order[INSTANCE_MAX_STAGES];

        permute(op, 0, order);
        improver_begin(&im, op);
        improver_offer(&im, order);
        assert_near(im.cost, instance_cost(op, order));
        start += im.cost;
        improver_run(&im, MANY_MOVES, NO_HURRY);
        assert_is_permutation(im.order, op->n_stages);
        assert_near(im.cost, instance_cost(op, im.order));
        assert_true(im.cost >= instance_optimum(op) * (1 - 1e-9));
        assert_true(im.cost <= 1.1 * instance_optimum(op));
        cost += im.cost;
        optimum += instance_optimum(op);
        order_problem_destroy(op);
    }
    improver_uninit(&im);

    /* It gains most of what there is to be gained. */
    assert_true(cost - optimum <= 0.1 * (start - optimum));
}

UNIT_TEST(takes_the_best_of_what_is_offered)
{
    struct order_problem *op = order_problem_create(1);
    const int bad[] = { 0, 1, 2 }, good[] = { 2, 1, 0 };
    struct improver im;

    for (int s = 0; s < 3; s++) {
        order_problem_add_stage(op, 1, s);
        order_problem_add_demand(op, s, 0, 3 - s);
    }
    improver_init(&im);
    improver_begin(&im, op);
    assert_true(isinf(im.cost));
    improver_offer(&im, bad);
    assert_near(im.cost, 3 + 5 + 6);
    improver_offer(&im, good);
    assert_near(im.cost, 1 + 3 + 6);
    improver_offer(&im, bad);
    assert_near(im.cost, 1 + 3 + 6);
    assert_memory_equal(im.order, good, sizeof good);

    /* Nothing of this is left for the next problem. */
    improver_begin(&im, op);
    improver_offer(&im, bad);
    assert_near(im.cost, 3 + 5 + 6);
    assert_int_equal(improver_run(&im, 0, NO_HURRY), 0);
    assert_memory_equal(im.order, bad, sizeof bad);
    improver_run(&im, MANY_MOVES, NO_HURRY);
    assert_memory_equal(im.order, good, sizeof good);
    improver_uninit(&im);
    order_problem_destroy(op);
}

/* More moves never make it worse, and the budget holds but for the one stage
 * that is being looked at. */
UNIT_TEST(keeps_to_its_budget)
{
    uint64_t seed = 3;
    struct order_problem *op = big_problem(&seed, 200, 40);
    int *order = test_calloc(200, sizeof *order);
    double last = INFINITY;
    struct improver im;

    permute(op, 0, order);
    improver_init(&im);
    for (long moves = 10; moves <= MANY_MOVES; moves *= 10) {
        long tried;

        improver_begin(&im, op);
        improver_offer(&im, order);
        tried = improver_run(&im, moves, NO_HURRY);
        assert_true(tried <= moves + 2 * IMPROVE_WINDOW);
        assert_true(im.cost <= last);
        assert_is_permutation(im.order, op->n_stages);
        last = im.cost;
    }
    improver_begin(&im, op);
    improver_offer(&im, order);
    assert_true(last < im.cost);
    assert_int_equal(improver_run(&im, MANY_MOVES, -1), 0);
    improver_uninit(&im);
    test_free(order);
    order_problem_destroy(op);
}

UNIT_TEST(takes_no_and_one_stage)
{
    struct order_problem *op = order_problem_create(2);
    const int order[] = { 0 };
    struct improver im;

    improver_init(&im);
    improver_begin(&im, op);
    improver_offer(&im, order);
    assert_int_equal(improver_run(&im, MANY_MOVES, NO_HURRY), 0);
    assert_near(im.cost, 0);
    order_problem_add_stage(op, 2, 0);
    order_problem_set_release(op, 0, 1, 4);
    improver_begin(&im, op);
    improver_offer(&im, order);
    improver_run(&im, MANY_MOVES, NO_HURRY);
    assert_near(im.cost, 2 * (1 + 4));
    improver_uninit(&im);
    order_problem_destroy(op);
}
