/* SPDX-License-Identifier: Apache-2.0 */

/* What waits and is nobody's goes to whose it is as soon as that is known:
 * all of it, nothing else, and in its order. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/queue/job-queue.h"
#include "shim/queue/pace.h"
#include "shim/queue/rank-queue.h"

#define MAX_FRAME 1518
#define N_FLOWS 8
#define N_PACKETS 4096

/* Flow N's packets are N * N_PACKETS and following; a flow is nobody's while
 * its slot is 0. */
struct fixture {
    struct rank_queues *rq;
    uint16_t slots[N_FLOWS];
    uintptr_t n_pushed[N_FLOWS], n_gone[N_FLOWS];
    uint64_t bytes;             /* That wait. */
    uint32_t n_dropped;
};

static int
flow_of(const struct queue_item *item)
{
    return (uintptr_t) item->packet / N_PACKETS;
}

static void
set_up(struct fixture *f, uint32_t max_packets)
{
    job_class classes[SHIM_MAX_SLOTS];

    memset(f, 0, sizeof *f);
    f->rq = rank_queues_create(max_packets, MAX_FRAME);
    rank_queues_set_min_share(f->rq, 0);
    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        classes[i] = i && i < 4 ? JOB_CLASS(i, i) : JOB_CLASS_LAST;
    }
    rank_queues_set_classes(f->rq, classes);
}

static void
tear_down(struct fixture *f)
{
    rank_queues_destroy(f->rq);
}

/* A packet of 'flow' leaves, or is lost: the next one of it. */
static void
gone(struct fixture *f, const struct queue_item *item)
{
    int flow = flow_of(item);

    assert_int_equal((uintptr_t) item->packet % N_PACKETS,
                     f->n_gone[flow]++);
    f->bytes -= item->length;
}

static void
push(struct fixture *f, int flow, uint16_t flow_queue)
{
    struct queue_item dropped, item = {
        .packet = (void *) (flow * N_PACKETS + f->n_pushed[flow]++),
        .length = 60 + random() % (MAX_FRAME - 60), .slot = f->slots[flow],
    };

    f->bytes += item.length;
    assert_true(rank_queues_push(f->rq, flow_queue, false, &item, &dropped));
}

static bool
take(struct fixture *f, struct queue_item *item)
{
    struct pace pace = { .bps = 0 };

    if (!rank_queues_take(f->rq, 1, &pace, item, 1)) {
        return false;
    }
    gone(f, item);
    return true;
}

static void
find(void *f_, struct queue_item *items, uint16_t *queues, uint32_t n)
{
    const struct fixture *f = f_;

    assert_in_range(n, 1, RECLASSIFY_BURST);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(items[i].slot, 0);
        assert_int_equal(queues[i], 0);
        items[i].slot = f->slots[flow_of(&items[i])];
    }
}

static void
drop(void *f_, const struct queue_item *item)
{
    struct fixture *f = f_;

    f->bytes -= item->length;
    f->n_dropped++;
}

static uint32_t
reclassify(struct fixture *f)
{
    return rank_queues_reclassify(f->rq, &(struct reclassify_cb) {
        find, drop, f,
    });
}

static void
take_all(struct fixture *f)
{
    struct queue_item item;

    while (take(f, &item)) {
        continue;
    }
    assert_int_equal(f->bytes, 0);
    assert_int_equal(rank_queues_bytes(f->rq), 0);
    assert_int_equal(rank_queues_due(f->rq), UINT64_MAX);
}

