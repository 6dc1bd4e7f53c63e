/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdint.h>

#include "order/problem/progress-curve.h"
#include "tests/unit/order/order-instance.h"
#include "tests/unit/unit-test.h"

static const struct progress_options defaults = PROGRESS_OPTIONS_INIT;

static void
assert_within(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance)) {
        fail_msg("%.17g is not within %g of %.17g", a, tolerance, b);
    }
}

static double
curve_at(double limit, double span, double exponent, double k)
{
    return limit - span * pow(k + 1, -exponent);
}

/* Adds 'n' samples, one a second, 'stride' iterations from each to the next,
 * each up to 'noise' off. */
static void
add_samples(struct progress_curve *curve, double limit, double span,
            double exponent, int n, int stride, double noise)
{
    uint64_t seed = 1;

    for (int i = 0; i < n; i++) {
        double off = noise * (2 * instance_uniform(&seed) - 1);

        progress_curve_add(curve, i * stride,
                           curve_at(limit, span, exponent, i * stride) + off,
                           i);
    }
}

static double
gain(struct progress_curve *curve, double k, double iteration_s, double now)
{
    double g;
    bool early;

    progress_curve_score(curve, &defaults, k, iteration_s, now, &g, &early);
    return g;
}

static bool
is_early(struct progress_curve *curve, double theta, double k, double now)
{
    struct progress_options options = defaults;
    double g;
    bool early;

    options.theta = theta;
    progress_curve_score(curve, &options, k, 1, now, &g, &early);
    return early;
}

/* The fit. */

UNIT_TEST(finds_an_exact_curve)
{
    static const double exponents[] = { 0.25, 0.5, 1, 1.7 };

    for (int i = 0; i < 4; i++) {
        struct progress_curve curve;
        double g = exponents[i], rises;

        progress_curve_init(&curve, 0);
        add_samples(&curve, 0.9, 0.8, g, 40, 1, 0);
        rises = curve_at(0.9, 0.8, g, 39 + 5) - curve_at(0.9, 0.8, g, 39);
        assert_within(gain(&curve, 39, 1, 39),
                      rises / (0.8 - 0.8 * pow(2, -g)), 1e-4);
        assert_within(curve.limit, 0.9, 1e-3);
        assert_within(curve.exponent, g, 1e-3);
    }
}

UNIT_TEST(finds_the_limit_in_noise)
{
    static const double exponents[] = { 0.5, 0.8, 1.2 };

    for (int i = 0; i < 3; i++) {
        for (int n = 100; n <= 10000; n *= 10) {
            struct progress_curve curve;

            progress_curve_init(&curve, 0);
            add_samples(&curve, 0.9, 0.8, exponents[i], n, 1, 0.01);
            gain(&curve, n, 1, n);
            assert_within(curve.limit, 0.9, 0.03);
        }
    }
}

UNIT_TEST(keeps_the_beginning_of_a_long_curve)
{
    struct progress_curve curve;

    progress_curve_init(&curve, 0);
    add_samples(&curve, 0.9, 0.8, 0.5, 100000, 1, 0);
    assert_int_equal(curve.n, PROGRESS_WINDOW);
    assert_true(curve.samples[0].k == 0);
    assert_true(curve.samples[3].k < 10);
    assert_true(curve.samples[PROGRESS_WINDOW - 1].k == 99999);
    for (size_t i = 1; i < curve.n; i++) {
        assert_true(curve.samples[i].k > curve.samples[i - 1].k);
    }
    gain(&curve, 99999, 1, 99999);
    assert_within(curve.limit, 0.9, 1e-4);
}

UNIT_TEST(a_metric_that_does_not_grow_gains_nothing)
{
    struct progress_curve curve;

    progress_curve_init(&curve, 0);
    for (int k = 0; k < 20; k++) {
        progress_curve_add(&curve, k, 0.5, k);
    }
    assert_true(gain(&curve, 19, 1, 19) == 0);
    assert_false(is_early(&curve, 0.95, 19, 19));

    /* A falling one neither: its best stays. */
    for (int k = 20; k < 40; k++) {
        progress_curve_add(&curve, k, 0.5 - k / 100.0, k);
    }
    assert_true(gain(&curve, 39, 1, 39) == 0);
    assert_within(curve.limit, 0.5, 1e-9);
}

UNIT_TEST(units_do_not_matter)
{
    struct progress_curve share, percent;

    progress_curve_init(&share, 0);
    progress_curve_init(&percent, 0);
    add_samples(&share, 0.9, 0.8, 0.6, 30, 1, 0.01);
    add_samples(&percent, 90, 80, 0.6, 30, 1, 1);
    assert_within(gain(&share, 29, 0.5, 29), gain(&percent, 29, 0.5, 29),
                  1e-6);
}

