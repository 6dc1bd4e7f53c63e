/* SPDX-License-Identifier: Apache-2.0 */

/* The uplink's queues work on several packets at a time, with one decision
 * for all of them.  Whatever comes, that must be what they would have done
 * with one packet after the other. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/classify/job-slot.h"
#include "shim/queue/job-queue.h"
#include "shim/queue/long-queue.h"
#include "shim/queue/pace.h"
#include "shim/queue/packet-fifo.h"
#include "shim/queue/rank-queue.h"
#include "tests/unit/unit-test.h"

#define SECOND UINT64_C(1000000000)
#define MAX_FRAME 1518
#define N_SLOTS 12
#define N_FLOWS 6               /* With queues of their own. */
#define BURST 32

/* Twins: what one gets in pieces, the other gets as a whole. */
struct twins {
    struct rank_queues *one, *all;
    struct pace one_pace, all_pace;
    uint64_t now;
    uintptr_t n_pushed;
    uint32_t n_taken, n_dropped, n_runs;        /* What the test has seen. */
    uint16_t flow_slots[N_FLOWS], flow_queues[N_FLOWS];
};

static void
assert_same(const struct queue_item *a, const struct queue_item *b)
{
    assert_int_equal((uintptr_t) a->packet, (uintptr_t) b->packet);
    assert_int_equal(a->length, b->length);
    assert_int_equal(a->slot, b->slot);
}

static void
twins_init(struct twins *t, uint32_t max_packets)
{
    memset(t, 0, sizeof *t);
    t->one = rank_queues_create(max_packets, MAX_FRAME);
    t->all = rank_queues_create(max_packets, MAX_FRAME);
    t->now = SECOND;
    for (int i = 0; i < N_FLOWS; i++) {
        t->flow_slots[i] = 1 + i % 3;
    }
}

static void
twins_uninit(struct twins *t)
{
    rank_queues_destroy(t->one);
    rank_queues_destroy(t->all);
}

static void
twins_push(struct twins *t, uint16_t slot, uint16_t queue, bool control,
           uint32_t n)
{
    struct queue_item items[BURST] = { { NULL } }, one[BURST], all[BURST];
    uint32_t n_one = 0, n_all;

    for (uint32_t i = 0; i < n; i++) {
        items[i] = (struct queue_item) {
            .packet = (void *) ++t->n_pushed,
            .length = random() % 4 ? MAX_FRAME - random() % 3
                      : 60 + random() % 600,
            .slot = slot,
        };
        n_one += !rank_queues_push(t->one, queue, control, &items[i],
                                   &one[n_one]);
    }
    n_all = rank_queues_push_run(t->all, queue, control, items, n, all);
    assert_int_equal(n_one, n_all);
    for (uint32_t i = 0; i < n_one; i++) {
        assert_same(&one[i], &all[i]);
    }
    t->n_dropped += n_one;
}

/* Takes up to 'max' packets. */
static uint32_t
twins_take(struct twins *t, uint32_t max)
{
    struct queue_item one[BURST], all[BURST];
    uint32_t n_one = 0, n_all;

    while (n_one < max && rank_queues_take(t->one, t->now, &t->one_pace,
                                           &one[n_one], 1)) {
        n_one++;
    }
    n_all = rank_queues_take(t->all, t->now, &t->all_pace, all, max);
    assert_int_equal(n_one, n_all);
    for (uint32_t i = 0; i < n_one; i++) {
        assert_same(&one[i], &all[i]);
        t->n_runs += i && one[i].slot == one[i - 1].slot;
    }
    assert_int_equal(t->one_pace.full, t->all_pace.full);
    assert_int_equal(t->one_pace.part, t->all_pace.part);
    assert_int_equal(rank_queues_bytes(t->one), rank_queues_bytes(t->all));
    assert_int_equal(rank_queues_due(t->one), rank_queues_due(t->all));
    assert_int_equal(rank_queues_policed(t->one),
                     rank_queues_policed(t->all));
    t->n_taken += n_one;
    return n_one;
}

