/* SPDX-License-Identifier: Apache-2.0 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/pipeline/nap.h"

#define US UINT64_C(1000)

/* An idle time of 'ns' at a loop that may wait, after which there is something
 * to do.  Returns how often it woke up. */
static unsigned int
idle(struct nap *n, uint64_t *now, uint64_t ns)
{
    uint64_t end = *now + ns;
    unsigned int n_woken = 0;

    while (*now < end) {
        nap_begin(n, *now);
        if (nap_gathers(n)) {
            *now += nap_next(n);
        } else {
            nap_wait(n);
            *now = end;
        }
        n_woken++;
    }
    nap_end(n, *now);
    return n_woken;
}

/* As many of them, one after another. */
static unsigned int
idle_often(struct nap *n, uint64_t *now, int times, uint64_t ns)
{
    unsigned int n_woken = 0;

    for (int i = 0; i < times; i++) {
        n_woken += idle(n, now, ns);
    }
    return n_woken;
}

static void
who_knows_nothing_waits(void **state)
{
    struct nap n = { 0 };
    uint64_t now = 1;

    (void) state;
    assert_int_equal(idle(&n, &now, 500 * US), 1);
    assert_int_equal(now, 1 + 500 * US);
}

/* Frames every 5 us: naps of 10 find some. */
static void
short_idle_times_are_for_naps(void **state)
{
    struct nap n = { 0 };
    uint64_t now = 1;

    (void) state;
    idle_often(&n, &now, 10, 5 * US);
    nap_begin(&n, now);
    assert_true(nap_gathers(&n));
    assert_int_equal(nap_next(&n), NAP_MIN);

    /* The next one is a wait, whatever was learned. */
    assert_false(nap_gathers(&n));
}

/* A nap takes as long as the machine likes. */
static void
what_a_late_nap_has_found_came_soon(void **state)
{
    struct nap n = { 0 };
    uint64_t now = 1;

    (void) state;
    idle_often(&n, &now, 10, 5 * US);
    for (int i = 0; i < 100; i++) {
        nap_begin(&n, now);
        assert_true(nap_gathers(&n));
        now += nap_next(&n) + 200 * US;
        nap_end(&n, now);
    }
}

/* Frames every 500 us, after others: soon there is one wake-up for each. */
static void
long_idle_times_are_for_waits(void **state)
{
    struct nap n = { 0 };
    uint64_t now = 1;

    (void) state;
    idle_often(&n, &now, 100, 5 * US);
    assert_in_range(idle_often(&n, &now, 100, 500 * US), 101, 110);
    assert_int_equal(idle(&n, &now, 500 * US), 1);
}

/* One long idle time between many short ones is not learned from, nor one
 * short one between long ones. */
static void
an_exception_changes_nothing(void **state)
{
    struct nap n = { 0 };
    uint64_t now = 1;

    (void) state;
    idle(&n, &now, 500 * US);
    idle(&n, &now, 5 * US);
    assert_int_equal(idle(&n, &now, 500 * US), 1);
    idle_often(&n, &now, 10, 5 * US);
    idle(&n, &now, 500 * US);
    assert_int_equal(idle(&n, &now, 500 * US), 2);
}

static void
who_cannot_wait_naps_longer_and_longer(void **state)
{
    struct nap n = { 0 };
    uint64_t expected = NAP_MIN;

    (void) state;
    nap_begin(&n, 1);
    for (int i = 0; i < 20; i++) {
        uint64_t ns = nap_next(&n);

        assert_int_equal(ns, expected < NAP_MAX ? expected : NAP_MAX);
        expected = ns * 2 < NAP_MAX ? ns * 2 : NAP_MAX;
    }
    assert_int_equal(nap_shortest(&n), NAP_MIN);
    nap_end(&n, 2);
    nap_begin(&n, 3);
    assert_int_equal(nap_next(&n), NAP_MIN);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_knows_nothing_waits),
        cmocka_unit_test(short_idle_times_are_for_naps),
        cmocka_unit_test(what_a_late_nap_has_found_came_soon),
        cmocka_unit_test(long_idle_times_are_for_waits),
        cmocka_unit_test(an_exception_changes_nothing),
        cmocka_unit_test(who_cannot_wait_naps_longer_and_longer),
    };

    return cmocka_run_group_tests_name("shim-nap", tests, NULL, NULL);
}
