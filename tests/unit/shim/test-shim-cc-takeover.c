/* SPDX-License-Identifier: Apache-2.0 */

/* A takeover with connections: neither the hosts nor the remote shim notice
 * it. */

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cc/takeover-state.h"
#include "tests/unit/shim/cc-world.h"
#include "tests/unit/unit-test.h"

/* The receiver's host acknowledges 'ack' on flow 1 with window 'field'.
 * Returns the window at the sender. */
static uint16_t
tell(struct world *w, uint32_t ack, uint16_t field)
{
    struct packet_spec spec = world_spec(w, RECEIVER, 1, SEGMENT_ACK);
    struct segment seg;
    struct cc_packet p;

    spec.ack = ack;
    spec.window = field;
    world_carry(w, RECEIVER, &spec, &p);
    assert_true(segment_parse(p.frame.data, p.frame.length, false, &seg));
    return seg.window;
}

WORLD_TEST(the_new_shim_keeps_the_windows_limit)
{
    uint32_t before, after;

    world_remove_shim(w, SENDER);
    world_open(w, 1);
    before = world_bulk(w, 1, 300, GAP, NULL) >> 7;
    assert_in_range(before, 1, 1000);
    world_take_over(w, RECEIVER, 99);
    after = tell(w, w->stamp * 100000, 65535);
    assert_in_range(after, before - 1, before + 1);
    assert_in_range(world_bulk(w, 1, 300, GAP, NULL) >> 7, before / 2,
                    before * 2);
}

WORLD_TEST(the_edge_does_not_move_left)
{
    const uint32_t ack = 1000, told = 60000;

    world_open(w, 1);
    assert_int_equal(tell(w, ack, told), told);
    world_take_over(w, RECEIVER, 99);

    /* Now it is bulk with a smaller limit, but the old edge stays valid. */
    for (int i = 0; i < 50; i++) {
        world_data(w, 1, true);
        world_poll(w, GAP);
        world_deliver(w);
    }
    assert_int_equal(tell(w, ack, told), told);
    assert_int_equal(tell(w, ack + 1280, told), told - 10);
    assert_true(tell(w, ack + told * 128 - 128, told) < told);
}

/* The host and the remote end use different window scales. */
WORLD_TEST(windows_are_translated_as_before)
{
    struct packet_spec syn, answer;
    struct cc_packet p;

    syn = world_spec(w, SENDER, 1, SEGMENT_SYN);
    answer = world_spec(w, RECEIVER, 1, SEGMENT_SYN | SEGMENT_ACK);
    answer.scale = 12;
    world_carry(w, SENDER, &syn, &p);
    world_carry(w, RECEIVER, &answer, &p);
    assert_int_equal(tell(w, 1000, 100), 400);
    world_take_over(w, RECEIVER, 99);
    assert_int_equal(tell(w, 1001, 100), 400);
    for (int i = 0; i < 20; i++) {
        world_take_over(w, RECEIVER, i);
    }
    assert_int_equal(tell(w, 500000, 50), 200);
}

/* Takeovers at both ends: data are paced from the first packet on, and
 * messages are accepted without a new hello. */
WORLD_TEST(grants_stay_valid_and_are_renewed)
{
    struct side *sender = &w->sides[SENDER];
    uint64_t rate, taken;
    uint16_t queue = 0;

    world_open(w, 1);
    world_bulk(w, 1, 300, GAP, &queue);
    rate = sender->rate[queue];
    assert_true(rate > 50 * MBIT);

    world_take_over(w, SENDER, 99);
    world_bulk(w, 1, 1, 0, &queue);
    assert_true(queue > 0);
    assert_int_equal(sender->rate[queue], rate);
    assert_int_equal(world_stats(w, SENDER).cc_grants_taken, 0);
    world_bulk(w, 1, 200, GAP, &queue);
    taken = world_stats(w, SENDER).cc_grants_taken;
    assert_true(taken > 0);

    world_take_over(w, RECEIVER, 98);
    world_bulk(w, 1, 200, GAP, &queue);
    assert_true(world_stats(w, SENDER).cc_grants_taken > taken);
    assert_true(sender->rate[queue] > 50 * MBIT);
}

