/* SPDX-License-Identifier: Apache-2.0 */

/* What must hold of the uplink's queues whatever comes: packets are neither
 * lost nor doubled, flows keep their order, jobs are served in theirs. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cc/allocate.h"
#include "shim/classify/job-slot.h"
#include "shim/queue/class-order.h"
#include "shim/queue/due-heap.h"
#include "shim/queue/job-queue.h"
#include "shim/queue/pace.h"
#include "shim/queue/rank-queue.h"
#include "tests/unit/unit-test.h"

#define SECOND UINT64_C(1000000000)
#define MAX_FRAME 1518
#define N_SLOTS 12
#define N_FLOWS 40

/* A flow belongs to a job and numbers its packets from 1 on. */
struct flow {
    uint16_t slot;
    uint16_t queue;             /* 0: its job's common one. */
    uint32_t sent, seen;
};

/* The queues, and what is known to be in them. */
struct model {
    struct rank_queues *rq;
    struct flow flows[N_FLOWS];
    job_class classes[SHIM_MAX_SLOTS];
    uint32_t n[N_SLOTS];        /* Packets of each slot. */
    uint32_t n_all, n_dropped;
    uint64_t bytes;
    bool control[N_SLOTS];
    bool paced;                 /* Some may have to wait. */
};

static void
model_init(struct model *m, uint32_t max_packets)
{
    memset(m, 0, sizeof *m);
    m->rq = rank_queues_create(max_packets, MAX_FRAME);
    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        m->classes[i] = JOB_CLASS_LAST;
    }
    for (int i = 0; i < N_FLOWS; i++) {
        m->flows[i].slot = i % N_SLOTS;
    }
}

/* A packet has its flow and its number. */
static void *
packet_of(int flow, uint32_t number)
{
    return (void *) ((uintptr_t) number << 8 | flow);
}

static void
forget(struct model *m, const struct queue_item *item, bool dropped)
{
    struct flow *flow = &m->flows[(uintptr_t) item->packet & 0xff];
    uint32_t number = (uintptr_t) item->packet >> 8;

    assert_int_equal(item->slot, flow->slot);
    if (!dropped) {
        assert_true(number > flow->seen);       /* Never overtaken. */
        flow->seen = number;
    }
    m->n[item->slot]--;
    m->n_all--;
    m->bytes -= item->length;
    m->n_dropped += dropped;
}

static void
model_push(struct model *m, int i, uint32_t length)
{
    struct flow *flow = &m->flows[i];
    struct queue_item dropped, item = {
        .packet = packet_of(i, ++flow->sent), .length = length,
        .slot = flow->slot,
    };

    m->n[flow->slot]++;
    m->n_all++;
    m->bytes += length;
    if (!rank_queues_push(m->rq, flow->queue, m->control[flow->slot], &item,
                          &dropped)) {
        forget(m, &dropped, true);
    }
    assert_int_equal(rank_queues_bytes(m->rq), m->bytes);
}

static bool
model_take(struct model *m, uint64_t now)
{
    struct pace pace = { .bps = 0 };
    struct queue_item item;

    if (!rank_queues_take(m->rq, now, &pace, &item, 1)) {
        assert_true(m->paced || !m->n_all);
        return false;
    }
    for (int i = 0; !m->paced && i < N_SLOTS; i++) {
        /* No packet of an earlier class waits. */
        assert_true(!m->n[i] || JOB_CLASS_NUMBER(m->classes[i])
                    >= JOB_CLASS_NUMBER(m->classes[item.slot]));
    }
    forget(m, &item, false);
    return true;
}

static void
model_rank(struct model *m)
{
    for (int i = 1; i < N_SLOTS; i++) {
        int number = random() % 8;

        m->classes[i] = number == 7 ? JOB_CLASS_LAST
                       : JOB_CLASS(number * 100, 1 + number * 6 / 7);
    }
    rank_queues_set_classes(m->rq, m->classes);
}

static void
model_uninit(struct model *m)
{
    struct queue_item item;

    while (rank_queues_drain(m->rq, &item)) {
        m->n_all--;
    }
    assert_int_equal(m->n_all, 0);
    rank_queues_destroy(m->rq);
}

static uint32_t
random_length(void)
{
    return 60 + random() % (MAX_FRAME - 59);
}

