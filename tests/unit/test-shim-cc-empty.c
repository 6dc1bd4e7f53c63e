/* SPDX-License-Identifier: Apache-2.0 */

/* Flows that have nothing to send: the sender's shim says so, and others get
 * their part of the receiver's downlink. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/cc-world.h"

/* The first and the last in the order, and the one between them.  Flow N is of
 * slot N + 1. */
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

/* Lets 'ns' pass in which nobody sends, and loses what the sender's shim says
 * if 'lossy'.  Returns how many messages that is. */
static int
be_silent(struct world *w, uint64_t ns, bool lossy)
{
    struct side *sender = &w->sides[SENDER];
    int n = 0;

    world_obey(w, flows, 0, 0);
    for (uint64_t end = w->now + ns; w->now < end; ) {
        world_turn(w, MS / 50);
        n += sender->n_messages;
        sender->n_messages = lossy ? 0 : sender->n_messages;
        world_deliver(w);
    }
    return n;
}

/* A floor's part is a segment each 5 ms: by its silence alone nobody would know
 * for ten that the flow has nothing. */
static void
who_waits_for_nothing_is_not_waited_for(void **state)
{
    struct world *w = *state;

    world_obey(w, flows, 3, 100 * MS);
    assert_true(obedient_rate(w, &flows[0]) > 80 * MBIT);
    assert_true(obedient_rate(w, &flows[1]) < 6 * MBIT);
    assert_true(obedient_rate(w, &flows[2]) < 6 * MBIT);

    /* The one between them ends, and then, so that its silence alone does not
     * tell yet, the first one. */
    world_obey(w, flows, 2, 5 * MS);
    world_obey(w, &flows[1], 1, 2 * MS);
    assert_true(obedient_rate(w, &flows[1]) > 30 * MBIT);
}

static void
a_queue_that_waits_is_not_empty(void **state)
{
    struct world *w = *state;

    world_obey(w, flows, 2, 100 * MS);
    for (int i = 0; i < 10; i++) {
        world_obey(w, &flows[1], 1, MS / 10);
        w->sides[SENDER].backlog[flows[0].queue] = true;
    }
    assert_true(obedient_rate(w, &flows[0]) > 80 * MBIT);
    assert_true(obedient_rate(w, &flows[1]) < 10 * MBIT);
}

/* Nothing is lost by what was said too early. */
static void
who_has_something_again_gets_it_back(void **state)
{
    struct world *w = *state;

    world_obey(w, flows, 2, 100 * MS);
    world_obey(w, &flows[1], 1, 20 * MS);
    assert_true(obedient_rate(w, &flows[1]) > 80 * MBIT);
    world_obey(w, flows, 2, 2 * MS);
    assert_true(obedient_rate(w, &flows[0]) > 80 * MBIT);
    assert_true(obedient_rate(w, &flows[1]) < 10 * MBIT);
}

/* Whoever is told a rate after that says it again, and once if that arrives. */
static void
a_lost_message_is_made_up_for(void **state)
{
    struct world *w = *state;

    world_obey(w, flows, 2, 100 * MS);
    assert_int_equal(be_silent(w, 5 * MS, true), 2);
    world_obey(w, flows, 2, 100 * MS);
    assert_int_equal(be_silent(w, 5 * MS, false), 1);
}

/* Each end of a burst is one message, not one a turn. */
static void
it_is_said_once(void **state)
{
    struct world *w = *state;

    world_obey(w, flows, 1, 100 * MS);
    assert_int_equal(be_silent(w, 40 * MS, false), 1);
}

int
main(void)
{
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, set_up, \
                                                   world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(who_waits_for_nothing_is_not_waited_for),
        TEST(a_queue_that_waits_is_not_empty),
        TEST(who_has_something_again_gets_it_back),
        TEST(a_lost_message_is_made_up_for),
        TEST(it_is_said_once),
    };

    return cmocka_run_group_tests_name("shim-cc-empty", tests, NULL, NULL);
}
