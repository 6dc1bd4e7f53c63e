/* SPDX-License-Identifier: Apache-2.0 */

/* The order of many stages: that it is what plain loops find, whatever
 * instructions find it, whatever happened to the problem before, and without
 * asking for memory. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "order/order.h"
#include "order/primal-dual/primal-dual.h"
#include "order/result/levels.h"
#include "order/result/slack.h"
#include "tests/unit/order/order-instance.h"
#include "tests/unit/unit-test.h"

#define MAX_STAGES 400

static const struct instance_crowd crowds[] = {
    { 300, 16, 0.5 },
    { 40, 3, 0 },
    { 37, 20, 1 },
    { 20, 20, 0 },
    { 1, 1, 0 },
};

static size_t n_allocations;

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void *__real_reallocarray(void *, size_t, size_t);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
void *__wrap_reallocarray(void *, size_t, size_t);

void *
__wrap_malloc(size_t size)
{
    n_allocations++;
    return __real_malloc(size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
    n_allocations++;
    return __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t size)
{
    n_allocations++;
    return __real_realloc(p, size);
}

void *
__wrap_reallocarray(void *p, size_t n, size_t size)
{
    n_allocations++;
    return __real_reallocarray(p, n, size);
}

/* What permute() and levels_assign() say about a problem. */
struct answer {
    uint64_t ids[MAX_STAGES];   /* By rank. */
    int levels[MAX_STAGES];     /* By rank. */
    double bound;
};

static void
ask(const struct order_problem *op, double kappa, struct answer *answer)
{
    int order[MAX_STAGES], level[MAX_STAGES];

    memset(answer, 0, sizeof *answer);
    answer->bound = permute(op, kappa, order);
    levels_assign(op, order, 5, level);
    for (size_t k = 0; k < op->n_stages; k++) {
        answer->ids[k] = op->stages[order[k]].id;
        answer->levels[k] = level[order[k]];
    }
}

static struct order_problem *
create(uint64_t *seed, const struct instance_crowd *crowd, size_t n)
{
    struct order_problem *op = order_problem_create(crowd->n_ports);

    for (size_t s = 0; s < n; s++) {
        instance_add_stage(seed, crowd, op, s);
    }
    return op;
}

/* Makes all numbers small integers, which makes ties. */
static void
make_ties(struct order_problem *op)
{
    for (size_t s = 0; s < op->n_stages; s++) {
        for (size_t i = 0; i < op->stages[s].n_demands; i++) {
            const struct order_demand *d = &op->stages[s].demands[i];

            order_problem_set_demand(op, s, d->port,
                                     ceil(fmin(d->seconds, 4)));
        }
    }
}

/* Lets some stages come later. */
static void
make_releases(uint64_t *seed, struct order_problem *op)
{
    for (size_t s = 0; s < op->n_stages; s += 2) {
        order_problem_set_release(op, s, instance_uniform(seed) * 1000,
                                  instance_uniform(seed) * 100);
    }
}

UNIT_TEST(finds_what_plain_loops_find)
{
    uint64_t seed = 1;

    for (size_t i = 0; i < 4 * N_ELEMENTS(crowds); i++) {
        const struct instance_crowd *crowd = &crowds[i % N_ELEMENTS(crowds)];
        size_t n = 1 + instance_random(&seed) % MAX_STAGES;
        struct order_problem *op = create(&seed, crowd, n);
        double *seconds = calloc(n * crowd->n_ports, sizeof *seconds);
        double weight[MAX_STAGES], bound;
        int expected[MAX_STAGES], order[MAX_STAGES];

        for (size_t s = 0; s < n; s++) {
            weight[s] = op->stages[s].weight
                = 0.1 + instance_uniform(&seed);
            for (size_t j = 0; j < op->stages[s].n_demands; j++) {
                const struct order_demand *d = &op->stages[s].demands[j];

                seconds[d->port * n + s] = d->seconds;
            }
        }
        bound = instance_permute(n, crowd->n_ports, seconds, weight,
                                 expected);
        assert_true(fabs(permute(op, 0, order) / bound - 1) < 1e-9);
        assert_memory_equal(order, expected, n * sizeof *order);
        free(seconds);
        order_problem_destroy(op);
    }
}

