/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdint.h>

#include "tests/unit/unit-test.h"
#include "trainer/balance/neural.h"
#include "trainer/balance/predictor.h"
#include "trainer/data/seeded.h"

#define FOR_EACH_CLASS(CLASS)                                           \
    for (const struct predictor_class *const *iter_ = predictor_classes, \
         *CLASS; (CLASS = *iter_); iter_++)

UNIT_TEST(classes_are_found_by_name)
{
    int n = 0;

    FOR_EACH_CLASS (class) {
        assert_ptr_equal(predictor_class_find(class->name), class);
        n++;
    }
    assert_int_equal(n, 7);
    assert_null(predictor_class_find("oracle"));
}

UNIT_TEST(nothing_is_known_at_first)
{
    FOR_EACH_CLASS (class) {
        struct predictor *p = predictor_create(class, 1);

        assert_true(predictor_predict(p) == 0);
        predictor_update(p, NAN, 0, 0);
        predictor_update(p, INFINITY, 0, 0);
        predictor_update(p, 0, 0, 0);
        assert_true(predictor_predict(p) == 0);
        predictor_update(p, 50, NAN, -3);
        assert_true(fabs(predictor_predict(p) - 50) < 1e-4);
        predictor_destroy(p);
    }
}

/* After a lasting change each finds the new speed, at any scale. */
UNIT_TEST(a_constant_speed_is_learned)
{
    FOR_EACH_CLASS (class) {
        for (double scale = 1e-3; scale < 1e9; scale *= 1e3) {
            struct predictor *p = predictor_create(class, 1);

            for (int i = 0; i < 400; i++) {
                double speed = scale * (i < 100 ? 1 : 0.5);

                if ((i > 40 && i < 100) || i > 250) {
                    double e = predictor_predict(p) / speed - 1;

                    if (fabs(e) > 0.05) {
                        fail_msg("%s: %g at %d", class->name, e, i);
                    }
                }
                predictor_update(p, speed, 0, 0);
            }
            predictor_destroy(p);
        }
    }
}

UNIT_TEST(the_seed_decides_everything)
{
    FOR_EACH_CLASS (class) {
        struct predictor *a = predictor_create(class, 7);
        struct predictor *b = predictor_create(class, 7);
        struct seeded rs;

        seeded_init(&rs, 3, 0);
        for (int i = 0; i < 100; i++) {
            double speed = 1 + seeded_uniform(&rs);
            double cpu = seeded_uniform(&rs);

            predictor_update(a, speed, cpu, 0.5);
            predictor_update(b, speed, cpu, 0.5);
            assert_true(predictor_predict(a) == predictor_predict(b));
        }
        predictor_destroy(a);
        predictor_destroy(b);
    }
}

/* Whatever comes, the prediction stays among the speeds that there were, or
 * at half the lowest. */
UNIT_TEST(predictions_are_bounded)
{
    FOR_EACH_CLASS (class) {
        struct predictor *p = predictor_create(class, 1);
        struct seeded rs;

        seeded_init(&rs, 4, 0);
        for (int i = 0; i < 600; i++) {
            double speed = pow(10, 4 * seeded_uniform(&rs) - 2);

            predictor_update(p, speed, seeded_uniform(&rs),
                             seeded_uniform(&rs));
            assert_true(predictor_predict(p) >= 0.005 * 0.999);
            assert_true(predictor_predict(p) <= 100 * 1.001);
        }
        predictor_destroy(p);
    }
}

/* Sum of squared errors over iterations 300 to 599 of a worker that others
 * slow down every so often: their use is seen one iteration before. */
static double
errors_with_uses(const struct predictor_class *class)
{
    struct predictor *p = predictor_create(class, 1);
    struct seeded rs;
    double cpu = 0, sum = 0;

    seeded_init(&rs, 5, 0);
    for (int i = 0; i < 600; i++) {
        double speed = 100 * (1 - cpu) * (1 + 0.02 * seeded_normal(&rs));
        double e = predictor_predict(p) - speed;

        sum += i >= 300 ? e * e : 0;
        if (seeded_uniform(&rs) < 0.1) {
            cpu = 0.7 * seeded_uniform(&rs);
        }
        predictor_update(p, speed, cpu, 0);
    }
    predictor_destroy(p);
    return sum;
}

UNIT_TEST(narx_foresees_what_the_uses_tell)
{
    double narx = errors_with_uses(&predictor_narx);

    assert_true(narx < 0.25 * errors_with_uses(&predictor_memoryless));
    assert_true(narx < 0.25 * errors_with_uses(&predictor_ema));
    assert_true(narx < 0.25 * errors_with_uses(&predictor_arima));
    assert_true(narx < 0.25 * errors_with_uses(&predictor_lstm));
}

