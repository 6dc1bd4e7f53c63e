/* SPDX-License-Identifier: Apache-2.0 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/loop/idle.h"

#define US UINT64_C(1000)

#define MS (1000 * US)

/* A loop that may wait: frames come 'gap' apart for 'ns', one at a time.  A nap
 * takes 'late' longer than it should.  Returns how often it woke up. */
static unsigned int
forward(struct idle *n, uint64_t *now, uint64_t gap, uint64_t ns,
        uint64_t late)
{
    uint64_t end = *now + ns;
    unsigned int n_woken = 0;

    while (*now < end) {
        uint64_t next = *now / gap * gap + gap;

        while (*now < next) {
            *now = idle_sleeps_first(n) ? *now + idle_next(n) + late : next;
            n_woken++;
        }
        idle_end(n, *now, *now / gap);
    }
    return n_woken;
}

static void
who_knows_nothing_waits(void **state)
{
    struct idle n = { 0 };

    (void) state;
    assert_false(idle_sleeps_first(&n));
}

/* Frames every 10 us: naps gather several, however late they end. */
static void
many_frames_are_for_naps(void **state)
{
    struct idle n = { 0 };
    uint64_t now = 10 * MS;

    (void) state;
    forward(&n, &now, 10 * US, 2 * MS, 0);
    assert_true(idle_sleeps_first(&n));
    assert_in_range(forward(&n, &now, 10 * US, 100 * MS, 50 * US),
                    1600, 1700);
}

/* Frames every 100 us: one wake-up for each, also after many frames. */
static void
few_frames_are_for_waits(void **state)
{
    struct idle n = { 0 };
    uint64_t now = 10 * MS;

    (void) state;
    assert_in_range(forward(&n, &now, 100 * US, 100 * MS, 0), 1000, 1001);
    forward(&n, &now, 10 * US, 10 * MS, 0);
    assert_true(idle_sleeps_first(&n));
    forward(&n, &now, 100 * US, 2 * MS, 0);
    assert_in_range(forward(&n, &now, 100 * US, 100 * MS, 0), 1000, 1001);
}

/* When frames come no more, naps end. */
static void
a_loop_without_frames_waits(void **state)
{
    struct idle n = { 0 };
    uint64_t now = 10 * MS, napped = 0;

    (void) state;
    forward(&n, &now, 10 * US, 2 * MS, 0);
    while (idle_sleeps_first(&n)) {
        napped += idle_next(&n);
    }
    assert_in_range(napped, IDLE_MIN_NS, MS);
}

static void
who_cannot_wait_naps_longer_and_longer(void **state)
{
    struct idle n = { 0 };
    uint64_t expected = IDLE_MIN_NS;

    (void) state;
    for (int i = 0; i < 20; i++) {
        uint64_t ns = idle_next(&n);

        assert_int_equal(ns, expected < IDLE_MAX_NS ? expected : IDLE_MAX_NS);
        expected = ns * 2 < IDLE_MAX_NS ? ns * 2 : IDLE_MAX_NS;
    }
    assert_int_equal(idle_shortest(&n), IDLE_MIN_NS);
    idle_end(&n, 2, 1);
    assert_int_equal(idle_next(&n), IDLE_MIN_NS);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_knows_nothing_waits),
        cmocka_unit_test(many_frames_are_for_naps),
        cmocka_unit_test(few_frames_are_for_waits),
        cmocka_unit_test(a_loop_without_frames_waits),
        cmocka_unit_test(who_cannot_wait_naps_longer_and_longer),
    };

    return cmocka_run_group_tests_name("shim-idle", tests, NULL, NULL);
}
