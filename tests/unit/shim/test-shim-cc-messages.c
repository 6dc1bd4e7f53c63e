/* SPDX-License-Identifier: Apache-2.0 */

/* Messages between shims, and what others write in their place: forged,
 * replayed and reordered ones, hellos of hosts, keys that come, change and
 * end, and a host that does not obey. */

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "shim/cc/message.h"
#include "shim/classify/prefix.h"
#include "tests/unit/shim/cc-world.h"
#include "tests/unit/unit-test.h"

enum {
    MESSAGE = 14 + 20 + 8, /* Offset of the message in its frame. */
    MAX_KEPT = 40,
};

static const uint8_t addresses[2][16] = { { 10, 0, 0, 2 }, { 10, 0, 0, 1 } };

/* Frames of messages from one side. */
struct kept {
    uint8_t frames[MAX_KEPT][1024];
    size_t sizes[MAX_KEPT];
    int n;
};

/* Lets the sender send without deliveries until the receiver's shim has
 * written 'n' messages to it. */
static void
keep_messages(struct world *w, int n, struct kept *kept)
{
    struct side *receiver = &w->sides[RECEIVER];

    kept->n = 0;
    while (kept->n < n) {
        world_data(w, 1, true);
        world_poll(w, MS / 2);
        world_poll(w, 5 * MS);
        for (int i = 0; i < receiver->n_messages && kept->n < n; i++) {
            memcpy(kept->frames[kept->n], receiver->messages[i],
                   receiver->sizes[i]);
            kept->sizes[kept->n++] = receiver->sizes[i];
        }
        receiver->n_messages = w->sides[SENDER].n_messages = 0;
    }
}

/* Gives a frame to the shim of 'side'.  Returns the grants that it took. */
static uint64_t
give(struct world *w, int side, const uint8_t *frame, size_t size)
{
    uint64_t before = world_stats(w, side).cc_grants_taken;
    struct cc_packet p;

    memcpy(p.buffer + PACKET_ROOM, frame, size);
    p.frame = (struct cc_frame){ .data = p.buffer + PACKET_ROOM,
                                 .length = size,
                                 .headroom = PACKET_ROOM };
    assert_false(cc_from_uplink(w->sides[side].cc, &p.frame, 0, w->now));
    return world_stats(w, side).cc_grants_taken - before;
}

static uint64_t
give_kept(struct world *w, struct kept *kept, int i)
{
    return give(w, SENDER, kept->frames[i], kept->sizes[i]);
}

/* Opens flow 1, on which the receiver has granted a rate. */
static void
open_granted(struct world *w)
{
    world_open(w, 1);
    world_bulk(w, 1, 50, GAP, NULL);
    assert_true(world_stats(w, SENDER).cc_grants_taken > 0);
}

WORLD_TEST(a_message_with_a_wrong_bit_is_refused)
{
    struct kept kept;
    uint64_t n = 0;

    open_granted(w);
    keep_messages(w, 1, &kept);
    for (size_t i = 0; i < kept.sizes[0] - MESSAGE; i++) {
        for (int bit = 1; bit < 256; bit *= 2) {
            kept.frames[0][MESSAGE + i] ^= bit;
            assert_int_equal(give_kept(w, &kept, 0), 0);
            kept.frames[0][MESSAGE + i] ^= bit;
            n += i >= 5 && (i != 7 || bit == 1); /* A message. */
            assert_int_equal(world_stats(w, SENDER).cc_refused, n);
        }
    }
    assert_int_equal(give_kept(w, &kept, 0), 1);
}

/* The same from another address with another nonce. */
WORLD_TEST(a_message_counts_between_its_two_hosts_only)
{
    struct packet_spec syn = world_spec(w, SENDER, 2, SEGMENT_SYN);
    struct cc_packet p;
    struct kept kept;

    open_granted(w);
    keep_messages(w, 1, &kept);
    syn.to = 3;
    packet_make(&p, &syn);
    world_leave(w, SENDER, &p, 0);
    kept.frames[0][14 + 15] = 3; /* The source. */
    assert_int_equal(give_kept(w, &kept, 0), 0);
    /* Nothing is believed of that host, so nothing is refused. */
    assert_int_equal(world_stats(w, SENDER).cc_refused, 0);
}

