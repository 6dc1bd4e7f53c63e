/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/unit/shim/cc-world.h"

#include <stdlib.h>
#include <string.h>

#include "shim/cc/takeover-state.h"
#include "shim/queue/job-queue.h"
#include "shim/queue/rank-queue.h"
#include "tests/unit/unit-test.h"

/* In place of the uplink's queues. */
struct job_queues *
rank_queues_jobs(struct rank_queues *side)
{
    return (struct job_queues *) side;
}

uint16_t
job_queues_flow_new(struct job_queues *side_, uint16_t slot)
{
    struct side *side = (struct side *) side_;

    for (int i = 1; i < MAX_QUEUES; i++) {
        if (!side->queue_used[i]) {
            side->queue_used[i] = true;
            side->rate[i] = side->start[i] = 0;
            side->backlog[i] = false;
            side->late[i] = 0;
            return i;
        }
    }
    return 0;
}

void
job_queues_flow_free(struct job_queues *side_, uint16_t queue)
{
    struct side *side = (struct side *) side_;

    assert_true(side->queue_used[queue]);
    side->queue_used[queue] = false;
}

void
rank_queues_flow_rate(struct rank_queues *side_, uint64_t now, uint16_t queue,
                      uint64_t bps)
{
    struct side *side = (struct side *) side_;

    (void) now;
    assert_true(side->queue_used[queue]);
    side->rate[queue] = bps;
    side->start[queue] = 0;
}

void
job_queues_flow_start(struct job_queues *side_, uint64_t now, uint16_t queue,
                      uint32_t bytes)
{
    struct side *side = (struct side *) side_;

    (void) now;
    assert_true(side->queue_used[queue]);
    side->start[queue] = bytes;
    side->sent[queue] = 0;
    side->n_starts++;
}

bool
job_queues_flow_started(const struct job_queues *side_, uint64_t now,
                        uint16_t queue)
{
    const struct side *side = (const struct side *) side_;

    (void) now;
    assert_true(side->queue_used[queue]);
    return side->start[queue] && side->sent[queue] > side->start[queue];
}

bool
job_queues_flow_empty(const struct job_queues *side_, uint16_t queue)
{
    const struct side *side = (const struct side *) side_;

    assert_true(side->queue_used[queue]);
    return !side->backlog[queue];
}

uint64_t
job_queues_flow_late(const struct job_queues *side_, uint64_t now,
                     uint16_t queue)
{
    const struct side *side = (const struct side *) side_;

    (void) now;
    assert_true(side->queue_used[queue]);
    return side->late[queue];
}

/* Returns true if a packet in 'queue' may leave at once. */
bool
side_may_send(const struct side *side, uint16_t queue)
{
    return (side->start[queue] ? side->sent[queue] <= side->start[queue]
            : !side->rate[queue]);
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
start_cc(struct side *side, uint64_t seed)
{
    struct cc_config config = {
        .slots = side->slots,
        .downlink_bps = LINK,
        .strict_switch = side->strict_switch,
        .uplink_bps = LINK,
        .secret = { seed },
        .mtu = 1500,
        .max_flows = 64,
        .control_ports = { 7000 },
        .queues = (struct rank_queues *) side,
        .aux = side,
        .send = send_message,
    };

    side->cc = cc_create(&config);
    assert_non_null(side->cc);
}

static void
side_create(struct side *side, uint64_t seed)
{
    side->slots = job_slots_create();
    start_cc(side, seed);
}

/* Replaces the shim of host 'host' by one that knows nothing. */
void
world_restart(struct world *w, int host, uint64_t seed)
{
    struct side *side = &w->sides[host];

    cc_destroy(side->cc);
    memset(side->queue_used, 0, sizeof side->queue_used);
    side->n_messages = 0;
    start_cc(side, seed);
}

/* Replaces the shim of host 'host', and passes on its state. */
void
world_take_over(struct world *w, int host, uint64_t seed)
{
    struct side *side = &w->sides[host];
    void *body = malloc(CC_TAKEOVER_BYTES);
    size_t size = cc_save(side->cc, body);

    assert_true(size <= CC_TAKEOVER_BYTES);
    assert_int_equal(takeover_state_check(body, size), 0);
    world_restart(w, host, seed);
    cc_restore(side->cc, body, w->now);
    free(body);
}

int
world_set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    w->now = 1000 * MS;
    side_create(&w->sides[SENDER], 1);
    side_create(&w->sides[RECEIVER], 2);
    *state = w;
    return 0;
}

