/* SPDX-License-Identifier: Apache-2.0 */

#include <limits.h>
#include <math.h>
#include <stdint.h>

#include "order/baselines/baselines.h"
#include "order/order.h"
#include "tests/unit/assert-near.h"
#include "tests/unit/order/order-instance.h"

/* Adds a stage that needs these seconds of ports 0, 1 and 2. */
static struct order_stage *
add(struct order_problem *op, uint64_t id, double seconds_0, double seconds_1,
    double seconds_2)
{
    int s = order_problem_add_stage(op, 1, id);

    order_problem_add_demand(op, s, 0, seconds_0);
    order_problem_add_demand(op, s, 1, seconds_1);
    order_problem_add_demand(op, s, 2, seconds_2);
    return &op->stages[s];
}

/* The order of 'kind' without improvement, with a level for each stage. */
static struct order_options
exact(enum order_kind kind)
{
    struct order_options options = ORDER_OPTIONS_INIT(kind);

    options.n_levels = INT_MAX;
    options.improve_moves = 0;
    return options;
}

static void
compute(enum order_kind kind, const struct order_problem *op,
        struct order_result *result)
{
    struct order_options options = exact(kind);

    order_compute(&options, op, result);
}

/* Checks that stages with 'ids', 0-terminated, are served in their order. */
static void
assert_order(const struct order_problem *op, const struct order_result *result,
             const uint64_t *ids)
{
    for (size_t k = 0; k < op->n_stages; k++) {
        assert_int_equal(op->stages[result->order[k]].id, ids[k]);
    }
    assert_int_equal(ids[op->n_stages], 0);
}

#define ASSERT_ORDER(OP, RESULT, ...) \
    assert_order(OP, RESULT, (const uint64_t[]) { __VA_ARGS__, 0 })

/* What is true of every order. */

static const struct instance_shape shapes[] = {
    { 7, 4, false, false, false },
    { 7, 3, true, false, true },
    { 7, 4, true, true, false },
};

/* Small numbers, so that there are ties. */
static void
add_random_traits(struct order_problem *op, uint64_t *seed)
{
    op->now = instance_random(seed) % 100 / 4.0;
    for (size_t i = 0; i < op->n_stages; i++) {
        struct order_traits traits = {
            .arrival = instance_random(seed) % 5,
            .sent = exp10(instance_random(seed) % 12),
            .bytes = instance_random(seed) % 4 * 1e6,
            .initial = instance_random(seed) % 3,
            .intensity = instance_random(seed) % 3,
            .gain = instance_random(seed) % 4 ? instance_random(seed) % 3
                                              : INFINITY,
            .early = instance_random(seed) % 2,
            .period = instance_random(seed) % 3,
        };

        order_problem_set_traits(op, i, &traits);
    }
}

/* Calls 'check' with random problems, for each order and for few levels and
 * many. */
static void
for_orders(uint64_t seed, void (*check)(const struct order_options *,
           const struct order_problem *))
{
    static const int n_levels[] = { 1, 2, 6, INT_MAX };

    for (int i = 0; i < 60; i++) {
        struct order_problem *op = instance_create(
            &seed, &shapes[i % N_ELEMENTS(shapes)]);

        instance_begin_all(op);
        add_random_traits(op, &seed);
        for (int kind = 0; kind < ORDER_N_KINDS; kind++) {
            struct order_options options = exact(kind);

            options.n_levels = n_levels[i % N_ELEMENTS(n_levels)];
            options.truncate = i % 5 == 0;
            options.epoch_s = i % 7 == 0 ? 0.25 : 0;
            check(&options, op);
        }
        order_problem_destroy(op);
    }
}

static void
check_levels(const struct order_options *options,
             const struct order_problem *op,
             const struct order_result *result)
{
    bool rank = order_classes[options->kind].service != ORDER_SERVICE_SHARE;

    for (size_t k = 0; k < op->n_stages; k++) {
        int s = result->order[k];

        assert_in_range(result->level[s], 0, options->n_levels - 1);
        for (size_t l = 0; l < k; l++) {
            int before = result->order[l];

            if (instance_share_a_port(&op->stages[before], &op->stages[s])) {
                assert_true(result->level[before] <= result->level[s]);
                if (rank && options->n_levels == INT_MAX) {
                    assert_true(result->level[before] < result->level[s]);
                }
            }
        }
    }
}