WORLD_TEST(a_grant_counts_once_and_may_be_out_of_order)
{
    struct kept kept;

    open_granted(w);
    keep_messages(w, MAX_KEPT, &kept);
    assert_int_equal(give_kept(w, &kept, MAX_KEPT - 1), 1);
    for (int i = 0; i < MAX_KEPT - 1; i++) {
        assert_int_equal(give_kept(w, &kept, i), 1);
    }
    world_take_over(w, SENDER, 1);
    for (int i = 0; i < MAX_KEPT; i++) {
        assert_int_equal(give_kept(w, &kept, i), 0);
    }
    assert_int_equal(world_stats(w, SENDER).cc_repeated, MAX_KEPT);
    assert_int_equal(world_stats(w, SENDER).cc_refused, 0);
}

WORLD_TEST(a_grant_that_is_64_messages_late_does_not_count)
{
    struct kept first, kept;

    open_granted(w);
    keep_messages(w, 2, &first);
    keep_messages(w, MAX_KEPT, &kept);
    keep_messages(w, 64 + 1 - MAX_KEPT, &kept);
    assert_int_equal(give_kept(w, &kept, kept.n - 1), 1);
    assert_int_equal(give_kept(w, &first, 0), 0);
    assert_int_equal(give_kept(w, &first, 1), 0);
    assert_int_equal(give_kept(w, &kept, kept.n - 2), 1);
}

/* Writes a message as the shim of the receiver, or a reader of its packets,
 * would, with the number 'more' above that of 'frame'. */
static size_t
write_again(uint8_t *frame, const uint8_t key[SHIM_KEY_BYTES],
            const struct grant_message *change, uint64_t more)
{
    struct grant_message m;
    uint8_t open_key[SHIM_KEY_BYTES];
    struct grant_ends ends = { .family = 4,
                               .sender = addresses[RECEIVER],
                               .receiver = addresses[SENDER],
                               .key = key ? key : open_key };

    assert_true(grant_message_read(frame + MESSAGE, 1024 - MESSAGE, &m));
    m.number += more;
    m.from = change->from ? change->from : m.from;
    for (int i = 0; i < m.n && change->n; i++) {
        m.grants[i].bps = change->grants[0].bps;
    }
    put_be64(open_key, m.to);
    put_be64(open_key + 8, m.from);
    return MESSAGE + grant_message_write(&m, &ends, frame + MESSAGE);
}

WORLD_TEST(a_grant_of_one_bit_is_raised_to_the_floor)
{
    struct grant_message change = { .n = 1, .grants = { { .bps = 1 } } };
    struct kept kept;
    uint16_t queue;

    open_granted(w);
    world_bulk(w, 1, 50, GAP, &queue);
    keep_messages(w, 1, &kept);
    write_again(kept.frames[0], NULL, &change, 0);
    assert_int_equal(give_kept(w, &kept, 0), 1);
    assert_in_range(w->sides[SENDER].rate[queue], LINK / 50 / 32 - 1,
                    LINK / 50 / 32 + 1);
}

/* A remote shim that was replaced has another nonce; an old message with
 * another nonce changes nothing. */
WORLD_TEST(a_nonce_changes_by_a_new_message_only)
{
    struct grant_message other = { .from = 77 };
    struct kept kept;
    uint8_t old[1024];

    open_granted(w);
    keep_messages(w, 2, &kept);
    assert_int_equal(give_kept(w, &kept, 1), 1);
    memcpy(old, kept.frames[0], sizeof old);
    assert_int_equal(give(w, SENDER, old, write_again(old, NULL, &other, 0)),
                     0);
    assert_int_equal(world_stats(w, SENDER).cc_repeated, 1);
    assert_int_equal(give(w, SENDER, kept.frames[1],
                          write_again(kept.frames[1], NULL, &other, 1)),
                     1);
}

/* Adds a hello with 'nonce' to a segment. */
static void
add_hello(struct cc_packet *p, uint64_t nonce)
{
    struct segment seg;

    assert_true(segment_parse(p->frame.data, p->frame.length, true, &seg));
    hello_insert(&p->frame, &seg, HELLO_ECN, nonce);
}

/* Hellos of a host without a shim, which obeys nothing: its flow has the
 * windows of one without. */
