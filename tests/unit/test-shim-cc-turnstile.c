/* SPDX-License-Identifier: Apache-2.0 */

/* Senders whose part is less than the smallest window.  They have no shim,
 * send as soon as the link lets them what they may, and hear what the
 * receiver's shim says. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/cc-world.h"

#define STEP (MS / 50)
#define FRAME (DATA + 66)

/* A sender that sends what its window allows, and its receiver, which
 * acknowledges every second segment at once. */
struct windowed {
    uint16_t port, slot;
    bool idle;                  /* Has nothing to send. */
    uint32_t seq, edge;         /* Next byte, and how far it may go. */
    uint32_t acked;
    uint32_t told;              /* How often its window was raised by a
                                 * segment of the shim's own... */
    uint32_t least;             /* ...and by how much at least. */
};

static void
begin(struct world *w, struct windowed *flows, int n)
{
    cc_destroy(w->sides[SENDER].cc);
    w->sides[SENDER].cc = NULL;
    for (int i = 0; i < n; i++) {
        flows[i] = (struct windowed) {
            .port = i, .slot = i + 1, .edge = 20 * DATA, .least = UINT32_MAX,
        };
        world_open(w, i);
    }
}

static uint32_t
hear(struct windowed *f, const struct segment *seg)
{
    uint32_t edge = seg->ack + ((uint32_t) seg->window << 7), raised;

    assert_true(edge >= f->edge || seg->ack < f->acked);
    raised = edge > f->edge ? edge - f->edge : 0;
    f->edge += raised;
    return raised;
}

static void
acknowledge(struct world *w, struct windowed *f)
{
    struct packet_spec ack = world_spec(w, RECEIVER, f->port, SEGMENT_ACK);
    struct segment seg;
    struct cc_packet p;

    f->acked = f->seq;
    ack.ack = f->acked;
    ack.window = 300;
    packet_make(&p, &ack);
    world_leave(w, RECEIVER, &p, f->slot);
    assert_true(segment_parse(p.frame.data, p.frame.length, false, &seg));
    assert_true(seg.window > 0);
    hear(f, &seg);
}

static bool
may_send(const struct windowed *f)
{
    return !f->idle && f->edge - f->seq >= DATA;
}

static void
send_one(struct world *w, struct windowed *f)
{
    struct packet_spec data = world_spec(w, SENDER, f->port, SEGMENT_ACK);
    struct cc_packet p;

    data.seq = f->seq;
    data.payload = DATA;
    packet_make(&p, &data);
    world_arrive(w, SENDER, &p, f->slot);
    f->seq += DATA;
    if (f->seq - f->acked >= 2 * DATA) {
        acknowledge(w, f);
    }
}

/* Lets the senders send in turn what the link carries in a step.  Returns how
 * many bytes wait for it then. */
static uint64_t
send_step(struct world *w, struct windowed *flows, int n)
{
    static double link;         /* Bytes that it can carry. */
    static int next;
    uint64_t waiting = 0;
    int idle = 0;

    link += (double) LINK / 8 * STEP / 1000 / MS;
    while (link >= FRAME && idle < n) {
        struct windowed *f = &flows[next++ % n];

        idle = may_send(f) ? 0 : idle + 1;
        if (!idle) {
            send_one(w, f);
            link -= FRAME;
        }
    }
    link = link < FRAME ? link : FRAME;
    for (int i = 0; i < n; i++) {
        waiting += may_send(&flows[i]) ? flows[i].edge - flows[i].seq : 0;
    }
    return waiting;
}

/* The senders hear what the shim told them, but for 'deaf', if it is not NULL.
 * Returns how often that one did not. */
static int
deliver(struct world *w, struct windowed *flows, const struct windowed *deaf)
{
    struct side *side = &w->sides[RECEIVER];
    int lost = 0;

    for (int i = 0; i < side->n_messages; i++) {
        struct windowed *f;
        struct segment seg;
        uint32_t raised;

        assert_true(segment_parse(side->messages[i], side->sizes[i], true,
                                  &seg));
        f = &flows[(seg.key.local_port >> 8 | (seg.key.local_port & 0xff) << 8)
                   - 6000];
        if (f == deaf) {
            lost++;
            continue;
        }
        assert_int_equal(seg.flags, SEGMENT_ACK);
        assert_int_equal(seg.payload, 0);
        assert_true(seg.ack == f->acked);
        raised = hear(f, &seg);
        if (raised) {
            f->told++;
            f->least = raised < f->least ? raised : f->least;
        }
    }
    side->n_messages = 0;
    return lost;
}

/* Lets all of them go on for 'ns'.  Returns the most that waited for the
 * link. */
static uint64_t
go_on(struct world *w, struct windowed *flows, int n, uint64_t ns)
{
    uint64_t end = w->now + ns, most = 0;

    while (w->now < end) {
        uint64_t waiting = send_step(w, flows, n);

        most = waiting > most ? waiting : most;
        world_turn(w, STEP);
        deliver(w, flows, NULL);
    }
    return most;
}

/* Only windows: the other end has no shim, and never sees a message. */
static void
a_receiver_alone_bounds_windows(void **state)
{
    struct windowed flow;
    struct world *w = *state;
    uint64_t waiting;
    uint32_t before;

    begin(w, &flow, 1);
    go_on(w, &flow, 1, 100 * MS);
    before = flow.seq;
    waiting = go_on(w, &flow, 1, 100 * MS);
    assert_in_range((flow.seq - before) * UINT64_C(80) * FRAME / DATA,
                    90 * MBIT, 98 * MBIT);
    assert_in_range(waiting, 1, 98 * MBIT / 8 / 1000 * 11 / 10);
    assert_int_equal(world_stats(w, RECEIVER).cc_grants_sent, 0);
}