UNIT_TEST(gain_is_for_a_period)
{
    struct progress_curve curve;
    double slow, fast;

    progress_curve_init(&curve, 0);
    add_samples(&curve, 0.9, 0.8, 1, 20, 1, 0);

    /* One iteration in 5 seconds, or ten. */
    slow = gain(&curve, 19, 5, 19);
    fast = gain(&curve, 19, 0.5, 19);
    assert_within(slow, (1 / 20.0 - 1 / 21.0) / 0.5, 1e-5);
    assert_within(fast, (1 / 20.0 - 1 / 30.0) / 0.5, 1e-5);

    /* Without a duration, one. */
    assert_within(gain(&curve, 19, 0, 19), slow, 1e-12);

    /* It has gone on since its last sample. */
    assert_within(gain(&curve, 29, 0.5, 19), (1 / 30.0 - 1 / 40.0) / 0.5,
                  1e-5);
    assert_within(gain(&curve, 3, 0.5, 19), fast, 1e-12);
}

/* Early or not. */

UNIT_TEST(is_early_below_theta_of_the_limit)
{
    /* 2 - 2 / (k + 1): 0.95 of 2 is reached with k = 19, 0.9 with k = 9. */
    for (int n = 6; n < 40; n++) {
        struct progress_curve curve;

        progress_curve_init(&curve, 0);
        add_samples(&curve, 2, 2, 1, n, 1, 0);
        assert_int_equal(is_early(&curve, 0.949, n, n), n < 20);
        assert_int_equal(is_early(&curve, 0.899, n, n), n < 10);
    }
}

UNIT_TEST(a_loss_counts_from_where_it_began)
{
    /* From -3 to -1: 0.9 of the way is reached with k = 9. */
    for (int n = 6; n < 20; n++) {
        struct progress_curve curve;

        progress_curve_init(&curve, 0);
        add_samples(&curve, -1, 2, 1, n, 1, 0);
        assert_int_equal(is_early(&curve, 0.899, n, n), n < 10);
    }
}

/* The begin of a trial of two classes, with a power law that would be above 1,
 * and the same in what its accuracy lacks of 1. */
UNIT_TEST(a_share_is_expected_to_stay_below_one)
{
    static const double values[] = { 0.51, 0.5, 0.66, 0.88 };

    for (int loss = 0; loss < 2; loss++) {
        struct progress_curve curve;

        progress_curve_init(&curve, 0);
        for (int i = 0; i < 3; i++) {
            progress_curve_add(&curve, 2 * i, values[i] - loss, i);
        }
        progress_curve_add(&curve, 5, 0.7 - loss, 3);
        assert_true(is_early(&curve, 0.9, 5, 3));
        progress_curve_add(&curve, 6, (loss ? 0.93 : 0.88) - loss, 4);
        assert_false(is_early(&curve, 0.9, 6, 4));
    }
}

UNIT_TEST(few_samples_are_early)
{
    struct progress_curve curve;

    progress_curve_init(&curve, 0);
    for (int i = 0; i < 6; i++) {
        progress_curve_add(&curve, 1000 + i, 0.5, i);
        assert_int_equal(is_early(&curve, 0.95, 1000 + i, i), i < 4);
    }
}

/* Without samples, or without any more. */

UNIT_TEST(a_silent_job_is_not_preferred_for_long)
{
    struct progress_curve curve;

    progress_curve_init(&curve, 100);
    assert_true(isinf(gain(&curve, 0, 1, 100)));
    assert_true(isinf(gain(&curve, 4, 1, 399)));
    assert_true(is_early(&curve, 0.95, 50, 399));

    /* By iterations... */
    assert_within(gain(&curve, 5, 5, 105), (1 / 6.0 - 1 / 7.0) / 0.5, 1e-12);

    /* ...and by time, when it is early only as the prior goes. */
    assert_within(gain(&curve, 0, 5, 400), 1, 1e-12);
    assert_true(is_early(&curve, 0.95, 18, 400));
    assert_false(is_early(&curve, 0.95, 19, 400));
    assert_true(gain(&curve, 1e6, 5, 400) < 1e-11);
}

UNIT_TEST(too_few_samples_to_fit_have_the_prior)
{
    struct progress_curve curve;

    progress_curve_init(&curve, 0);
    for (int i = 0; i < 3; i++) {
        progress_curve_add(&curve, 9 + i, 0.1 * i, i);
        assert_within(gain(&curve, 9 + i, 5, i),
                      2 * (1.0 / (10 + i) - 1.0 / (11 + i)), 1e-12);
    }
    progress_curve_add(&curve, 12, 0.3, 3);
    assert_true(gain(&curve, 12, 5, 3) > 0.5);
}