WORLD_TEST(a_hello_verifies_nothing)
{
    struct packet_spec syn = world_spec(w, SENDER, 1, SEGMENT_SYN);
    struct packet_spec answer =
        world_spec(w, RECEIVER, 1, SEGMENT_SYN | SEGMENT_ACK);
    struct cc_packet p;

    world_remove_shim(w, SENDER);
    packet_make(&p, &syn);
    add_hello(&p, 5);
    world_arrive(w, SENDER, &p, 0);
    world_poll(w, MS / 2);
    world_carry(w, RECEIVER, &answer, &p);
    for (int i = 0; i < 9000; i++) {
        world_poll(w, MS);
    }
    /* The shim asks a few times, and then no more. */
    assert_int_equal(w->sides[RECEIVER].n_messages, 6);
    w->sides[RECEIVER].n_messages = 0;
    assert_in_range(world_bulk(w, 1, 300, GAP, NULL), 3 * DATA,
                    97 * MBIT / 8 / 1000 * 11 / 10);
    assert_int_equal(world_stats(w, RECEIVER).cc_grants_sent, 0);
}

/* A hello with another nonce, as of a host on the way. */
WORLD_TEST(a_forged_hello_does_not_end_the_grants)
{
    struct packet_spec ack = world_spec(w, RECEIVER, 1, SEGMENT_ACK);
    struct cc_packet p;
    uint64_t taken;

    open_granted(w);
    packet_make(&p, &ack);
    add_hello(&p, 1234);
    assert_true(world_arrive(w, RECEIVER, &p, 0));
    taken = world_stats(w, SENDER).cc_grants_taken;
    world_bulk(w, 1, 400, GAP, NULL);
    assert_true(world_stats(w, SENDER).cc_grants_taken > taken);
}

WORLD_TEST(hellos_of_the_host_are_removed)
{
    for (int i = 0; i < 2; i++) { /* A control port, too. */
        struct packet_spec spec = world_spec(w, SENDER, 1, SEGMENT_ACK);
        struct segment_options o;
        struct segment seg;
        struct cc_packet p;

        spec.to_port = i ? 7000 : spec.to_port;
        spec.ts_value = 0;
        packet_make(&p, &spec);
        add_hello(&p, 1);
        add_hello(&p, 2);
        world_leave(w, SENDER, &p, 0);
        assert_true(segment_parse(p.frame.data, p.frame.length, true, &seg));
        segment_options(p.frame.data, &seg, &o);
        assert_int_equal(o.hello_at, 0);
    }
}

/* Writes a UDP datagram from 'from' to 'port' at 'ip', of 'payload' bytes, and
 * returns its size. */
static size_t
put_datagram(uint8_t *ip, uint8_t family, uint16_t fragment, uint16_t port,
             size_t payload)
{
    size_t header = family == 4 ? 20 : fragment ? 48 : 40;

    memset(ip, 0, header);
    if (family == 4) {
        ip[0] = 0x45;
        put_be16(ip + 2, header + 8 + payload);
        put_be16(ip + 6, fragment);
        ip[9] = IPPROTO_UDP;
        memcpy(ip + 12, addresses[SENDER], 4);
        memcpy(ip + 16, addresses[RECEIVER], 4);
    } else {
        ip[0] = 0x60;
        put_be16(ip + 4, header - 40 + 8 + payload);
        ip[6] = fragment ? IPPROTO_FRAGMENT : IPPROTO_UDP;
        if (fragment) {
            ip[40] = IPPROTO_UDP;
            put_be16(ip + 42, (fragment & 0x1fff) << 3 | 1);
        }
    }
    put_be16(ip + header, 40000);
    put_be16(ip + header + 2, port);
    put_be16(ip + header + 4, 8 + payload);
    return header + 8 + payload;
}

