/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdint.h>

#include "order/order.h"
#include "order/primal-dual/primal-dual.h"
#include "order/result/levels.h"
#include "tests/unit/assert-near.h"
#include "tests/unit/order/order-instance.h"

#define SLACK (1 + 1e-9)        /* For sums in another order. */

static const struct instance_shape shapes[] = {
    { 7, 4, false, false, false },
    { 6, 5, true, false, false },
    { 6, 3, false, false, true },
    { 6, 1, true, false, true },
    { 6, 3, false, true, false },
    { 6, 4, true, true, false },
    { 6, 2, true, true, true },
    { 6, 1, false, true, false },
};

/* The order of 'kind' and no improvement of it. */
static void
compute(enum order_kind kind, const struct order_problem *op, int n_levels,
        struct order_result *result)
{
    struct order_options options = ORDER_OPTIONS_INIT(kind);

    options.n_levels = n_levels;
    options.improve_moves = 0;
    order_compute(&options, op, result);
}

static const double kappas[] = { 0, 0.1, 0.25, 0.5, 1, 2, 4 };

static void
assert_at_most(double a, double b)
{
    if (!(a <= b * SLACK)) {
        fail_msg("%.17g is not at most %.17g", a, b);
    }
}

/* Calls 'check' with 'n' random problems of each of the shapes that have
 * releases or not, or all if 'releases' is negative. */
static void
for_problems(int n, int releases, uint64_t seed,
             void (*check)(const struct order_problem *))
{
    for (size_t i = 0; i < N_ELEMENTS(shapes); i++) {
        if (releases >= 0 && shapes[i].releases != releases) {
            continue;
        }
        for (int j = 0; j < n; j++) {
            struct order_problem *op = instance_create(&seed, &shapes[i]);

            check(op);
            order_problem_destroy(op);
        }
    }
}

static void
assert_is_permutation(const struct order_problem *op, const int *order)
{
    bool seen[INSTANCE_MAX_STAGES] = { false };

    for (size_t k = 0; k < op->n_stages; k++) {
        assert_in_range(order[k], 0, op->n_stages - 1);
        assert_false(seen[order[k]]);
        seen[order[k]] = true;
    }
}

/* The permutation. */

static void
check_within_two(const struct order_problem *op)
{
    int order[INSTANCE_MAX_STAGES];
    double bound = permute(op, 0, order);
    double cost;

    assert_is_permutation(op, order);
    cost = instance_cost(op, order);
    assert_at_most(cost, 2 * bound);
    assert_at_most(bound, instance_optimum(op));
}

UNIT_TEST(costs_at_most_twice_its_bound)
{
    for_problems(60, false, 1, check_within_two);
}

static void
check_within_three(const struct order_problem *op)
{
    double optimum = instance_optimum(op);

    for (size_t i = 0; i < N_ELEMENTS(kappas); i++) {
        int order[INSTANCE_MAX_STAGES];

        double bound = permute(op, kappas[i], order);

        assert_at_most(bound, optimum);
        assert_is_permutation(op, order);
        if (kappas[i] == 0.5) {
            assert_at_most(instance_cost(op, order), 3 * bound);
        }
    }
}

UNIT_TEST(costs_at_most_three_times_its_bound_with_releases)
{
    for_problems(60, true, 2, check_within_three);
}

UNIT_TEST(serves_the_short_stage_first)
{
    struct order_problem *op = order_problem_create(1);
    int order[3];

    for (int i = 0; i < 3; i++) {
        static const double seconds[] = { 5, 1, 3 };

        order_problem_add_stage(op, 1, i);
        order_problem_add_demand(op, i, 0, seconds[i]);
    }

    /* One machine: Smith's rule, and the bound is what it costs. */
    assert_near(permute(op, 0, order), 1 + 4 + 9);
    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 2);
    assert_int_equal(order[2], 0);
    order_problem_destroy(op);
}

UNIT_TEST(serves_the_heavy_stage_first)
{
    struct order_problem *op = order_problem_create(1);
    int order[2];

    order_problem_add_stage(op, 1, 0);
    order_problem_add_demand(op, 0, 0, 1);
    order_problem_add_stage(op, 3, 1);
    order_problem_add_demand(op, 1, 0, 2);
    permute(op, 0, order);
    assert_int_equal(order[0], 1);
    order_problem_destroy(op);
}

