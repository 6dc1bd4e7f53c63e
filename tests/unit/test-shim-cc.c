/* SPDX-License-Identifier: Apache-2.0 */

/* Congestion control between two hosts, each with a shim or without, with a
 * clock of the test's own. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/cc/cc.h"
#include "shim/cc/grant.h"
#include "shim/cc/segment.h"
#include "shim/pipeline/classify.h"
#include "shim/pipeline/job-slot.h"
#include "tests/unit/cc-packets.h"

#define MBIT UINT64_C(1000000)
#define MS UINT64_C(1000000)
#define LINK (100 * MBIT)
#define GAP (MS * 13 / 100)     /* Between two packets on the full link. */

enum {
    SENDER,
    RECEIVER,
    DATA = 1448,
    MAX_QUEUES = 64,
    MAX_MESSAGES = 64,
};

/* One host's shim, and what it wanted of its egress. */
struct side {
    struct cc *cc;
    struct job_slots *slots;
    bool queue_used[MAX_QUEUES];
    uint64_t rate[MAX_QUEUES];
    uint8_t messages[MAX_MESSAGES][1024];
    size_t sizes[MAX_MESSAGES];
    int n_messages;
};

struct world {
    struct side sides[2];
    uint64_t now;
    uint32_t stamp;
};

static uint16_t
flow_queue(void *side_, uint16_t slot)
{
    struct side *side = side_;

    (void) slot;
    for (int i = 1; i < MAX_QUEUES; i++) {
        if (!side->queue_used[i]) {
            side->queue_used[i] = true;
            side->rate[i] = 0;
            return i;
        }
    }
    return 0;
}

static void
flow_free(void *side_, uint16_t queue)
{
    struct side *side = side_;

    assert_true(side->queue_used[queue]);
    side->queue_used[queue] = false;
}

static void
flow_rate(void *side_, uint16_t queue, uint64_t bps)
{
    struct side *side = side_;

    assert_true(side->queue_used[queue]);
    side->rate[queue] = bps;
}

static void
send_message(void *side_, const uint8_t *frame, size_t length)
{
    struct side *side = side_;

    assert_true(side->n_messages < MAX_MESSAGES);
    assert_true(packet_is_right(frame, length));
    memcpy(side->messages[side->n_messages], frame, length);
    side->sizes[side->n_messages++] = length;
}

static void
side_create(struct side *side, uint64_t seed)
{
    struct cc_config config = {
        .downlink_bps = LINK,
        .seed = seed,
        .mtu = 1500,
        .max_flows = 64,
        .control_ports = { 7000 },
        .aux = side,
        .flow_queue = flow_queue,
        .flow_free = flow_free,
        .flow_rate = flow_rate,
        .send = send_message,
    };

    side->slots = job_slots_create();
    config.slots = side->slots;
    side->cc = cc_create(&config);
    assert_non_null(side->cc);
}

static int
set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    w->now = 1000 * MS;
    side_create(&w->sides[SENDER], 1);
    side_create(&w->sides[RECEIVER], 2);
    *state = w;
    return 0;
}

static int
tear_down(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 2; i++) {
        cc_destroy(w->sides[i].cc);
        job_slots_destroy(w->sides[i].slots);
    }
    free(w);
    return 0;
}

/* The packet of flow 'port' that 'from' sends.  The sender is host 2 of port
 * 5000 + 'port', the receiver host 1 of port 6000 + 'port'. */
static struct packet_spec
spec_of(struct world *w, int from, uint16_t port, uint8_t flags)
{
    struct packet_spec spec = {
        .from = from == SENDER ? 2 : 1,
        .to = from == SENDER ? 1 : 2,
        .from_port = (from == SENDER ? 5000 : 6000) + port,
        .to_port = (from == SENDER ? 6000 : 5000) + port,
        .flags = flags,
        .window = 65535,
        .ts_value = ++w->stamp,
    };

    if (flags & SEGMENT_SYN) {
        spec.mss = 1460;
        spec.has_scale = true;
        spec.scale = 7;
    }
    return spec;
}