WORLD_TEST(the_port_of_messages_is_for_shims)
{
    static const struct prefix_list tunnels = {
        .n = 1, .prefixes = { { .family = 4, .bits = 8, .address = { 10 } } }
    };
    static const struct {
        uint8_t family;
        uint16_t port;
        uint16_t fragment; /* As in IPv4. */
        bool in_tunnel;
        bool passes;
    } cases[] = {
        { 4, GRANT_PORT, 0, false, false },
        { 4, GRANT_PORT, 0x4000, false, false },
        { 4, GRANT_PORT + 1, 0, false, true },
        { 4, GRANT_PORT, 0x2000, false, false },
        { 4, GRANT_PORT, 0x2001, false, true },
        { 6, GRANT_PORT, 0, false, false },
        { 6, GRANT_PORT, 0x2000, false, false },
        { 6, GRANT_PORT, 0x2001, false, true },
        { 4, GRANT_PORT, 0, true, false },
        { 4, GRANT_PORT, 0x2000, true, false },
        { 6, GRANT_PORT, 0, true, false },
        { 6, GRANT_PORT, 0x2000, true, false },
        { 4, GRANT_PORT + 1, 0, true, true },
    };
    struct cc_config config = { .slots = w->sides[SENDER].slots,
                                .max_flows = 8,
                                .tunnels = &tunnels,
                                .queues =
                                    (struct rank_queues *) &w->sides[SENDER] };
    struct cc *cc = cc_create(&config);
    struct shim_stats stats;
    int n_dropped = 0;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t data[256] = { 0 }, *p = data;
        struct verdict v = { .is_ip = true };
        struct cc_frame frame = { .data = data };
        size_t outer = cases[i].in_tunnel ? 20 + 8 + 8 : 0;

        if (outer) {
            put_be16(p + 12, 0x0800);
            put_datagram(p + 14, 4, 0, 4789, 150);
            p += 14 + outer;
            p[-8] = 8;
        }
        put_be16(p + 12, cases[i].family == 4 ? 0x0800 : 0x86dd);
        frame.length = p + 14 - data
                       + put_datagram(p + 14, cases[i].family,
                                      cases[i].fragment, cases[i].port, 16);
        frame.length = outer ? 14 + 20 + 8 + 150 : frame.length;
        assert_int_equal(cc_from_host(cc, &frame, &v, 1), cases[i].passes);
        n_dropped += !cases[i].passes;
    }
    cc_stats(cc, &stats);
    assert_int_equal(stats.cc_forged, n_dropped);
    cc_destroy(cc);
}

/* Gives 'side' a key for the other host, or removes it. */
static void
set_key(struct world *w, int side, uint8_t first, bool removed)
{
    struct shim_key key = { .family = 4,
                            .removed = removed,
                            .key = { first } };

    memcpy(key.remote, addresses[!side], sizeof key.remote);
    cc_set_keys(w->sides[side].cc, &key, 1);
}

/* Returns true if the receiver's grants reach the sender in the next 50 ms,
 * and changes no count of refused messages. */
static bool
grants_arrive(struct world *w)
{
    uint64_t taken = world_stats(w, SENDER).cc_grants_taken;

    world_bulk(w, 1, 400, GAP, NULL);
    return world_stats(w, SENDER).cc_grants_taken > taken;
}

static uint64_t
n_refused(struct world *w)
{
    return (world_stats(w, SENDER).cc_refused
            + world_stats(w, RECEIVER).cc_refused);
}

/* Lets 'ms' pass, in which messages are delivered. */
static void
pass(struct world *w, int ms)
{
    for (int i = 0; i < ms; i += 10) {
        struct packet_spec ack = world_spec(w, SENDER, 1, SEGMENT_ACK);
        struct cc_packet p;

        world_carry(w, SENDER, &ack, &p);
        world_poll(w, 10 * MS);
        world_deliver(w);
    }
}

/* The keys arrive seconds apart, and change. */
WORLD_TEST(keys_come_and_change_without_a_gap)
{
    open_granted(w);
    for (int key = 1; key < 4; key++) {
        set_key(w, key % 2, key, false);
        pass(w, 3000);
        assert_true(grants_arrive(w));
        set_key(w, !(key % 2), key, false);
        for (int i = 0; i < 70; i++) {
            pass(w, 1000);
            assert_true(grants_arrive(w));
        }
    }
    assert_int_equal(n_refused(w), 0);
}

/* New connections after the first keys, also with a takeover on the way. */
WORLD_TEST(shims_with_a_key_find_each_other)
{
    for (int side = 0; side < 2; side++) {
        set_key(w, side, 9, false);
    }
    world_poll(w, 61000 * MS);
    open_granted(w);
    world_take_over(w, RECEIVER, 50);
    assert_true(grants_arrive(w));
    assert_int_equal(n_refused(w), 0);
}

/* A shim that starts again with other nonces and gets the same key. */
WORLD_TEST(a_shim_that_restarts_is_verified_again)
{
    for (int side = 0; side < 2; side++) {
        set_key(w, side, 9, false);
    }
    open_granted(w);
    world_restart(w, RECEIVER, 60);
    set_key(w, RECEIVER, 9, false);
    pass(w, 500);
    assert_true(grants_arrive(w));
    assert_int_equal(n_refused(w), 0);
}