UNIT_TEST(any_order_is_kept_and_nothing_is_lost)
{
    struct model m;

    srandom(1);
    model_init(&m, 4000);
    rank_queues_set_min_share(m.rq, 0);
    for (int i = 0; i < 300000; i++) {
        int busy = i / 3000 % 3;        /* It fills and drains in turn. */

        if (random() % 8 > 2 + busy) {
            model_push(&m, random() % N_FLOWS, random_length());
        } else {
            model_take(&m, 0);
        }
        if (!(random() % 500)) {
            model_rank(&m);
        }
    }
    while (model_take(&m, 0)) {
        continue;
    }
    assert_int_equal(m.n_dropped, 0);
    model_uninit(&m);
}

/* Flows get queues and paces, change and lose them, while all is short of
 * room, jobs become control and back, minimum shares are served, and the order
 * changes.  Frames are so short that the queue of control never has 64 long
 * ones, which is when order is given up for it. */
UNIT_TEST(flows_keep_their_order_whatever_happens)
{
    uint64_t now = SECOND;
    struct model m;

    srandom(2);
    model_init(&m, 700);
    m.paced = true;
    rank_queues_set_rate(m.rq, now, 10000000, 20000);
    for (int i = 0; i < 400000; i++) {
        struct flow *flow = &m.flows[random() % N_FLOWS];

        now += random() % 20000;
        if (random() % 100 < 52) {
            model_push(&m, flow - m.flows, 60 + random() % 70);
        } else {
            model_take(&m, now);
        }
        switch (random() % 200) {
        case 0:
            if (!flow->queue) {
                flow->queue = job_queues_flow_new(rank_queues_jobs(m.rq),
                                                  flow->slot);
                assert_true(flow->queue);
                break;
            }
            job_queues_flow_free(rank_queues_jobs(m.rq), flow->queue);
            flow->queue = 0;
            break;
        case 1:
            if (flow->queue) {
                rank_queues_flow_rate(m.rq, now, flow->queue,
                                      random() % 3 * 2000000);
            }
            break;
        case 2:
            m.control[flow->slot] = flow->slot && !(random() % 4);
            break;
        case 3:
            model_rank(&m);
            break;
        }
    }
    assert_true(m.n_dropped > 1000);
    assert_true(rank_queues_policed(m.rq) > 0);

    /* Without pacing they all leave. */
    for (int i = 0; i < N_FLOWS; i++) {
        if (m.flows[i].queue) {
            job_queues_flow_free(rank_queues_jobs(m.rq), m.flows[i].queue);
        }
    }
    m.paced = false;
    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        m.classes[i] = JOB_CLASS_LAST;
    }
    rank_queues_set_classes(m.rq, m.classes);
    while (model_take(&m, now)) {
        continue;
    }
    assert_int_equal(m.n_all, 0);
    model_uninit(&m);
}

static bool
push(struct rank_queues *rq, uint16_t slot, uint16_t flow_queue, bool control,
     uint32_t length, struct queue_item *dropped)
{
    struct queue_item item = { .length = length, .slot = slot };

    return rank_queues_push(rq, flow_queue, control, &item, dropped);
}

/* Runs a link of 'bps' for a second, on which 'slot' 1, ordered first, and
 * control in slots 0 and 2 always have packets.  Stores the bytes of each. */
static void
run_with_control(struct rank_queues *rq, uint64_t bps, uint64_t bytes[3])
{
    struct pace pace = { .bps = 0 };
    struct queue_item item, dropped;
    uint64_t start = SECOND;

    pace_set_rate(&pace, start, bps, MAX_FRAME);
    pace_forget(&pace, start, 0);
    memset(bytes, 0, 3 * sizeof *bytes);
    for (int i = 0; i < 4; i++) {
        push(rq, 1, 0, false, MAX_FRAME, &dropped);
        push(rq, 0, 0, true, 60, &dropped);
        push(rq, 2, 0, true, 60, &dropped);
    }
    for (uint64_t now = start; now < 2 * SECOND; now += 10000) {
        while (rank_queues_take(rq, now, &pace, &item, 1)) {
            bytes[item.slot] += item.length;
            push(rq, item.slot, 0, item.slot != 1, item.length, &dropped);
        }
    }
}

