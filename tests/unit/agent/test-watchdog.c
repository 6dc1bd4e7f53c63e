/* SPDX-License-Identifier: Apache-2.0 */

/* What makes the agent believe that a shim forwards, or does not. */

#include <config.h>

#include <limits.h>

#include "agent/actuate/bypass.h"
#include "tests/unit/unit-test.h"
#include "util.h"

#define MS UINT64_C(1000000)    /* Nanoseconds. */

static struct watchdog w;

static int
setup(void **state OVS_UNUSED)
{
    watchdog_init(&w, 1000);
    return 0;
}

static void
assert_judges(long long now, enum watchdog_verdict opinion)
{
    assert_int_equal(watchdog_judge(&w, now), opinion);
}

UNIT_TEST_BETWEEN(a_shim_that_never_comes_is_waited_for, setup, NULL)
{
    assert_judges(1000, WATCHDOG_UNSURE);
    assert_judges(1499, WATCHDOG_UNSURE);
    assert_int_equal(watchdog_next(&w, 1000), 1500);
    assert_judges(1500, WATCHDOG_FAILS);
    assert_int_equal(watchdog_next(&w, 1500), LLONG_MAX);
}

UNIT_TEST_BETWEEN(it_forwards_once_its_loop_has_turned, setup, NULL)
{
    watchdog_connected(&w, 1000);
    watchdog_requested(&w, 1000);
    assert_judges(1000, WATCHDOG_UNSURE);
    watchdog_received(&w, 0, 10 * MS);          /* Not begun. */
    assert_judges(1001, WATCHDOG_UNSURE);
    watchdog_received(&w, 1, 10 * MS);
    assert_judges(1002, WATCHDOG_FORWARDS);
    assert_judges(60000, WATCHDOG_FORWARDS); /* Without a request. */
}

UNIT_TEST_BETWEEN(a_loop_that_stands_still_fails, setup, NULL)
{
    watchdog_connected(&w, 1000);
    watchdog_received(&w, 5, 499 * MS);
    assert_judges(1000, WATCHDOG_FORWARDS);
    watchdog_received(&w, 5, 501 * MS);
    assert_judges(1200, WATCHDOG_FAILS);
    watchdog_received(&w, 0, 501 * MS);         /* It never began. */
    assert_judges(1400, WATCHDOG_FAILS);
    watchdog_received(&w, 6, 1 * MS);
    assert_judges(1600, WATCHDOG_FORWARDS);
}

UNIT_TEST_BETWEEN(a_process_that_dies_fails_unless_another_is_there, setup,
                  NULL)
{
    watchdog_connected(&w, 1000);
    watchdog_received(&w, 5, 1 * MS);
    w.exists = false;
    assert_judges(2000, WATCHDOG_UNSURE); /* Connected, without a
                                           * reply. */
    watchdog_disconnected(&w, 2000);
    assert_judges(2000, WATCHDOG_FAILS);
    watchdog_connected(&w, 2000);                     /* A successor. */
    assert_judges(2000, WATCHDOG_UNSURE);
    watchdog_received(&w, 1, 1 * MS);
    assert_judges(2001, WATCHDOG_FORWARDS);
}

UNIT_TEST_BETWEEN(silence_alone_proves_nothing, setup, NULL)
{
    uint64_t steps = 100;

    watchdog_connected(&w, 1000);
    watchdog_received(&w, 5, 1 * MS);
    watchdog_requested(&w, 1000);
    watchdog_requested(&w, 1200);                   /* The first one counts. */
    assert_false(watchdog_wants_progress(&w, 1099));
    assert_int_equal(watchdog_next(&w, 1050), 1100);
    for (long long now = 1100; now < 9000; now += 100) {
        assert_true(watchdog_wants_progress(&w, now));
        watchdog_progress(&w, now, steps++);
        assert_false(watchdog_wants_progress(&w, now + 99));
        assert_judges(now, WATCHDOG_UNSURE);
    }
    watchdog_received(&w, 6, 1 * MS);
    assert_false(watchdog_wants_progress(&w, 9000));
    assert_judges(9000, WATCHDOG_FORWARDS);
}

UNIT_TEST_BETWEEN(a_silent_process_that_does_not_run_fails, setup, NULL)
{
    watchdog_connected(&w, 1000);
    watchdog_received(&w, 5, 1 * MS);
    watchdog_requested(&w, 1000);
    watchdog_progress(&w, 1100, 7);
    watchdog_progress(&w, 1200, 8);
    watchdog_progress(&w, 1599, 8);
    assert_judges(1599, WATCHDOG_UNSURE);
    watchdog_progress(&w, 1600, 8);
    assert_judges(1600, WATCHDOG_FAILS);

    /* A lost connection does not change that, and it does not begin again. */
    watchdog_disconnected(&w, 1650);
    assert_judges(1650, WATCHDOG_FAILS);
    watchdog_progress(&w, 1700, 9);
    assert_judges(1700, WATCHDOG_UNSURE);
}

UNIT_TEST_BETWEEN(an_agent_that_slept_blames_nobody, setup, NULL)
{
    watchdog_connected(&w, 1000);
    watchdog_received(&w, 5, 1 * MS);
    watchdog_requested(&w, 1000);
    watchdog_progress(&w, 9000, 7);             /* The first look. */
    assert_judges(9000, WATCHDOG_UNSURE);
}

UNIT_TEST(places_are_parsed)
{
    static const char *const bad[] = {
        "", "a", "a,", ",b", "a,b,c", ":a,b", "x/y:a,b", "a b,c",
        "sixteen-letters-,b", "a,sixteen-letters-", "a/b,c",
    };
    struct bypass_ports place;

    assert_null(bypass_ports_parse("host,uplink", &place));
    assert_string_equal(place.netns, "");
    assert_string_equal(place.iface, "host");
    assert_string_equal(place.other, "uplink");
    assert_null(bypass_ports_parse("n0:fifteen-letters,b", &place));
    assert_string_equal(place.netns, "n0");
    assert_string_equal(place.iface, "fifteen-letters");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_says(bypass_ports_parse(bad[i], &place),
                    "expected [NETNS:]IFACE,IFACE");
    }
}