/* 'from's shim, if it has one, sees what its host sends. */
static struct verdict
leave(struct world *w, int from, struct cc_packet *p, uint16_t slot)
{
    struct verdict v = { .slot = slot, .is_ip = true, .family = 4,
                         .treatment = { .level = 3, .dscp = 10 } };

    if (w->sides[from].cc) {
        cc_from_host(w->sides[from].cc, &p->frame, &v, w->now);
    }
    assert_true(packet_is_right(p->frame.data, p->frame.length));
    return v;
}

static bool
arrive(struct world *w, int from, struct cc_packet *p, uint16_t slot)
{
    bool passes = true;

    if (w->sides[!from].cc) {
        passes = cc_from_uplink(w->sides[!from].cc, &p->frame, slot, w->now);
    }
    if (passes) {
        assert_true(packet_is_right(p->frame.data, p->frame.length));
    }
    return passes;
}

/* Sends a packet all the way.  Returns what its shim decided; '*p' is what
 * arrived. */
static struct verdict
carry(struct world *w, int from, const struct packet_spec *spec,
      struct cc_packet *p)
{
    struct verdict v;

    packet_make(p, spec);
    v = leave(w, from, p, 0);
    assert_true(arrive(w, from, p, 0));
    return v;
}

/* Carries what the shims have to say to each other. */
static void
deliver(struct world *w)
{
    for (int from = 0; from < 2; from++) {
        struct side *side = &w->sides[from];

        for (int i = 0; i < side->n_messages; i++) {
            struct cc_packet p;

            memcpy(p.buffer + PACKET_ROOM, side->messages[i],
                   side->sizes[i]);
            p.frame = (struct cc_frame) {
                .data = p.buffer + PACKET_ROOM,
                .length = side->sizes[i],
            };
            assert_non_null(w->sides[!from].cc);
            assert_false(arrive(w, from, &p, 0));
        }
        side->n_messages = 0;
    }
}

static void
turn(struct world *w, uint64_t ns)
{
    w->now += ns;
    for (int i = 0; i < 2; i++) {
        if (w->sides[i].cc) {
            cc_turn(w->sides[i].cc, w->now);
        }
    }
}

/* Opens flow 'port' with a round trip of 1 ms.  The options that the hosts see
 * are those that the other host sent. */
static void
open_flow(struct world *w, uint16_t port)
{
    struct packet_spec syn = spec_of(w, SENDER, port, SEGMENT_SYN);
    struct packet_spec answer = spec_of(w, RECEIVER, port,
                                        SEGMENT_SYN | SEGMENT_ACK);
    struct packet_spec ack = spec_of(w, SENDER, port, SEGMENT_ACK);
    struct cc_packet p, sent;

    packet_make(&sent, &syn);
    carry(w, SENDER, &syn, &p);
    assert_int_equal(p.frame.length, sent.frame.length);
    assert_memory_equal(p.frame.data, sent.frame.data, p.frame.length);
    turn(w, MS / 2);
    packet_make(&sent, &answer);
    carry(w, RECEIVER, &answer, &p);
    assert_memory_equal(p.frame.data, sent.frame.data, p.frame.length);
    turn(w, MS / 2);
    carry(w, SENDER, &ack, &p);
}

/* 'n' segments of data of flow 'port', one each 'ns', and their
 * acknowledgements.  Returns the last window that the sender saw, in bytes,
 * and, in '*queue', where the last data went. */
static uint32_t
bulk(struct world *w, uint16_t port, int n, uint64_t ns, uint16_t *queue)
{
    uint32_t window = 0;

    for (int i = 0; i < n; i++) {
        struct packet_spec data = spec_of(w, SENDER, port, SEGMENT_ACK);
        struct packet_spec ack = spec_of(w, RECEIVER, port, SEGMENT_ACK);
        struct segment seg;
        struct verdict v;
        struct cc_packet p;

        data.payload = DATA;
        v = carry(w, SENDER, &data, &p);
        if (queue) {
            *queue = v.queue;
        }
        /* Whatever was told before, it is used up. */
        ack.ack = w->stamp * 100000;
        carry(w, RECEIVER, &ack, &p);
        assert_true(segment_parse(p.frame.data, p.frame.length, false, &seg));
        window = (uint32_t) seg.window << 7;
        turn(w, ns);
        deliver(w);
    }
    return window;
}