UNIT_TEST(control_goes_first_for_a_hundredth)
{
    job_class classes[SHIM_MAX_SLOTS];
    struct rank_queues *rq;
    uint64_t bytes[3];

    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        classes[i] = i == 1 ? JOB_CLASS(0, 1) : JOB_CLASS_LAST;
    }
    rq = rank_queues_create(100, MAX_FRAME);
    rank_queues_set_classes(rq, classes);
    rank_queues_set_min_share(rq, 0);
    rank_queues_set_rate(rq, SECOND, 100000000, 1000000);
    run_with_control(rq, 100000000, bytes);
    assert_in_range(bytes[0] + bytes[2], 125000 - 200,
                    125000 + RANK_QUEUE_CONTROL_FRAMES * MAX_FRAME);
    assert_in_range(bytes[1], 12375000 - 5 * MAX_FRAME, 12375000 + 200);
    assert_int_equal(rank_queues_policed(rq), 0);
    rank_queues_destroy(rq);

    /* Beyond that it is like what is of no job: here it has half. */
    rq = rank_queues_create(100, MAX_FRAME);
    rank_queues_set_rate(rq, SECOND, 100000000, 1000000);
    run_with_control(rq, 100000000, bytes);
    assert_in_range(bytes[0] + bytes[2], 12500000 * 0.504, 12500000 * 0.506);
    assert_true(rank_queues_policed(rq) > 10000);
    rank_queues_destroy(rq);
}

/* A job of four flows, one of them paced, against one of a single flow of
 * equal rank. */
UNIT_TEST(a_pace_is_kept_and_delays_no_other_flow)
{
    static const uint64_t rates[] = { 10000, 100000, 3000000, 30000000 };

    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        struct rank_queues *rq = rank_queues_create(100, MAX_FRAME);
        uint64_t bytes[5] = { 0 }, now = SECOND, want = rates[r] / 8 * 10;
        struct pace pace = { .bps = 0 };
        struct queue_item item, dropped;
        uint16_t queues[5] = { 0 };

        rank_queues_jobs(rq)->late = 500000;
        pace_set_rate(&pace, now, 100000000, MAX_FRAME);
        pace_forget(&pace, now, 0);
        for (int i = 1; i <= 4; i++) {
            queues[i] = job_queues_flow_new(rank_queues_jobs(rq), 1);
            assert_true(queues[i]);
        }
        rank_queues_flow_rate(rq, now, queues[1], rates[r]);
        for (int i = 0; i < 50; i++) {
            item = (struct queue_item) {
                .packet = (void *) (uintptr_t) (i % 5), .slot = i % 5 > 0,
                .length = MAX_FRAME,
            };
            assert_true(rank_queues_push(rq, queues[i % 5], false, &item,
                                         &dropped));
        }
        for (; now < 11 * SECOND; now += 100000) {
            while (rank_queues_take(rq, now, &pace, &item, 1)) {
                uintptr_t i = (uintptr_t) item.packet;

                bytes[i] += item.length;
                assert_true(rank_queues_push(rq, queues[i], false, &item,
                                             &dropped));
            }
        }

        /* Half of 100 Mbit/s is 6.25 MB a second. */
        assert_in_range(bytes[0], 62500000 * 0.999, 62500000 * 1.001);
        want = want < 62500000 / 4 ? want : 62500000 / 4;
        assert_in_range(bytes[1], want - want / 1000 - MAX_FRAME,
                        want + want / 1000 + 2 * MAX_FRAME);
        for (int i = 2; i <= 4; i++) {
            uint64_t rest = (62500000 - want) / 3;

            assert_in_range(bytes[i], rest * 0.998, rest * 1.002);
        }
        rank_queues_destroy(rq);
    }
}

