/* SPDX-License-Identifier: Apache-2.0 */

#include <stdint.h>

#include "shim/classify/job-slot.h"
#include "shim/queue/class-order.h"
#include "shim/queue/pace.h"
#include "shim/queue/rank-queue.h"
#include "tests/unit/unit-test.h"

#define SECOND UINT64_C(1000000000)
#define MAX_FRAME 9018

/* Packets are numbers, never dereferenced. */
static struct queue_item
item_of(uint16_t slot, uint32_t length, uintptr_t packet)
{
    return (struct queue_item) {
        .packet = (void *) packet, .length = length, .slot = slot,
    };
}

static bool
push(struct rank_queues *rq, uint16_t slot, uint32_t length)
{
    struct queue_item dropped, item = item_of(slot, length, 0);

    return rank_queues_push(rq, 0, false, &item, &dropped);
}

/* Takes a packet that no pace of the uplink's keeps. */
static bool
take(struct rank_queues *rq, uint64_t now, struct queue_item *item)
{
    struct pace pace = { .bps = 0 };

    return rank_queues_take(rq, now, &pace, item, 1) == 1;
}

/* A slot's class; the others have the last. */
struct at {
    uint16_t slot, number, level;
};

static void
set_classes(struct rank_queues *rq, const struct at *at, size_t n)
{
    job_class classes[SHIM_MAX_SLOTS];

    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        classes[i] = JOB_CLASS_LAST;
    }
    for (size_t i = 0; i < n; i++) {
        classes[at[i].slot] = JOB_CLASS(at[i].number, at[i].level);
    }
    rank_queues_set_classes(rq, classes);
}

UNIT_TEST(serves_jobs_by_rank_and_each_in_order)
{
    /* The levels of 8 and 9 are the same: the order is exact. */
    static const struct at at[] = {
        { 7, 0, 1 }, { 8, 1, 2 }, { 9, 2, 2 }, { 5, 1022, 6 },
    };
    static const uint32_t order[] = { 400, 600, 300, 500, 10, 20, 100, 200 };
    struct rank_queues *rq = rank_queues_create(16, MAX_FRAME);
    struct queue_item item;

    rank_queues_set_min_share(rq, 0);
    set_classes(rq, at, 4);
    assert_false(take(rq, 0, &item));
    push(rq, 5, 100);
    push(rq, 5, 200);
    push(rq, 8, 300);
    push(rq, 9, 10);
    push(rq, 7, 400);
    push(rq, 8, 500);
    push(rq, 9, 20);
    push(rq, 7, 600);
    push(rq, 0, 700);
    assert_int_equal(rank_queues_bytes(rq), 2830);
    for (int i = 0; i < 8; i++) {
        assert_true(take(rq, 0, &item));
        assert_int_equal(item.length, order[i]);
    }
    assert_true(take(rq, 0, &item));
    assert_int_equal(item.slot, 0);
    assert_false(take(rq, 0, &item));
    assert_int_equal(rank_queues_bytes(rq), 0);
    rank_queues_destroy(rq);
}

/* The slots in 'lengths' always have packets, of lengths of their own.  Stores
 * what each sends of all, in permille. */
static void
share_out(struct rank_queues *rq, const uint32_t *lengths, size_t n,
          uint64_t *permille)
{
    uint64_t sent[16] = { 0 }, sum = 0;

    for (size_t slot = 0; slot < n; slot++) {
        for (int i = 0; lengths[slot] && i < 16; i++) {
            assert_true(push(rq, slot, lengths[slot]));
        }
    }
    for (int i = 0; i < 200000; i++) {
        struct queue_item item;

        assert_true(take(rq, 0, &item));
        sent[item.slot] += item.length;
        sum += item.length;
        assert_true(push(rq, item.slot, item.length));
    }
    for (size_t slot = 0; slot < n; slot++) {
        permille[slot] = (sent[slot] * 1000 + sum / 2) / sum;
    }
}

