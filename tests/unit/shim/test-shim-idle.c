/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>

#include "shim/loop/idle.h"
#include "tests/unit/unit-test.h"

#define US UINT64_C(1000)

#define MS (1000 * US)

/* Simulates a loop that may block: frames arrive 'gap' apart for 'ns', one at
 * a time.  A sleep takes 'late' longer than requested.  Returns the number of
 * wake-ups. */
static unsigned int
forward(struct idle *idle, uint64_t *now, uint64_t gap, uint64_t ns,
        uint64_t late)
{
    uint64_t end = *now + ns;
    unsigned int n_woken = 0;

    while (*now < end) {
        uint64_t next = *now / gap * gap + gap;

        while (*now < next) {
            *now = (idle_sleeps_first(idle) ? *now + idle_next(idle) + late
                    : next);
            n_woken++;
        }
        idle_end(idle, *now, *now / gap);
    }
    return n_woken;
}

UNIT_TEST(a_new_loop_blocks)
{
    struct idle idle = { 0 };

    assert_false(idle_sleeps_first(&idle));
}

/* Frames every 10 us: sleeps gather several, even if they end late. */
UNIT_TEST(many_frames_are_gathered_by_sleeping)
{
    struct idle idle = { 0 };
    uint64_t now = 10 * MS;

    forward(&idle, &now, 10 * US, 2 * MS, 0);
    assert_true(idle_sleeps_first(&idle));
    assert_in_range(forward(&idle, &now, 10 * US, 100 * MS, 50 * US),
                    1600, 1700);
}

/* Frames every 100 us: one wake-up for each, also after many frames. */
UNIT_TEST(few_frames_are_awaited_by_blocking)
{
    struct idle idle = { 0 };
    uint64_t now = 10 * MS;

    assert_in_range(forward(&idle, &now, 100 * US, 100 * MS, 0), 1000, 1001);
    forward(&idle, &now, 10 * US, 10 * MS, 0);
    assert_true(idle_sleeps_first(&idle));
    forward(&idle, &now, 100 * US, 2 * MS, 0);
    assert_in_range(forward(&idle, &now, 100 * US, 100 * MS, 0), 1000, 1001);
}

/* Without further frames, the loop blocks. */
UNIT_TEST(a_loop_without_frames_blocks)
{
    struct idle idle = { 0 };
    uint64_t now = 10 * MS, slept = 0;

    forward(&idle, &now, 10 * US, 2 * MS, 0);
    while (idle_sleeps_first(&idle)) {
        slept += idle_next(&idle);
    }
    assert_in_range(slept, IDLE_MIN_NS, MS);
}

UNIT_TEST(sleeps_grow_to_the_maximum)
{
    struct idle idle = { 0 };
    uint64_t expected = IDLE_MIN_NS;

    for (int i = 0; i < 20; i++) {
        uint64_t ns = idle_next(&idle);

        assert_int_equal(ns, expected < IDLE_MAX_NS ? expected : IDLE_MAX_NS);
        expected = ns * 2 < IDLE_MAX_NS ? ns * 2 : IDLE_MAX_NS;
    }
    assert_int_equal(idle_shortest(&idle), IDLE_MIN_NS);
    idle_end(&idle, 2, 1);
    assert_int_equal(idle_next(&idle), IDLE_MIN_NS);
}
