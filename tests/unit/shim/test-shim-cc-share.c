/* SPDX-License-Identifier: Apache-2.0 */

/* The division of the downlink among its flows. */

#include <stdint.h>

#include "tests/unit/shim/cc-world.h"
#include "tests/unit/unit-test.h"

WORLD_TEST(flows_share_the_link_equally)
{
    uint16_t queues[4];
    uint64_t sum = 0;

    for (int i = 0; i < 4; i++) {
        world_open(w, i);
    }
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 4; i++) {
            world_bulk(w, i, 1, GAP, &queues[i]);
        }
    }
    for (int i = 0; i < 4; i++) {
        sum += w->sides[SENDER].rate[queues[i]];
        assert_in_range(w->sides[SENDER].rate[queues[i]], 18 * MBIT,
                        24 * MBIT);
    }
    assert_in_range(sum, 80 * MBIT, 96 * MBIT);
}

/* With three segments at least, no ACK is delayed. */
WORLD_TEST(a_window_holds_three_segments_at_least)
{
    uint32_t window = 0;

    world_remove_shim(w, SENDER);
    for (int i = 0; i < 40; i++) {
        world_open(w, i);
    }
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 40; i++) {
            window = world_bulk(w, i, 1, MS / 50, NULL);
            assert_true(window >= 3 * DATA);
        }
    }
    assert_in_range(window, 3 * DATA, 3 * DATA + 127);
}

/* ACKs to a sender without a shim are paced only if three segments a round
 * trip are too much. */
WORLD_TEST(acks_are_paced_if_the_smallest_window_is_too_large)
{
    struct side *receiver = &w->sides[RECEIVER];
    uint16_t queue = 0;

    world_remove_shim(w, SENDER);
    for (int i = 0; i < 6; i++) {
        world_open(w, i);
    }
    world_bulk(w, 0, 100, GAP, NULL);
    assert_false(receiver->queue_used[1]);
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 6; i++) {
            struct packet_spec ack = world_spec(w, RECEIVER, i, SEGMENT_ACK);
            struct cc_packet p;

            world_bulk(w, i, 1, GAP, NULL);
            packet_make(&p, &ack);
            queue = world_leave(w, RECEIVER, &p, 0).queue;
        }
    }
    assert_true(queue > 0);

    /* A sixth of the link, with an ACK for each segment. */
    assert_in_range(receiver->rate[queue], MBIT / 2, MBIT);
    world_poll(w, 100 * MS);
    for (int i = 0; i < MAX_QUEUES; i++) {
        assert_false(receiver->queue_used[i]);
    }
}

WORLD_TEST(rank_decides_while_the_lease_holds)
{
    struct obedient flows[] = {
        { .port = 0, .slot = 1, .wants = GAP },
        { .port = 1, .slot = 2, .wants = GAP },
    };
    struct job_slots *slots = w->sides[RECEIVER].slots;

    for (uint16_t i = 0; i < 2; i++) {
        struct shim_slot slot = { .slot = i + 1, .level = i + 1, .rank = i };

        assert_int_equal(job_slots_set(slots, &slot), 0);
        world_open(w, i);
    }
    job_slots_lease(slots, w->now, 100000, 0);
    world_obey(w, flows, 2, 100 * MS);
    assert_true(obedient_rate(w, &flows[0]) > 80 * MBIT);
    assert_true(obedient_rate(w, &flows[1]) < 10 * MBIT);
    job_slots_lease(slots, w->now, 0, 0);
    world_obey(w, flows, 2, 100 * MS);
    assert_in_range(obedient_rate(w, &flows[0]), 38 * MBIT, 50 * MBIT);
    assert_in_range(obedient_rate(w, &flows[1]), 38 * MBIT, 50 * MBIT);
}

/* A flow that was slow behind another one needs no new grant to go on. */
UNIT_TEST_GIVEN(where_the_switch_orders_all_may_use_the_link,
                world_set_up_strict, world_tear_down, struct world *w)
{
    struct obedient flows[] = {
        { .port = 0, .wants = GAP },
        { .port = 1, .wants = 4 * GAP },
    };

    world_open(w, 0);
    world_open(w, 1);
    world_obey(w, flows, 2, 5 * MS);
    for (int i = 0; i < 100; i++) {
        world_obey(w, flows, 2, MS);
        assert_int_equal(obedient_rate(w, &flows[0]), LINK);
        assert_int_equal(obedient_rate(w, &flows[1]), LINK);
    }
}

/* A flow that sends less than its grant leaves the rest to the other, and gets
 * its share back soon after it sends more. */
WORLD_TEST(unused_bandwidth_goes_to_other_flows)
{
    struct obedient flows[] = {
        { .port = 0, .wants = GAP },
        { .port = 1, .wants = 4 * GAP },
    };

    world_open(w, 0);
    world_open(w, 1);
    world_obey(w, flows, 2, 100 * MS);
    assert_true(obedient_rate(w, &flows[0]) > 55 * MBIT);
    flows[1].wants = GAP;
    world_obey(w, flows, 2, 50 * MS);
    assert_in_range(obedient_rate(w, &flows[0]), 38 * MBIT, 50 * MBIT);
    assert_in_range(obedient_rate(w, &flows[1]), 38 * MBIT, 50 * MBIT);
}

/* At a slow rate, frames take longer than any fixed time: silence between them
 * is not the end of a burst. */
WORLD_TEST(slow_flows_keep_their_shares)
{
    enum { N = 40 };
    struct obedient flows[N];
    uint64_t before[N];

    for (uint16_t i = 0; i < N; i++) {
        flows[i] = (struct obedient) { .port = i, .wants = GAP };
        world_open(w, i);
    }
    world_obey(w, flows, N, 200 * MS);
    for (int i = 0; i < N; i++) {
        before[i] = obedient_rate(w, &flows[i]);
    }
    world_obey(w, flows, N, 200 * MS);
    for (int i = 0; i < N; i++) {
        assert_in_range(before[i], MBIT, 5 * MBIT);
        assert_in_range(obedient_rate(w, &flows[i]), MBIT, 5 * MBIT);
    }
}

/* When a burst ends, other flows get its share at once; the next burst starts
 * with the last grant. */
WORLD_TEST(the_end_of_a_burst_is_detected_at_once)
{
    struct obedient flows[] = {
        { .port = 0, .wants = GAP },
        { .port = 1, .wants = GAP },
    };
    struct packet_spec data;
    struct cc_packet p;
    uint64_t told;

    world_open(w, 0);
    world_open(w, 1);
    world_obey(w, flows, 2, 100 * MS);
    told = obedient_rate(w, &flows[1]);
    assert_in_range(told, 38 * MBIT, 50 * MBIT);

    /* The end of the application's data. */
    data = world_spec(w, SENDER, 1, SEGMENT_ACK | SEGMENT_PSH);
    data.payload = DATA / 2;
    world_carry(w, SENDER, &data, &p);
    world_obey(w, flows, 1, MS * 3 / 10);
    assert_true(obedient_rate(w, &flows[0]) > 90 * MBIT);
    world_obey(w, flows, 1, 2 * MS);
    assert_true(obedient_rate(w, &flows[0]) > 90 * MBIT);
    assert_in_range(obedient_rate(w, &flows[1]), told * 9 / 10,
                    told * 11 / 10);
    world_obey(w, flows, 1, 100 * MS);
    assert_in_range(obedient_rate(w, &flows[1]), told * 9 / 10,
                    told * 11 / 10);
}
