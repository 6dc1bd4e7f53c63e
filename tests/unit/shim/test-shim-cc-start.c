/* SPDX-License-Identifier: Apache-2.0 */

/* The start of a burst, before its grant arrives: a few packets leave, and the
 * rest waits if a grant is likely. */

#include "tests/unit/shim/cc-world.h"
#include "tests/unit/unit-test.h"

/* A small flow: the remote shim is informed of the rest. */
#define START CC_SMALL_BYTES

/* Sends 'n' segments of flow 'port' to the sender's shim at once, where they
 * stay.  Returns their queue. */
static uint16_t
burst(struct world *w, uint16_t port, int n)
{
    uint16_t queue = 0;

    for (int i = 0; i < n; i++) {
        queue = world_data(w, port, false);
    }
    return queue;
}

static void
poll_for(struct world *w, uint64_t ns)
{
    for (uint64_t end = w->now + ns; w->now < end; ) {
        world_poll(w, MS / 2);
        w->sides[RECEIVER].n_messages = 0;
    }
}

/* Makes flow 'port' silent after it got a grant. */
static void
pause_after_bulk(struct world *w, uint16_t port)
{
    world_open(w, port);
    world_bulk(w, port, 100, GAP, NULL);
    poll_for(w, 300 * MS);
}

WORLD_TEST(the_rest_of_a_burst_waits_for_a_grant)
{
    struct side *sender = &w->sides[SENDER];
    uint16_t queue;

    pause_after_bulk(w, 1);
    queue = burst(w, 1, 40);
    assert_true(queue);
    assert_int_equal(sender->start[queue], START);
    assert_false(side_may_send(sender, queue));

    /* The receiver's shim is informed, and its grant arrives, although no data
     * did. */
    for (int i = 0; i < 4; i++) {
        world_poll(w, MS / 2);
        world_deliver(w);
    }
    assert_int_equal(sender->start[queue], 0);
    assert_true(sender->rate[queue] > 10 * MBIT);
}

WORLD_TEST(a_first_burst_waits_for_a_grant)
{
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

/* The receiver's shim sends nothing any more. */
WORLD_TEST(a_wait_without_a_grant_happens_once)
{
    struct side *sender = &w->sides[SENDER];
    uint16_t queue;

    pause_after_bulk(w, 2);
    pause_after_bulk(w, 1);
    queue = burst(w, 1, 40);
    poll_for(w, 15 * MS);
    assert_false(side_may_send(sender, queue));
    poll_for(w, 10 * MS);
    assert_true(side_may_send(sender, queue));

    /* Neither does another flow to that host, until a grant arrives. */
    poll_for(w, 300 * MS);
    assert_true(side_may_send(sender, burst(w, 1, 40)));
    assert_true(side_may_send(sender, burst(w, 2, 40)));
    world_bulk(w, 2, 100, GAP, NULL);
    poll_for(w, 300 * MS);
    assert_false(side_may_send(sender, burst(w, 2, 40)));
}

WORLD_TEST(a_flow_does_not_wait_for_a_far_grant)
{
    struct side *sender = &w->sides[SENDER];

    world_open_far(w, 1, 40 * MS);
    world_bulk(w, 1, 100, GAP, NULL);
    poll_for(w, 300 * MS);
    assert_true(side_may_send(sender, burst(w, 1, 40)));
    assert_int_equal(sender->n_starts, 0);
}

/* All flows between two hosts share a round trip. */
WORLD_TEST(round_trips_are_shared_by_the_flows_of_a_host)
{
    struct side *sender = &w->sides[SENDER];

    world_open_far(w, 1, 40 * MS);
    world_open(w, 2);
    world_bulk(w, 1, 100, GAP, NULL);
    poll_for(w, 300 * MS);
    assert_false(side_may_send(sender, burst(w, 1, 40)));
}

/* 7 kB in 10 ms: it gets no grant, and does not wait for one. */
WORLD_TEST(a_slow_flow_never_waits)
{
    struct side *sender = &w->sides[SENDER];

    pause_after_bulk(w, 1);
    for (int i = 0; i < 200; i++) {
        assert_true(side_may_send(sender, burst(w, 1, 1)));
        poll_for(w, 2 * MS);
    }
}

/* The receiver's shim is gone, and the sender has much to send. */
WORLD_TEST(a_flow_continues_when_its_grants_stop)
{
    struct side *sender = &w->sides[SENDER];
    uint16_t queue = 0;
    int waited = 0;

    world_open(w, 1);
    world_bulk(w, 1, 100, GAP, &queue);
    for (int i = 0; i < 400; i++) {
        burst(w, 1, 4);
        poll_for(w, MS);
        waited += i >= 100 && !side_may_send(sender, queue);
    }
    assert_in_range(waited, 10, 60);
    assert_int_equal(sender->rate[queue], 0);
}