/* Its packets wait for their pace, then for those of an earlier rank. */
UNIT_TEST(a_flow_that_waits_for_the_uplink_is_late)
{
    struct rank_queues *rq = rank_queues_create(100, MAX_FRAME);
    struct job_queues *jobs = rank_queues_jobs(rq);
    struct pace pace = { .bps = 0 };
    struct queue_item item, dropped;
    uint16_t queue = job_queues_flow_new(jobs, 3);
    uint64_t now = SECOND;

    rank_queues_set_rate(rq, now, 100000000, 100 * MAX_FRAME);
    rank_queues_flow_rate(rq, now, queue, 1000000);
    assert_int_equal(job_queues_flow_late(jobs, now, queue), 0);
    for (int i = 0; i < 4; i++) {
        push(rq, 3, queue, false, MAX_FRAME, &dropped);
    }
    while (rank_queues_take(rq, now, &pace, &item, 1)) {
        continue;
    }
    assert_int_equal(job_queues_flow_late(jobs, now, queue), 0);
    now += MAX_FRAME * 8000 - 10;
    assert_int_equal(rank_queues_take(rq, now, &pace, &item, 1), 0);
    assert_int_equal(job_queues_flow_late(jobs, now, queue), 0);

    /* It is due, but the uplink is busy. */
    push(rq, 2, 0, false, MAX_FRAME, &dropped);
    now += 1000;
    assert_int_equal(rank_queues_take(rq, now, &pace, &item, 1), 1);
    assert_int_equal(item.slot, 2);
    assert_int_equal(job_queues_flow_late(jobs, now, queue), 0);
    assert_int_equal(job_queues_flow_late(jobs, now + 5000, queue), 5000);
    assert_int_equal(rank_queues_take(rq, now, &pace, &item, 1), 1);
    assert_int_equal(item.slot, 3);
    assert_int_equal(job_queues_flow_late(jobs, now, queue), 0);
    rank_queues_destroy(rq);
}

/* It sends what it was given, then hardly anything, and goes on as soon as it
 * has a rate. */
UNIT_TEST(a_flow_that_starts_waits_for_its_rate)
{
    struct rank_queues *rq = rank_queues_create(100, MAX_FRAME);
    struct pace pace = { .bps = 0 };
    struct queue_item item, dropped;
    uint16_t queue = job_queues_flow_new(rank_queues_jobs(rq), 3);
    uint64_t now = SECOND;

    rank_queues_flow_rate(rq, now, queue, 1000000);
    for (int again = 0; again < 2; again++) {
        job_queues_flow_start(rank_queues_jobs(rq), now, queue, 3 * MAX_FRAME);
        assert_false(job_queues_flow_started(rank_queues_jobs(rq), now,
                                             queue));
        for (int i = 0; i < 7; i++) {
            push(rq, 3, queue, false, MAX_FRAME, &dropped);
        }
        for (int i = 0; i < 4; i++) {
            assert_false(job_queues_flow_started(rank_queues_jobs(rq), now,
                                                 queue));
            assert_int_equal(rank_queues_take(rq, now, &pace, &item, 1), 1);
        }
        assert_true(job_queues_flow_started(rank_queues_jobs(rq), now, queue));
        now += MAX_FRAME * 80000 - 10;      /* At 100 kbit/s. */
        assert_int_equal(rank_queues_take(rq, now, &pace, &item, 1), 0);

        rank_queues_flow_rate(rq, now, queue, 1000000);
        assert_false(job_queues_flow_started(rank_queues_jobs(rq), now,
                                             queue));
        assert_int_equal(rank_queues_take(rq, now, &pace, &item, 1), 1);
        assert_int_equal(rank_queues_take(rq, now, &pace, &item, 1), 1);
        assert_int_equal(rank_queues_take(rq, now, &pace, &item, 1), 0);
        now += MAX_FRAME * 8000 + 1;
        assert_int_equal(rank_queues_take(rq, now, &pace, &item, 1), 1);
        assert_int_equal(rank_queues_take(rq, now, &pace, &item, 1), 0);
    }
    rank_queues_destroy(rq);
}

