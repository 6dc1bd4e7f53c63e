/* SPDX-License-Identifier: Apache-2.0 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "shim/pipeline/level-queue.h"
#include "shim/pipeline/pace.h"

#define SECOND UINT64_C(1000000000)

static bool
push(struct level_queues *lq, uint8_t level, uint32_t length, uint16_t slot)
{
    struct queue_item item = { .length = length, .slot = slot };

    return level_queues_push(lq, level, &item);
}

static void
serves_higher_levels_first_and_each_in_order(void **state)
{
    static const uint16_t order[] = { 1, 2, 3, 4, 5, 6 };
    struct level_queues *lq = level_queues_create(16, 100000);

    (void) state;
    assert_null(level_queues_first(lq));
    push(lq, 7, 100, 5);
    push(lq, 7, 200, 6);
    push(lq, 3, 300, 3);
    push(lq, 0, 400, 1);
    push(lq, 3, 500, 4);
    push(lq, 0, 600, 2);
    assert_int_equal(level_queues_bytes(lq), 2100);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(level_queues_first(lq)->slot, order[i]);
        level_queues_pop(lq);
    }
    assert_null(level_queues_first(lq));
    assert_int_equal(level_queues_bytes(lq), 0);
    level_queues_destroy(lq);
}

/* Levels 2, 4 and 7 always have packets, of lengths of their own.  Stores what
 * each sends of all, in permille. */
static void
share_out(struct level_queues *lq, uint64_t permille[SHIM_N_LEVELS])
{
    static const uint32_t length[SHIM_N_LEVELS] = { [2] = 1500, [4] = 9000,
                                                    [7] = 300 };
    uint64_t sent[SHIM_N_LEVELS] = { 0 }, sum = 0;

    for (int level = 0; level < SHIM_N_LEVELS; level++) {
        for (int i = 0; length[level] && i < 16; i++) {
            push(lq, level, length[level], level);
        }
    }
    for (int i = 0; i < 200000; i++) {
        uint16_t level = level_queues_first(lq)->slot;

        level_queues_pop(lq);
        sent[level] += length[level];
        sum += length[level];
        assert_true(push(lq, level, length[level], level));
    }
    for (int level = 0; level < SHIM_N_LEVELS; level++) {
        permille[level] = (sent[level] * 1000 + sum / 2) / sum;
    }
}

static void
keeps_a_floor_for_those_that_wait(void **state)
{
    struct level_queues *lq = level_queues_create(16, 1000000);
    uint64_t permille[SHIM_N_LEVELS];

    (void) state;
    share_out(lq, permille);
    assert_in_range(permille[4], 500 / 21 - 1, 500 / 21 + 1);
    assert_in_range(permille[7], 500 / 21 - 1, 500 / 21 + 1);
    level_queues_destroy(lq);
}

static void
guards_each_level_as_it_is_told(void **state)
{
    static const struct {
        uint32_t share;         /* Millionths. */
        uint64_t low, rest;     /* Permille. */
    } cases[] = {
        { 0, 0, 1000 }, { 20000, 20, 960 }, { 200000, 200, 600 },
        { 500000, 333, 333 },   /* More than there is: equal shares. */
        { SHIM_GUARD_UNTOLD, 24, 952 },
    };

    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct level_queues *lq = level_queues_create(16, 1000000);
        uint64_t permille[SHIM_N_LEVELS];

        level_queues_set_guard(lq, cases[i].share);
        share_out(lq, permille);
        assert_in_range(permille[2] + 1, cases[i].rest, cases[i].rest + 2);
        assert_in_range(permille[4] + 1, cases[i].low, cases[i].low + 2);
        assert_in_range(permille[7] + 1, cases[i].low, cases[i].low + 2);
        level_queues_destroy(lq);
    }
}

static void
saves_up_no_floor_while_nobody_waits(void **state)
{
    struct level_queues *lq = level_queues_create(16, 1000000);

    (void) state;
    for (int i = 0; i < 1000; i++) {
        push(lq, 1, 1500, 1);
        level_queues_pop(lq);
    }
    push(lq, 1, 1500, 1);
    push(lq, 5, 1500, 5);
    assert_int_equal(level_queues_first(lq)->slot, 1);
    level_queues_destroy(lq);
}

static void
bounds_each_level_in_bytes_and_packets(void **state)
{
    struct level_queues *lq = level_queues_create(10, 3000);

    (void) state;
    assert_true(push(lq, 5, 1500, 1));
    assert_true(push(lq, 5, 1500, 1));
    assert_false(push(lq, 5, 1, 1));            /* Bytes. */
    assert_true(push(lq, 6, 3000, 1));          /* Another level's. */
    for (int i = 0; i < 10; i++) {
        assert_true(push(lq, 4, 10, 1));
    }
    assert_false(push(lq, 4, 10, 1));           /* Packets. */
    level_queues_set_limit(lq, 5, 4000);
    assert_true(push(lq, 5, 1000, 1));
    level_queues_destroy(lq);
}

