/* SPDX-License-Identifier: Apache-2.0 */

/* How a flow begins before its rate is told: a little of it leaves, and the
 * rest waits for an answer, if there is likely to be one. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/cc-world.h"

/* A small flow, and two frames. */
#define START (CC_SMALL_BYTES + 2 * 1500)

/* 'n' segments of flow 'port' come to the sender's shim at once, and go no
 * farther.  Returns their queue. */
static uint16_t
burst(struct world *w, uint16_t port, int n)
{
    uint16_t queue = 0;

    for (int i = 0; i < n; i++) {
        struct packet_spec data = world_spec(w, SENDER, port, SEGMENT_ACK);
        struct cc_packet p;

        data.payload = DATA;
        packet_make(&p, &data);
        queue = world_leave(w, SENDER, &p, 0).queue;
    }
    return queue;
}

static void
turn_for(struct world *w, uint64_t ns)
{
    for (uint64_t end = w->now + ns; w->now < end; ) {
        world_turn(w, MS / 2);
        w->sides[RECEIVER].n_messages = 0;
    }
}

/* Flow 'port' has been told a rate, and is silent since. */
static void
pause_after_bulk(struct world *w, uint16_t port)
{
    world_open(w, port);
    world_bulk(w, port, 100, GAP, NULL);
    turn_for(w, 300 * MS);
}

static void
the_rest_of_a_burst_waits_for_its_rate(void **state)
{
    struct world *w = *state;
    struct side *sender = &w->sides[SENDER];
    uint16_t queue;

    pause_after_bulk(w, 1);
    queue = burst(w, 1, 40);
    assert_true(queue);
    assert_int_equal(sender->start[queue], START);
    assert_false(side_may_send(sender, queue));

    /* It is told, and goes on. */
    world_bulk(w, 1, 20, GAP, NULL);
    assert_int_equal(sender->start[queue], 0);
    assert_true(sender->rate[queue] > 10 * MBIT);
}

static void
a_first_burst_waits_too_if_the_peer_tells_rates(void **state)
{
    struct world *w = *state;
    struct side *sender = &w->sides[SENDER];
    uint16_t queue;

    pause_after_bulk(w, 1);
    world_open(w, 2);
    assert_int_equal(burst(w, 2, CC_SMALL_BYTES / 1526), 0);
    queue = burst(w, 2, 40);
    assert_true(queue);
    assert_int_equal(sender->start[queue], START);
    assert_false(side_may_send(sender, queue));
}

/* The receiver's shim says nothing any more. */
static void
who_waits_in_vain_does_so_once(void **state)
{
    struct world *w = *state;
    struct side *sender = &w->sides[SENDER];
    uint16_t queue;

    pause_after_bulk(w, 2);
    pause_after_bulk(w, 1);
    queue = burst(w, 1, 40);
    turn_for(w, 15 * MS);
    assert_false(side_may_send(sender, queue));
    turn_for(w, 10 * MS);
    assert_true(side_may_send(sender, queue));

    /* Nor does another flow to that host, until it is told a rate again. */
    turn_for(w, 300 * MS);
    assert_true(side_may_send(sender, burst(w, 1, 40)));
    assert_true(side_may_send(sender, burst(w, 2, 40)));
    world_bulk(w, 2, 100, GAP, NULL);
    turn_for(w, 300 * MS);
    assert_false(side_may_send(sender, burst(w, 2, 40)));
}

static void
a_far_answer_is_not_waited_for(void **state)
{
    struct world *w = *state;
    struct side *sender = &w->sides[SENDER];

    world_open_far(w, 1, 40 * MS);
    world_bulk(w, 1, 100, GAP, NULL);
    turn_for(w, 300 * MS);
    assert_true(side_may_send(sender, burst(w, 1, 40)));
    assert_int_equal(sender->n_starts, 0);
}

/* What a flow knows of the way there, all of the two hosts do. */
static void
another_flow_may_show_that_it_is_near(void **state)
{
    struct world *w = *state;
    struct side *sender = &w->sides[SENDER];

    world_open_far(w, 1, 40 * MS);
    world_open(w, 2);
    world_bulk(w, 1, 100, GAP, NULL);
    turn_for(w, 300 * MS);
    assert_false(side_may_send(sender, burst(w, 1, 40)));
}

/* 7 kB in 10 ms: nobody tells it a rate, and it does not wait for one. */
static void
a_slow_flow_never_waits(void **state)
{
    struct world *w = *state;
    struct side *sender = &w->sides[SENDER];

    pause_after_bulk(w, 1);
    for (int i = 0; i < 200; i++) {
        assert_true(side_may_send(sender, burst(w, 1, 1)));
        turn_for(w, 2 * MS);
    }
}

/* The receiver's shim is gone, and the sender has much to send. */
static void
a_flow_that_is_told_no_more_goes_on(void **state)
{
    struct world *w = *state;
    struct side *sender = &w->sides[SENDER];
    uint16_t queue = 0;
    int waited = 0;

    world_open(w, 1);
    world_bulk(w, 1, 100, GAP, &queue);
    for (int i = 0; i < 400; i++) {
        burst(w, 1, 4);
        turn_for(w, MS);
        waited += i >= 100 && !side_may_send(sender, queue);
    }
    assert_in_range(waited, 10, 60);
    assert_int_equal(sender->rate[queue], 0);
}

int
main(void)
{
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, world_set_up, \
                                                   world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_rest_of_a_burst_waits_for_its_rate),
        TEST(a_first_burst_waits_too_if_the_peer_tells_rates),
        TEST(who_waits_in_vain_does_so_once),
        TEST(a_far_answer_is_not_waited_for),
        TEST(another_flow_may_show_that_it_is_near),
        TEST(a_slow_flow_never_waits),
        TEST(a_flow_that_is_told_no_more_goes_on),
    };

    return cmocka_run_group_tests_name("shim-cc-start", tests, NULL, NULL);
}