static void
twins_rank(struct twins *t)
{
    job_class classes[SHIM_MAX_SLOTS];

    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        int number = random() % 6;

        classes[i] = !i || i >= N_SLOTS || number == 5 ? JOB_CLASS_LAST
                    : JOB_CLASS(number, 1 + number);
    }
    rank_queues_set_classes(t->one, classes);
    rank_queues_set_classes(t->all, classes);
}

static void
twins_pace(struct twins *t, uint64_t bps)
{
    pace_set_rate(&t->one_pace, t->now, bps, MAX_FRAME);
    pace_set_rate(&t->all_pace, t->now, bps, MAX_FRAME);
    rank_queues_set_rate(t->one, t->now, bps, 60000);
    rank_queues_set_rate(t->all, t->now, bps, 60000);
}

/* Gives, paces or takes away the queue of flow 'i'. */
static void
twins_flow(struct twins *t, int i)
{
    uint16_t slot = t->flow_slots[i], *queue = &t->flow_queues[i];
    uint64_t bps = random() % 3 * 20000000;

    if (!*queue) {
        *queue = job_queues_flow_new(rank_queues_jobs(t->one), slot);
        assert_int_equal(*queue, job_queues_flow_new(rank_queues_jobs(t->all),
                                                     slot));
    } else if (random() % 2) {
        rank_queues_flow_rate(t->one, t->now, *queue, bps);
        rank_queues_flow_rate(t->all, t->now, *queue, bps);
    } else {
        job_queues_flow_free(rank_queues_jobs(t->one), *queue);
        job_queues_flow_free(rank_queues_jobs(t->all), *queue);
        *queue = 0;
    }
}

/* Something that happens now and then. */
static void
twins_change(struct twins *t)
{
    static const uint32_t shares[] = {
        0, 20000, 200000, SHIM_MIN_SHARE_DEFAULT,
    };
    uint32_t share = shares[random() % 4];

    switch (random() % 5) {
    case 0:
        twins_rank(t);
        break;
    case 1:
        rank_queues_set_min_share(t->one, share);
        rank_queues_set_min_share(t->all, share);
        break;
    case 2:
        twins_pace(t, random() % 2 ? UINT64_C(10000000000) : 100000000);
        break;
    default:
        twins_flow(t, random() % N_FLOWS);
    }
}

/* Pushes a few packets of one slot, sometimes of a flow or of control. */
static void
push_some(struct twins *t)
{
    uint32_t n = 1 + random() % (random() % 2 ? 3 : BURST);
    int flow = random() % N_FLOWS;

    if (random() % 3 == 0) {
        twins_push(t, t->flow_slots[flow], t->flow_queues[flow], false, n);
    } else {
        uint16_t slot = random() % N_SLOTS;

        twins_push(t, slot, 0, slot < 2 && random() % 4 == 0, n);
    }
}

UNIT_TEST(runs_equal_single_packets)
{
    for (int round = 0; round < 20; round++) {
        struct twins t;

        srandom(round);
        twins_init(&t, round % 2 ? 4000 : 200);
        twins_pace(&t, UINT64_C(10000000000));
        for (int i = 0; i < 20000; i++) {
            t.now += random() % 8 * 1000;
            pace_forget(&t.one_pace, t.now, 20000);
            pace_forget(&t.all_pace, t.now, 20000);
            if (random() % 2) {
                push_some(&t);
            }
            twins_take(&t, 1 + random() % BURST);
            if (random() % 200 == 0) {
                twins_change(&t);
            }
        }
        assert_true(t.n_taken > 10000);
        assert_true(t.n_runs > t.n_taken / 4);
        assert_true(t.n_dropped > 0);
        twins_uninit(&t);
    }
}

/* The same where jobs of one class always have packets, so that dispatches end
 * in the middle of a burst, and levels wait for their minimum shares. */