static void
check_result(const struct order_options *options,
             const struct order_problem *op)
{
    bool seen[INSTANCE_MAX_STAGES] = { false };
    struct order_result result;
    double sum = 0;

    order_result_init(&result);
    order_compute(options, op, &result);
    assert_int_equal(result.n, op->n_stages);
    for (size_t k = 0; k < op->n_stages; k++) {
        int s = result.order[k];

        assert_in_range(s, 0, op->n_stages - 1);
        assert_false(seen[s]);
        seen[s] = true;
        assert_int_equal(result.rank[s], k);
        assert_true(result.completion[s]
                    >= order_stage_earliest_end(&op->stages[s]));
        assert_true(result.sent_limit[s] > op->stages[s].traits.sent);
        sum += op->stages[s].weight * result.completion[s];
    }
    assert_near(result.estimate, sum);
    assert_true(result.bound >= 0 && result.bound <= result.estimate);
    check_levels(options, op, &result);
    order_result_uninit(&result);
}

UNIT_TEST(every_order_is_an_order)
{
    for_orders(1, check_result);
}

/* Returns 'op' with its stages in the opposite order. */
static struct order_problem *
reversed(const struct order_problem *op)
{
    struct order_problem *other = order_problem_create(op->n_ports);

    other->now = op->now;
    for (size_t i = op->n_stages; i-- > 0; ) {
        const struct order_stage *stage = &op->stages[i];
        int s = order_problem_add_stage(other, stage->weight, stage->id);

        order_problem_set_release(other, s, stage->release, stage->isolated);
        order_problem_set_traits(other, s, &stage->traits);
        for (size_t j = 0; j < stage->n_demands; j++) {
            order_problem_add_demand(other, s, stage->demands[j].port,
                                     stage->demands[j].seconds);
        }
    }
    return other;
}

static void
check_relabelled(const struct order_options *options,
                 const struct order_problem *op)
{
    struct order_problem *other = reversed(op);
    struct order_result a, b;

    order_result_init(&a);
    order_result_init(&b);
    order_compute(options, op, &a);
    order_compute(options, other, &b);
    for (size_t i = 0; i < op->n_stages; i++) {
        size_t j = op->n_stages - 1 - i;

        assert_int_equal(a.rank[i], b.rank[j]);
        assert_int_equal(a.level[i], b.level[j]);
        assert_true(a.sent_limit[i] == b.sent_limit[j]);
        assert_near(a.completion[i], b.completion[j]);
    }
    order_result_uninit(&a);
    order_result_uninit(&b);
    order_problem_destroy(other);
}

UNIT_TEST(no_order_depends_on_the_order_of_stages)
{
    for_orders(2, check_relabelled);
}

UNIT_TEST(every_order_breaks_ties_by_id)
{
    for (int kind = 0; kind < ORDER_N_KINDS; kind++) {
        struct order_problem *op = order_problem_create(3);
        struct order_result result;

        order_result_init(&result);
        add(op, 30, 1, 2, 0);
        add(op, 10, 1, 2, 0);
        add(op, 20, 1, 2, 0);
        compute(kind, op, &result);
        ASSERT_ORDER(op, &result, 10, 20, 30);
        order_result_uninit(&result);
        order_problem_destroy(op);
    }
}

/* The problem of each test that follows, and its order. */
static struct order_problem *op;
static struct order_result result;

static int
set_up(void **state)
{
    op = order_problem_create(20);
    order_result_init(&result);
    return 0;
}

static int
tear_down(void **state)
{
    order_result_uninit(&result);
    order_problem_destroy(op);
    return 0;
}

FIXTURE_TEST(a_trait_that_is_no_number_goes_last)
{
    add(op, 1, 1, 0, 0)->traits.arrival = NAN;
    add(op, 2, 1, 0, 0)->traits.arrival = 1;
    add(op, 3, 1, 0, 0)->traits.arrival = 2;
    compute(ORDER_FIFO, op, &result);
    ASSERT_ORDER(op, &result, 3, 2, 1);
}

FIXTURE_TEST(truncation_counts_the_whole_order)
{
    struct order_options options = exact(ORDER_SINCRONIA);

    /* Two ports, where stages never meet. */
    add(op, 1, 1, 0, 0);
    add(op, 2, 0, 2, 0);
    add(op, 3, 3, 0, 0);
    add(op, 4, 0, 4, 0);
    options.n_levels = 3;
    order_compute(&options, op, &result);
    for (int s = 0; s < 4; s++) {
        assert_int_equal(result.level[s], s / 2);
    }
    options.truncate = true;
    order_compute(&options, op, &result);
    for (int s = 0; s < 4; s++) {
        assert_int_equal(result.level[s], s < 2 ? s : 2);
    }
}

/* First come, first served. */