static struct shim_stats
stats_of(const struct world *w, int side)
{
    struct shim_stats stats = { .boot_id = 0 };

    cc_stats(w->sides[side].cc, &stats);
    return stats;
}

static void
two_shims_agree_on_rates(void **state)
{
    struct world *w = *state;
    uint16_t queue = 0;
    uint32_t window;

    open_flow(w, 1);
    window = bulk(w, 1, 100, GAP, &queue);
    assert_true(queue > 0);
    assert_in_range(w->sides[SENDER].rate[queue], 80 * MBIT, 98 * MBIT);
    assert_in_range(window, 3 * DATA, 98 * MBIT / 8 / 1000 * 22);
    assert_true(stats_of(w, RECEIVER).cc_grants_sent > 0);
    assert_true(stats_of(w, SENDER).cc_grants_taken > 0);
    assert_int_equal(stats_of(w, SENDER).cc_flows, 1);
}

static void
flows_share_the_link_equally(void **state)
{
    struct world *w = *state;
    uint16_t queues[4];
    uint64_t sum = 0;

    for (int i = 0; i < 4; i++) {
        open_flow(w, i);
    }
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 4; i++) {
            bulk(w, i, 1, GAP, &queues[i]);
        }
    }
    for (int i = 0; i < 4; i++) {
        sum += w->sides[SENDER].rate[queues[i]];
        assert_in_range(w->sides[SENDER].rate[queues[i]], 18 * MBIT,
                        24 * MBIT);
    }
    assert_in_range(sum, 80 * MBIT, 96 * MBIT);
}

/* Only windows: the other end has no shim, and never sees a message. */
static void
a_receiver_alone_bounds_windows(void **state)
{
    struct world *w = *state;
    struct job_slots *slots = w->sides[SENDER].slots;
    uint16_t queue = 0;
    uint32_t window;

    cc_destroy(w->sides[SENDER].cc);
    w->sides[SENDER].cc = NULL;
    open_flow(w, 1);
    window = bulk(w, 1, 300, GAP, &queue);
    assert_int_equal(queue, 0);
    assert_in_range(window, 3 * DATA, 98 * MBIT / 8 / 1000 * 11 / 10);
    assert_int_equal(stats_of(w, RECEIVER).cc_grants_sent, 0);
    w->sides[SENDER].slots = slots;
}

/* The other end has none: a shim adds its option to the SYN and does nothing
 * else. */
static void
a_sender_alone_is_plain_tcp(void **state)
{
    struct world *w = *state;
    struct packet_spec syn = spec_of(w, SENDER, 1, SEGMENT_SYN);
    uint16_t queue = 1;
    struct cc_packet p;

    cc_destroy(w->sides[RECEIVER].cc);
    w->sides[RECEIVER].cc = NULL;
    packet_make(&p, &syn);
    leave(w, SENDER, &p, 0);
    assert_int_equal(p.frame.room, PACKET_ROOM - 12);

    /* If it comes again, somebody may not have liked it. */
    packet_make(&p, &syn);
    leave(w, SENDER, &p, 0);
    assert_int_equal(p.frame.room, PACKET_ROOM);
    assert_int_equal(bulk(w, 1, 200, GAP, &queue), 65535 << 7);
    assert_int_equal(queue, 0);
    assert_int_equal(w->sides[SENDER].n_messages, 0);
}

static void
a_small_flow_is_left_alone(void **state)
{
    struct world *w = *state;
    uint16_t queue = 1;

    open_flow(w, 1);
    assert_int_equal(bulk(w, 1, 100, 2 * MS, &queue), 65535 << 7);
    assert_int_equal(queue, 0);
    assert_int_equal(stats_of(w, RECEIVER).cc_windows, 0);
}

/* A connection that was there before the shims is found out about by its
 * acknowledgements, and then only paced. */
static void
an_old_connection_is_only_paced(void **state)
{
    struct world *w = *state;
    uint16_t queue = 0;

    assert_int_equal(bulk(w, 1, 400, GAP, &queue), 65535 << 7);
    assert_true(queue > 0);
    assert_true(w->sides[SENDER].rate[queue] > 0);
}