/* From the third iteration on narx follows a use that has just changed, as an
 * average would after many. */
UNIT_TEST(narx_needs_no_time_to_learn_what_a_use_costs)
{
    static const double cpus[] = { 0.5, 0.5, 0.5, 0.75, 0.75, 0.5, 0.8, 0.5 };
    struct predictor *p = predictor_create(&predictor_narx, 1);

    for (size_t i = 0; i + 1 < N_ELEMENTS(cpus); i++) {
        double next = 400 * (1 - cpus[i + 1]);

        predictor_update(p, 400 * (1 - cpus[i]), cpus[i + 1], 0);
        if (i && fabs(predictor_predict(p) / next - 1) > 0.05) {
            fail_msg("%zu: %g is not %g", i, predictor_predict(p), next);
        }
    }
    predictor_destroy(p);
}

/* ARIMA and the networks find that a speed alternates; the others cannot. */
UNIT_TEST(regular_changes_are_learned)
{
    static const struct predictor_class *const classes[] = {
        &predictor_arima, &predictor_rnn, &predictor_lstm, &predictor_narx,
    };

    for (size_t j = 0; j < sizeof classes / sizeof *classes; j++) {
        struct predictor *p = predictor_create(classes[j], 1);

        for (int i = 0; i < 800; i++) {
            double speed = i % 2 ? 10 : 12;

            if (i > 700 && fabs(predictor_predict(p) - speed) > 0.3) {
                fail_msg("%s: %g is not %g", classes[j]->name,
                         predictor_predict(p), speed);
            }
            predictor_update(p, speed, 0, 0);
        }
        predictor_destroy(p);
    }
}

#define MAX_WEIGHTS 512

/* Back-propagation gives what small changes of each weight give. */
static void
check_gradient(const struct neural_class *class)
{
    float weights[MAX_WEIGHTS] = { 0 }, gradient[MAX_WEIGHTS] = { 0 };
    float tape[NEURAL_TAPE];
    struct series s = { .n = 100, .max = 1 };
    struct seeded rs;

    assert_true(class->n_weights <= MAX_WEIGHTS);
    seeded_init(&rs, 6, 0);
    class->init(class, weights, &rs);
    for (uint64_t i = 0; i <= s.n; i++) {
        s.speeds[i] = seeded_normal(&rs);
        s.cpus[i] = seeded_normal(&rs);
        s.memories[i] = seeded_normal(&rs);
        s.expected[i] = seeded_normal(&rs);
    }
    class->run(class, weights, &s, s.n, tape);
    class->back(class, weights, tape, 1, gradient);
    for (size_t i = 0; i < class->n_weights; i++) {
        float weight = weights[i], step = 1e-2f;
        double up, down;

        weights[i] = weight + step;
        up = class->run(class, weights, &s, s.n, tape);
        weights[i] = weight - step;
        down = class->run(class, weights, &s, s.n, tape);
        weights[i] = weight;
        if (fabs((up - down) / (2 * step) - gradient[i]) > 2e-3) {
            fail_msg("weight %zu: %g is not %g", i, gradient[i],
                     (up - down) / (2 * step));
        }
    }
}

UNIT_TEST(gradients_are_right)
{
    check_gradient(predictor_narx.network);
    check_gradient(predictor_rnn.network);
    check_gradient(predictor_lstm.network);
    check_gradient(predictor_lstm_x.network);
}

static void
begin_at_zero(const struct neural_class *class, float *weights,
              struct seeded *rs)
{
}

/* Adam finds the minimum of a parabola. */
UNIT_TEST(steps_lead_down)
{
    static const struct neural_class parabola = {
        .n_weights = 2, .rate = 0.01f, .init = begin_at_zero,
    };
    const struct predictor_class class = {
        .size = sizeof(struct neural), .network = &parabola,
        .init = neural_init, .uninit = neural_uninit,
    };
    struct neural *net = (struct neural *) predictor_create(&class, 1);

    for (int i = 0; i < 2000; i++) {
        net->gradient[0] = 2 * (net->weights[0] - 3);
        net->gradient[1] = 200 * (net->weights[1] + 1);
        neural_step(net);
        assert_true(net->gradient[0] == 0 && net->gradient[1] == 0);
    }
    assert_true(fabsf(net->weights[0] - 3) < 0.01f);
    assert_true(fabsf(net->weights[1] + 1) < 0.01f);
    predictor_destroy(&net->up);
}
