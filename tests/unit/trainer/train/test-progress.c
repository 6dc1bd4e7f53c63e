/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit-test.h"
#include "trainer/train/progress.h"

static struct progress
begun(void)
{
    struct progress p = {
        .target = 200, .share = 16, .loss = NAN, .accuracy = NAN,
        .iterations_s = NAN, .samples_s = NAN, .eta_s = NAN,
    };

    progress_init(&p, 100, 50, 150);
    return p;
}

static void
assert_line(const struct progress *p, const char *wanted)
{
    assert_is(progress_line(p), wanted);
}

UNIT_TEST(unknown_numbers_are_left_out)
{
    struct progress p = begun();

    assert_line(&p, "50/200");
    p.loss = 0.5;
    assert_line(&p, "50/200, loss 0.5000");
    progress_count(&p, 100, 50, 150);
    assert_line(&p, "50/200, loss 0.5000");
}

UNIT_TEST(rates_begin_where_the_job_does)
{
    struct progress p = begun();

    progress_count(&p, 102, 60, 180);
    p.loss = 1.25;
    p.accuracy = 0.5;
    assert_line(&p, "60/200, 5.00 it/s, 240 samples/s, loss 1.2500, "
                "accuracy 0.500, ETA 0:28");
    p.target = 50000;
    progress_count(&p, 103, 80, 240);
    assert_line(&p, "80/50000, 10 it/s, 480 samples/s, loss 1.2500, "
                "accuracy 0.500, ETA 1:23:12");
}

/* A job that has become slower shows its present rate after 10 seconds. */
UNIT_TEST(old_rates_are_forgotten)
{
    struct progress p = begun();

    p.target = 1000;
    progress_count(&p, 105, 550, 1650);
    assert_true(p.iterations_s == 100);
    for (int s = 1; s <= 10; s++) {
        progress_count(&p, 105 + s, 550 + s, 1650 + 3 * s);
    }
    progress_count(&p, 116, 561, 1683);
    assert_true(fabs(p.iterations_s - 1) < 1e-9);
    assert_true(fabs(p.eta_s - 439) < 1e-6);
}

UNIT_TEST(bars_fit_into_the_terminal)
{
    struct progress p = begun();

    progress_count(&p, 102, 100, 300);
    for (int width = 0; width <= 200; width++) {
        char *bar = progress_bar(&p, width);

        assert_true(strlen(bar) <= (size_t) width);
        free(bar);
    }
    for (int i = 0; i < 2; i++) {
        char *bar = progress_bar(&p, i ? 40 : 73);

        assert_is(bar, i ? "100/200  25 it/s  1200 samples/s  ETA 0:"
                         : "[===========>          ]  50%  100/200  "
                           "25 it/s  1200 samples/s  ETA 0:04");
    }
}

UNIT_TEST(bars_are_full_at_the_target_only)
{
    struct progress p = begun();

    for (int iteration = 199; iteration <= 200; iteration++) {
        char *bar;

        progress_count(&p, 101, iteration, iteration * 3);
        bar = progress_bar(&p, 300);
        assert_int_equal(strchr(bar, ']') - bar, 41);
        assert_int_equal(strspn(bar + 1, "=") == 40, iteration == 200);
        assert_int_equal(!strstr(bar, " 100%"), iteration < 200);
        free(bar);
    }
}