/* With three segments at least no acknowledgement is delayed. */
static void
a_window_has_room_for_three_segments(void **state)
{
    struct world *w = *state;
    uint32_t window = 0;

    cc_destroy(w->sides[SENDER].cc);
    w->sides[SENDER].cc = NULL;
    for (int i = 0; i < 40; i++) {
        open_flow(w, i);
    }
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 40; i++) {
            window = bulk(w, i, 1, MS / 50, NULL);
            assert_true(window >= 3 * DATA);
        }
    }
    assert_in_range(window, 3 * DATA, 3 * DATA + 127);
}

/* A sender that obeys what it was told. */
struct obedient {
    uint16_t port, slot;        /* The slot is what the receiver knows. */
    uint64_t wants;             /* Nanoseconds between two packets. */
    uint64_t last;              /* When it sent. */
    uint16_t queue;
};

static uint64_t
rate_of(const struct world *w, const struct obedient *o)
{
    return w->sides[SENDER].rate[o->queue];
}

/* Returns when it may send again, at the rate that it has now. */
static uint64_t
next_of(const struct world *w, const struct obedient *o)
{
    uint64_t rate = o->queue ? rate_of(w, o) : 0, gap = o->wants;

    if (rate) {
        uint64_t paced = UINT64_C(1526) * 8 * 1000 * MS / rate;

        gap = paced > gap ? paced : gap;
    }
    return o->last + gap;
}

/* Lets the 'n' of 'o' send for 'ns'. */
static void
obey(struct world *w, struct obedient *o, int n, uint64_t ns)
{
    for (uint64_t end = w->now + ns; w->now < end; turn(w, MS / 50)) {
        for (int i = 0; i < n; i++) {
            struct packet_spec data = spec_of(w, SENDER, o[i].port,
                                              SEGMENT_ACK);
            struct packet_spec ack = spec_of(w, RECEIVER, o[i].port,
                                             SEGMENT_ACK);
            struct cc_packet p;
            uint64_t next = next_of(w, &o[i]);

            if (next > w->now) {
                continue;
            }
            data.payload = DATA;
            packet_make(&p, &data);
            o[i].queue = leave(w, SENDER, &p, 0).queue;
            assert_true(arrive(w, SENDER, &p, o[i].slot));
            packet_make(&p, &ack);
            leave(w, RECEIVER, &p, o[i].slot);
            arrive(w, RECEIVER, &p, 0);
            /* A turn of the loop may be late, but no more is made up for. */
            o[i].last = w->now - next < MS / 50 ? next : w->now;
        }
        deliver(w);
    }
}

/* Acknowledgements of a sender without a shim wait if three segments a round
 * trip are too much, and only then. */
static void
acknowledgements_wait_where_windows_are_too_much(void **state)
{
    struct world *w = *state;
    struct side *receiver = &w->sides[RECEIVER];
    uint16_t queue = 0;

    cc_destroy(w->sides[SENDER].cc);
    w->sides[SENDER].cc = NULL;
    for (int i = 0; i < 6; i++) {
        open_flow(w, i);
    }
    bulk(w, 0, 100, GAP, NULL);
    assert_false(receiver->queue_used[1]);
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 6; i++) {
            struct packet_spec ack = spec_of(w, RECEIVER, i, SEGMENT_ACK);
            struct cc_packet p;

            bulk(w, i, 1, GAP, NULL);
            packet_make(&p, &ack);
            queue = leave(w, RECEIVER, &p, 0).queue;
        }
    }
    assert_true(queue > 0);

    /* A sixth of the link, in acknowledgements of a segment each. */
    assert_in_range(receiver->rate[queue], MBIT / 2, MBIT);
    turn(w, 100 * MS);
    for (int i = 0; i < MAX_QUEUES; i++) {
        assert_false(receiver->queue_used[i]);
    }
}

