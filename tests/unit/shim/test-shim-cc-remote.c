/* SPDX-License-Identifier: Apache-2.0 */

/* What two shims exchange, what a single one can do, and the core's marks. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/cc/message.h"
#include "tests/unit/shim/cc-world.h"
#include "tests/unit/unit-test.h"

/* Only windows: the remote host has no shim and receives no message. */
WORLD_TEST(a_receiver_alone_limits_windows)
{
    uint16_t queue = 0;
    uint32_t window;

    world_remove_shim(w, SENDER);
    world_open(w, 1);
    window = world_bulk(w, 1, 300, GAP, &queue);
    assert_int_equal(queue, 0);
    assert_in_range(window, 3 * DATA, 97 * MBIT / 8 / 1000 * 11 / 10);
    assert_int_equal(world_stats(w, RECEIVER).cc_grants_sent, 0);
}

/* It cannot get other windows by SYNs that its peer does not take. */
WORLD_TEST(a_sender_is_not_unlimited_by_another_syn)
{
    world_remove_shim(w, SENDER);
    world_open(w, 1);
    world_bulk(w, 1, 300, GAP, NULL);
    for (int i = 0; i < 8; i++) {
        struct packet_spec syn = world_spec(w, SENDER, 1, SEGMENT_SYN);
        struct packet_spec ack = world_spec(w, RECEIVER, 1, SEGMENT_ACK);
        struct cc_packet p;

        syn.seq = i & 1;
        syn.has_scale = i & 2;
        syn.flags |= i & 4 ? SEGMENT_ACK : 0;
        world_carry(w, SENDER, &syn, &p);
        world_carry(w, RECEIVER, &ack, &p);
        assert_in_range(world_bulk(w, 1, 100, GAP, NULL), 3 * DATA,
                        97 * MBIT / 8 / 1000 * 11 / 10);
    }
}

/* The remote host has no shim: this one only adds its option to the SYN. */
WORLD_TEST(a_sender_alone_is_plain_tcp)
{
    struct packet_spec syn = world_spec(w, SENDER, 1, SEGMENT_SYN);
    uint16_t queue = 1;
    struct cc_packet p;

    world_remove_shim(w, RECEIVER);
    packet_make(&p, &syn);
    world_leave(w, SENDER, &p, 0);
    assert_int_equal(p.frame.headroom, PACKET_ROOM - HELLO_BYTES);

    /* A repeated SYN has no option: a middlebox may have dropped the first. */
    packet_make(&p, &syn);
    world_leave(w, SENDER, &p, 0);
    assert_int_equal(p.frame.headroom, PACKET_ROOM);
    assert_int_equal(world_bulk(w, 1, 200, GAP, &queue), 65535 << 7);
    assert_int_equal(queue, 0);
    assert_int_equal(w->sides[SENDER].n_messages, 0);
}

/* A connection that is older than the shims is detected by its ACKs, and only
 * paced. */
WORLD_TEST(an_old_connection_is_only_paced)
{
    uint16_t queue = 0;

    assert_int_equal(world_bulk(w, 1, 400, GAP, &queue), 65535 << 7);
    assert_true(queue > 0);
    assert_true(w->sides[SENDER].rate[queue] > 0);
}

/* The receiver's shim is gone: its grants end. */
WORLD_TEST(grants_end_unless_renewed)
{
    struct side *sender = &w->sides[SENDER];
    uint16_t queue = 0;

    world_open(w, 1);
    world_bulk(w, 1, 100, GAP, &queue);
    assert_true(sender->rate[queue] > 0);
    for (int i = 0; i < 200; i++) {
        world_data(w, 1, false);
        world_poll(w, MS);
        w->sides[RECEIVER].n_messages = 0;
    }
    assert_true(side_may_send(sender, queue));

    /* A silent flow releases its queue. */
    for (int i = 0; i < 30; i++) {
        world_poll(w, 100 * MS);
    }
    assert_false(sender->queue_used[queue]);
}