FIXTURE_TEST(fifo_goes_by_arrival)
{
    add(op, 1, 1, 0, 0)->traits.arrival = 1;
    add(op, 2, 9, 0, 0)->traits.arrival = 5;
    add(op, 3, 2, 0, 0)->traits.arrival = -3;
    add(op, 4, 5, 0, 0)->traits.arrival = 2;
    compute(ORDER_FIFO, op, &result);
    ASSERT_ORDER(op, &result, 2, 4, 1, 3);
    assert_near(result.completion[0], 15);
    assert_near(result.completion[2], 17);
}

FIXTURE_TEST(fifo_lm_lets_heavy_ones_share_with_the_next)
{
    static const struct {
        double sent, limit;
        int level;
    } stages[] = {
        { 50, 100, 0 },         /* Light: the next one waits. */
        { 100, INFINITY, 1 },   /* Heavy, */
        { 300, INFINITY, 1 },   /* heavy too, */
        { 99, 100, 1 },         /* and the light one that closes the group. */
        { 0, 100, 2 },
        { 400, INFINITY, 3 },
    };
    struct order_options options = exact(ORDER_FIFO_LM);

    options.heavy_bytes = 100;
    for (size_t i = 0; i < N_ELEMENTS(stages); i++) {
        struct order_stage *stage = add(op, i + 1, 1, 0, 0);

        stage->traits.arrival = 10.0 - i;
        stage->traits.sent = stages[i].sent;
    }
    order_compute(&options, op, &result);
    ASSERT_ORDER(op, &result, 1, 2, 3, 4, 5, 6);
    for (size_t i = 0; i < N_ELEMENTS(stages); i++) {
        assert_int_equal(result.level[i], stages[i].level);
        assert_true(result.sent_limit[i] == stages[i].limit);
    }
    options.n_levels = 3;
    order_compute(&options, op, &result);
    assert_int_equal(result.level[5], 2);
}

FIXTURE_TEST(estimates_levels_that_share)
{
    struct order_options options = exact(ORDER_FIFO_LM);

    /* 4 seconds, heavy, share with 1 second: at 2 the short one ends, at 5 the
     * heavy one, and then comes the third.  Port 1 is shared by the latter
     * two only, which do not share a level. */
    options.heavy_bytes = 100;
    add(op, 1, 4, 0, 0)->traits.sent = 100;
    add(op, 2, 1, 1, 0);
    add(op, 3, 2, 7, 0);
    order_compute(&options, op, &result);
    assert_near(result.completion[0], 5);
    assert_near(result.completion[1], 2);
    assert_near(result.completion[2], 8);
    assert_near(result.estimate, 15);
}

/* By size. */

/* Varys' bad case: on each of twenty ports a stage with two seconds, and four
 * stages with one second of each port. */
static void
add_wide_and_narrow(void)
{
    for (int i = 0; i < 20; i++) {
        order_problem_add_demand(op, order_problem_add_stage(op, 1, i), i, 2);
    }
    for (int i = 20; i < 24; i++) {
        order_problem_add_stage(op, 1, i);
        for (int p = 0; p < 20; p++) {
            order_problem_add_demand(op, i, p, 1);
        }
    }
}

FIXTURE_TEST(sincronia_sees_that_wide_ones_hold_up_many)
{
    add_wide_and_narrow();
    compute(ORDER_SEBF, op, &result);
    assert_near(result.estimate, (1 + 2 + 3 + 4) + 20 * (4 + 2));

    /* Two narrow ones take half of the wide ones' weight each; then wide ones
     * are cheaper to delay than the other eighteen. */
    compute(ORDER_SINCRONIA, op, &result);
    assert_near(result.estimate, 18 * 2 + (3 + 4 + 5 + 6) + 2 * 6);
}

FIXTURE_TEST(sizes_differ_by_what_is_counted)
{
    struct order_stage *stage;

    stage = add(op, 1, 3, 3, 3);
    stage->traits.initial = 20;
    stage->traits.bytes = 1e6;
    stage = add(op, 2, 5, 0, 0);
    stage->traits.bytes = 9e6;
    stage = add(op, 3, 4, 4, 0);
    stage->traits.initial = 10;
    stage->traits.bytes = 5e6;

    compute(ORDER_SEBF, op, &result);
    ASSERT_ORDER(op, &result, 1, 3, 2);
    compute(ORDER_SEBF_STATIC, op, &result);
    ASSERT_ORDER(op, &result, 2, 3, 1);
    compute(ORDER_TCF, op, &result);
    ASSERT_ORDER(op, &result, 1, 3, 2);

    /* Bytes that are not known of all do not count. */
    op->stages[2].traits.bytes = 0;
    compute(ORDER_TCF, op, &result);
    ASSERT_ORDER(op, &result, 2, 3, 1);
}