static void
runs_round_its_rings(void **state)
{
    struct level_queues *lq = level_queues_create(5, 1000000);
    uint16_t in = 0, out = 0;

    (void) state;
    srandom(4);
    for (int i = 0; i < 100000; i++) {
        if (random() % 2) {
            in += push(lq, 2, 100, in);
        } else if (level_queues_first(lq)) {
            assert_int_equal(level_queues_first(lq)->slot, out++);
            level_queues_pop(lq);
        }
        assert_true((uint16_t) (in - out) <= 5);
        assert_int_equal(level_queues_bytes(lq), (uint16_t) (in - out) * 100);
    }
    assert_true(out > 1000);
    level_queues_destroy(lq);
}

/* Sends frames of 'length' as soon as they are due, looking every 'step', for
 * 'duration'.  Returns the bytes sent. */
static uint64_t
send_for(struct pace *pace, uint64_t *now, uint64_t step, uint64_t duration,
         uint32_t length)
{
    uint64_t end = *now + duration, bytes = 0;

    for (; *now < end; *now += step) {
        while (pace_due(pace, length) <= *now) {
            pace_take(pace, *now, length);
            bytes += length;
        }
    }
    return bytes;
}

/* A second at the rate, and what the bucket held at the start. */
static void
keeps_the_rate(void **state)
{
    static const struct {
        uint64_t bps;
        uint32_t length;
        uint64_t step;          /* Nanoseconds between two looks. */
    } cases[] = {
        { 50000000, 9018, 10000 },
        { 50000000, 66, 10000 },
        { 100000000, 1518, 100000 },
        { 100000000, 9018, 1000000 },
        { UINT64_C(10000000000), 1518, 20000 },
    };

    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t bps = cases[i].bps, burst = pace_burst(bps, 9018);
        uint64_t now = 5 * SECOND, bytes;
        struct pace pace = { .full = 0 };

        pace_set_rate(&pace, now, bps, burst);
        bytes = send_for(&pace, &now, cases[i].step, SECOND,
                         cases[i].length);
        assert_in_range(bytes, bps / 8 - cases[i].length,
                        bps / 8 + burst + cases[i].length);

        /* No credit grows while there is nothing to send. */
        now += 10 * SECOND;
        bytes = send_for(&pace, &now, cases[i].step, SECOND / 100,
                         cases[i].length);
        assert_in_range(bytes, bps / 800 - cases[i].length,
                        bps / 800 + burst + cases[i].length);
    }
}

static void
says_when_the_next_frame_is_due(void **state)
{
    struct pace pace = { .full = 0 };
    uint64_t now = SECOND;

    (void) state;
    pace_set_rate(&pace, now, 8000000, 2000);           /* 1 byte a us. */
    pace_take(&pace, now, 1000);
    assert_true(pace_due(&pace, 1000) <= now);
    pace_take(&pace, now, 1000);
    assert_int_equal(pace_due(&pace, 1), now + 1000);
    assert_int_equal(pace_due(&pace, 1000), now + 1000000);
}

static void
a_new_rate_holds_at_once(void **state)
{
    struct pace pace = { .full = 0 };
    uint64_t now = SECOND, bytes;

    (void) state;
    pace_set_rate(&pace, now, 100000, 20000);           /* 1.6 s deep. */
    send_for(&pace, &now, 1000000, SECOND, 9018);
    pace_set_rate(&pace, now, 100000000, 20000);
    bytes = send_for(&pace, &now, 100000, SECOND / 10, 9018);
    assert_in_range(bytes, 1250000 - 2 * 9018, 1250000 + 20000 + 9018);
}

static void
a_burst_holds_two_frames_and_half_a_millisecond(void **state)
{
    (void) state;
    assert_int_equal(pace_burst(50000000, 9018), 18036 + 3125);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_higher_levels_first_and_each_in_order),
        cmocka_unit_test(keeps_a_floor_for_those_that_wait),
        cmocka_unit_test(guards_each_level_as_it_is_told),
        cmocka_unit_test(saves_up_no_floor_while_nobody_waits),
        cmocka_unit_test(bounds_each_level_in_bytes_and_packets),
        cmocka_unit_test(runs_round_its_rings),
        cmocka_unit_test(keeps_the_rate),
        cmocka_unit_test(says_when_the_next_frame_is_due),
        cmocka_unit_test(a_new_rate_holds_at_once),
        cmocka_unit_test(a_burst_holds_two_frames_and_half_a_millisecond),
    };

    return cmocka_run_group_tests_name("shim-queue", tests, NULL, NULL);
}
