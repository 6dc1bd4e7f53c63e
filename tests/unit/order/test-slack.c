/* SPDX-License-Identifier: Apache-2.0 */

#include <limits.h>
#include <stdint.h>

#include "order/order.h"
#include "order/result/levels.h"
#include "order/result/slack.h"
#include "tests/unit/order/order-instance.h"
#include "tests/unit/unit-test.h"

#define N_PORTS 6
#define MAX_JOBS 60

/* Two stages on port 0, which the first has for 10 s, the second from then to
 * 14 s. */
static struct order_problem *
two_stages(struct order_result *result)
{
    struct order_options options = ORDER_OPTIONS_INIT(ORDER_STAGE);
    struct order_problem *op = order_problem_create(N_PORTS);

    for (int s = 0; s < 2; s++) {
        order_problem_add_stage(op, s ? 1 : 10, s);
        order_problem_add_demand(op, s, 0, s ? 4 : 10);
    }
    order_result_init(result);
    order_compute(&options, op, result);
    assert_int_equal(result->rank[0], 0);
    return op;
}

/* A fast job of the first stage waits for the slow one of the second, but not
 * for a fast one. */
static const struct order_options options = ORDER_OPTIONS_INIT(ORDER_WORK);

UNIT_TEST(lets_the_fast_wait)
{
    const int ports[] = { 0 };
    struct slack_job jobs[] = {
        { .stage = 0, .id = 0, .isolated = 10 },
        { .stage = 0, .id = 1, .isolated = 1 },
        { .stage = 1, .id = 2, .isolated = 13 },
        { .stage = 1, .id = 3, .isolated = 1 },
    };
    const uint64_t expected[] = { 0, 2, 1, 3 };
    struct order_result result;
    struct order_problem *op = two_stages(&result);

    for (int i = 0; i < 4; i++) {
        jobs[i].ports = ports;
        jobs[i].n_ports = 1;
        jobs[i].stride = sizeof *ports;
    }
    slack_assign(op, &result, &options, jobs, 4);
    for (int k = 0; k < 4; k++) {
        assert_int_equal(jobs[k].id, expected[k]);
        assert_int_equal(jobs[k].rank, k);
        assert_int_equal(jobs[k].level, k);
    }
    order_result_uninit(&result);
    order_problem_destroy(op);
}

UNIT_TEST(breaks_ties_by_stage_and_id)
{
    struct slack_job jobs[] = {
        { .stage = 1, .id = 3, .isolated = 4 / options.slack_share },
        { .stage = 0, .id = 2, .isolated = 0 },
        { .stage = 1, .id = 1, .isolated = 4 / options.slack_share },
    };
    struct order_result result;
    struct order_problem *op = two_stages(&result);

    /* The same slack for all: 14 - 4 is 10. */
    slack_assign(op, &result, &options, jobs, 3);
    assert_int_equal(jobs[0].id, 2);
    assert_int_equal(jobs[1].id, 1);
    assert_int_equal(jobs[2].id, 3);
    slack_assign(op, &result, &options, NULL, 0);
    order_result_uninit(&result);
    order_problem_destroy(op);
}

/* Random jobs: at a shared port a larger rank never has a smaller level,
 * levels are in range, and without a limit no two on a port share one. */
UNIT_TEST(levels_never_fall_on_a_port)
{
    static const int limits[] = { 1, 2, 6, INT_MAX };
    struct order_result result;
    struct order_problem *op = two_stages(&result);
    struct order_options limited = options;
    uint64_t seed = 1;

    for (int round = 0; round < 200; round++) {
        int n_levels = limits[round % 4];
        int n = 1 + instance_random(&seed) % MAX_JOBS;
        struct slack_job jobs[MAX_JOBS];
        int last[N_PORTS], ports[MAX_JOBS][2];

        for (int i = 0; i < n; i++) {
            ports[i][0] = instance_random(&seed) % 3;
            ports[i][1] = 3 + instance_random(&seed) % 3;
            jobs[i] = (struct slack_job) {
                .stage = instance_random(&seed) % 2, .id = i,
                .isolated = 10 * instance_uniform(&seed),
                .ports = ports[i], .n_ports = 2,
                .stride = sizeof ports[i][0],
            };
        }
        limited.n_levels = n_levels;
        slack_assign(op, &result, &limited, jobs, n);
        for (int p = 0; p < N_PORTS; p++) {
            last[p] = -1;
        }
        for (int i = 0; i < n; i++) {
            assert_in_range(jobs[i].level, 0, n_levels - 1);
            for (int j = 0; j < 2; j++) {
                int *l = &last[jobs[i].ports[j]];

                assert_true(jobs[i].level >= *l + (n_levels == INT_MAX));
                *l = jobs[i].level;
            }
        }
    }
    order_result_uninit(&result);
    order_problem_destroy(op);
}

/* Nine that meet in a row: all levels are used, each by at least as many as
 * the one before. */
UNIT_TEST(folds_by_the_square_root)
{
    static const int expected[] = { 0, 1, 1, 2, 2, 2, 3, 3, 3 };
    const int port = 0;
    int next[1];
    struct fold fold;

    fold_init(&fold, next, 1);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(fold_depth(&fold, &port, 1, sizeof port), i);
    }
    for (int i = 0; i < 9; i++) {
        assert_int_equal(fold_level(&fold, i, 4), expected[i]);
        assert_int_equal(fold_level(&fold, i, 9), i);
        assert_int_equal(fold_level(&fold, i, INT_MAX), i);
        assert_int_equal(fold_level(&fold, i, 1), 0);
    }
}