/* A pace of 10 kbit/s makes frames wait for more than a second. */
UNIT_TEST(returns_when_a_paced_flow_is_due)
{
    struct rank_queues *rq = rank_queues_create(100, MAX_FRAME);
    uint64_t now = SECOND, wait = MAX_FRAME * 800000 + 1;
    struct pace pace = { .bps = 0 };
    struct queue_item item, dropped;
    uint16_t queue = job_queues_flow_new(rank_queues_jobs(rq), 3);

    assert_int_equal(rank_queues_due(rq), UINT64_MAX);
    rank_queues_flow_rate(rq, now, queue, 1);           /* As if 10000. */
    for (int i = 0; i < 4; i++) {
        push(rq, 3, queue, false, MAX_FRAME, &dropped);
    }
    assert_true(rank_queues_due(rq) <= now);
    assert_int_equal(rank_queues_take(rq, now, &pace, &item, 1), 1);
    assert_int_equal(rank_queues_take(rq, now, &pace, &item, 1), 1);
    assert_int_equal(rank_queues_take(rq, now, &pace, &item, 1), 0);
    assert_in_range(rank_queues_due(rq), now + wait - 2, now + wait);
    now = rank_queues_due(rq);
    assert_int_equal(rank_queues_take(rq, now - 1, &pace, &item, 1), 0);
    assert_int_equal(rank_queues_take(rq, now, &pace, &item, 1), 1);
    assert_int_equal(rank_queues_take(rq, now, &pace, &item, 1), 0);
    job_queues_flow_free(rank_queues_jobs(rq), queue);
    assert_int_equal(rank_queues_due(rq), 0);
    assert_int_equal(rank_queues_take(rq, now, &pace, &item, 1), 1);
    assert_int_equal(rank_queues_due(rq), UINT64_MAX);
    rank_queues_destroy(rq);
}

UNIT_TEST(gives_all_its_flows_queues_and_no_more)
{
    static uint16_t queues[5000];
    struct rank_queues *rq = rank_queues_create(100, MAX_FRAME);
    int n = 0;

    while ((queues[n] = job_queues_flow_new(rank_queues_jobs(rq),
                                            n % SHIM_MAX_SLOTS))) {
        n++;
    }
    assert_int_equal(n, 4096);
    job_queues_flow_free(rank_queues_jobs(rq), queues[77]);
    assert_int_equal(job_queues_flow_new(rank_queues_jobs(rq), 9), queues[77]);
    assert_int_equal(job_queues_flow_new(rank_queues_jobs(rq), 9), 0);
    rank_queues_destroy(rq);
}

UNIT_TEST(a_job_is_bounded_in_bytes)
{
    struct rank_queues *rq = rank_queues_create(100, MAX_FRAME);
    struct queue_item dropped;
    uint16_t queue = job_queues_flow_new(rank_queues_jobs(rq), 5);

    rank_queues_set_rate(rq, SECOND, 100000000, 3000);
    assert_true(push(rq, 5, 0, false, 1500, &dropped));
    assert_true(push(rq, 5, queue, false, 1500, &dropped));
    assert_false(push(rq, 5, queue, false, 1, &dropped));
    assert_int_equal(dropped.length, 1);
    assert_true(push(rq, 6, 0, false, 1500, &dropped));
    rank_queues_destroy(rq);
}

/* One job floods; others that come when the space is full lose nothing and
 * have all that they need. */
UNIT_TEST(the_longest_queue_loses)
{
    struct rank_queues *rq = rank_queues_create(1000, MAX_FRAME);
    struct queue_item dropped;
    int n_lost = 0;

    for (int i = 0; i < 5000; i++) {
        n_lost += !push(rq, 1, 0, false, 60, &dropped);
        assert_true(i < 1000 || dropped.slot == 1);
    }
    assert_int_equal(n_lost, 4000);
    for (int i = 0; i < 400; i++) {
        assert_false(push(rq, 2 + i % 8, 0, false, 1000, &dropped));
        assert_int_equal(dropped.slot, 1);
        assert_int_equal(dropped.length, 60);
    }
    rank_queues_destroy(rq);
}

static int
compare_u64(const void *a_, const void *b_)
{
    const uint64_t *a = a_, *b = b_;

    return (*a > *b) - (*a < *b);
}

UNIT_TEST(a_heap_gives_what_is_due_first)
{
    uint64_t times[300], sorted[300];
    struct due_heap heap;
    int n = 0;

    srandom(3);
    due_heap_init(&heap, 300);
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 300; i++) {
            times[i] = random() % 1000;
            due_heap_add(&heap, times[i], i);
        }
        n = 0;
        for (int i = 0; i < 300; i++) {
            if (random() % 2) {
                due_heap_remove(&heap, i);
                due_heap_remove(&heap, i);      /* No longer there. */
            } else {
                sorted[n++] = times[i];
            }
        }
        qsort(sorted, n, sizeof *sorted, compare_u64);
        for (int i = 0; i < n; i++) {
            assert_int_equal(due_heap_first(&heap), sorted[i]);
            assert_int_equal(times[due_heap_pop(&heap)], sorted[i]);
        }
        assert_int_equal(heap.n, 0);
    }
    due_heap_uninit(&heap);
}