UNIT_TEST(a_stale_gain_is_frozen_and_halves)
{
    struct progress_curve curve;
    double fresh;

    /* A sample a second: late after ten. */
    progress_curve_init(&curve, 0);
    add_samples(&curve, 0.9, 0.8, 0.5, 20, 1, 0);
    fresh = gain(&curve, 19, 0.1, 19);
    assert_within(gain(&curve, 19, 0.1, 28.9), fresh, 1e-12);
    assert_within(gain(&curve, 1000, 0.1, 29 + 5), fresh / 2, 1e-12);
    assert_within(gain(&curve, 1000, 0.1, 29 + 15), fresh / 8, 1e-12);

    /* Or after ten iterations. */
    assert_within(gain(&curve, 19, 5, 19 + 50), gain(&curve, 19, 5, 19),
                  1e-12);
    assert_true(gain(&curve, 19, 5, 19 + 60) < gain(&curve, 19, 5, 19) / 3);
}

UNIT_TEST(a_stale_job_is_not_early_for_its_few_samples)
{
    struct progress_curve curve;

    progress_curve_init(&curve, 0);
    progress_curve_add(&curve, 100, 0.5, 10);
    assert_true(is_early(&curve, 0.95, 100, 310));
    assert_false(is_early(&curve, 0.95, 100, 311));
}

/* Unusual logs. */

UNIT_TEST(several_values_of_an_iteration_are_one)
{
    struct progress_curve curve;

    progress_curve_init(&curve, 0);
    for (int i = 0; i < 50; i++) {
        progress_curve_add(&curve, i / 10, i % 10 == 4 ? 0.1 * i : 0, i);
    }
    assert_int_equal(curve.n, 5);
    for (int i = 0; i < 5; i++) {
        assert_within(curve.samples[i].value, 0.1 * (10 * i + 4), 1e-12);
    }
}

UNIT_TEST(forgets_what_a_restart_undoes)
{
    struct progress_curve curve, other;

    progress_curve_init(&curve, 0);
    progress_curve_init(&other, 0);
    for (int k = 0; k < 30; k++) {
        double value = k < 10 ? curve_at(0.5, 0.4, 1, k) : 100 + k;

        progress_curve_add(&curve, k, value, k);
    }
    for (int k = 0; k < 20; k++) {
        double value = curve_at(0.5, 0.4, 1, k);

        if (k >= 10) {
            progress_curve_add(&curve, k, value, 20 + k);
        }
        progress_curve_add(&other, k, value, 20 + k);
    }
    assert_int_equal(curve.n, 20);
    assert_within(gain(&curve, 19, 1, 39), gain(&other, 19, 1, 39), 1e-12);
    assert_within(curve.limit, 0.5, 1e-3);

    /* From the beginning: all of it, the floor too. */
    progress_curve_add(&curve, 0, -7, 50);
    assert_int_equal(curve.n, 1);
    assert_within(curve.samples[0].value, -7, 0);
    assert_within(curve.floor, -7, 0);
}

UNIT_TEST(ignores_what_is_no_number)
{
    struct progress_curve curve;

    progress_curve_init(&curve, 0);
    progress_curve_add(&curve, 1, NAN, 0);
    progress_curve_add(&curve, 1, INFINITY, 0);
    progress_curve_add(&curve, NAN, 1, 0);
    progress_curve_add(&curve, -1, 1, 0);
    assert_int_equal(curve.n, 0);
}

/* Whatever is logged, a score is a number, not negative, and finite once there
 * are samples. */
UNIT_TEST(scores_any_log)
{
    uint64_t seed = 4;

    for (int i = 0; i < 2000; i++) {
        struct progress_curve curve;
        double scale = exp10(instance_random(&seed) % 20) * 1e-10;
        double k = 0, now = 0;

        progress_curve_init(&curve, 0);
        for (int j = instance_random(&seed) % 100; j >= 0; j--) {
            double g;
            bool early;

            k = instance_random(&seed) % 10 ? k + instance_random(&seed) % 5
                                            : instance_random(&seed);
            now += instance_uniform(&seed);
            progress_curve_add(&curve, k,
                               scale * (instance_uniform(&seed) - 0.5), now);
            progress_curve_score(&curve, &defaults, k,
                                 instance_random(&seed) % 3, now, &g, &early);
            assert_true(isfinite(g) && g >= 0);
        }
    }
}

/* The prior is 1 - 1 / (k + 1): at 0.9 after 9.  A job without samples and one
 * with a few are taken for that. */