/* By what has been sent. */

FIXTURE_TEST(dclas_demotes_by_bytes_sent)
{
    static const struct {
        double sent, limit;
        int level;
    } stages[] = {
        { 5000, INFINITY, 5 },  /* The last queue has no end. */
        { 999, 1000, 2 },
        { 100, 1000, 3 },       /* Demoted at the limit. */
        { 9, 10, 0 },
        { 0, 10, 1 },
        { 1e3 * (1 - 1e-15), INFINITY, 4 },     /* But for rounding. */
    };
    struct order_options options = exact(ORDER_DCLAS);

    options.first_bytes = 10;
    options.factor = 100;
    options.n_queues = 3;
    for (size_t i = 0; i < N_ELEMENTS(stages); i++) {
        struct order_stage *stage = add(op, i + 1, 1, 0, 0);

        stage->traits.arrival = i == 5 ? 20 : 10.0 - i;
        stage->traits.sent = stages[i].sent;
    }
    order_compute(&options, op, &result);
    ASSERT_ORDER(op, &result, 4, 5, 2, 3, 6, 1);
    for (size_t i = 0; i < N_ELEMENTS(stages); i++) {
        assert_int_equal(result.level[i], stages[i].level);
        assert_true(result.sent_limit[i] == stages[i].limit);
    }
}

FIXTURE_TEST(las_lets_those_share_that_sent_as_much)
{
    add(op, 1, 1, 0, 0)->traits.sent = 1.3e6;
    add(op, 2, 9, 0, 0)->traits.sent = 2e5;
    add(op, 3, 5, 0, 0)->traits.sent = 1.5e6;
    add(op, 4, 2, 0, 0)->traits.sent = 1e12;
    add(op, 5, 2, 0, 0)->traits.sent = INFINITY;
    compute(ORDER_LAS, op, &result);
    ASSERT_ORDER(op, &result, 2, 1, 3, 4, 5);
    assert_int_equal(result.level[1], 0);
    assert_int_equal(result.level[0], 1);
    assert_int_equal(result.level[2], 1);
    assert_int_equal(result.level[3], 2);
    assert_int_equal(result.level[4], 3);
    assert_near(result.sent_limit[1], 1e6);
    assert_near(result.sent_limit[0], 1.25 * 1.25 * 1e6);
    assert_near(result.sent_limit[2], 1.25 * 1.25 * 1e6);
    assert_true(result.sent_limit[3] > 1e12
                && result.sent_limit[3] <= 1.25e12);
}

/* Jobs. */

FIXTURE_TEST(intensity_goes_by_computing_per_network)
{
    add(op, 1, 1, 0, 0);
    add(op, 2, 9, 0, 0)->traits.intensity = 2;
    add(op, 3, 3, 0, 0)->traits.intensity = 8;
    add(op, 4, 5, 0, 0)->traits.intensity = 2;
    compute(ORDER_INTENSITY, op, &result);
    ASSERT_ORDER(op, &result, 3, 4, 2, 1);
}

static struct order_stage *
add_early(uint64_t id, double seconds, bool early, double gain)
{
    struct order_stage *stage = add(op, id, seconds, 0, 0);

    stage->traits.early = early;
    stage->traits.gain = gain;
    return stage;
}

FIXTURE_TEST(early_phases_that_end_soon_go_first)
{
    add_early(1, 1, false, 100);
    add_early(2, 4, true, 4);
    add_early(3, 1, true, 2);
    add_early(4, 7, true, INFINITY);
    add_early(5, 6, true, INFINITY);
    add_early(6, 2, false, 300);
    add_early(7, 2, true, 0);
    compute(ORDER_EARLY, op, &result);
    ASSERT_ORDER(op, &result, 3, 2, 5, 4, 1, 6, 7);

    /* The predicted end counts more than the gain. */
    op->stages[1].traits.iterations_to_theta = 7;
    op->stages[2].traits.iterations_to_theta = 5;
    compute(ORDER_EARLY, op, &result);
    ASSERT_ORDER(op, &result, 3, 5, 4, 2, 1, 6, 7);
}

FIXTURE_TEST(early_phases_weigh_what_their_searches_do)
{
    add_early(1, 1, true, 1);
    add_early(2, 9, true, 1)->traits.early_weight = 10;
    compute(ORDER_EARLY, op, &result);
    ASSERT_ORDER(op, &result, 2, 1);
    op->stages[1].traits.early_weight = 8;
    compute(ORDER_EARLY, op, &result);
    ASSERT_ORDER(op, &result, 1, 2);
}