int
world_set_up_strict(void **state)
{
    struct side *side;

    world_set_up(state);
    side = &((struct world *) *state)->sides[RECEIVER];
    cc_destroy(side->cc);
    side->strict_switch = true;
    start_cc(side, 2);
    return 0;
}

int
world_tear_down(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 2; i++) {
        cc_destroy(w->sides[i].cc);
        job_slots_destroy(w->sides[i].slots);
    }
    free(w);
    return 0;
}

/* Returns a packet of flow 'port' from 'from'.  The sender is host 2, port
 * 5000 + 'port', the receiver host 1, port 6000 + 'port'. */
struct packet_spec
world_spec(struct world *w, int from, uint16_t port, uint8_t flags)
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

/* Passes a packet of a host through its shim, if it has one. */
struct verdict
world_leave(struct world *w, int from, struct cc_packet *p, uint16_t slot)
{
    struct verdict v = { .slot = slot, .is_ip = true, .family = 4,
                         .treatment = { .level = 3, .dscp = 10 } };

    if (w->sides[from].cc) {
        cc_from_host(w->sides[from].cc, &p->frame, &v, w->now);
        w->sides[from].sent[v.queue] += p->frame.length;
    }
    assert_true(packet_is_right(p->frame.data, p->frame.length));
    return v;
}

bool
world_arrive(struct world *w, int from, struct cc_packet *p, uint16_t slot)
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

/* Carries a packet from host to host.  Returns the verdict of the sender's
 * shim, and stores the packet that arrived. */
struct verdict
world_carry(struct world *w, int from, const struct packet_spec *spec,
            struct cc_packet *p)
{
    struct verdict v;

    packet_make(p, spec);
    v = world_leave(w, from, p, 0);
    assert_true(world_arrive(w, from, p, 0));
    return v;
}

/* Carries the shims' messages. */
void
world_deliver(struct world *w)
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
            assert_false(world_arrive(w, from, &p, 0));
        }
        side->n_messages = 0;
    }
}

void
world_poll(struct world *w, uint64_t ns)
{
    w->now += ns;
    for (int i = 0; i < 2; i++) {
        if (w->sides[i].cc) {
            cc_poll(w->sides[i].cc, w->now);
        }
    }
}

/* Opens flow 'port' with a round trip of 'rtt'.  Checks that the hosts receive
 * each other's options. */
void
world_open_far(struct world *w, uint16_t port, uint64_t rtt)
{
    struct packet_spec syn = world_spec(w, SENDER, port, SEGMENT_SYN);
    struct packet_spec answer = world_spec(w, RECEIVER, port,
                                        SEGMENT_SYN | SEGMENT_ACK);
    struct packet_spec ack = world_spec(w, SENDER, port, SEGMENT_ACK);
    struct cc_packet p, sent;

    packet_make(&sent, &syn);
    world_carry(w, SENDER, &syn, &p);
    assert_int_equal(p.frame.length, sent.frame.length);
    assert_memory_equal(p.frame.data, sent.frame.data, p.frame.length);
    world_poll(w, rtt / 2);
    packet_make(&sent, &answer);
    world_carry(w, RECEIVER, &answer, &p);
    assert_memory_equal(p.frame.data, sent.frame.data, p.frame.length);
    world_poll(w, rtt / 2);
    world_carry(w, SENDER, &ack, &p);
    world_deliver(w); /* The shims verify each other. */
}

void
world_open(struct world *w, uint16_t port)
{
    world_open_far(w, port, MS);
}

void
world_remove_shim(struct world *w, int host)
{
    cc_destroy(w->sides[host].cc);
    w->sides[host].cc = NULL;
}

/* Data of flow 'port' leave the sender's shim, and arrive if 'arrives'.
 * Returns their queue. */