UNIT_TEST(predicts_the_end_of_the_early_stage)
{
    const struct progress_options options = {
        .theta = 0.9, .samples = 4, .boot_s = 300, .period_s = 5,
    };
    struct progress_curve curve;

    progress_curve_init(&curve, 0);
    assert_float_equal(progress_curve_to_theta(&curve, &options, 0), 9, 1e-9);
    assert_float_equal(progress_curve_to_theta(&curve, &options, 4), 5, 1e-9);
    assert_float_equal(progress_curve_to_theta(&curve, &options, 20), 0, 0);

    /* 0.8 (1 - 1 / sqrt(k + 1)) is at 0.72 when k + 1 is 100. */
    for (int k = 0; k < 50; k++) {
        progress_curve_add(&curve, k, 0.8 - 0.8 / sqrt(k + 1), k);
    }
    assert_float_equal(progress_curve_to_theta(&curve, &options, 49), 50, 1);
    assert_float_equal(progress_curve_to_theta(&curve, &options, 120), 0, 0);
}

/* A curve that does not reach 90 % of its limit. */
UNIT_TEST(a_job_is_early_until_theta_of_its_end)
{
    struct progress_options options = defaults;
    struct progress_curve curve;
    double gain;
    bool early;

    options.theta = 0.9;
    options.end = 9;
    progress_curve_init(&curve, 0);
    assert_float_equal(progress_curve_to_theta(&curve, &options, 0),
                       1 / (1 - 0.81) - 1, 1e-9);

    /* It is 0.75 after 15 iterations, and 0.675 after 8.47. */
    options.end = 15;
    for (int k = 0; k < 8; k++) {
        progress_curve_add(&curve, k, 1 - 1 / sqrt(k + 1), k);
    }
    assert_float_equal(progress_curve_to_theta(&curve, &options, 7), 1.47,
                       0.01);
    progress_curve_score(&curve, &options, 7, 1, 7, &gain, &early);
    assert_true(early);
    progress_curve_add(&curve, 9, 1 - 1 / sqrt(10), 9);
    progress_curve_score(&curve, &options, 9, 1, 9, &gain, &early);
    assert_false(early);
    options.end = 0;
    progress_curve_score(&curve, &options, 9, 1, 9, &gain, &early);
    assert_true(early);

    /* But not before it has reported enough, a sample each 9 / 8
     * iterations. */
    options.end = 15;
    options.samples = 12;
    assert_float_equal(progress_curve_to_theta(&curve, &options, 9), 3.375, 0);
}

/* Three samples are missing when the first comes after 10 iterations. */
UNIT_TEST(missing_samples_take_their_usual_distance)
{
    const struct progress_options options = {
        .theta = 0.9, .samples = 4, .boot_s = 300, .period_s = 5,
    };
    struct progress_curve curve;

    progress_curve_init(&curve, 0);
    progress_curve_add(&curve, 10, 0.5, 10);
    assert_float_equal(progress_curve_to_theta(&curve, &options, 10), 30, 0);
    assert_float_equal(progress_curve_to_theta(&curve, &options, 18), 22, 0);
    progress_curve_add(&curve, 20, 0.6, 20);
    assert_float_equal(progress_curve_to_theta(&curve, &options, 20), 20, 0);
    progress_curve_add(&curve, 30, 0.65, 30);
    assert_float_equal(progress_curve_to_theta(&curve, &options, 39), 1, 0);
    assert_float_equal(progress_curve_to_theta(&curve, &options, 60), 1, 0);
}

/* The deviation grows with the way. */
UNIT_TEST(predicts_a_metric)
{
    static const double starts[] = { 0, -3 };

    for (size_t i = 0; i < N_ELEMENTS(starts); i++) {
        struct progress_curve curve;
        double limit = starts[i] + 0.9, mean, sd, further, sd_further;

        progress_curve_init(&curve, 0);
        add_samples(&curve, limit, 0.8, 0.5, 3, 2, 0);
        assert_false(progress_curve_predict(&curve, 20, &mean, &sd));
        add_samples(&curve, limit, 0.8, 0.5, 8, 2, 0);
        assert_true(progress_curve_predict(&curve, 20, &mean, &sd));
        assert_within(mean, curve_at(limit, 0.8, 0.5, 20), 1e-3);
        assert_true(progress_curve_predict(&curve, 40, &further, &sd_further));
        assert_true(further > mean && sd_further > sd && sd > 0);
    }
}

UNIT_TEST(predicts_no_accuracy_above_1)
{
    struct progress_curve curve;
    double mean, sd;

    progress_curve_init(&curve, 0);
    add_samples(&curve, 1.5, 1.2, 0.2, 8, 1, 0);
    assert_true(progress_curve_predict(&curve, 1e6, &mean, &sd));
    assert_true(mean < 1 && sd > 0.05);
}