UNIT_TEST(puts_a_late_stage_last)
{
    /* By size alone stage 0 would be first, but it comes at 10, when the
     * other is long done. */
    struct order_problem *op = order_problem_create(1);
    int order[2];

    order_problem_add_stage(op, 1, 0);
    order_problem_add_demand(op, 0, 0, 1);
    order_problem_set_release(op, 0, 10, 0);
    order_problem_add_stage(op, 1, 1);
    order_problem_add_demand(op, 1, 0, 3);

    permute(op, 0, order);
    assert_int_equal(order[0], 0);
    assert_near(permute(op, 0.5, order), 11 + 3);
    assert_int_equal(order[0], 1);
    order_problem_destroy(op);
}

static void
check_large_kappa(const struct order_problem *op)
{
    int a[INSTANCE_MAX_STAGES], b[INSTANCE_MAX_STAGES];
    double bound = permute(op, 0, a);

    /* A stage that needs nothing is never late enough without releases. */
    assert_near(permute(op, 1e6, b), bound);
    assert_memory_equal(a, b, op->n_stages * sizeof *a);
}

UNIT_TEST(ignores_ends_that_are_early_against_the_load)
{
    for_problems(40, false, 10, check_large_kappa);
}

UNIT_TEST(breaks_ties_by_size_and_id)
{
    /* Equal weight per second for all; sizes 2, 1, 1. */
    static const uint64_t ids[] = { 1, 9, 4 };
    static const double seconds[] = { 2, 1, 1 };
    static const int expected[] = { 2, 1, 0 };
    struct order_problem *op = order_problem_create(1);
    int order[3];

    for (int i = 0; i < 3; i++) {
        order_problem_add_stage(op, seconds[i], ids[i]);
        order_problem_add_demand(op, i, 0, seconds[i]);
    }
    permute(op, 0, order);
    assert_memory_equal(order, expected, sizeof expected);
    order_problem_destroy(op);
}

/* Copies 'op' with weights, seconds and ports changed, stages backwards. */
static struct order_problem *
transform(const struct order_problem *op, double weight, double seconds,
          int port_shift)
{
    struct order_problem *copy = order_problem_create(op->n_ports);

    for (size_t i = op->n_stages; i-- > 0; ) {
        const struct order_stage *stage = &op->stages[i];
        int s = order_problem_add_stage(copy, stage->weight * weight,
                                        stage->id);

        order_problem_set_release(copy, s, stage->release * seconds,
                                  stage->isolated * seconds);
        for (size_t j = stage->n_demands; j-- > 0; ) {
            const struct order_demand *d = &stage->demands[j];
            int port = (d->port + port_shift) % op->n_ports;

            order_problem_add_demand(copy, s, port, d->seconds * seconds);
        }
    }
    return copy;
}

static void
check_same_order(const struct order_problem *op, double weight,
                 double seconds, int port_shift)
{
    struct order_problem *copy = transform(op, weight, seconds, port_shift);
    struct order_result a, b;

    order_result_init(&a);
    order_result_init(&b);
    compute(ORDER_STAGE, op, 4, &a);
    compute(ORDER_STAGE, copy, 4, &b);
    for (size_t k = 0; k < a.n; k++) {
        int other = op->n_stages - 1 - b.order[k];

        assert_int_equal(a.order[k], other);
        assert_int_equal(a.level[a.order[k]], b.level[b.order[k]]);
    }

    /* The bound's ascent magnifies rounding errors. */
    assert_true(fabs(b.bound / (a.bound * weight * seconds) - 1) < 1e-3
                || b.bound == a.bound);
    assert_near(b.estimate, a.estimate * weight * seconds);
    order_result_uninit(&a);
    order_result_uninit(&b);
    order_problem_destroy(copy);
}

static void
check_invariant(const struct order_problem *op)
{
    check_same_order(op, 1, 1, 0);
    check_same_order(op, 0.3, 1, 0);
    check_same_order(op, 1, 1 / 7.0, 0);
}

UNIT_TEST(ignores_units_and_the_order_of_stages)
{
    for_problems(40, -1, 3, check_invariant);
}