/* The remote shim died meanwhile: its grant ends in time. */
WORLD_TEST(an_expired_grant_ends)
{
    uint16_t queue = 0;

    world_open(w, 1);
    world_bulk(w, 1, 300, GAP, &queue);
    assert_true(queue > 0);
    w->now += 2000 * MS;
    world_take_over(w, SENDER, 99);
    for (int i = 0; i < MAX_QUEUES; i++) {
        assert_false(w->sides[SENDER].queue_used[i]);
    }
}

WORLD_TEST(ecn_stays_with_the_shims_or_with_the_hosts)
{
    struct packet_spec syn = world_spec(w, SENDER, 2, SEGMENT_SYN | SEGMENT_ECE
                                     | SEGMENT_CWR);
    struct cc_packet p;

    world_open(w, 1);
    world_carry(w, SENDER, &syn, &p);
    syn = world_spec(w, RECEIVER, 2, SEGMENT_SYN | SEGMENT_ACK | SEGMENT_ECE);
    world_carry(w, RECEIVER, &syn, &p);
    world_bulk(w, 1, 100, GAP, NULL);
    world_take_over(w, SENDER, 99);
    world_take_over(w, RECEIVER, 98);
    for (uint16_t port = 1; port <= 2; port++) {
        assert_int_equal(world_ecn(w, port, SEGMENT_CE),
                         port == 1 ? SEGMENT_NOT_ECT : SEGMENT_CE);
    }
}

/* Saves the state of the shim of 'side'.  The caller frees it. */
static void *
save(const struct world *w, int side, size_t *size)
{
    void *body = calloc(1, CC_TAKEOVER_BYTES);

    *size = cc_save(w->sides[side].cc, body);
    return body;
}

WORLD_TEST(the_state_is_complete)
{
    struct shim_congestion law = { .gamma = 900000,
                                   .beta = 100000,
                                   .floor = 70000 };
    size_t size[2];
    void *body[2];

    for (int side = 0; side < 2; side++) {
        cc_set_law(w->sides[side].cc, &law);
    }
    for (uint16_t port = 1; port <= 20; port++) {
        world_open(w, port);
        world_bulk(w, port, 3 * port, GAP, NULL);
    }
    for (int side = 0; side < 2; side++) {
        body[0] = save(w, side, &size[0]);
        world_take_over(w, side, side + 1);        /* With the same hashes. */
        body[1] = save(w, side, &size[1]);
        assert_int_equal(size[0], takeover_state_size(1, 20));
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(body[0], body[1], size[0]);
        free(body[0]);
        free(body[1]);
    }
}

/* More entries than the table holds, one of them twice, with times in the
 * future. */
WORLD_TEST(entries_beyond_the_table_are_ignored)
{
    struct takeover_state *body = calloc(1, takeover_state_size(0, 100));
    struct takeover_connection *all = takeover_state_connections(body);

    body->law.gamma = 950000;
    body->n_connections = 100;
    for (uint32_t i = 0; i < body->n_connections; i++) {
        all[i] = (struct takeover_connection){
            .key = { .family = 4,
                     .protocol = IPPROTO_TCP,
                     .local_port = i / 2 },
            .last = UINT64_MAX,
            .out_bps = UINT64_MAX,
            .out_until = UINT64_MAX,
            .core = UINT64_MAX,
        };
    }
    assert_int_equal(takeover_state_check(body, takeover_state_size(0, 100)),
                     0);
    cc_restore(w->sides[SENDER].cc, body, w->now);
    assert_int_equal(world_stats(w, SENDER).cc_flows, 50);
    for (uint32_t i = 0; i < body->n_connections; i++) {
        all[i].key.local_port = i;
    }
    cc_restore(w->sides[RECEIVER].cc, body, w->now);
    assert_int_equal(world_stats(w, RECEIVER).cc_flows, 64);
    free(body);

    /* They expire like others. */
    for (int i = 0; i < 100; i++) {
        world_poll(w, 1000 * MS);
    }
    assert_int_equal(world_stats(w, SENDER).cc_flows, 0);
    for (int i = 0; i < MAX_QUEUES; i++) {
        assert_false(w->sides[SENDER].queue_used[i]);
    }
}