UNIT_TEST(is_the_same_with_and_without_vectors)
{
    static const double kappas[] = { 0, 0.1, 0.5, 2 };
    uint64_t seed = 2;

    for (size_t i = 0; i < 12 * N_ELEMENTS(crowds); i++) {
        size_t n = 1 + instance_random(&seed) % MAX_STAGES;
        struct order_problem *op
            = create(&seed, &crowds[i % N_ELEMENTS(crowds)], n);

        if (i % 2) {
            make_ties(op);
        }
        if (i % 3) {
            make_releases(&seed, op);
        }
        for (size_t j = 0; j < N_ELEMENTS(kappas); j++) {
            struct answer fast, plain;

            ask(op, kappas[j], &fast);
            permute_use_portable(true);
            ask(op, kappas[j], &plain);
            permute_use_portable(false);
            assert_memory_equal(&fast, &plain, sizeof fast);
        }
        order_problem_destroy(op);
    }
}

UNIT_TEST(repeats_an_order_up_to_the_first_late_end)
{
    static const double kappas[] = { 0.1, 0.5, 1, 2 };
    uint64_t seed = 5;

    for (size_t i = 0; i < 8 * N_ELEMENTS(crowds); i++) {
        size_t n = 1 + instance_random(&seed) % 100;
        struct order_problem *op
            = create(&seed, &crowds[i % N_ELEMENTS(crowds)], n);
        int order[MAX_STAGES], again[MAX_STAGES];

        if (i % 2) {
            make_releases(&seed, op);
        }
        for (size_t j = 0; j < N_ELEMENTS(kappas); j++) {
            double bound = permute(op, kappas[j], order), other;

            permute(op, 0, again);
            other = permute_again(op, kappas[j], again);
            assert_true(fabs(other / bound - 1) < 1e-9);
            assert_memory_equal(order, again, n * sizeof *order);
        }
        order_problem_destroy(op);
    }
}

/* Returns a new problem with the stages of 'op', the largest id first. */
static struct order_problem *
rebuild(const struct order_problem *op)
{
    struct order_problem *copy = order_problem_create(op->n_ports);

    for (size_t i = op->n_stages; i-- > 0; ) {
        const struct order_stage *stage = &op->stages[op->by_id[i]];
        int s = order_problem_add_stage(copy, stage->weight, stage->id);

        for (size_t j = 0; j < stage->n_demands; j++) {
            order_problem_add_demand(copy, s, stage->demands[j].port,
                                     stage->demands[j].seconds);
        }
        order_problem_set_release(copy, s, stage->release, stage->isolated);
    }
    return copy;
}

/* Lets a stage end, begin or change. */
static void
happen(uint64_t *seed, const struct instance_crowd *crowd,
       struct order_problem *op, uint64_t *next_id)
{
    int what = instance_random(seed) % 8;
    int stage = op->n_stages ? instance_random(seed) % op->n_stages : -1;

    if (stage < 0 || (what < 2 && op->n_stages < MAX_STAGES)) {
        instance_add_stage(seed, crowd, op, (*next_id)++ * 7919 % 100003);
    } else if (what < 4) {
        order_problem_remove_stage(op, stage);
    } else {
        int port = instance_random(seed) % crowd->n_ports;

        order_problem_set_demand(op, stage, port,
                                 what < 6 ? 5 * instance_uniform(seed) : 0);
    }
}

UNIT_TEST(is_the_same_after_events_as_from_new)
{
    uint64_t seed = 3, next_id = 1;

    for (size_t i = 0; i < N_ELEMENTS(crowds); i++) {
        struct order_problem *op = create(&seed, &crowds[i], 0);

        for (int event = 0; event < 600; event++) {
            struct order_problem *copy;
            struct answer a, b;

            happen(&seed, &crowds[i], op, &next_id);
            if (event == 300) {
                order_problem_clear(op);
            }
            copy = rebuild(op);
            ask(op, 0, &a);
            ask(copy, 0, &b);
            assert_memory_equal(&a, &b, sizeof a);
            order_problem_destroy(copy);
        }
        order_problem_destroy(op);
    }
}

