/* SPDX-License-Identifier: Apache-2.0 */

/* A flow between two shims from start to end. */

#include <stdbool.h>
#include <stdint.h>

#include "tests/unit/shim/cc-world.h"
#include "tests/unit/unit-test.h"

WORLD_TEST(two_shims_exchange_grants)
{
    uint16_t queue = 0;
    uint32_t window;

    world_open(w, 1);
    window = world_bulk(w, 1, 100, GAP, &queue);
    assert_true(queue > 0);
    assert_in_range(w->sides[SENDER].rate[queue], 80 * MBIT, 98 * MBIT);
    assert_in_range(window, 3 * DATA, 98 * MBIT / 8 / 1000 * 22);
    assert_true(world_stats(w, RECEIVER).cc_grants_sent > 0);
    assert_true(world_stats(w, SENDER).cc_grants_taken > 0);
    assert_int_equal(world_stats(w, SENDER).cc_flows, 1);
}

WORLD_TEST(a_small_flow_is_left_alone)
{
    uint16_t queue = 1;

    world_open(w, 1);
    assert_int_equal(world_bulk(w, 1, 100, 2 * MS, &queue), 65535 << 7);
    assert_int_equal(queue, 0);
    assert_int_equal(world_stats(w, RECEIVER).cc_windows, 0);
}

/* A sender without ACKs retransmits one packet at a time, less and less
 * often. */
WORLD_TEST(a_sender_without_acks_is_not_paced_for_long)
{
    uint16_t queue = 0;

    world_open(w, 1);
    world_bulk(w, 1, 100, GAP, &queue);
    for (int i = 0; i < 4; i++) {
        world_poll(w, 60 * MS);
        world_data(w, 1, false);
    }
    assert_true(side_may_send(&w->sides[SENDER], queue));
}

WORLD_TEST(an_ended_flow_releases_its_queues)
{
    struct packet_spec fin;
    struct cc_packet p;

    world_open(w, 1);
    world_bulk(w, 1, 100, GAP, NULL);
    fin = world_spec(w, SENDER, 1, SEGMENT_FIN | SEGMENT_ACK);
    world_carry(w, SENDER, &fin, &p);
    for (int i = 0; i < 3000; i++) {
        world_poll(w, MS);
        w->sides[RECEIVER].n_messages = 0;
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(world_stats(w, i).cc_flows, 0);
    }
    for (int i = 0; i < MAX_QUEUES; i++) {
        assert_false(w->sides[SENDER].queue_used[i]);
    }
}

WORLD_TEST(control_ports_go_first_without_limits)
{
    for (int i = 0; i < 2000; i++) {
        struct packet_spec data = world_spec(w, SENDER, 2000, SEGMENT_ACK);
        struct cc_packet p, sent;
        struct verdict v;

        data.to_port = 7000;
        data.payload = DATA;
        packet_make(&sent, &data);
        v = world_carry(w, SENDER, &data, &p);
        assert_int_equal(v.treatment.level, SHIM_LEVEL_CONTROL);
        assert_int_equal(v.treatment.dscp, SHIM_CONTROL_DSCP);
        assert_int_equal(v.queue, 0);
        assert_memory_equal(p.frame.data, sent.frame.data, sent.frame.length);
        world_poll(w, MS / 100);
    }
    assert_int_equal(world_stats(w, SENDER).cc_flows, 0);
}