/* A sender without the key is not trusted, however it got the nonces. */
WORLD_TEST(without_a_key_only_windows_count)
{
    struct grant_message same = { .n = 0 };
    struct kept kept;

    open_granted(w);
    keep_messages(w, 2, &kept);
    set_key(w, SENDER, 1, false);
    world_poll(w, MS);
    world_poll(w, 30000 * MS);
    write_again(kept.frames[0], NULL, &same, 10);
    assert_int_equal(give_kept(w, &kept, 0), 1);
    pass(w, 10);
    world_poll(w, 31000 * MS);
    for (int i = 0; i < 100; i++) {
        world_poll(w, MS);
    }
    w->sides[SENDER].n_messages = 0;
    write_again(kept.frames[1], NULL, &same, 10);
    assert_int_equal(give_kept(w, &kept, 1), 0);
    assert_int_equal(world_stats(w, SENDER).cc_refused, 1);
}

/* Keys have come before its first packet. */
WORLD_TEST(a_host_without_a_key_is_not_believed_for_a_minute)
{
    struct shim_key other = { .family = 4, .remote = { 10, 0, 0, 9 } };

    cc_set_keys(w->sides[SENDER].cc, &other, 1);
    world_poll(w, MS);
    world_open(w, 1);
    world_bulk(w, 1, 50, GAP, NULL);
    assert_int_equal(world_stats(w, SENDER).cc_grants_taken, 0);
}

WORLD_TEST(a_removed_key_ends_the_pair_at_once)
{
    const uint8_t key[SHIM_KEY_BYTES] = { 9 };
    struct grant_message same = { .n = 0 };
    struct kept kept;

    for (int side = 0; side < 2; side++) {
        set_key(w, side, 9, false);
    }
    world_poll(w, 61000 * MS);
    open_granted(w);
    keep_messages(w, 1, &kept);
    set_key(w, SENDER, 0, true);
    world_poll(w, 2 * MS);
    write_again(kept.frames[0], key, &same, 1);
    assert_int_equal(give_kept(w, &kept, 0), 0);
}

/* Sends data of flow 1 at full speed, whatever is granted, beside those of a
 * host without a shim, which are of an earlier rank. */
static void
send_regardless(struct world *w, int n)
{
    for (int i = 0; i < n; i++) {
        struct packet_spec data = world_spec(w, SENDER, 1, SEGMENT_ACK);
        struct packet_spec other = world_spec(w, SENDER, 2, SEGMENT_ACK);
        struct cc_packet p;

        data.payload = other.payload = DATA;
        other.from = 3;
        packet_make(&p, &data);
        world_leave(w, SENDER, &p, 0);
        world_arrive(w, SENDER, &p, 2);
        packet_make(&p, &other);
        if (i % 2) {
            world_arrive(w, SENDER, &p, 1);
        }
        world_poll(w, GAP);
        world_deliver(w);
    }
}

WORLD_TEST(a_host_that_does_not_obey_has_windows_only)
{
    struct job_slots *slots = w->sides[RECEIVER].slots;
    uint64_t sent;

    for (uint16_t i = 1; i < 3; i++) {
        struct shim_slot slot = { .slot = i, .level = i, .rank = i };

        assert_int_equal(job_slots_set(slots, &slot), 0);
    }
    job_slots_lease(slots, w->now, 100000, 0);
    world_open(w, 1);
    send_regardless(w, 200 * MS / GAP);
    assert_int_equal(world_stats(w, RECEIVER).cc_disobeyed, 0);
    send_regardless(w, 150 * MS / GAP);
    assert_int_equal(world_stats(w, RECEIVER).cc_disobeyed, 1);
    sent = world_stats(w, RECEIVER).cc_grants_sent;
    send_regardless(w, 9000 * MS / GAP);
    assert_int_equal(world_stats(w, RECEIVER).cc_grants_sent, sent);

    /* Then it is believed again. */
    send_regardless(w, 1500 * MS / GAP);
    assert_true(world_stats(w, RECEIVER).cc_grants_sent > sent);
    assert_int_equal(world_stats(w, RECEIVER).cc_disobeyed, 2);
}