static const struct at three[] = { { 2, 0, 2 }, { 4, 1, 4 }, { 7, 2, 7 } };
static const uint32_t three_lengths[8] = { [2] = 1500, [4] = 9000,
                                           [7] = 300 };

UNIT_TEST(each_level_gets_its_configured_minimum_share)
{
    static const struct {
        uint32_t share;         /* Millionths. */
        uint64_t low, rest;     /* Permille. */
    } cases[] = {
        { 0, 0, 1000 },
        { 20000, 20, 960 },
        { 200000, 200, 600 },
        { 500000, 333, 333 }, /* More than there is: equal shares. */
        { SHIM_MIN_SHARE_DEFAULT, 24, 952 }, /* Also if not set. */
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rank_queues *rq = rank_queues_create(64, MAX_FRAME);
        uint64_t permille[8];

        if (cases[i].share != SHIM_MIN_SHARE_DEFAULT) {
            rank_queues_set_min_share(rq, cases[i].share);
        }
        set_classes(rq, three, 3);
        share_out(rq, three_lengths, 8, permille);
        assert_in_range(permille[2] + 1, cases[i].rest, cases[i].rest + 2);
        assert_in_range(permille[4] + 1, cases[i].low, cases[i].low + 2);
        assert_in_range(permille[7] + 1, cases[i].low, cases[i].low + 2);
        rank_queues_destroy(rq);
    }
}

/* Fourteen jobs that wait in two levels have the minimum shares of two levels,
 * and each of them an equal part of its level's. */
UNIT_TEST(a_minimum_share_goes_round_the_jobs_of_a_level)
{
    struct rank_queues *rq = rank_queues_create(1024, MAX_FRAME);
    uint32_t lengths[16] = { 0 };
    uint64_t permille[16];
    struct at at[15];

    for (int i = 0; i < 15; i++) {
        at[i] = (struct at) { i + 1, i, i < 8 ? 1 : 2 };
        lengths[i + 1] = 1000;
    }
    rank_queues_set_min_share(rq, 140000);
    set_classes(rq, at, 15);
    share_out(rq, lengths, 16, permille);
    assert_in_range(permille[1], 719, 721);
    for (int slot = 2; slot <= 15; slot++) {
        assert_in_range(permille[slot], 19, 21);
    }
    rank_queues_destroy(rq);
}

/* Whatever the lengths of their packets and the number of their flows. */
UNIT_TEST(jobs_of_equal_rank_share_by_bytes)
{
    static const struct at same[] = { { 1, 3, 2 }, { 2, 3, 2 }, { 3, 3, 2 } };
    static const uint32_t lengths[4] = { 0, 66, 1518, 9018 };

    for (int leased = 0; leased < 2; leased++) {
        struct rank_queues *rq = rank_queues_create(64, MAX_FRAME);
        uint64_t permille[4];

        if (leased) {
            set_classes(rq, same, 3);
        }
        share_out(rq, lengths, 4, permille);
        for (int i = 1; i < 4; i++) {
            assert_in_range(permille[i], 332, 335);
        }
        rank_queues_destroy(rq);
    }
}

UNIT_TEST(no_minimum_share_is_saved_up_while_none_waits)
{
    static const struct at at[] = { { 1, 0, 1 }, { 5, 1, 5 } };
    struct rank_queues *rq = rank_queues_create(16, MAX_FRAME);
    struct queue_item item;

    set_classes(rq, at, 2);
    for (int i = 0; i < 1000; i++) {
        push(rq, 1, 1500);
        assert_true(take(rq, 0, &item));
    }
    push(rq, 1, 1500);
    push(rq, 5, 1500);
    assert_true(take(rq, 0, &item));
    assert_int_equal(item.slot, 1);
    rank_queues_destroy(rq);
}

/* Sends frames of 'length' as soon as they are due, looking every 'step', for
 * 'duration'.  Returns the bytes sent. */