UNIT_TEST(ignores_the_order_of_ports)
{
    /* Not with small integers: of two equally busy ports the first counts. */
    const struct instance_shape shape = { 7, 4, true, true, false };
    uint64_t seed = 4;

    for (int i = 0; i < 100; i++) {
        struct order_problem *op = instance_create(&seed, &shape);

        check_same_order(op, 1, 1, 1);
        order_problem_destroy(op);
    }
}

/* The certificate. */

static void
check_certificate(const struct order_problem *op)
{
    double bound = certificate_bound(op, NULL);

    assert_at_most(bound, instance_optimum(op));
    for (size_t i = 0; i < N_ELEMENTS(kappas); i++) {
        int order[INSTANCE_MAX_STAGES];

        assert_at_most(permute(op, kappas[i], order), bound);
    }
}

UNIT_TEST(certificate_is_at_most_the_optimum)
{
    for_problems(60, -1, 5, check_certificate);
}

UNIT_TEST(certificate_is_exact_on_one_port)
{
    const struct instance_shape shape = { 6, 1, false, false, false };
    uint64_t seed = 6;

    for (int i = 0; i < 60; i++) {
        struct order_problem *op = instance_create(&seed, &shape);

        for (size_t s = 0; s < op->n_stages; s++) {
            double release = instance_uniform(&seed) * 20;

            order_problem_add_demand(op, s, 0, 0.5);
            order_problem_set_release(op, s, release, 0);
        }
        assert_near(certificate_bound(op, NULL), instance_optimum(op));
        order_problem_destroy(op);
    }
}

UNIT_TEST(certificate_survives_large_and_small)
{
    const struct instance_shape shape = { 6, 4, true, false, false };
    uint64_t seed = 7;

    for (int i = 0; i < 100; i++) {
        struct order_problem *op = instance_create(&seed, &shape);

        for (size_t s = 0; s < op->n_stages; s++) {
            double scale = exp10(instance_uniform(&seed) * 14 - 7);

            for (size_t j = 0; j < op->stages[s].n_demands; j++) {
                const struct order_demand *d = &op->stages[s].demands[j];

                order_problem_set_demand(op, s, d->port, d->seconds * scale);
            }
        }
        check_certificate(op);
        order_problem_destroy(op);
    }
}

/* Results. */

/* Checks that 'estimate' is no worse than the plain order's and, if stages
 * compute, than the estimate of the order that regards this. */
static void
assert_is_the_better(const struct order_problem *op, double estimate)
{
    int order[INSTANCE_MAX_STAGES];

    permute(op, 0, order);
    assert_at_most(estimate, instance_cost(op, order));
    for (size_t i = 0; i < op->n_stages; i++) {
        if (op->stages[i].isolated > 0) {
            permute(op, 0.5, order);
            assert_at_most(estimate, instance_cost(op, order));
            break;
        }
    }
}

static void
check_result(const struct order_problem *op)
{
    double optimum = instance_optimum(op);
    struct order_result fair, stage;
    double sum = 0;

    order_result_init(&fair);
    order_result_init(&stage);
    compute(ORDER_FAIR, op, 3, &fair);
    compute(ORDER_STAGE, op, 3, &stage);

    assert_int_equal(stage.n, op->n_stages);
    for (size_t k = 0; k < op->n_stages; k++) {
        assert_int_equal(stage.rank[stage.order[k]], k);
        assert_int_equal(fair.order[k], k);
        assert_int_equal(fair.level[k], 0);
        sum += op->stages[k].weight * stage.completion[k];
        assert_at_most(order_stage_earliest_end(&op->stages[k]),
                       fair.completion[k]);
    }
    assert_near(stage.estimate, sum);
    assert_near(stage.estimate, instance_cost(op, stage.order));
    assert_is_the_better(op, stage.estimate);
    assert_true(stage.bound <= stage.estimate);
    assert_true(fair.bound == stage.bound);
    assert_at_most(optimum, stage.estimate);
    assert_at_most(optimum, fair.estimate);
    order_result_uninit(&fair);
    order_result_uninit(&stage);
}

UNIT_TEST(results_agree_with_the_schedule)
{
    uint64_t seed = 8;

    for (size_t i = 0; i < 40 * N_ELEMENTS(shapes); i++) {
        struct order_problem *op =
            instance_create(&seed, &shapes[i % N_ELEMENTS(shapes)]);

        instance_begin_all(op);
        check_result(op);
        order_problem_destroy(op);
    }
}