static void
rank_decides_while_the_lease_holds(void **state)
{
    struct obedient flows[] = {
        { .port = 0, .slot = 1, .wants = GAP },
        { .port = 1, .slot = 2, .wants = GAP },
    };
    struct world *w = *state;
    struct job_slots *slots = w->sides[RECEIVER].slots;

    for (uint16_t i = 0; i < 2; i++) {
        struct shim_slot slot = { .slot = i + 1, .level = i + 1, .rank = i };

        assert_int_equal(job_slots_set(slots, &slot), 0);
        open_flow(w, i);
    }
    job_slots_lease(slots, w->now, 100000, 0);
    obey(w, flows, 2, 100 * MS);
    assert_true(rate_of(w, &flows[0]) > 80 * MBIT);
    assert_true(rate_of(w, &flows[1]) < 10 * MBIT);
    job_slots_lease(slots, w->now, 0, 0);
    obey(w, flows, 2, 100 * MS);
    assert_in_range(rate_of(w, &flows[0]), 38 * MBIT, 50 * MBIT);
    assert_in_range(rate_of(w, &flows[1]), 38 * MBIT, 50 * MBIT);
}

static void
a_grant_without_the_nonce_is_nothing(void **state)
{
    struct world *w = *state;
    struct side *receiver = &w->sides[RECEIVER];
    uint64_t taken;

    open_flow(w, 1);
    bulk(w, 1, 50, GAP, NULL);
    taken = stats_of(w, SENDER).cc_grants_taken;
    assert_true(taken > 0);
    for (int i = 0; i < 3; i++) {
        struct packet_spec data = spec_of(w, SENDER, 1, SEGMENT_ACK);
        struct cc_packet p;

        data.payload = DATA;
        carry(w, SENDER, &data, &p);
        turn(w, MS / 2);
        turn(w, 5 * MS);
    }
    assert_true(receiver->n_messages > 0);
    for (int i = 0; i < receiver->n_messages; i++) {
        struct cc_packet p;

        memcpy(p.buffer, receiver->messages[i], receiver->sizes[i]);
        p.buffer[14 + 20 + 8 + 8] ^= 1;
        p.frame = (struct cc_frame) { .data = p.buffer,
                                      .length = receiver->sizes[i] };
        assert_false(cc_from_uplink(w->sides[SENDER].cc, &p.frame, 0,
                                    w->now));
    }
    assert_int_equal(stats_of(w, SENDER).cc_grants_taken, taken);
}

/* The receiver's shim is gone: after a while its grants are, too. */
static void
grants_end_when_nobody_renews_them(void **state)
{
    struct world *w = *state;
    struct side *sender = &w->sides[SENDER];
    uint16_t queue = 0;

    open_flow(w, 1);
    bulk(w, 1, 100, GAP, &queue);
    assert_true(sender->rate[queue] > 0);
    for (int i = 0; i < 200; i++) {
        struct packet_spec data = spec_of(w, SENDER, 1, SEGMENT_ACK);
        struct cc_packet p;

        data.payload = DATA;
        packet_make(&p, &data);
        leave(w, SENDER, &p, 0);
        turn(w, MS);
        w->sides[RECEIVER].n_messages = 0;
    }
    assert_int_equal(sender->rate[queue], 0);

    /* It falls silent and lets go of its queue. */
    for (int i = 0; i < 30; i++) {
        turn(w, 100 * MS);
    }
    assert_false(sender->queue_used[queue]);
}

/* The packets of a sender that hears nothing come one by one, and later and
 * later. */
static void
a_sender_that_hears_nothing_is_not_paced_for_long(void **state)
{
    struct world *w = *state;
    uint16_t queue = 0;

    open_flow(w, 1);
    bulk(w, 1, 100, GAP, &queue);
    for (int i = 0; i < 4; i++) {
        struct packet_spec data = spec_of(w, SENDER, 1, SEGMENT_ACK);
        struct cc_packet p;

        turn(w, 60 * MS);
        data.payload = DATA;
        packet_make(&p, &data);
        leave(w, SENDER, &p, 0);
    }
    assert_int_equal(w->sides[SENDER].rate[queue], 0);
}

static void
after_a_pause_a_flow_begins_at_half(void **state)
{
    struct world *w = *state;
    struct side *sender = &w->sides[SENDER];
    struct packet_spec data;
    uint16_t queue = 0;
    struct cc_packet p;
    uint64_t rate;

    open_flow(w, 1);
    bulk(w, 1, 100, GAP, &queue);
    rate = sender->rate[queue];
    turn(w, 300 * MS);
    data = spec_of(w, SENDER, 1, SEGMENT_ACK);
    data.payload = DATA;
    packet_make(&p, &data);
    assert_int_equal(leave(w, SENDER, &p, 0).queue, queue);
    assert_in_range(sender->rate[queue], rate / 2 - 1, rate / 2);
}