uint16_t
world_data(struct world *w, uint16_t port, bool arrives)
{
    struct packet_spec data = world_spec(w, SENDER, port, SEGMENT_ACK);
    struct verdict v;
    struct cc_packet p;

    data.payload = DATA;
    packet_make(&p, &data);
    v = world_leave(w, SENDER, &p, 0);
    if (arrives) {
        assert_true(world_arrive(w, SENDER, &p, 0));
    }
    return v.queue;
}

/* Data of flow 'port' leave with 'ecn'.  Returns the one with which they
 * arrive. */
uint8_t
world_ecn(struct world *w, uint16_t port, uint8_t ecn)
{
    struct packet_spec data = world_spec(w, SENDER, port, SEGMENT_ACK);
    struct segment seg;
    struct cc_packet p;

    data.payload = DATA;
    data.ecn = ecn;
    world_carry(w, SENDER, &data, &p);
    assert_true(segment_parse(p.frame.data, p.frame.length, false, &seg));
    return seg.ecn;
}

/* 'n' segments of data of flow 'port', one each 'ns', and their
 * acknowledgements.  Returns the last window that the sender saw, in bytes,
 * and, in '*queue', where the last data went. */
uint32_t
world_bulk(struct world *w, uint16_t port, int n, uint64_t ns, uint16_t *queue)
{
    uint32_t window = 0;

    for (int i = 0; i < n; i++) {
        uint16_t out = world_data(w, port, true);
        struct packet_spec ack = world_spec(w, RECEIVER, port, SEGMENT_ACK);
        struct segment seg;
        struct cc_packet p;

        if (queue) {
            *queue = out;
        }
        /* All earlier windows are used up. */
        ack.ack = w->stamp * 100000;
        world_carry(w, RECEIVER, &ack, &p);
        assert_true(segment_parse(p.frame.data, p.frame.length, false, &seg));
        window = (uint32_t) seg.window << 7;
        world_poll(w, ns);
        world_deliver(w);
    }
    return window;
}

struct shim_stats
world_stats(const struct world *w, int side)
{
    struct shim_stats stats = { .boot_id = 0 };

    cc_stats(w->sides[side].cc, &stats);
    return stats;
}

uint64_t
obedient_rate(const struct world *w, const struct obedient *o)
{
    return w->sides[SENDER].rate[o->queue];
}

/* Returns the time of its next packet at its current rate. */
static uint64_t
next_of(const struct world *w, const struct obedient *o)
{
    uint64_t rate = o->queue ? obedient_rate(w, o) : 0, gap = o->wants;

    if (rate) {
        uint64_t paced = UINT64_C(1526) * 8 * 1000 * MS / rate;

        gap = paced > gap ? paced : gap;
    }
    return o->last + gap;
}

/* Lets only the 'n' senders at 'o' send for 'ns'. */
void
world_obey(struct world *w, struct obedient *o, int n, uint64_t ns)
{
    bool *backlog = w->sides[SENDER].backlog;

    memset(backlog, 0, sizeof w->sides[SENDER].backlog);
    for (int i = 0; i < n; i++) {
        backlog[o[i].queue] = true;
    }
    for (uint64_t end = w->now + ns; w->now < end; world_poll(w, MS / 50)) {
        for (int i = 0; i < n; i++) {
            struct packet_spec data = world_spec(w, SENDER, o[i].port,
                                              SEGMENT_ACK);
            struct packet_spec ack = world_spec(w, RECEIVER, o[i].port,
                                             SEGMENT_ACK);
            struct cc_packet p;
            uint64_t next = next_of(w, &o[i]);

            if (next > w->now) {
                continue;
            }
            data.payload = DATA;
            packet_make(&p, &data);
            o[i].queue = world_leave(w, SENDER, &p, 0).queue;
            backlog[o[i].queue] = true;
            assert_true(world_arrive(w, SENDER, &p, o[i].slot));
            packet_make(&p, &ack);
            world_leave(w, RECEIVER, &p, o[i].slot);
            world_arrive(w, RECEIVER, &p, 0);
            /* A late poll is compensated, a longer pause is not. */
            o[i].last = w->now - next < MS / 50 ? next : w->now;
        }
        world_deliver(w);
    }
}