/* Flow 1's job is before 0, which stays nobody's. */
static void
packets_of_a_new_flow_go_to_its_job(void **state)
{
    struct queue_item item;
    struct fixture f;

    (void) state;
    set_up(&f, 1024);
    for (int i = 0; i < 200; i++) {
        push(&f, i % 2, 0);
    }
    assert_int_equal(reclassify(&f), 200);
    f.slots[1] = 3;
    assert_int_equal(reclassify(&f), 200);
    push(&f, 1, 0);
    for (int i = 0; i < 101; i++) {
        assert_true(take(&f, &item));
        assert_int_equal(item.slot, 3);
    }
    assert_int_equal(rank_queues_bytes(f.rq), f.bytes);
    assert_int_equal(reclassify(&f), 100);
    take_all(&f);
    assert_int_equal(reclassify(&f), 0);
    tear_down(&f);
}

/* A job that has all it may have does not get more. */
static void
packets_without_space_are_dropped(void **state)
{
    struct fixture f;

    (void) state;
    set_up(&f, 1024);
    for (int i = 0; i < 300; i++) {
        push(&f, i % 3, 0);
    }
    rank_queues_set_rate(f.rq, 1, 1000000000, 1);
    f.slots[1] = 1;
    assert_int_equal(reclassify(&f), 300);
    assert_int_equal(f.n_dropped, 100);
    f.n_gone[1] = f.n_pushed[1];
    assert_int_equal(rank_queues_bytes(f.rq), f.bytes);
    take_all(&f);
    tear_down(&f);
}

/* A flow's own queue waits for what was before it in the common one, and for
 * nothing else. */
static void
held_queues_are_released_in_time(void **state)
{
    struct queue_item item;
    uint16_t queue;
    struct fixture f;

    (void) state;
    set_up(&f, 1024);
    for (int i = 0; i < 10; i++) {
        push(&f, i % 2, 0);
    }
    queue = job_queues_flow_new(rank_queues_jobs(f.rq), 0);
    push(&f, 0, queue);
    f.slots[1] = 1;
    reclassify(&f);
    for (int i = 0; i < 5; i++) {
        assert_true(take(&f, &item));
        assert_int_equal(flow_of(&item), 1);
    }
    for (int i = 0; i < 5; i++) {
        assert_false(job_queues_flow_empty(rank_queues_jobs(f.rq), queue));
        assert_true(take(&f, &item));
    }
    assert_true(take(&f, &item));
    assert_true(job_queues_flow_empty(rank_queues_jobs(f.rq), queue));

    /* Nothing is left before it. */
    push(&f, 2, 0);
    push(&f, 2, 0);
    queue = job_queues_flow_new(rank_queues_jobs(f.rq), 0);
    push(&f, 0, queue);
    f.slots[2] = 1;
    reclassify(&f);
    take_all(&f);
    assert_true(job_queues_flow_empty(rank_queues_jobs(f.rq), queue));
    tear_down(&f);
}

/* Flows are pushed, become known and leave, whatever comes first.  The pool
 * is as large as the test lets the queues become. */
static void
flows_keep_their_order(void **state)
{
    struct queue_item item;

    (void) state;
    srandom(11);
    for (int round = 0; round < 200; round++) {
        int steps = 1 + random() % 2000, waiting = 0;
        struct fixture f;

        set_up(&f, 600);
        for (int i = 0; i < steps; i++) {
            int flow = random() % N_FLOWS;

            if (waiting < 600 && random() % 3) {
                push(&f, flow, 0);
                waiting++;
            } else if (random() % 100 == 0) {
                f.slots[flow] = f.slots[flow] ? f.slots[flow]
                                : 1 + random() % 5;
                reclassify(&f);
            } else {
                waiting -= take(&f, &item);
            }
            assert_int_equal(rank_queues_bytes(f.rq), f.bytes);
        }
        take_all(&f);
        assert_int_equal(f.n_dropped, 0);
        tear_down(&f);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_of_a_new_flow_go_to_its_job),
        cmocka_unit_test(packets_without_space_are_dropped),
        cmocka_unit_test(held_queues_are_released_in_time),
        cmocka_unit_test(flows_keep_their_order),
    };

    return cmocka_run_group_tests_name("shim-reclassify", tests, NULL, NULL);
}
