/* SPDX-License-Identifier: Apache-2.0 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cc/message.h"
#include "shim/cc/segment.h"
#include "tests/unit/shim/cc-packets.h"
#include "tests/unit/unit-test.h"

static void
parse(const struct cc_packet *p, struct segment *seg,
      struct segment_options *o)
{
    assert_true(segment_parse(p->frame.data, p->frame.length, true, seg));
    segment_options(p->frame.data, seg, o);
    assert_true(packet_is_right(p->frame.data, p->frame.length));
}

/* A connection with window scale 'shift' of the host and 'remote_shift' of the
 * remote end; -1 for none. */
static void
connect_with(struct cc_window *w, int shift, int remote_shift)
{
    struct packet_spec syn = {
        .from = 1, .to = 2, .flags = SEGMENT_SYN, .window = 64000,
        .mss = 1460, .ts_value = 5, .has_scale = shift >= 0,
        .scale = shift < 0 ? 0 : shift,
    };
    struct segment_options o;
    struct segment seg;
    struct cc_packet p;

    memset(w, 0, sizeof *w);
    packet_make(&p, &syn);
    parse(&p, &seg, &o);
    assert_int_equal(o.mss, 1460);
    assert_int_equal(o.ts_value, 5);
    cc_window_syn(w, p.frame.data, &seg, &o);
    parse(&p, &seg, &o);
    assert_int_equal(o.scale, shift < 0 ? 0 : shift > 10 ? 10 : shift);

    syn.has_scale = remote_shift >= 0;
    syn.scale = remote_shift < 0 ? 0 : remote_shift;
    packet_make(&p, &syn);
    parse(&p, &seg, &o);
    cc_window_remote_syn(w, &o);
}

/* The host acknowledges 'ack' with window 'field', limited to 'limit'.
 * Returns the window at the remote end. */
static uint16_t
tell(struct cc_window *w, uint32_t ack, uint16_t field, uint32_t limit)
{
    struct packet_spec spec = {
        .from = 1, .to = 2, .flags = SEGMENT_ACK, .ack = ack,
        .window = field, .ts_value = 9, .family = ack % 2 ? 6 : 4,
    };
    struct segment_options o;
    struct segment seg;
    struct cc_packet p;

    packet_make(&p, &spec);
    parse(&p, &seg, &o);
    cc_window_apply(w, p.frame.data, &seg, limit);
    parse(&p, &seg, &o);
    assert_int_equal(seg.ack, ack);
    return seg.window;
}

UNIT_TEST(lowers_a_window_by_its_scale)
{
    struct cc_window w;

    connect_with(&w, 7, 3);
    assert_int_equal(tell(&w, 1000, 60000, 128 * 100), 100);
    assert_int_equal(tell(&w, 2000, 60000, 128 * 100 - 127), 100);
    assert_int_equal(tell(&w, 20000, 60000, 1), 1);
    assert_int_equal(tell(&w, 30000, 60000, CC_WINDOW_ANY), 60000);
    assert_int_equal(tell(&w, 30000, 10, CC_WINDOW_ANY), 10);
}

UNIT_TEST(keeps_the_hosts_window_if_it_is_smaller)
{
    struct cc_window w;

    connect_with(&w, 0, 0);
    assert_int_equal(tell(&w, 1000, 500, 8000), 500);
    assert_int_equal(tell(&w, 1000, 0, 8000), 0);
    assert_int_equal(tell(&w, 1000, 1, 8000), 1);
}

/* With any limits, the right edge at the remote end does not move left unless
 * the host's own does, and no window becomes 0. */
UNIT_TEST(the_right_edge_never_moves_left)
{
    srandom(1);
    for (int run = 0; run < 200; run++) {
        int shift = random() % 15, to = shift > 10 ? 10 : shift;
        uint32_t ack = random() * 2, host_edge = ack, edge = ack;
        struct cc_window w;

        connect_with(&w, shift, random() % 15);
        for (int i = 0; i < 200; i++) {
            uint32_t field, seen;

            /* The remote end sends up to the right edge. */
            ack += edge - ack ? random() % (edge - ack + 1) : 0;
            field = ((host_edge - ack) >> shift) + random() % 3000;
            field = field > 65535 ? 65535 : field ? field : 1;
            if ((int32_t) (ack + (field << shift) - host_edge) < 0) {
                continue;
            }
            host_edge = ack + (field << shift);
            seen = tell(&w, ack, field, random() % 3 ? random() % 40000
                        : CC_WINDOW_ANY);
            assert_true(seen > 0);
            assert_true((int32_t) (ack + (seen << to) - edge) >= 0);
            assert_true((seen << to) <= (field << shift)
                        || to != shift);
            edge = ack + (seen << to);
        }
    }
}