static void
an_ended_flow_leaves_nothing(void **state)
{
    struct world *w = *state;
    struct packet_spec fin;
    struct cc_packet p;

    open_flow(w, 1);
    bulk(w, 1, 100, GAP, NULL);
    fin = spec_of(w, SENDER, 1, SEGMENT_FIN | SEGMENT_ACK);
    carry(w, SENDER, &fin, &p);
    for (int i = 0; i < 3000; i++) {
        turn(w, MS);
        w->sides[RECEIVER].n_messages = 0;
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(stats_of(w, i).cc_flows, 0);
    }
    for (int i = 0; i < MAX_QUEUES; i++) {
        assert_false(w->sides[SENDER].queue_used[i]);
    }
}

/* Marks of the core lower a flow's rate, and no host sees one. */
static void
marks_of_the_core_lower_the_rate(void **state)
{
    struct world *w = *state;
    struct side *sender = &w->sides[SENDER];
    uint16_t queue = 0;

    open_flow(w, 1);
    bulk(w, 1, 100, GAP, &queue);
    for (int i = 0; i < 400; i++) {
        struct packet_spec data = spec_of(w, SENDER, 1, SEGMENT_ACK);
        struct segment seg;
        struct cc_packet p;

        data.payload = DATA;
        packet_make(&p, &data);
        leave(w, SENDER, &p, 0);
        assert_true(segment_parse(p.frame.data, p.frame.length, true, &seg));
        assert_int_equal(seg.ecn, SEGMENT_ECT_0);
        segment_set_ecn(p.frame.data, &seg, SEGMENT_CE);
        arrive(w, SENDER, &p, 0);
        assert_true(segment_parse(p.frame.data, p.frame.length, false, &seg));
        assert_int_equal(seg.ecn, SEGMENT_NOT_ECT);
        turn(w, GAP);
        deliver(w);
    }
    assert_true(sender->rate[queue] < 20 * MBIT);
    assert_int_equal(stats_of(w, RECEIVER).cc_marks, 400);

    /* They stop, and it comes back. */
    bulk(w, 1, 4000, GAP, &queue);
    assert_true(sender->rate[queue] > 60 * MBIT);
}

static void
hosts_that_use_ecn_keep_it(void **state)
{
    struct world *w = *state;
    struct packet_spec syn = spec_of(w, SENDER, 1, SEGMENT_SYN | SEGMENT_ECE
                                     | SEGMENT_CWR);
    struct cc_packet p;

    carry(w, SENDER, &syn, &p);
    syn = spec_of(w, RECEIVER, 1, SEGMENT_SYN | SEGMENT_ACK | SEGMENT_ECE);
    carry(w, RECEIVER, &syn, &p);
    bulk(w, 1, 100, GAP, NULL);
    for (uint8_t ecn = 0; ecn < 4; ecn++) {
        struct packet_spec data = spec_of(w, SENDER, 1, SEGMENT_ACK);
        struct segment seg;

        data.payload = DATA;
        data.ecn = ecn;
        carry(w, SENDER, &data, &p);
        assert_true(segment_parse(p.frame.data, p.frame.length, false, &seg));
        assert_int_equal(seg.ecn, ecn);
    }
    assert_int_equal(stats_of(w, RECEIVER).cc_marks, 0);
}

static void
control_ports_go_first_and_free(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 2000; i++) {
        struct packet_spec data = spec_of(w, SENDER, 2000, SEGMENT_ACK);
        struct cc_packet p, sent;
        struct verdict v;

        data.to_port = 7000;
        data.payload = DATA;
        packet_make(&sent, &data);
        v = carry(w, SENDER, &data, &p);
        assert_int_equal(v.treatment.level, SHIM_LEVEL_CONTROL);
        assert_int_equal(v.treatment.dscp, CC_CONTROL_DSCP);
        assert_int_equal(v.queue, 0);
        assert_memory_equal(p.frame.data, sent.frame.data, sent.frame.length);
        turn(w, MS / 100);
    }
    assert_int_equal(stats_of(w, SENDER).cc_flows, 0);
}