UNIT_TEST(fair_shares_each_port)
{
    /* Port 0: 1, 3 and 2 seconds.  The first ends at 3 (a third each), then 2
     * and 1 are left: the third ends at 5 and the second at 6.  Port 1: the
     * second stage alone. */
    struct order_problem *op = order_problem_create(2);
    struct order_result result;

    for (int i = 0; i < 3; i++) {
        order_problem_add_stage(op, 1, i);
    }
    order_problem_add_demand(op, 0, 0, 1);
    order_problem_add_demand(op, 1, 0, 3);
    order_problem_add_demand(op, 1, 1, 7);
    order_problem_add_demand(op, 2, 0, 2);

    order_result_init(&result);
    compute(ORDER_FAIR, op, 4, &result);
    assert_near(result.completion[0], 3);
    assert_near(result.completion[1], 7);
    assert_near(result.completion[2], 5);
    assert_near(result.estimate, 15);
    order_result_uninit(&result);
    order_problem_destroy(op);
}

/* Levels. */

/* Depth of each stage, one more than the largest of those before it with which
 * it shares a port.  Returns the largest. */
static int
find_depths(const struct order_problem *op, const int *order, int *depth)
{
    int deepest = 0;

    for (size_t k = 0; k < op->n_stages; k++) {
        int s = order[k];

        depth[s] = 0;
        for (size_t l = 0; l < k; l++) {
            if (instance_share_a_port(&op->stages[order[l]], &op->stages[s])
                && depth[s] <= depth[order[l]]) {
                depth[s] = depth[order[l]] + 1;
            }
        }
        deepest = depth[s] > deepest ? depth[s] : deepest;
    }
    return deepest;
}

static void
check_levels(const struct order_problem *op)
{
    for (int n_levels = 1; n_levels <= 6; n_levels++) {
        int order[INSTANCE_MAX_STAGES], level[INSTANCE_MAX_STAGES];
        int depth[INSTANCE_MAX_STAGES], deepest;

        permute(op, 0, order);
        levels_assign(op, order, n_levels, level);
        deepest = find_depths(op, order, depth);
        for (size_t s = 0; s < op->n_stages; s++) {
            int expected = depth[s];

            if (deepest >= n_levels) {
                expected = n_levels * sqrt(depth[s] / (deepest + 1.0));
            }
            assert_int_equal(level[s], expected);
        }
    }
}

/* What waits weighs more: by its age, by its age over what all of it takes
 * alone, or by both.  What comes later or needs nothing does not. */
UNIT_TEST(weights_age)
{
    static const struct {
        double weight, arrival, release, isolated, seconds, sent, bytes;
        double aging_s, aging_slowdown, expected;
    } cases[] = {
        { 2, 30, 0, 5, 4, 0, 0, 0, 0, 2 },
        { 2, 30, 0, 5, 4, 0, 0, 10, 0, 8 },
        { 2, 30, 0, 5, 4, 0, 0, 0, 3, 34 },
        { 2, 30, 0, 5, 4, 0, 0, 10, 3, 40 },
        { 2, 30, 0, 0, 4, 0, 0, 0, 3, 80.125 },
        { 2, 30, 0, 5, 15, 0, 0, 0, 2, 4 },
        { 2, 30, 0, 5, 4, 1, 1, 0, 3, 4 },
        { 2, 30, 0, 5, 4, 1, 0, 0, 3, 34 },
        { 2, 0, 40, 5, 4, 0, 0, 10, 3, 2 },
        { 2, -1, 0, 5, 4, 0, 0, 10, 3, 2 },
        { 2, 30, 0, 0, 0, 0, 0, 0, 3, 2 },
        { ORDER_MAX_WEIGHT, 30, 0, 5, 4, 0, 0, 10, 3, ORDER_MAX_WEIGHT },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct order_traits traits = {
            .arrival = cases[i].arrival,
            .sent = cases[i].sent,
            .bytes = cases[i].bytes,
        };
        struct order_problem *op = order_problem_create(1);

        order_problem_add_stage(op, cases[i].weight, 0);
        order_problem_add_demand(op, 0, 0, cases[i].seconds);
        order_problem_set_release(op, 0, cases[i].release, cases[i].isolated);
        order_problem_set_traits(op, 0, &traits);
        order_problem_age(op, cases[i].aging_s, cases[i].aging_slowdown);
        assert_near(op->stages[0].weight, cases[i].expected);
        order_problem_destroy(op);
    }
}