/* Units of 16 KB would be more than a flow's share. */
UNIT_TEST(a_coarse_scale_is_lowered_and_translated)
{
    struct cc_window w;

    connect_with(&w, 14, 7);
    assert_true(cc_window_translates(&w));
    assert_int_equal(tell(&w, 1000, 100, CC_WINDOW_ANY), 1600);
    assert_int_equal(tell(&w, 1000, 65535, CC_WINDOW_ANY), 65535);
    connect_with(&w, 14, 7);
    assert_int_equal(tell(&w, 1000, 100, 4344), 5);

    /* The remote end does not scale, so the host does not either. */
    connect_with(&w, 14, -1);
    assert_false(cc_window_translates(&w));
    assert_int_equal(tell(&w, 1000, 30000, CC_WINDOW_ANY), 30000);
    assert_int_equal(tell(&w, 40000, 30000, 4344), 4344);
}

UNIT_TEST(leaves_a_connection_without_seen_syns)
{
    struct cc_window w;

    memset(&w, 0, sizeof w);
    assert_int_equal(tell(&w, 1000, 60000, 4344), 60000);
    connect_with(&w, 7, 7);
    w.remote_syn_seen = false;
    assert_int_equal(tell(&w, 1000, 60000, 4344), 60000);
}

UNIT_TEST(reset_and_first_syn_keep_their_window)
{
    struct packet_spec spec = {
        .from = 1, .to = 2, .flags = SEGMENT_RST | SEGMENT_ACK,
        .window = 60000,
    };
    struct segment_options o;
    struct cc_window w;
    struct segment seg;
    struct cc_packet p;

    connect_with(&w, 7, 7);
    packet_make(&p, &spec);
    parse(&p, &seg, &o);
    assert_false(cc_window_apply(&w, p.frame.data, &seg, 1000));
    parse(&p, &seg, &o);
    assert_int_equal(seg.window, 60000);
}

/* A segment that passes both shims is unchanged, bit by bit. */
UNIT_TEST(a_removed_hello_leaves_the_segment_unchanged)
{
    srandom(2);
    for (int i = 0; i < 2000; i++) {
        struct packet_spec spec = {
            .from = 1,
            .to = 2,
            .from_port = random(),
            .to_port = random(),
            .family = random() % 2 ? 4 : 6,
            .flags = SEGMENT_SYN,
            .seq = random(),
            .window = random(),
            .mss = random() % 2 ? 1460 : 0,
            .ts_value = random() % 2,
            .has_scale = random() % 2,
            .scale = random() % 15,
            .payload = random() % 100,
            .options = random() % 5,
        };
        uint64_t nonce = 1 + random();
        struct cc_packet p, before;
        struct segment_options o;
        struct segment seg;

        packet_make(&p, &spec);
        before = p;
        parse(&p, &seg, &o);
        assert_true(hello_fits(&seg));
        hello_insert(&p.frame, &seg, 1, nonce);

        parse(&p, &seg, &o);
        assert_int_equal(o.mss, spec.mss);
        assert_true(o.hello_at);
        assert_int_equal(hello_read(p.frame.data, &o), nonce);
        assert_int_equal(seg.payload, spec.payload);
        hello_remove(&p.frame, &seg, &o);
        parse(&p, &seg, &o);
        assert_false(o.hello_at);
        assert_int_equal(p.frame.length, before.frame.length);
        assert_memory_equal(p.frame.data, before.buffer + PACKET_ROOM,
                            p.frame.length);
    }
}

/* A middlebox has put another option first. */
UNIT_TEST(a_hello_after_another_option_becomes_nops)
{
    struct packet_spec spec = {
        .from = 1, .to = 2, .flags = SEGMENT_SYN, .options = 19,
        .mss = 1460,
    };
    static const uint8_t option[] = { 253, 10, 'S', 'G', 1, 1, 9, 8, 7, 6 };

    for (int at = 0; at < 9; at++) {
        struct segment_options o;
        struct segment seg;
        struct cc_packet p;

        packet_make(&p, &spec);
        parse(&p, &seg, &o);
        for (size_t i = 0; i < sizeof option; i++) {
            segment_set_byte(p.frame.data, &seg, seg.l4 + 20 + at + i,
                             option[i]);
        }
        parse(&p, &seg, &o);
        assert_int_equal(o.hello_at, seg.l4 + 20 + at);
        hello_remove(&p.frame, &seg, &o);
        parse(&p, &seg, &o);
        assert_int_equal(o.hello_at, 0);
        assert_int_equal(o.mss, 1460);
    }
}