static void
some_share_the_link_and_take_turns(void **state)
{
    enum { N = 6 };
    struct windowed flows[N];
    struct world *w = *state;
    uint32_t before[N];
    uint64_t sum = 0, waiting;

    begin(w, flows, N);
    go_on(w, flows, N, 200 * MS);
    for (int i = 0; i < N; i++) {
        before[i] = flows[i].seq;
        flows[i].told = 0;
    }
    waiting = go_on(w, flows, N, 1000 * MS);
    for (int i = 0; i < N; i++) {
        sum += flows[i].seq - before[i];
    }
    assert_in_range(sum * 8 * FRAME / DATA, 90 * MBIT, 98 * MBIT);
    for (int i = 0; i < N; i++) {
        assert_in_range(flows[i].seq - before[i], sum / N * 8 / 10,
                        sum / N * 12 / 10);
        assert_true(flows[i].told > 0);
        assert_true(flows[i].least >= 3 * DATA);
    }

    /* With windows of three segments it would be 3 * N. */
    assert_in_range(waiting, 1, 2 * N * DATA);
}

static void
give_ranks(struct world *w)
{
    struct job_slots *slots = w->sides[RECEIVER].slots;

    for (uint16_t i = 0; i < 2; i++) {
        struct shim_slot slot = { .slot = i + 1, .level = i + 1, .rank = i };

        assert_int_equal(job_slots_set(slots, &slot), 0);
    }
    job_slots_lease(slots, w->now, 100000, 0);
}

/* What it sent is acknowledged, so that no time-out of it runs. */
static void
who_waits_for_others_has_nothing_under_way(void **state)
{
    struct windowed flows[2];
    struct world *w = *state;
    int under_way = 0;

    begin(w, flows, 2);
    give_ranks(w);
    go_on(w, flows, 2, 100 * MS);
    for (int i = 0; i < 500; i++) {
        go_on(w, flows, 2, MS);
        under_way += flows[1].seq - flows[1].acked > DATA;
    }
    assert_int_equal(under_way, 0);
    assert_true(flows[1].told > 0);
}

/* The shim tells it, since it has nothing that would be acknowledged. */
static void
who_waits_is_let_go_when_its_turn_comes(void **state)
{
    struct windowed flows[2];
    struct world *w = *state;
    struct packet_spec data;
    uint32_t seq, told;
    struct cc_packet p;

    begin(w, flows, 2);
    give_ranks(w);
    go_on(w, flows, 2, 100 * MS);
    while (flows[1].edge - flows[1].seq >= DATA) {
        go_on(w, flows, 2, STEP);
    }
    seq = flows[1].seq;
    told = flows[1].told;

    data = world_spec(w, SENDER, 0, SEGMENT_ACK | SEGMENT_PSH);
    data.seq = flows[0].seq;
    data.payload = DATA / 2;
    flows[0].idle = true;
    packet_make(&p, &data);
    world_arrive(w, SENDER, &p, 1);
    go_on(w, flows, 2, MS);
    assert_true(flows[1].told > told);
    assert_true(flows[1].seq > seq + 2 * DATA);
}

static void
what_is_lost_is_said_again(void **state)
{
    struct windowed flows[2];
    struct world *w = *state;
    uint64_t since;
    int lost = 0;

    begin(w, flows, 2);
    give_ranks(w);
    go_on(w, flows, 2, 100 * MS);
    while (flows[1].edge - flows[1].seq >= DATA) {
        go_on(w, flows, 2, STEP);
    }
    while (!lost) {
        send_step(w, flows, 1);
        world_turn(w, STEP);
        lost = deliver(w, flows, &flows[1]);
    }
    assert_true(flows[1].edge - flows[1].seq < DATA);
    flows[1].told = 0;
    for (since = w->now; !flows[1].told; deliver(w, flows, NULL)) {
        assert_true(w->now - since < 12 * MS);
        send_step(w, flows, 1);
        world_turn(w, STEP);
    }
    assert_true(flows[1].edge - flows[1].seq >= 3 * DATA);
}

static void
who_leaves_may_begin_again(void **state)
{
    enum { N = 6 };
    struct windowed flows[N];
    struct world *w = *state;

    begin(w, flows, N);
    go_on(w, flows, N, 200 * MS);
    for (int i = 0; i < N; i++) {
        flows[i].idle = true;
    }
    go_on(w, flows, N, 500 * MS);
    for (int i = 0; i < N; i++) {
        assert_true(flows[i].edge - flows[i].seq >= 3 * DATA);
    }
}

int
main(void)
{
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, world_set_up, \
                                                   world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_receiver_alone_bounds_windows),
        TEST(some_share_the_link_and_take_turns),
        TEST(who_waits_for_others_has_nothing_under_way),
        TEST(who_waits_is_let_go_when_its_turn_comes),
        TEST(what_is_lost_is_said_again),
        TEST(who_leaves_may_begin_again),
    };

    return cmocka_run_group_tests_name("shim-cc-turnstile", tests, NULL,
                                       NULL);
}