UNIT_TEST(a_map_finds_the_first_and_the_next)
{
    struct class_map map = { .summary = 0 };
    bool in[CLASS_MAP_SIZE] = { false };

    srandom(4);
    for (int i = 0; i < 20000; i++) {
        uint32_t at = random() % CLASS_MAP_SIZE, first = 0, after;

        in[at] = random() % 16 == 0;
        if (in[at]) {
            class_map_add(&map, at);
        } else {
            class_map_remove(&map, at);
        }
        while (first < CLASS_MAP_SIZE && !in[first]) {
            first++;
        }
        assert_int_equal(class_map_is_empty(&map), first == CLASS_MAP_SIZE);
        if (first < CLASS_MAP_SIZE) {
            assert_int_equal(class_map_first(&map), first);
            for (after = at + 1; after < CLASS_MAP_SIZE && !in[after];) {
                after++;
            }
            assert_int_equal(class_map_after(&map, at),
                             after < CLASS_MAP_SIZE ? after : first);
        }
    }
}

static void
set_slot(struct job_slots *js, uint16_t slot, uint32_t rank, uint8_t level)
{
    struct shim_slot row = { .slot = slot, .rank = rank, .level = level };

    assert_int_equal(job_slots_set(js, &row), 0);
}

UNIT_TEST(slots_have_classes_by_rank_and_level)
{
    struct job_slots *js = job_slots_create();
    job_class classes[SHIM_MAX_SLOTS];
    uint32_t seen = UINT32_MAX;

    assert_true(job_slots_classes(js, &seen, classes));
    assert_int_equal(classes[1], JOB_CLASS_LAST);
    assert_false(job_slots_classes(js, &seen, classes));
    set_slot(js, 1, 9, 4);
    set_slot(js, 2, 3, 1);
    set_slot(js, 3, UINT32_MAX, 6);
    set_slot(js, 4, 3, 1);
    set_slot(js, 5, 3, 2);
    set_slot(js, 6, 0, SHIM_LEVEL_DEFAULT);
    set_slot(js, 7, 0, SHIM_LEVEL_CONTROL);
    assert_true(job_slots_classes(js, &seen, classes));
    assert_int_equal(classes[2], JOB_CLASS(0, 1));
    assert_int_equal(classes[4], JOB_CLASS(0, 1));
    assert_int_equal(classes[5], JOB_CLASS(1, 2));
    assert_int_equal(classes[1], JOB_CLASS(2, 4));
    assert_int_equal(classes[3], JOB_CLASS(3, 6));
    assert_int_equal(classes[6], JOB_CLASS_LAST);
    assert_int_equal(classes[7], JOB_CLASS_LAST);
    assert_int_equal(classes[8], JOB_CLASS_LAST);

    set_slot(js, 2, 100, 6);
    job_slots_clear(js, 1);
    assert_true(job_slots_classes(js, &seen, classes));
    assert_int_equal(classes[4], JOB_CLASS(0, 1));
    assert_int_equal(classes[5], JOB_CLASS(1, 2));
    assert_int_equal(classes[2], JOB_CLASS(2, 6));
    assert_int_equal(classes[1], JOB_CLASS_LAST);
    job_slots_destroy(js);
}

/* Against a count of those with a lower key, with all slots in use. */
UNIT_TEST(classes_are_right_after_any_changes)
{
    static uint64_t keys[SHIM_MAX_SLOTS];
    struct job_slots *js = job_slots_create();
    job_class classes[SHIM_MAX_SLOTS];
    uint32_t seen = UINT32_MAX;

    srandom(5);
    for (int i = 0; i < 20000; i++) {
        uint16_t slot = 1 + random() % (SHIM_MAX_SLOTS - 1);
        uint32_t rank = random() % (i < 10000 ? 2000 : 5);
        uint8_t level = 1 + random() % 6;

        if (random() % 8) {
            set_slot(js, slot, rank, level);
            keys[slot] = (uint64_t) rank << 3 | level;
        } else {
            job_slots_clear(js, slot);
            keys[slot] = 0;
        }
    }
    assert_true(job_slots_classes(js, &seen, classes));
    for (int i = 1; i < SHIM_MAX_SLOTS; i++) {
        for (int j = 1; j < SHIM_MAX_SLOTS; j++) {
            if (!keys[i]) {
                assert_int_equal(classes[i], JOB_CLASS_LAST);
            } else if (keys[j]) {
                assert_int_equal(keys[i] < keys[j],
                                 JOB_CLASS_NUMBER(classes[i])
                                 < JOB_CLASS_NUMBER(classes[j]));
            }
        }
    }
    job_slots_destroy(js);
}