UNIT_TEST(hello_is_omitted_when_the_tcp_options_are_full)
{
    struct packet_spec spec = {
        .from = 1,
        .to = 2,
        .flags = SEGMENT_SYN,
        .options = 28,
    };
    struct segment_options o;
    struct segment seg;
    struct cc_packet p;

    packet_make(&p, &spec);
    parse(&p, &seg, &o);
    assert_false(hello_fits(&seg));
    spec.options = 24;
    packet_make(&p, &spec);
    parse(&p, &seg, &o);
    assert_true(hello_fits(&seg));
}

UNIT_TEST(writing_ecn_updates_the_checksum)
{
    for (int i = 0; i < 32; i++) {
        struct packet_spec spec = {
            .from = 1, .to = 2, .flags = SEGMENT_ACK, .payload = i,
            .ecn = i % 4, .family = i < 16 ? 4 : 6,
        };
        struct segment_options o;
        struct segment seg;
        struct cc_packet p;

        packet_make(&p, &spec);
        parse(&p, &seg, &o);
        assert_int_equal(seg.ecn, i % 4);
        segment_set_ecn(p.frame.data, &seg, i / 4 % 4);
        parse(&p, &seg, &o);
        assert_int_equal(seg.ecn, i / 4 % 4);
    }
}

UNIT_TEST(grants_are_read_as_they_were_written)
{
    struct grant_message m = { .type = GRANT_RATES,
                               .n = GRANT_MAX,
                               .to = UINT64_C(0xfedcba9876543210),
                               .from = 7,
                               .number = UINT64_MAX },
                         read;
    const struct grant_ends ends = { .family = 4,
                                     .sender = (const uint8_t[16]){ 1 },
                                     .receiver = (const uint8_t[16]){ 2 },
                                     .key = (const uint8_t[16]){ 3 } };
    const struct grant_ends others[] = {
        { 6, ends.sender, ends.receiver, ends.key },
        { 4, ends.receiver, ends.sender, ends.key },
        { 4, ends.sender, ends.key, ends.key },
        { 4, ends.sender, ends.receiver, ends.sender },
    };
    uint8_t bytes[GRANT_MAX_MESSAGE];
    size_t size;

    for (int i = 0; i < GRANT_MAX; i++) {
        m.grants[i] = (struct grant) {
            .sender_port = i, .receiver_port = i * 3, .ms = i * 100000,
            .bps = i * UINT64_C(0x123456789a),
        };
    }
    size = grant_message_write(&m, &ends, bytes);
    assert_int_equal(size, GRANT_MAX_MESSAGE);
    assert_true(20 + 8 + size <= 576);
    assert_true(grant_message_read(bytes, size, &read));
    assert_int_equal(read.to, m.to);
    assert_int_equal(read.from, m.from);
    assert_int_equal(read.number, m.number);
    assert_int_equal(read.n, GRANT_MAX);
    for (int i = 0; i < GRANT_MAX; i++) {
        assert_int_equal(read.grants[i].bps, m.grants[i].bps);
        assert_int_equal(read.grants[i].ms, m.grants[i].ms);
        assert_int_equal(read.grants[i].sender_port, i);
    }
    assert_true(grant_message_is_right(bytes, &ends));
    for (int i = 0; i < 4; i++) {
        assert_false(grant_message_is_right(bytes, &others[i]));
    }
    for (size_t i = 0; i < size; i++) {
        assert_false(grant_message_read(bytes, i, &read));
        if (i != 7) { /* The size follows from it. */
            bytes[i] ^= 1;
            assert_false(grant_message_is_right(bytes, &ends));
            bytes[i] ^= 1;
        }
    }
    bytes[4] = GRANT_VERSION - 1;
    assert_false(grant_message_read(bytes, size, &read));
    bytes[4] = GRANT_VERSION;
    bytes[7] = GRANT_MAX + 1;
    assert_false(grant_message_read(bytes, size, &read));
}