FIXTURE_TEST(early_phases_count_before_demands_are_known)
{
    add_early(1, 0, false, 100);
    add_early(2, 1, false, 1);
    add_early(3, 0, true, 1);
    add_early(4, 0, true, INFINITY);
    add_early(5, 0, false, 1);
    compute(ORDER_EARLY, op, &result);
    ASSERT_ORDER(op, &result, 4, 3, 1, 5, 2);
}

/* Neither the cost nor the phase counts. */
FIXTURE_TEST(maif_goes_by_gain_alone)
{
    add_early(1, 9, false, 3);
    add_early(2, 1, true, 2)->traits.iterations_to_theta = 1;
    add_early(3, 7, true, INFINITY);
    add_early(4, 6, true, INFINITY)->traits.arrival = 1;
    add_early(5, 1, true, -1);
    add_early(6, 2, false, 0)->traits.arrival = 2;
    compute(ORDER_MAIF, op, &result);
    ASSERT_ORDER(op, &result, 4, 3, 1, 2, 6, 5);
}

FIXTURE_TEST(earliness_is_worth_a_bounded_weight)
{
    struct order_options options = exact(ORDER_STAGE_EARLY);

    /* One port: by weight per second.  With a boost of 1 the early stages
     * count as 2 (before samples) and 1.5 (a gain of 1). */
    options.early_boost = 1;
    add_early(1, 1.3, false, 50);
    add_early(2, 1.9, true, 1);
    add_early(3, 2.5, true, INFINITY);
    add_early(4, 2.7, true, INFINITY);
    order_compute(&options, op, &result);
    ASSERT_ORDER(op, &result, 3, 2, 1, 4);

    /* What it costs is in terms of the weights that were asked for. */
    assert_near(result.estimate, 2.5 + 4.4 + 5.7 + 8.4);
    assert_near(result.bound, 1.3 + 3.2 + 5.7 + 8.4);

    options.early_boost = 0;
    order_compute(&options, op, &result);
    ASSERT_ORDER(op, &result, 1, 2, 3, 4);
    assert_near(result.estimate, result.bound);
}

/* Sincronia in time. */

UNIT_TEST(epochs_double_and_begin_anew)
{
    static const struct {
        double now, begin, end;
    } epochs[] = {
        { 0, 0, 1 }, { 0.9, 0, 1 }, { 1, 1, 3 }, { 2.9, 1, 3 }, { 3, 3, 7 },
        { 100, 63, 127 }, { 127, 127, 255 }, { 254.9, 127, 255 },
        { 255, 255, 256 }, { 256.5, 256, 258 }, { 510, 510, 511 },
    };

    for (size_t i = 0; i < N_ELEMENTS(epochs); i++) {
        double begin, end;

        sincronia_epoch(0.1, epochs[i].now * 0.1, &begin, &end);
        assert_near(begin, epochs[i].begin * 0.1);
        assert_near(end, epochs[i].end * 0.1);
    }
}

/* A loop from one end to the next must advance. */
UNIT_TEST(epochs_follow_each_other)
{
    double now = 1.7e9;

    for (int i = 0; i < 1000; i++) {
        double begin, end, next_begin, next_end;

        sincronia_epoch(0.1, now, &begin, &end);
        sincronia_epoch(0.1, end, &next_begin, &next_end);
        assert_true(begin <= now && now < end);
        assert_true(next_begin <= end && end < next_end);
        now = end;
    }
    assert_true(now > 1.7e9 + 1000 / 8 * 25.5 - 26);
}

FIXTURE_TEST(sincronia_puts_orphans_behind)
{
    struct order_options options = exact(ORDER_SINCRONIA);

    /* The epoch began at 7; its longest takes 128. */
    options.epoch_s = 1;
    op->now = 14;
    add(op, 1, 9, 0, 0)->traits.arrival = 7;
    add(op, 2, 1, 0, 0)->traits.arrival = 0.5;
    add(op, 3, 1.02, 0, 0)->traits.arrival = 5;
    add(op, 4, 8, 0, 0)->traits.arrival = 10;
    order_compute(&options, op, &result);
    ASSERT_ORDER(op, &result, 4, 1, 3, 2);      /* 1.02/133 < 1/128.5. */

    /* The next one finds them there. */
    op->now = 15.1;
    for (int s = 0; s < 4; s++) {
        op->stages[s].traits.arrival += 1.1;
    }
    order_compute(&options, op, &result);
    ASSERT_ORDER(op, &result, 2, 3, 4, 1);

    /* Without epochs, each event finds all. */
    op->now = 14;
    options.epoch_s = 0;
    order_compute(&options, op, &result);
    ASSERT_ORDER(op, &result, 2, 3, 4, 1);
}