/* A loop that comes late loses nothing of a flow's rate, and sends no more,
 * also where that is changed a little all the time. */
UNIT_TEST(changes_of_pace_change_no_sum)
{
    static const uint64_t rates[] = { 3000000, 30000000, 200000000 };
    enum { STEP = 300000 };

    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        struct rank_queues *rq = rank_queues_create(100, MAX_FRAME);
        uint64_t bytes = 0, turns = 0, want = rates[r] / 8;
        struct queue_item item, dropped;
        struct pace pace = { .bps = 0 };
        uint16_t queue;

        rank_queues_jobs(rq)->late = 500000;
        pace_set_rate(&pace, SECOND, 1000000000, MAX_FRAME);
        queue = job_queues_flow_new(rank_queues_jobs(rq), 1);
        rank_queues_flow_rate(rq, SECOND, queue, rates[r]);
        for (int i = 0; i < 20; i++) {
            push(rq, 1, queue, false, MAX_FRAME, &dropped);
        }
        for (uint64_t now = SECOND; now < 2 * SECOND; now += STEP) {
            rank_queues_flow_rate(rq, now, queue, rates[r] + turns++ % 2);
            pace_forget(&pace, now, STEP);
            while (rank_queues_take(rq, now, &pace, &item, 1)) {
                bytes += item.length;
                push(rq, 1, queue, false, MAX_FRAME, &dropped);
            }
        }
        assert_in_range(bytes, want * 0.99, want * 1.01 + MAX_FRAME);
        rank_queues_destroy(rq);
    }
}

/* The first rank always has packets.  The minimum share is a frame in 25 ms,
 * and the pace changes every 10 ms. */
UNIT_TEST(changes_of_pace_keep_the_minimum_share)
{
    struct rank_queues *rq = rank_queues_create(100, MAX_FRAME);
    uint64_t bytes[] = { 0, 0, 0 }, want = 10000000 / 8 / 21;
    job_class classes[SHIM_MAX_SLOTS] = { 0 };
    struct queue_item item, dropped;
    struct pace pace = { .bps = 0 };
    uint16_t queues[3] = { 0 };

    pace_set_rate(&pace, SECOND, 10000000, MAX_FRAME);
    classes[1] = JOB_CLASS(1, 1);
    classes[2] = JOB_CLASS(2, 2);
    rank_queues_set_classes(rq, classes);
    queues[2] = job_queues_flow_new(rank_queues_jobs(rq), 2);
    for (int i = 0; i < 20; i++) {
        push(rq, 1 + i % 2, queues[1 + i % 2], false, MAX_FRAME, &dropped);
    }
    for (int i = 0; i < 10000; i++) {
        uint64_t now = SECOND + i * SECOND / 10000;

        if (i % 100 == 0) {
            rank_queues_flow_rate(rq, now, queues[2], 5000000 + i);
        }
        while (rank_queues_take(rq, now, &pace, &item, 1)) {
            bytes[item.slot] += item.length;
            push(rq, item.slot, queues[item.slot], false, MAX_FRAME, &dropped);
        }
    }
    assert_in_range(bytes[2], want * 0.9, want * 1.1);
    rank_queues_destroy(rq);
}

