/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <math.h>
#include <stdlib.h>

#include "controller/model/job-progress.h"
#include "order/order.h"
#include "policies/policy.h"
#include "tests/unit/unit-test.h"
#include "util.h"

#define BEGAN INT64_C(1790000000000)

static int
set_up(void **state)
{
    struct job_progress *p = xzalloc(sizeof *p);

    job_progress_init(p, BEGAN);
    *state = p;
    return 0;
}

static int
tear_down(void **state)
{
    job_progress_uninit(*state);
    free(*state);
    return 0;
}

#define PROGRESS_TEST(NAME) \
    UNIT_TEST_GIVEN(NAME, set_up, tear_down, struct job_progress *p)

/* The first reported iteration may have ended long ago, and what is shorter
 * than two seconds is measured too coarsely. */
PROGRESS_TEST(the_shortest_period_counts)
{
    job_progress_pace(p, -1, BEGAN);
    job_progress_pace(p, 10, BEGAN + 1000);
    job_progress_pace(p, 11, BEGAN + 1100);
    job_progress_pace(p, 12, BEGAN + 1200);
    assert_true(p->period == 0);
    job_progress_pace(p, 12, BEGAN + 4000);
    assert_true(p->period == 0);
    job_progress_pace(p, 15, BEGAN + 5100);
    assert_float_equal(p->period, 1, 1e-9);
    job_progress_pace(p, 20, BEGAN + 7600);
    assert_float_equal(p->period, 0.5, 1e-9);
    job_progress_pace(p, 21, BEGAN + 17600);
    assert_float_equal(p->period, 0.5, 1e-9);
}

PROGRESS_TEST(standing_still_is_no_pace)
{
    job_progress_pace(p, 1, BEGAN + 1000);
    job_progress_pace(p, 2, BEGAN + 2000);
    job_progress_pause(p);
    job_progress_pace(p, 3, BEGAN + 60000);
    job_progress_pace(p, 4, BEGAN + 61000);
    assert_true(p->period == 0);
    job_progress_pace(p, 6, BEGAN + 65000);
    assert_float_equal(p->period, 2, 1e-9);
}

PROGRESS_TEST(a_job_that_goes_back_is_measured_anew)
{
    job_progress_pace(p, 100, BEGAN + 1000);
    job_progress_pace(p, 101, BEGAN + 2000);
    job_progress_pace(p, 50, BEGAN + 6000);
    assert_true(p->period == 0);
    job_progress_pace(p, 53, BEGAN + 9000);
    assert_float_equal(p->period, 1, 1e-9);
}

/* Others went before it at some time in the first and in the last of three
 * measurements, if only for a moment. */
PROGRESS_TEST(the_pace_of_who_waits_is_told_apart)
{
    job_progress_wait(p, true);
    job_progress_pace(p, 1, BEGAN + 1000);
    job_progress_pace(p, 2, BEGAN + 2000);
    job_progress_wait(p, false);
    job_progress_pace(p, 3, BEGAN + 12000);
    assert_float_equal(p->period, 10, 1e-9);
    assert_true(p->first_period == 0);
    job_progress_pace(p, 7, BEGAN + 16000);
    assert_float_equal(p->first_period, 1, 1e-9);
    job_progress_wait(p, true);
    job_progress_wait(p, false);
    job_progress_pace(p, 27, BEGAN + 26000);
    assert_float_equal(p->period, 0.5, 1e-9);
    assert_float_equal(p->first_period, 1, 1e-9);
}

UNIT_TEST(a_falling_loss_is_a_rise)
{
    static const struct {
        const char *metric;
        double sign;
    } cases[] = {
        { "loss", -1 }, { "val_loss", -1 }, { "TestError", -1 },
        { "perplexity", -1 }, { "accuracy", 1 }, { "bleu", 1 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct job_progress p;
        int64_t last = -1;

        job_progress_init(&p, BEGAN);
        job_progress_sample(&p, &last, cases[i].metric, 1, 3, BEGAN);
        assert_true(p.curve.samples[0].value == 3 * cases[i].sign);
        job_progress_uninit(&p);
    }
}

/* Of two hosts one is behind, and both repeat themselves. */
PROGRESS_TEST(each_evaluation_counts_once)
{
    int64_t a = -1, b = -1;

    job_progress_sample(p, &a, "accuracy", 10, 0.1, BEGAN);
    job_progress_sample(p, &a, "accuracy", 10, 0.1, BEGAN + 200);
    job_progress_sample(p, &b, "accuracy", 5, 0.05, BEGAN + 200);
    assert_int_equal(p->curve.n, 1);
    job_progress_sample(p, &a, "accuracy", 15, 0.1, BEGAN + 400);
    job_progress_sample(p, &a, "speed", 16, 9, BEGAN + 400);
    assert_int_equal(p->curve.n, 1);
    job_progress_sample(p, &a, "accuracy", 20, 0.2, BEGAN + 600);
    assert_int_equal(p->curve.n, 2);
    assert_true(p->curve.samples[1].k == 20);

    /* Restarted from a checkpoint, with one host that has not noticed. */
    job_progress_sample(p, &a, "accuracy", 12, 0.12, BEGAN + 800);
    job_progress_sample(p, &b, "accuracy", 5, 0.05, BEGAN + 800);
    assert_int_equal(p->curve.n, 2);
    assert_true(p->curve.samples[1].k == 12);
}

/* Reports 1 - 1 / (k + 1) after each of ten iterations. */
static void
report_ten_samples(struct job_progress *p)
{
    int64_t last = -1;

    for (int k = 0; k < 10; k++) {
        job_progress_sample(p, &last, "accuracy", k, 1 - 1.0 / (k + 1),
                            BEGAN + 1000 * k);
    }
}

PROGRESS_TEST(scores_as_the_policy_says)
{
    struct policy *policy;
    struct order_traits traits = { 0 };

    assert_null(policy_from_string(
        "p", "{\"name\": \"p\", \"order\": \"early\", \"early\":"
        " {\"theta\": 0.5, \"samples\": 3, \"boot_s\": 60}}", &policy));
    job_progress_score(p, policy, -1, 1, 0, BEGAN + 1000, &traits);
    assert_true(isinf(traits.gain) && traits.early);
    job_progress_score(p, policy, -1, 1, 0, BEGAN + 61000, &traits);
    assert_false(isinf(traits.gain));
    report_ten_samples(p);
    job_progress_score(p, policy, 10, 1, 0, BEGAN + 10000, &traits);
    assert_false(traits.early);
    assert_true(traits.gain > 0 && traits.gain < 0.1);
    assert_float_equal(traits.iterations_to_theta, 0, 0);
    policy_destroy(policy);
}

/* A job with 0.9 of an accuracy of 1 is near the accuracy of its stage's end,
 * and far from the one of its search's. */
PROGRESS_TEST(later_stages_make_the_early_phase_longer)
{
    struct policy *policy;
    struct order_traits traits = { 0 };

    assert_null(policy_from_string(
        "p", "{\"name\": \"p\", \"order\": \"early\", \"early\":"
        " {\"theta\": 0.95, \"samples\": 3}}", &policy));
    report_ten_samples(p);
    job_progress_score(p, policy, 9, 3, 0, BEGAN + 10000, &traits);
    assert_false(traits.early);
    job_progress_score(p, policy, 9, 3, 1000, BEGAN + 10000, &traits);
    assert_true(traits.early);
    policy_destroy(policy);
}