UNIT_TEST(asks_for_no_memory_once_it_is_warm)
{
    uint64_t seed = 4;
    struct order_problem *op = create(&seed, &crowds[0], MAX_STAGES);
    struct answer answer;
    size_t before;

    ask(op, 0, &answer);
    ask(op, 0.5, &answer);
    before = n_allocations;
    assert_true(before > 0);
    for (int i = 0; i < 200; i++) {
        order_problem_remove_stage(op, instance_random(&seed)
                                   % op->n_stages);
        instance_add_stage(&seed, &crowds[0], op, MAX_STAGES + i);
        ask(op, i % 2 ? 0 : 0.5, &answer);
    }
    order_problem_clear(op);
    for (int i = 0; i < MAX_STAGES; i++) {
        instance_add_stage(&seed, &crowds[0], op, i);
    }
    ask(op, 0, &answer);
    assert_int_equal(n_allocations, before);
    order_problem_destroy(op);
}

#define N_JOBS 50

/* Orders 'op', with its jobs by slack. */
static void
order_all(const struct order_options *options, const struct order_problem *op,
          struct order_result *result)
{
    const int port = 0;
    struct slack_job jobs[N_JOBS];

    order_compute(options, op, result);
    for (int i = 0; i < N_JOBS; i++) {
        jobs[i] = (struct slack_job) {
            .stage = i % op->n_stages, .id = i, .isolated = i * 7 % 20,
            .ports = &port, .n_ports = 1,
        };
    }
    slack_assign(op, result, options, jobs, N_JOBS);
}

/* Makes 'op' another problem of the same size, with stages that come later,
 * that iterate, that have sent something or that wait for an epoch's end. */
static void
change(uint64_t *seed, int round, struct order_problem *op)
{
    const struct instance_crowd *crowd = &crowds[0];

    order_problem_restart(op, crowd->n_ports - round % 2);
    for (int i = 0; i < 60; i++) {
        struct order_traits traits = {
            .arrival = instance_random(seed) % 100,
            .sent = 1e8 * instance_uniform(seed),
            .gain = instance_uniform(seed),
            .early = i % 3 == 0,
            .period = round / 2 % 2 ? 1 : 0,
        };

        instance_add_stage(seed, &(struct instance_crowd) {
            op->n_ports, crowd->ports_per_stage, crowd->skew,
        }, op, i);
        order_problem_set_release(op, i, round / 4 % 2 ? i : 0, 1);
        order_problem_set_traits(op, i, &traits);
    }
    order_problem_age(op, 10, 10);
    op->now = 1000;
}

UNIT_TEST(no_order_asks_for_memory_once_it_is_warm)
{
    for (int kind = 0; kind < ORDER_N_KINDS; kind++) {
        struct order_problem *op = order_problem_create(0);
        struct order_options options = ORDER_OPTIONS_INIT(kind);
        struct order_result result;
        size_t before = 0;
        uint64_t seed = 5;

        options.improve_moves = 1000;
        options.improve_s = INFINITY;
        order_result_init(&result);
        for (int round = 0; round < 48; round++) {
            if (round == 16) {
                before = n_allocations;
            }
            options.epoch_s = round / 8 % 2 ? 0.3 : 0;
            options.truncate = round % 3 == 0;
            change(&seed, round, op);
            order_all(&options, op, &result);
        }
        assert_int_equal(n_allocations, before);
        order_result_uninit(&result);
        order_problem_destroy(op);
    }
}

UNIT_TEST(a_removed_stage_leaves_its_index_to_the_last)
{
    struct order_problem *op = order_problem_create(2);

    for (int i = 0; i < 3; i++) {
        order_problem_add_stage(op, 1, 10 * i);
        order_problem_add_demand(op, i, 1, 1 + i);
    }
    order_problem_remove_stage(op, 0);
    assert_int_equal(op->n_stages, 2);
    assert_int_equal(op->stages[0].id, 20);
    assert_int_equal(op->stages[1].id, 10);
    assert_int_equal(op->by_id[0], 1);
    assert_int_equal(op->by_id[1], 0);
    assert_int_equal(op->n_on_port[1], 2);

    order_problem_set_demand(op, 0, 1, 0);
    assert_int_equal(op->stages[0].n_demands, 0);
    order_problem_set_demand(op, 0, 0, 5);
    order_problem_set_demand(op, 0, 0, 4);
    assert_int_equal(op->stages[0].n_demands, 1);
    assert_true(op->stages[0].demands[0].seconds == 4);
    assert_int_equal(op->n_on_port[0], 1);
    assert_int_equal(op->n_on_port[1], 1);
    order_problem_destroy(op);
}