static uint64_t
send_for(struct pace *pace, uint64_t *now, uint64_t step, uint64_t duration,
         uint32_t length, uint64_t late)
{
    uint64_t end = *now + duration, bytes = 0;

    for (; *now < end; *now += step) {
        pace_forget(pace, *now, late);
        while (pace_due(pace) <= *now) {
            pace_take(pace, length);
            bytes += length;
        }
    }
    return bytes;
}

/* A second at the rate, and at most two frames more. */
UNIT_TEST(keeps_the_rate)
{
    static const struct {
        uint64_t bps;
        uint32_t length;
        uint64_t step;          /* Nanoseconds between two looks. */
    } cases[] = {
        { 100000, 1518, 10000 },
        { 50000000, 9018, 10000 },
        { 50000000, 66, 10000 },
        { 100000000, 1518, 100000 },
        { 100000000, 9018, 1000000 },
        { UINT64_C(10000000000), 1518, 20000 },
        { UINT64_C(800000000000), 66, 50000 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t bps = cases[i].bps, step = cases[i].step;
        uint64_t now = 5 * SECOND, bytes;
        uint32_t length = cases[i].length;
        uint64_t missed = length + bps / 8000000000.0 * step + bps / 1000000;
        struct pace pace = { .full = 0 };

        pace_set_rate(&pace, now, bps, 9018);
        pace_forget(&pace, now, 0);
        bytes = send_for(&pace, &now, step, SECOND, length, step);
        assert_in_range(bytes, bps / 8 - missed, bps / 8 + 9018 + length);

        /* No credit grows while there is nothing to send. */
        now += 10 * SECOND;
        pace_forget(&pace, now, 0);
        bytes = send_for(&pace, &now, step, SECOND / 100, length, step);
        assert_in_range(bytes, bps / 800 > missed ? bps / 800 - missed : 0,
                        bps / 800 + 9018 + length);
    }
}

UNIT_TEST(sends_two_frames_at_once_at_most)
{
    struct pace pace = { .full = 0 };
    uint64_t now = 5 * SECOND;
    int n = 0;

    pace_set_rate(&pace, now, 50000000, 9018);
    pace_forget(&pace, now, 0);
    for (; pace_due(&pace) <= now; n++) {
        pace_take(&pace, 9018);
    }
    assert_int_equal(n, 2);
}

UNIT_TEST(returns_when_the_next_frame_is_due)
{
    struct pace pace = { .full = 0 };
    uint64_t now = SECOND;

    pace_set_rate(&pace, now, 8000000, 1000);           /* 1 byte a us. */
    pace_forget(&pace, now, 0);
    pace_take(&pace, 1000);
    assert_true(pace_due(&pace) <= now);
    pace_take(&pace, 1);
    assert_int_equal(pace_due(&pace), now + 1000);
    pace_take(&pace, 999);
    assert_int_equal(pace_due(&pace), now + 1000000);
}

/* A late poll makes up for what it is known to have missed, no more. */
UNIT_TEST(catches_up_only_for_queued_frames)
{
    struct pace pace = { .full = 0 };
    uint64_t now = SECOND;
    uint64_t bytes;

    pace_set_rate(&pace, now, 8000000, 1000);
    bytes = send_for(&pace, &now, 100000, 100000, 100, 0);
    assert_int_equal(bytes, 1100);
    now += 1900000;
    bytes = send_for(&pace, &now, 1, 1, 100, 500000);
    assert_int_equal(bytes, 1600);
    now += 3000000;
    bytes = send_for(&pace, &now, 1, 1, 100, 0);
    assert_int_equal(bytes, 1100);
}

UNIT_TEST(a_new_rate_holds_at_once)
{
    struct pace pace = { .full = 0 };
    uint64_t now = SECOND, bytes;

    pace_set_rate(&pace, now, 100000, 20000);           /* 1.6 s deep. */
    send_for(&pace, &now, 1000000, SECOND, 9018, 0);
    pace_set_rate(&pace, now, 100000000, 20000);
    bytes = send_for(&pace, &now, 100000, SECOND / 10, 9018, 0);
    assert_in_range(bytes, 1250000 - 2 * 9018, 1250000 + 20000 + 9018);
}
