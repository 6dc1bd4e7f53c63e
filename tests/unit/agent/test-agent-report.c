/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdint.h>

#include "agent/host-rows.h"
#include "random.h"
#include "tests/unit/unit-test.h"
#include "util.h"

#define N_HOSTS 1000
#define WINDOW_MS 50000
#define STEP_MS 100

static void
host_alone_writes_at_once(void **state OVS_UNUSED)
{
    struct report r = { .next = 2000 };

    report_set_window(&r, 1000, 500);
    assert_false(report_is_due(&r, false, 500));
    assert_true(report_is_due(&r, true, 500));
    assert_false(report_is_due(&r, true, 1499));
    assert_true(report_is_due(&r, true, 1750));
}

static void
host_that_is_told_no_window_waits_and_then_writes(void **state OVS_UNUSED)
{
    struct report r = { .next = 2000 };

    assert_false(report_is_due(&r, true, 1999));
    assert_true(report_is_due(&r, true, 2000));
    assert_false(report_is_due(&r, true, 2999));
    assert_true(report_is_due(&r, true, 3250));
}

/* A controller that says nothing of it, or nonsense, gets what it always
 * got. */
static void
window_has_bounds(void **state OVS_UNUSED)
{
    static const struct {
        int64_t ms, window;
    } rows[] = {
        { 0, 1000 }, { -5, 1000 }, { 1001, 1001 }, { INT64_MAX, 600000 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct report r = { .window = 0 };

        report_set_window(&r, rows[i].ms, 0);
        assert_int_equal(r.window, rows[i].window);
    }
}

/* Writes that each of 'buckets' of 'bucket_ms' gets when every host has
 * something new at each of its looks, 'news_ms' apart. */
static void
count_writes(int news_ms, int bucket_ms, int *buckets, int n_buckets)
{
    struct report *reports = test_calloc(N_HOSTS, sizeof *reports);
    bool *news = test_calloc(N_HOSTS, sizeof *news);

    random_set_seed(1);
    for (int i = 0; i < N_HOSTS; i++) {
        report_set_window(&reports[i], WINDOW_MS, 0);
    }
    for (int now = 0; now < bucket_ms * n_buckets; now += STEP_MS) {
        for (int i = 0; i < N_HOSTS; i++) {
            news[i] = news[i] || now % news_ms == 0;
            if (report_is_due(&reports[i], news[i], now)) {
                buckets[now / bucket_ms]++;
                news[i] = false;
            }
        }
    }
    test_free(news);
    test_free(reports);
}

/* The first of the new orders is news to all at once, and the writes must not
 * come at once. */
static void
writes_of_many_stay_within_the_rate(void **state OVS_UNUSED)
{
    int allowed = N_HOSTS * 10000 / WINDOW_MS;
    int buckets[30] = { 0 };

    count_writes(300, 10000, buckets, ARRAY_SIZE(buckets));
    for (size_t i = 0; i < ARRAY_SIZE(buckets); i++) {
        assert_in_range(buckets[i], 1, allowed * 5 / 4);
    }
}

/* One change is written by all within a window. */
static void
change_is_written_within_a_window(void **state OVS_UNUSED)
{
    int buckets[2] = { 0 };

    count_writes(INT32_MAX, WINDOW_MS + STEP_MS, buckets, ARRAY_SIZE(buckets));
    assert_int_equal(buckets[0], N_HOSTS);
    assert_int_equal(buckets[1], 0);
}

/* Many agents connect one after the other: the window grows while what they
 * have to tell waits. */
static void
larger_window_delays_what_waits(void **state OVS_UNUSED)
{
    struct report r = { .next = 2000 };

    report_set_window(&r, 1000, 0);
    assert_true(report_is_due(&r, true, 0));
    assert_false(report_is_due(&r, true, 100));
    random_set_seed(2);
    report_set_window(&r, WINDOW_MS, 200);
    assert_false(report_is_due(&r, true, 200));
    assert_true(r.next > 1250);
    assert_true(report_is_due(&r, true, 200 + WINDOW_MS));
}

RUN_TESTS("agent-report", NULL, NULL,
          cmocka_unit_test(host_alone_writes_at_once),
          cmocka_unit_test(host_that_is_told_no_window_waits_and_then_writes),
          cmocka_unit_test(window_has_bounds),
          cmocka_unit_test(writes_of_many_stay_within_the_rate),
          cmocka_unit_test(change_is_written_within_a_window),
          cmocka_unit_test(larger_window_delays_what_waits))