/* Checks a copy of 'body' with 'size' bytes of 'value' at 'at'. */
static int
check_with(const void *body, size_t body_size, size_t at, const void *value,
           size_t size)
{
    char *copy = malloc(body_size);
    int error;

    memcpy(copy, body, body_size);
    memcpy(copy + at, value, size);
    error = takeover_state_check(copy, body_size);
    free(copy);
    return error;
}

WORLD_TEST(a_bad_body_is_refused)
{
#define BAD(BASE, TYPE, MEMBER, VALUE)                                  \
    do {                                                                \
        struct TYPE x_ = { .MEMBER = VALUE };                           \
                                                                        \
        assert_int_equal(check_with(body, size,                         \
                                    BASE + offsetof(struct TYPE, MEMBER), \
                                    &x_.MEMBER, sizeof x_.MEMBER),      \
                         EINVAL);                                       \
    } while (0)

    const size_t remote = takeover_state_size(0, 0);
    const size_t flow = takeover_state_size(1, 0);
#define REMOTE(MEMBER) (remote + offsetof(struct takeover_remote, MEMBER))
#define FLOW(MEMBER) (flow + offsetof(struct takeover_connection, MEMBER))
    const size_t bools[] = { REMOTE(verified),      REMOTE(confirmed),
                             FLOW(window.has_edge), FLOW(window.remote_scales),
                             FLOW(has_ecn),         FLOW(bulk) };
    const uint32_t two = 2, most = UINT32_MAX;
    size_t size;
    void *body;

    world_open(w, 1);
    body = save(w, RECEIVER, &size);
    assert_int_equal(size, takeover_state_size(1, 1));
    assert_int_equal(takeover_state_check(body, size), 0);
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(takeover_state_check(body, i), EPROTO);
    }
    for (int i = 0; i < 2; i++) {
        size_t at = i ? offsetof(struct takeover_state, n_remotes)
                    : offsetof(struct takeover_state, n_connections);

        assert_int_equal(check_with(body, size, at, &two, sizeof two),
                         EPROTO);
        assert_int_equal(check_with(body, size, at, &most, sizeof most),
                         EPROTO);
    }
    for (size_t i = 0; i < N_ELEMENTS(bools); i++) {
        static const uint8_t no_bool = 2;

        assert_int_equal(check_with(body, size, bools[i], &no_bool, 1),
                         EINVAL);
    }
    BAD(0, takeover_state, law.gamma, 499999);
    BAD(0, takeover_state, managed, 2);
    BAD(remote, takeover_remote, family, 5);
    BAD(remote, takeover_remote, local[4], 1);
    BAD(remote, takeover_remote, l2_size, TAKEOVER_MAX_L2 + 1);
    BAD(remote, takeover_remote, pad[4], 1);
    BAD(remote, takeover_remote, key.kind, KEY_GIVEN + 1);
    BAD(remote, takeover_remote, old_key.kind, KEY_GIVEN + 1);
    BAD(remote, takeover_remote, own_nonce, 0);
    BAD(flow, takeover_connection, key.family, 0);
    BAD(flow, takeover_connection, key.pad, 1);
    BAD(flow, takeover_connection, key.protocol, IPPROTO_UDP);
    BAD(flow, takeover_connection, key.remote[15], 1);
    BAD(flow, takeover_connection, alpha, 1.5);
    BAD(flow, takeover_connection, alpha, NAN);
    BAD(flow, takeover_connection, slot, SHIM_MAX_SLOTS);
    BAD(flow, takeover_connection, window.host_shift, 15);
    BAD(flow, takeover_connection, window.wire_shift, 8);
    free(body);
#undef BAD
#undef REMOTE
#undef FLOW
}