/* Four flows of a job share 10 Mbit/s, a round in 5 ms. */
UNIT_TEST(changes_of_pace_keep_the_turn)
{
    struct rank_queues *rq = rank_queues_create(100, MAX_FRAME);
    struct pace pace = { .bps = 0 };
    struct queue_item item, dropped;
    uint64_t bytes[4] = { 0 };
    uint16_t queues[4];

    pace_set_rate(&pace, SECOND, 10000000, MAX_FRAME);
    for (int i = 0; i < 4; i++) {
        queues[i] = job_queues_flow_new(rank_queues_jobs(rq), 1);
        rank_queues_flow_rate(rq, SECOND, queues[i], 8000000);
    }
    for (uintptr_t i = 0; i < 8; i++) {
        item = (struct queue_item) {
            .packet = (void *) (i % 4), .slot = 1, .length = MAX_FRAME,
        };
        assert_true(rank_queues_push(rq, queues[i % 4], false, &item,
                                     &dropped));
    }
    for (int i = 0; i < 10000; i++) {
        uint64_t now = SECOND + i * SECOND / 10000;

        if (i % 20 == 0) {
            rank_queues_flow_rate(rq, now, queues[0], 8000000 + i);
        }
        while (rank_queues_take(rq, now, &pace, &item, 1)) {
            uintptr_t flow = (uintptr_t) item.packet;

            bytes[flow] += item.length;
            assert_true(rank_queues_push(rq, queues[flow], false, &item,
                                         &dropped));
        }
    }
    assert_in_range(bytes[0], bytes[1] - 2 * MAX_FRAME,
                    bytes[1] + 2 * MAX_FRAME);
    rank_queues_destroy(rq);
}

/* Runs a link of 'bps' for a second on which flow I of 'n', of slot I + 1 and
 * with a queue paced to what 'shares[I]' demands, always has packets.  Stores
 * in 'got' what each was sent of, in bit/s. */
static void
run_paced(struct rank_queues *rq, const struct cc_share *shares, int n,
          uint64_t bps, uint64_t *got)
{
    struct pace pace = { .bps = 0 };
    struct queue_item item, dropped;
    uint16_t queues[N_SLOTS];

    pace_set_rate(&pace, SECOND, bps, MAX_FRAME);
    pace_forget(&pace, SECOND, 0);
    for (int i = 0; i < n; i++) {
        got[i] = 0;
        queues[i] = job_queues_flow_new(rank_queues_jobs(rq), i + 1);
        rank_queues_flow_rate(rq, SECOND, queues[i], shares[i].demand);
        for (int k = 0; k < 4; k++) {
            push(rq, i + 1, queues[i], false, MAX_FRAME, &dropped);
        }
    }
    for (uint64_t now = SECOND; now < 2 * SECOND; now += 10000) {
        while (rank_queues_take(rq, now, &pace, &item, 1)) {
            got[item.slot - 1] += item.length * 8;
            push(rq, item.slot, queues[item.slot - 1], false, MAX_FRAME,
                 &dropped);
        }
    }
}

/* Flows that were granted more than the uplink carries have of it what the
 * allocation of congestion control would give them: by rank, and in a rank as
 * equal as their rates allow. */
UNIT_TEST(flows_granted_too_much_share_as_if_allocated)
{
    const uint64_t bps = 100000000;

    srandom(7);
    for (int round = 0; round < 30; round++) {
        struct rank_queues *rq = rank_queues_create(100, MAX_FRAME);
        job_class classes[SHIM_MAX_SLOTS] = { 0 };
        struct cc_share shares[8], wanted[8];
        uint64_t got[8], sum = 0;

        for (uint32_t i = 0; i < 8; i++) {
            shares[i] = (struct cc_share) {
                .demand = 1000000 + random() % 50000000,
                .rank = random() % 3, .id = i,
            };
            classes[i + 1] = JOB_CLASS(shares[i].rank * 100,
                                      1 + shares[i].rank);
            sum += shares[i].demand;
        }
        memcpy(wanted, shares, sizeof wanted);
        rank_queues_set_classes(rq, classes);
        rank_queues_set_min_share(rq, 0);
        rank_queues_jobs(rq)->late = 500000;
        run_paced(rq, shares, 8, bps, got);
        cc_divide(wanted, 8, &(struct cc_budget) {
            .most = (bps < sum ? bps : sum) / 8.0,
        }, 0);
        for (int i = 0; i < 8; i++) {
            uint64_t rate = wanted[i].rate, slack = bps / 100;

            assert_in_range(got[wanted[i].id], rate > slack ? rate - slack : 0,
                            rate + slack);
        }
        rank_queues_destroy(rq);
    }
}
