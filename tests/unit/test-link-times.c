/* SPDX-License-Identifier: Apache-2.0 */

/* What a peer makes of the times that its pulls take. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trainer/gossip/link-times.h"

static struct link_times times;

/* Three pulls of 0.1 s from each of two others, which have been told. */
static void
begin(void)
{
    float news[3];

    link_times_init(&times, 3, 0);
    for (int i = 1; i < 3; i++) {
        for (int k = 0; k < 3; k++) {
            link_times_take(&times, i, 0.1, false, k);
        }
    }
    link_times_news(&times, news);
    assert_true(isnan(news[0]));
    assert_true(fabs(news[1] - 0.1) < 1e-6);
    assert_true(fabs(link_times_usual(&times) - 0.1) < 1e-9);
}

static void
one_late_pull_changes_nothing(void **state)
{
    float news[3];

    begin();
    assert_false(link_times_take(&times, 1, 0.4, false, 10));
    assert_true(times.links[1].usual_s == 0.1);
    assert_false(link_times_take(&times, 1, 0.1, false, 11));
    link_times_news(&times, news);
    assert_true(fabs(news[1] - 0.1) < 1e-6);
    assert_true(isnan(news[2]));
}

static void
two_late_pulls_are_told_at_once(void **state)
{
    float news[3];

    begin();
    assert_false(link_times_take(&times, 1, 0.25, false, 10));
    assert_true(link_times_take(&times, 1, 0.25, false, 11));
    link_times_news(&times, news);
    assert_true(fabs(news[1] - 0.25) < 1e-6);
    assert_true(isnan(news[2]));
}

static void
what_is_certain_or_faster_counts_at_once(void **state)
{
    begin();
    assert_true(link_times_take(&times, 1, 5, true, 10));
    assert_true(times.links[1].usual_s == 5);
    /* The usual link is what the other one is. */
    assert_true(link_times_usual(&times) == 0.1);
    assert_true(link_times_take(&times, 1, 0.1, false, 11) == false);
    assert_true(times.links[1].usual_s == 0.1);
}

static void
a_doubt_lasts_until_the_next_look(void **state)
{
    begin();
    link_times_doubt(&times, 1);
    assert_true(times.links[1].doubtful);
    assert_true(times.links[1].usual_s == 0.1);
    assert_int_equal(times.links[1].known_us, 0);
    assert_false(link_times_take(&times, 1, 0.12, true, 10));
    assert_false(times.links[1].doubtful);
    assert_true(times.links[1].usual_s == 0.1);
}

static void
who_is_gone_is_forgotten(void **state)
{
    begin();
    link_times_forget(&times, 1);
    link_times_forget(&times, 2);
    assert_true(link_times_usual(&times) == 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_late_pull_changes_nothing),
        cmocka_unit_test(two_late_pulls_are_told_at_once),
        cmocka_unit_test(what_is_certain_or_faster_counts_at_once),
        cmocka_unit_test(a_doubt_lasts_until_the_next_look),
        cmocka_unit_test(who_is_gone_is_forgotten),
    };

    return cmocka_run_group_tests_name("link-times", tests, NULL, NULL);
}
