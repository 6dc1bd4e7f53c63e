/* SPDX-License-Identifier: Apache-2.0 */

/* Measured times of pulls. */

#include <math.h>

#include "tests/unit/unit-test.h"
#include "trainer/gossip/pull-times.h"

static struct pull_times times;

/* Three pulls of 0.1 s from each of two others, reported. */
static void
begin(void)
{
    float report[3];

    pull_times_init(&times, 3, 0);
    for (int i = 1; i < 3; i++) {
        for (int k = 0; k < 3; k++) {
            pull_times_add(&times, i, 0.1, false, k);
        }
    }
    pull_times_report(&times, report);
    assert_true(isnan(report[0]));
    assert_true(fabs(report[1] - 0.1) < 1e-6);
    assert_true(fabs(pull_times_median(&times) - 0.1) < 1e-9);
}

UNIT_TEST(one_late_pull_changes_nothing)
{
    float report[3];

    begin();
    assert_false(pull_times_add(&times, 1, 0.4, false, 10));
    assert_true(times.links[1].median_s == 0.1);
    assert_false(pull_times_add(&times, 1, 0.1, false, 11));
    pull_times_report(&times, report);
    assert_true(fabs(report[1] - 0.1) < 1e-6);
    assert_true(isnan(report[2]));
}

UNIT_TEST(two_late_pulls_are_reported_at_once)
{
    float report[3];

    begin();
    assert_false(pull_times_add(&times, 1, 0.25, false, 10));
    assert_true(pull_times_add(&times, 1, 0.25, false, 11));
    pull_times_report(&times, report);
    assert_true(fabs(report[1] - 0.25) < 1e-6);
    assert_true(isnan(report[2]));
}

UNIT_TEST(what_is_certain_or_faster_counts_at_once)
{
    begin();
    assert_true(pull_times_add(&times, 1, 5, true, 10));
    assert_true(times.links[1].median_s == 5);
    /* The usual link is what the other one is. */
    assert_true(pull_times_median(&times) == 0.1);
    assert_true(pull_times_add(&times, 1, 0.1, false, 11) == false);
    assert_true(times.links[1].median_s == 0.1);
}

UNIT_TEST(a_suspect_link_is_trusted_after_the_next_probe)
{
    begin();
    pull_times_suspect(&times, 1);
    assert_true(times.links[1].suspect);
    assert_true(times.links[1].median_s == 0.1);
    assert_int_equal(times.links[1].measured_us, 0);
    assert_false(pull_times_add(&times, 1, 0.12, true, 10));
    assert_false(times.links[1].suspect);
    assert_true(times.links[1].median_s == 0.1);
}

UNIT_TEST(links_of_a_peer_that_is_gone_are_forgotten)
{
    begin();
    pull_times_forget(&times, 1);
    pull_times_forget(&times, 2);
    assert_true(pull_times_median(&times) == 0);
}