/* A flow that sends less than it has lets the other have the rest, and has its
 * part again a moment after it wants it. */
static void
what_one_does_not_use_the_other_has(void **state)
{
    struct obedient flows[] = {
        { .port = 0, .wants = GAP },
        { .port = 1, .wants = 4 * GAP },
    };
    struct world *w = *state;

    open_flow(w, 0);
    open_flow(w, 1);
    obey(w, flows, 2, 100 * MS);
    assert_true(rate_of(w, &flows[0]) > 55 * MBIT);
    flows[1].wants = GAP;
    obey(w, flows, 2, 50 * MS);
    assert_in_range(rate_of(w, &flows[0]), 38 * MBIT, 50 * MBIT);
    assert_in_range(rate_of(w, &flows[1]), 38 * MBIT, 50 * MBIT);
}

/* Frames that take longer at a flow's rate than any fixed time: silence
 * between them is no sign of an end, and all go on at their part. */
static void
slow_flows_keep_their_parts(void **state)
{
    enum { N = 40 };
    struct obedient flows[N];
    struct world *w = *state;
    uint64_t before[N];

    for (uint16_t i = 0; i < N; i++) {
        flows[i] = (struct obedient) { .port = i, .wants = GAP };
        open_flow(w, i);
    }
    obey(w, flows, N, 200 * MS);
    for (int i = 0; i < N; i++) {
        before[i] = rate_of(w, &flows[i]);
    }
    obey(w, flows, N, 200 * MS);
    for (int i = 0; i < N; i++) {
        assert_in_range(before[i], MBIT, 5 * MBIT);
        assert_in_range(rate_of(w, &flows[i]), MBIT, 5 * MBIT);
    }
}

/* When a burst ends the others have its part at once, and its shim goes on
 * from what it was told before when the next one begins. */
static void
the_end_of_a_burst_is_seen_at_once(void **state)
{
    struct obedient flows[] = {
        { .port = 0, .wants = GAP }, { .port = 1, .wants = GAP },
    };
    struct world *w = *state;
    struct packet_spec data;
    struct cc_packet p;
    uint64_t told;

    open_flow(w, 0);
    open_flow(w, 1);
    obey(w, flows, 2, 100 * MS);
    told = rate_of(w, &flows[1]);
    assert_in_range(told, 38 * MBIT, 50 * MBIT);

    /* The end of what its program wrote. */
    data = spec_of(w, SENDER, 1, SEGMENT_ACK | SEGMENT_PSH);
    data.payload = DATA / 2;
    carry(w, SENDER, &data, &p);
    obey(w, flows, 1, 2 * MS);
    assert_true(rate_of(w, &flows[0]) > 90 * MBIT);
    assert_in_range(rate_of(w, &flows[1]), told * 9 / 10, told * 11 / 10);
    obey(w, flows, 1, 100 * MS);
    assert_in_range(rate_of(w, &flows[1]), told * 9 / 10, told * 11 / 10);
}

int
main(void)
{
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(two_shims_agree_on_rates),
        TEST(flows_share_the_link_equally),
        TEST(a_receiver_alone_bounds_windows),
        TEST(a_sender_alone_is_plain_tcp),
        TEST(a_small_flow_is_left_alone),
        TEST(an_old_connection_is_only_paced),
        TEST(a_window_has_room_for_three_segments),
        TEST(acknowledgements_wait_where_windows_are_too_much),
        TEST(rank_decides_while_the_lease_holds),
        TEST(a_grant_without_the_nonce_is_nothing),
        TEST(grants_end_when_nobody_renews_them),
        TEST(a_sender_that_hears_nothing_is_not_paced_for_long),
        TEST(after_a_pause_a_flow_begins_at_half),
        TEST(an_ended_flow_leaves_nothing),
        TEST(marks_of_the_core_lower_the_rate),
        TEST(hosts_that_use_ecn_keep_it),
        TEST(control_ports_go_first_and_free),
        TEST(what_one_does_not_use_the_other_has),
        TEST(slow_flows_keep_their_parts),
        TEST(the_end_of_a_burst_is_seen_at_once),
    };

    return cmocka_run_group_tests_name("shim-cc", tests, NULL, NULL);
}