UNIT_TEST(dispatches_and_minimum_shares_end_in_time)
{
    static const uint32_t shares[] = { 0, 1, 20000, 150000 };

    for (int round = 0; round < 16; round++) {
        struct twins t;

        srandom(100 + round);
        twins_init(&t, 4000);
        twins_rank(&t);
        rank_queues_set_min_share(t.one, shares[round % 4]);
        rank_queues_set_min_share(t.all, shares[round % 4]);
        for (int i = 0; i < 10000; i++) {
            uint16_t slot = random() % N_SLOTS;

            twins_push(&t, slot, 0, false, BURST);
            if (i > 50) {
                assert_int_equal(twins_take(&t, BURST), BURST);
            }
        }
        assert_int_equal(t.n_dropped, 0);
        while (twins_take(&t, BURST)) {
            continue;
        }
        assert_int_equal(t.n_taken, t.n_pushed);
        twins_uninit(&t);
    }
}

/* Against a look at the bucket before each frame. */
UNIT_TEST(the_allowance_equals_the_frames_that_may_leave)
{
    srandom(1);
    for (int i = 0; i < 100000; i++) {
        uint64_t bps = 100000 + random() % 1000 * (random() % 2000000000);
        struct pace pace = { .full = 0 };
        uint64_t now = SECOND + random(), bytes = 0, allowance;

        pace_set_rate(&pace, now, bps, random() % 2 ? 1518 : 9018);
        pace_forget(&pace, now, 0);
        now += random() % 3 ? random() % 100000 : 0;
        allowance = pace_allowance(&pace, now);
        for (int k = 0; k < BURST; k++) {
            uint32_t length = 60 + random() % 1459;

            assert_int_equal(bytes < allowance, pace_due(&pace) <= now);
            pace_take(&pace, length);
            bytes += length;
        }
    }
}

UNIT_TEST(a_fifo_gives_back_runs_in_their_order)
{
    struct queue_item items[2 * PACKET_CHUNK_ITEMS];
    uintptr_t n_in = 0, n_out = 0;
    struct packet_fifo fifo = { .n = 0 };
    struct packet_pool pool;

    srandom(4);
    memset(items, 0, sizeof items);
    packet_pool_init(&pool, 4);
    for (int i = 0; i < 100000; i++) {
        uint32_t n = random() % (2 * PACKET_CHUNK_ITEMS), taken;

        for (uint32_t k = 0; k < n; k++) {
            items[k].packet = (void *) (n_in + k);
        }
        taken = packet_fifo_push_run(&fifo, &pool, items, n);
        assert_true(taken == n || fifo.n > 2 * PACKET_CHUNK_ITEMS);
        n_in += taken;
        n = random() % (2 * PACKET_CHUNK_ITEMS);
        while (fifo.n && n) {
            uint32_t span = packet_fifo_span(&fifo);

            span = span < n ? span : n;
            for (uint32_t k = 0; k < span; k++) {
                const struct queue_item *item = packet_fifo_first(&fifo) + k;

                assert_int_equal((uintptr_t) item->packet, n_out++);
            }
            packet_fifo_remove(&fifo, &pool, span);
            n -= span;
        }
        assert_int_equal(fifo.n, n_in - n_out);
    }
    packet_pool_uninit(&pool);
}

UNIT_TEST(a_queue_moves_when_its_length_has_another_logarithm)
{
    for (uint32_t a = 0; a < 600; a++) {
        for (uint32_t b = 0; b < 600; b++) {
            int list_a = 0, list_b = 0;

            while (a >> (LONG_QUEUE_SHIFT + list_a)) {
                list_a++;
            }
            while (b >> (LONG_QUEUE_SHIFT + list_b)) {
                list_b++;
            }
            if (list_a != list_b) {
                assert_true(long_queue_moves(a, b));
            } else if (a && b) {
                assert_true(!list_a || !long_queue_moves(a, b));
            }
        }
    }
}