UNIT_TEST(levels_rise_where_stages_meet)
{
    for_problems(60, -1, 9, check_levels);
}

/* Degenerate problems. */

UNIT_TEST(orders_nothing)
{
    struct order_problem *op = order_problem_create(0);
    struct order_result result;

    order_result_init(&result);
    for (int kind = 0; order_names[kind]; kind++) {
        compute(kind, op, 1, &result);
        assert_int_equal(result.n, 0);
        assert_true(result.estimate == 0 && result.bound == 0);
    }
    order_result_uninit(&result);
    order_problem_destroy(op);
    order_problem_destroy(NULL);
}

UNIT_TEST(orders_stages_that_need_nothing_by_id)
{
    struct order_problem *op = order_problem_create(2);
    struct order_result result;

    order_problem_add_stage(op, 1, 30);
    order_problem_add_stage(op, 1, 10);
    order_problem_add_stage(op, 1, 20);
    order_problem_add_demand(op, 0, 1, 0);
    order_problem_add_demand(op, 0, 1, -1);
    order_problem_add_demand(op, 0, 1, NAN);

    order_result_init(&result);
    compute(ORDER_STAGE, op, 4, &result);
    assert_int_equal(result.order[0], 1);
    assert_int_equal(result.order[1], 2);
    assert_int_equal(result.order[2], 0);
    assert_int_equal(result.level[0], 0);
    assert_true(result.estimate == 0 && result.bound == 0);
    order_result_uninit(&result);
    order_problem_destroy(op);
}

UNIT_TEST(survives_a_port_without_capacity)
{
    struct order_problem *op = order_problem_create(2);
    struct order_result result;

    order_problem_add_stage(op, 1, 0);
    order_problem_add_demand(op, 0, 0, INFINITY);
    order_problem_add_demand(op, 0, 0, INFINITY);
    order_problem_add_stage(op, 1, 1);
    order_problem_add_demand(op, 1, 0, 1e-6);
    order_problem_add_demand(op, 1, 1, 3);

    order_result_init(&result);
    compute(ORDER_STAGE, op, 4, &result);
    assert_int_equal(result.order[0], 1);
    assert_int_equal(result.level[0], 1);
    assert_near(result.completion[1], 3);
    assert_true(isfinite(result.estimate));
    assert_true(result.bound > 0 && result.bound <= result.estimate);
    order_result_uninit(&result);
    order_problem_destroy(op);
}

UNIT_TEST(keeps_demands_sorted_and_adds_them_up)
{
    static const int ports[] = { 3, 1, 4, 1, 5, 3, 0, 2, 1 };
    struct order_problem *op = order_problem_create(6);
    const struct order_stage *stage;

    order_problem_add_stage(op, 2, 7);
    for (size_t i = 0; i < N_ELEMENTS(ports); i++) {
        order_problem_add_demand(op, 0, ports[i], i + 1);
    }
    stage = &op->stages[0];
    assert_int_equal(stage->n_demands, 6);
    for (size_t i = 0; i < stage->n_demands; i++) {
        static const double seconds[] = { 7, 2 + 4 + 9, 8, 1 + 6, 3, 5 };

        assert_int_equal(stage->demands[i].port, i);
        assert_near(stage->demands[i].seconds, seconds[i]);
    }
    order_problem_destroy(op);
}

UNIT_TEST(reuses_a_result_for_other_sizes)
{
    struct order_result result;

    order_result_init(&result);
    for (int n = 0; n < 40; n = n < 20 ? n + 7 : n + 3) {
        struct order_problem *op = order_problem_create(2);

        for (int s = 0; s < (n * 17) % 40; s++) {
            order_problem_add_stage(op, 1, s);
            order_problem_add_demand(op, s, s % 2, 1 + s);
        }
        compute(ORDER_STAGE, op, 6, &result);
        assert_int_equal(result.n, op->n_stages);
        for (size_t s = 0; s < op->n_stages; s++) {
            assert_int_equal(result.order[s], s);
        }
        order_problem_destroy(op);
    }
    order_result_uninit(&result);
}
