/* SPDX-License-Identifier: Apache-2.0 */

/* Flows without data to send, or that wait for their uplink: the sender's shim
 * reports it, and other flows get their share of the downlink. */

#include "tests/unit/shim/cc-world.h"
#include "tests/unit/unit-test.h"

/* The first, the last and the middle rank.  Flow N is of slot N + 1. */
static struct obedient flows[] = {
    { .port = 0, .slot = 1, .wants = GAP },
    { .port = 1, .slot = 2, .wants = GAP },
    { .port = 2, .slot = 3, .wants = GAP },
};
static const uint16_t ranks[] = { 0, 2, 1 };

static int
set_up(void **state)
{
    struct world *w;

    world_set_up(state);
    w = *state;
    for (uint16_t i = 0; i < 3; i++) {
        struct shim_slot slot = { .slot = i + 1, .level = i + 1,
                                 .rank = ranks[i] };

        assert_int_equal(job_slots_set(w->sides[RECEIVER].slots, &slot), 0);
        flows[i].last = 0;
        flows[i].queue = 0;
        world_open(w, i);
    }
    job_slots_lease(w->sides[RECEIVER].slots, w->now, 100000, 0);
    return 0;
}

#define EMPTY_TEST(NAME) \
    UNIT_TEST_GIVEN(NAME, set_up, world_tear_down, struct world *w)

/* Lets 'ns' pass without data, and drops the messages of the sender's shim if
 * 'lossy'.  Returns their number. */
static int
be_silent(struct world *w, uint64_t ns, bool lossy)
{
    struct side *sender = &w->sides[SENDER];
    int n = 0;

    world_obey(w, flows, 0, 0);
    for (uint64_t end = w->now + ns; w->now < end; ) {
        world_poll(w, MS / 50);
        n += sender->n_messages;
        sender->n_messages = lossy ? 0 : sender->n_messages;
        world_deliver(w);
    }
    return n;
}

/* The floor is a segment each 5 ms: by silence alone the receiver would need
 * 10 ms to detect that the flow has no data. */
EMPTY_TEST(a_flow_without_data_gives_up_its_share)
{
    world_obey(w, flows, 3, 100 * MS);
    assert_true(obedient_rate(w, &flows[0]) > 80 * MBIT);
    assert_true(obedient_rate(w, &flows[1]) < 6 * MBIT);
    assert_true(obedient_rate(w, &flows[2]) < 6 * MBIT);

    /* The middle one ends, and soon after it the first one, so that its
     * silence alone is too short. */
    world_obey(w, flows, 2, 5 * MS);
    world_obey(w, &flows[1], 1, 2 * MS);
    assert_true(obedient_rate(w, &flows[1]) > 30 * MBIT);
}

/* Nothing of the first flow arrives for a millisecond, although its queue is
 * not empty.  Flow 'waits' has waited for the uplink for 'late'.  Returns the
 * rate of the second flow. */
static uint64_t
pause_first(struct world *w, int waits, uint64_t late)
{
    struct side *sender = &w->sides[SENDER];

    world_obey(w, flows, 2, 100 * MS);
    for (int i = 0; i < 10; i++) {
        sender->late[flows[waits].queue] = late;
        world_obey(w, &flows[1], 1, MS / 10);
        sender->backlog[flows[0].queue] = true;
    }
    sender->late[flows[waits].queue] = 0;
    assert_true(obedient_rate(w, &flows[0]) > 80 * MBIT);
    return obedient_rate(w, &flows[1]);
}

EMPTY_TEST(a_flow_with_queued_data_keeps_its_share)
{
    assert_true(pause_first(w, 0, MS) < 6 * MBIT);
}

/* What does not arrive is granted again, little by little, until some time
 * after the last report. */
EMPTY_TEST(a_flow_that_waits_for_its_uplink_lends_its_share)
{
    assert_in_range(pause_first(w, 0, 3 * MS), 10 * MBIT, 25 * MBIT);
    assert_true(pause_first(w, 0, 0) < 6 * MBIT);
}

EMPTY_TEST(a_busy_uplink_is_reported_each_5_ms)
{
    struct side *sender = &w->sides[SENDER];

    world_obey(w, flows, 1, 100 * MS);
    sender->late[flows[0].queue] = 3 * MS;
    for (int i = 0; i < 40; i++) {
        world_poll(w, MS / 2);
    }
    assert_in_range(sender->n_messages, 4, 5);
}

EMPTY_TEST(a_flow_with_a_small_grant_may_wait_for_its_uplink)
{
    assert_true(pause_first(w, 1, 3 * MS) < 6 * MBIT);
}

/* A report that was sent too early does no harm. */
EMPTY_TEST(a_flow_with_new_data_gets_its_share_back)
{
    world_obey(w, flows, 2, 100 * MS);
    world_obey(w, &flows[1], 1, 20 * MS);
    assert_true(obedient_rate(w, &flows[1]) > 80 * MBIT);
    world_obey(w, flows, 2, 2 * MS);
    assert_true(obedient_rate(w, &flows[0]) > 80 * MBIT);
    assert_true(obedient_rate(w, &flows[1]) < 10 * MBIT);
}

/* A grant after the report repeats it, once if it arrives. */
EMPTY_TEST(a_lost_empty_message_is_repeated)
{
    world_obey(w, flows, 2, 100 * MS);
    assert_int_equal(be_silent(w, 5 * MS, true), 2);
    world_obey(w, flows, 2, 100 * MS);
    assert_int_equal(be_silent(w, 5 * MS, false), 1);
}

/* The end of a burst causes one message, not one in each poll. */
EMPTY_TEST(an_empty_queue_is_reported_once)
{
    world_obey(w, flows, 1, 100 * MS);
    assert_int_equal(be_silent(w, 40 * MS, false), 1);
}