/* The core's marks lower a flow's rate, and do not reach the host. */
WORLD_TEST(marks_of_the_core_lower_the_rate)
{
    struct side *sender = &w->sides[SENDER];
    uint64_t credit = 0;        /* Bits and nanoseconds. */
    uint16_t queue = 0;
    uint32_t n = 0;

    world_open(w, 1);
    world_bulk(w, 1, 100, GAP, &queue);

    /* The sender's shim paces it by its grants for half a second. */
    sender->backlog[queue] = true;
    for (int i = 0; i < 4000; i++, credit += sender->rate[queue] * GAP) {
        struct packet_spec data = world_spec(w, SENDER, 1, SEGMENT_ACK);
        struct segment seg;
        struct cc_packet p;

        if (credit < LINK * GAP) {
            world_poll(w, GAP);
            world_deliver(w);
            continue;
        }
        credit -= LINK * GAP;
        n++;
        data.payload = DATA;
        packet_make(&p, &data);
        world_leave(w, SENDER, &p, 0);
        assert_true(segment_parse(p.frame.data, p.frame.length, true, &seg));
        assert_int_equal(seg.ecn, SEGMENT_ECT_0);
        segment_set_ecn(p.frame.data, &seg, SEGMENT_CE);
        world_arrive(w, SENDER, &p, 0);
        assert_true(segment_parse(p.frame.data, p.frame.length, false, &seg));
        assert_int_equal(seg.ecn, SEGMENT_NOT_ECT);
        world_poll(w, GAP);
        world_deliver(w);
    }
    assert_true(sender->rate[queue] < 20 * MBIT);
    assert_true(n > 20);
    assert_int_equal(world_stats(w, RECEIVER).cc_marks, n);

    /* Without marks the rate rises again. */
    world_bulk(w, 1, 4000, GAP, &queue);
    assert_true(sender->rate[queue] > 60 * MBIT);
}

WORLD_TEST(ecn_of_the_hosts_is_left_alone)
{
    struct packet_spec syn = world_spec(w, SENDER, 1, SEGMENT_SYN | SEGMENT_ECE
                                     | SEGMENT_CWR);
    struct cc_packet p;

    world_carry(w, SENDER, &syn, &p);
    syn = world_spec(w, RECEIVER, 1, SEGMENT_SYN | SEGMENT_ACK | SEGMENT_ECE);
    world_carry(w, RECEIVER, &syn, &p);
    world_bulk(w, 1, 100, GAP, NULL);
    for (uint8_t ecn = 0; ecn < 4; ecn++) {
        assert_int_equal(world_ecn(w, 1, ecn), ecn);
    }
    assert_int_equal(world_stats(w, RECEIVER).cc_marks, 0);
}

/* For 80 s, other hosts open connections to the receiver, more than it has
 * records for, and if 'goes_on' flow 1 sends a packet now and then. */
static void
pass_other_hosts(struct world *w, bool goes_on)
{
    struct cc_packet p;

    for (int i = 0; i < 3500; i++) {
        struct packet_spec other = world_spec(w, SENDER, 2, SEGMENT_SYN);

        other.from = 3 + i % 250;
        other.to = 10 + i / 250;
        packet_make(&p, &other);
        assert_true(world_arrive(w, SENDER, &p, 0));
        other.flags = SEGMENT_RST;
        packet_make(&p, &other);
        assert_true(world_arrive(w, SENDER, &p, 0));
        if (i % 50 == 0 && goes_on) {
            world_data(w, 1, true);
        }
        for (int j = 0; i % 50 == 0 && j < 12; j++) {
            world_poll(w, 100 * MS);
            w->sides[SENDER].n_messages = w->sides[RECEIVER].n_messages = 0;
        }
    }
}

WORLD_TEST(other_hosts_do_not_replace_one_with_packets)
{
    world_open(w, 1);
    pass_other_hosts(w, true);
    assert_int_equal(world_stats(w, RECEIVER).cc_grants_sent, 0);

    /* No acknowledgement, so no new hello, is needed for a grant. */
    for (int i = 0; i < 50; i++) {
        world_data(w, 1, true);
        world_poll(w, GAP);
    }
    assert_true(world_stats(w, RECEIVER).cc_grants_sent > 0);
}

/* The receiver keeps the connection, because it translates its windows, but
 * not the record of its remote host. */
WORLD_TEST(a_flow_that_was_idle_finds_its_remote_shim_again)
{
    struct packet_spec syn = world_spec(w, SENDER, 1, SEGMENT_SYN);
    struct packet_spec answer = world_spec(w, RECEIVER, 1,
                                           SEGMENT_SYN | SEGMENT_ACK);
    struct cc_packet p;

    answer.scale = 14;
    world_carry(w, SENDER, &syn, &p);
    world_carry(w, RECEIVER, &answer, &p);
    pass_other_hosts(w, false);
    world_poll(w, 61000 * MS);
    world_bulk(w, 1, 50, GAP, NULL);
    assert_true(world_stats(w, SENDER).cc_grants_taken > 0);
}
