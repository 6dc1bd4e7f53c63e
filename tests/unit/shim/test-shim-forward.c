/* SPDX-License-Identifier: Apache-2.0 */

/* The pipeline between ring ports, with a control thread beside it: nothing is
 * lost, twice, or out of its flow's order, and everything is counted once. */

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "shim/cc/cc.h"
#include "shim/classify/flow-cache.h"
#include "shim/classify/job-slot.h"
#include "shim/loop/egress.h"
#include "shim/loop/forward.h"
#include "shim/loop/loop.h"
#include "shim/ports/eal.h"
#include "shim/ports/port.h"
#include "tests/unit/unit-test.h"

#define RING 4096
#define N_FLOWS 64 /* The first half of them have a job. */
#define N_JOBS 8
#define N_FRAMES 20000 /* In each direction. */
#define IN_FLIGHT 256
#define FRAME_SIZE 64
#define MAX_POLLS 100000000
#define RATE UINT64_C(400000000000)

enum { HOST, UPLINK };

struct end {
    struct rte_ring *in, *out;
    struct port *port;
};

struct bed {
    struct end ends[2];
    struct flow_cache *flows;
    struct job_slots *slots;
    struct forward *forward;
    uint64_t now;
    bool stop;
};

static struct rte_mempool *pool;
static int n_beds;

/* Takes a frame from 'ring'.  Returns NULL if it is empty. */
static struct rte_mbuf *
take_frame(struct rte_ring *ring)
{
    struct rte_mbuf *frame;

    return rte_ring_dequeue(ring, (void **) &frame) ? NULL : frame;
}

static void
new_end(struct end *end, char which)
{
    char name[32];

    snprintf(name, sizeof name, "in%d%c", n_beds, which);
    end->in = rte_ring_create(name, RING, SOCKET_ID_ANY,
                              RING_F_SP_ENQ | RING_F_SC_DEQ);
    snprintf(name, sizeof name, "out%d%c", n_beds, which);
    end->out = rte_ring_create(name, RING, SOCKET_ID_ANY,
                               RING_F_SP_ENQ | RING_F_SC_DEQ);
    assert_non_null(end->in);
    assert_non_null(end->out);
    snprintf(name, sizeof name, "port%d%c", n_beds, which);
    assert_null(port_create_rings(name, 1500, false, pool, end->in, end->out,
                                  &end->port));
}

static struct shim_flow_key
key_of(uint32_t flow)
{
    struct shim_flow_key key = { .family = 4, .protocol = 6 };

    memcpy(key.local, "\x0a\0\0\1", 4);
    memcpy(key.remote, "\x0a\0\1\1", 4);
    key.local_port = rte_cpu_to_be_16(30000 + flow);
    key.remote_port = rte_cpu_to_be_16(50051);
    return key;
}

static uint16_t
slot_of(uint32_t flow)
{
    return flow < N_FLOWS / 2 ? 1 + flow % N_JOBS : 0;
}

static void
write_slots(struct bed *b)
{
    for (uint16_t i = 1; i <= N_JOBS; i++) {
        struct shim_slot slot = { .slot = i, .level = 1 + i % 6, .rank = i };

        job_slots_set(b->slots, &slot);
    }
    job_slots_lease(b->slots, 0, 3600000, 0);
}

static void
fill_tables(struct bed *b)
{
    b->flows = flow_cache_create(7);
    b->slots = job_slots_create();
    write_slots(b);
    for (uint32_t i = 0; i < N_FLOWS / 2; i++) {
        struct shim_flow_key key = key_of(i);

        flow_cache_learn(b->flows, flow_cache_hash(b->flows, &key), slot_of(i),
                         i);
    }
}

static void
set_up(struct bed *b, struct cc_config *cc)
{
    struct forward_config config;

    memset(b, 0, sizeof *b);
    n_beds++;
    b->now = 1;
    new_end(&b->ends[HOST], 'h');
    new_end(&b->ends[UPLINK], 'u');
    fill_tables(b);
    config = (struct forward_config){
        .host = b->ends[HOST].port,
        .uplink = b->ends[UPLINK].port,
        .flows = b->flows,
        .slots = b->slots,
        .rate_bps = RATE,
        .mtu = 1500,
        .tag = true,
        .cc = cc,
    };
    if (cc) {
        cc->slots = b->slots;
    }
    b->forward = forward_create(&config);
}

static void
tear_down(struct bed *b)
{
    forward_destroy(b->forward);
    for (int i = 0; i < 2; i++) {
        struct end *end = &b->ends[i];

        port_destroy(end->port);
        assert_true(rte_ring_empty(end->in));
        assert_true(rte_ring_empty(end->out));
        rte_ring_free(end->in);
        rte_ring_free(end->out);
    }
    job_slots_destroy(b->slots);
    flow_cache_destroy(b->flows);
    assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

static struct rte_mbuf *
new_frame(int from, uint32_t flow, uint32_t number)
{
    static const uint8_t start[] =
        "\2\0\0\0\0\2\2\0\0\0\0\1\x08\0\x45\0\0\x32\0\1\x40\0\x40\6\0\0";
    struct rte_mbuf *frame = rte_pktmbuf_alloc(pool);
    struct shim_flow_key key = key_of(flow);
    uint8_t *data;

    assert_non_null(frame);
    data = (uint8_t *) rte_pktmbuf_append(frame, FRAME_SIZE);
    memset(data, 0, FRAME_SIZE);
    memcpy(data, start, 26);
    memcpy(data + (from == HOST ? 26 : 30), key.local, 4);
    memcpy(data + (from == HOST ? 30 : 26), key.remote, 4);
    memcpy(data + (from == HOST ? 34 : 36), &key.local_port, 2);
    memcpy(data + (from == HOST ? 36 : 34), &key.remote_port, 2);
    data[46] = 0x50;
    memcpy(data + 54, &flow, sizeof flow);
    memcpy(data + 58, &number, sizeof number);
    if (from == HOST && slot_of(flow)) {
        frame->vlan_tci = slot_of(flow);
        frame->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
    }
    return frame;
}

/* Puts packet 'number' of 'flow' where it arrives. */
static void
inject(struct bed *b, int from, uint32_t flow, uint32_t number)
{
    assert_int_equal(
        rte_ring_enqueue(b->ends[from].in, new_frame(from, flow, number)), 0);
}

/* From the host, without data. */
static void
inject_ack(struct bed *b, uint32_t flow)
{
    struct rte_mbuf *frame = new_frame(HOST, flow, 0);
    uint8_t *data = rte_pktmbuf_mtod(frame, uint8_t *);

    data[17] = 40;
    data[47] = 0x10;
    assert_int_equal(rte_ring_enqueue(b->ends[HOST].in, frame), 0);
}

/* Takes what has left to 'to', and checks that it is its flow's next packet,
 * 'next[flow]'.  Returns how many. */
static uint32_t
take(struct bed *b, int to, uint32_t *next)
{
    struct rte_mbuf *frame;
    uint32_t n = 0;

    while ((frame = take_frame(b->ends[to].out))) {
        const uint8_t *data = rte_pktmbuf_mtod(frame, uint8_t *);
        uint32_t flow, number;

        memcpy(&flow, data + 54, sizeof flow);
        memcpy(&number, data + 58, sizeof number);
        rte_pktmbuf_free(frame);
        assert_true(flow < N_FLOWS);
        assert_int_equal(number, next[flow]);
        next[flow]++;
        n++;
    }
    return n;
}

static bool
poll_once(struct bed *b)
{
    b->now += 100000;
    return forward_poll(b->forward, b->now);
}

/* Moves all that can be moved. */
static void
settle(struct bed *b)
{
    while (poll_once(b)) {
        continue;
    }
}

/* Writes and reads, as the control thread does, what the pipeline uses. */
static void *
run_control(void *bed_)
{
    struct bed *b = bed_;

    while (!__atomic_load_n(&b->stop, __ATOMIC_ACQUIRE)) {
        struct shim_stats stats = { .tx_packets = 0 };
        struct shim_slot_stats slot;

        write_slots(b);
        for (uint16_t i = 1; i <= N_JOBS; i++) {
            job_slots_stats(b->slots, i, 0, &slot);
        }
        forward_stats(b->forward, &stats);
        sched_yield();
    }
    return NULL;
}

/* Sends N_FRAMES each way, in flows that follow no pattern. */
static void
exchange(struct bed *b)
{
    uint32_t sent[2][N_FLOWS] = { { 0 } }, got[2][N_FLOWS] = { { 0 } };
    uint32_t n_sent = 0, n_got[2] = { 0 }, chance = 1;

    for (int poll = 0; n_got[HOST] + n_got[UPLINK] < 2 * N_FRAMES; poll++) {
        assert_true(poll < MAX_POLLS);
        while (n_sent < N_FRAMES && n_sent - n_got[HOST] < IN_FLIGHT
               && n_sent - n_got[UPLINK] < IN_FLIGHT) {
            uint32_t flow;

            chance = chance * 1664525 + 1013904223;
            flow = chance >> 16 & (N_FLOWS - 1);
            inject(b, HOST, flow, sent[HOST][flow]++);
            inject(b, UPLINK, flow, sent[UPLINK][flow]++);
            n_sent++;
        }
        if (!poll_once(b)) {
            sched_yield();
        }
        n_got[HOST] += take(b, HOST, got[HOST]);
        n_got[UPLINK] += take(b, UPLINK, got[UPLINK]);
    }
    assert_memory_equal(got[HOST], sent[UPLINK], sizeof got[HOST]);
    assert_memory_equal(got[UPLINK], sent[HOST], sizeof got[UPLINK]);
}

/* Of the packets with a job and all others each way. */
static void
check_counters(struct bed *b)
{
    struct shim_stats stats = { .tx_packets = 0 };
    uint64_t known_tx = 0, known_rx = 0;

    forward_stats(b->forward, &stats);
    for (uint16_t i = 1; i <= N_JOBS; i++) {
        struct shim_slot_stats slot;

        assert_true(job_slots_stats(b->slots, i, 0, &slot));
        assert_int_equal(slot.rx_bytes, slot.rx_packets * FRAME_SIZE);
        known_tx += slot.tx_packets;
        known_rx += slot.rx_packets;
    }
    assert_int_equal(stats.rx_packets, N_FRAMES);
    assert_int_equal(stats.rx_bytes, N_FRAMES * FRAME_SIZE);
    assert_int_equal(stats.tx_packets, N_FRAMES);
    assert_int_equal(stats.untagged, N_FRAMES - known_tx);
    assert_int_equal(known_rx, known_tx);
    assert_in_range(known_tx, N_FRAMES / 4, N_FRAMES * 3 / 4);
    assert_int_equal(stats.queue_dropped, 0);
}

static void
flows_stay_in_order_and_are_counted_once(void **state)
{
    pthread_t control;
    struct bed b;

    set_up(&b, NULL);
    assert_int_equal(pthread_create(&control, NULL, run_control, &b), 0);
    exchange(&b);
    __atomic_store_n(&b.stop, true, __ATOMIC_RELEASE);
    pthread_join(control, NULL);
    check_counters(&b);
    settle(&b);
    tear_down(&b);
}

/* Returns the DSCP of the one frame that has left to the uplink. */
static uint8_t
take_dscp(struct bed *b)
{
    struct rte_mbuf *frame = take_frame(b->ends[UPLINK].out);
    uint8_t dscp;

    assert_non_null(frame);
    dscp = rte_pktmbuf_mtod(frame, uint8_t *)[15] >> 2;
    rte_pktmbuf_free(frame);
    assert_null(take_frame(b->ends[UPLINK].out));
    return dscp;
}

/* Congestion control knows a flow by what comes from either side, and what is
 * of its ports has its DSCP, the others their job's. */
static void
congestion_control_sees_both_sides(void **state)
{
    const uint32_t control = N_FLOWS / 2 - 1;
    struct cc_config cc = {
        .downlink_bps = RATE,
        .mtu = 1500,
        .max_flows = 1024,
        .control_ports = { 30000 + N_FLOWS / 2 - 1 },
    };
    struct shim_stats stats = { .tx_packets = 0 };
    uint32_t next[N_FLOWS] = { 0 };
    struct bed b;

    set_up(&b, &cc);
    for (uint32_t i = 0; i < N_FLOWS / 2; i++) {
        uint8_t dscp;

        inject(&b, HOST, i, 0);
        settle(&b);
        dscp = take_dscp(&b);
        if (i == control) {
            assert_int_equal(dscp, SHIM_CONTROL_DSCP);
        } else {
            assert_int_equal(
                dscp, job_slots_treatment(b.slots, slot_of(i), true).dscp);
        }
    }
    forward_stats(b.forward, &stats);
    assert_int_equal(stats.cc_flows, N_FLOWS / 2 - 1);
    for (uint32_t i = N_FLOWS / 2; i < N_FLOWS; i++) {
        inject(&b, UPLINK, i, 0);
    }
    settle(&b);
    assert_int_equal(take(&b, HOST, next), N_FLOWS / 2);
    forward_stats(b.forward, &stats);
    assert_int_equal(stats.cc_flows, N_FLOWS - 1);
    assert_int_equal(stats.rx_packets, N_FLOWS / 2);
    tear_down(&b);
}

/* Polls until the port has sent a frame, and returns its flow. */
static uint32_t
next_flow(struct bed *b)
{
    struct rte_mbuf *frame = NULL;
    uint32_t flow;

    for (int poll = 0; !frame; poll++) {
        assert_true(poll < MAX_POLLS);
        frame = take_frame(b->ends[UPLINK].out);
        poll_once(b);
    }
    memcpy(&flow, rte_pktmbuf_mtod(frame, uint8_t *) + 54, sizeof flow);
    rte_pktmbuf_free(frame);
    return flow;
}

/* An acknowledgement of 'other' comes when packets of 'flow', of the same job,
 * wait.  Returns after how many of them it leaves. */
static uint32_t
place_of_acknowledgement(struct bed *b, uint32_t flow, uint32_t other,
                         uint32_t waiting)
{
    uint32_t place = 0;

    for (uint32_t i = 0; i < waiting; i++) {
        inject(b, HOST, flow, i);
    }
    settle(b);
    inject_ack(b, other);
    settle(b);
    for (uint32_t i = 0; i <= waiting; i++) {
        if (next_flow(b) == other) {
            place = i;
        }
    }
    return place;
}

static void
acknowledgements_overtake_data(void **state)
{
    struct bed b;

    set_up(&b, NULL);
    egress_set_rate(forward_egress(b.forward), 1000000);
    for (uint32_t i = 0; i < N_JOBS; i++) {
        /* The first one makes the queue, which begins behind them. */
        place_of_acknowledgement(&b, i, i + N_JOBS, 200);
        assert_in_range(place_of_acknowledgement(&b, i, i + N_JOBS, 200), 1,
                        100);
    }
    settle(&b);
    tear_down(&b);
}

static void
nothing_is_received_after_the_end(void **state)
{
    uint32_t next[N_FLOWS] = { 0 };
    struct bed b;

    set_up(&b, NULL);
    for (uint32_t i = 0; i < N_FLOWS; i++) {
        inject(&b, UPLINK, i, 0);
    }
    forward_end(b.forward, true);
    assert_false(forward_has_ended(b.forward));
    settle(&b);
    assert_true(forward_has_ended(b.forward));
    assert_int_equal(take(&b, HOST, next), N_FLOWS);

    /* Nothing more is received until it goes on. */
    inject(&b, UPLINK, 0, 1);
    settle(&b);
    assert_int_equal(take(&b, HOST, next), 0);
    forward_end(b.forward, false);
    settle(&b);
    assert_false(forward_has_ended(b.forward));
    settle(&b);
    assert_int_equal(take(&b, HOST, next), 1);
    tear_down(&b);
}

static void *
run_loop(void *loop)
{
    loop_run(loop);
    return NULL;
}

static void
a_loop_pauses_and_leaves(void **state)
{
    struct loop *loop;
    pthread_t thread;
    struct bed b;
    uint64_t polls;

    set_up(&b, NULL);
    loop = loop_create(b.forward, b.ends[HOST].port, b.ends[UPLINK].port,
                       LOOP_AUTO);
    pthread_create(&thread, NULL, run_loop, loop);
    while (!loop_polls(loop)) {
        sched_yield();
    }
    assert_true(loop_pause(loop));
    polls = loop_polls(loop);
    sched_yield();
    assert_int_equal(loop_polls(loop), polls);
    loop_resume(loop);
    assert_true(loop_leave(loop, UINT64_C(10000000000)));
    pthread_join(thread, NULL);
    loop_destroy(loop);
    tear_down(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flows_stay_in_order_and_are_counted_once),
        cmocka_unit_test(congestion_control_sees_both_sides),
        cmocka_unit_test(acknowledgements_overtake_data),
        cmocka_unit_test(nothing_is_received_after_the_end),
        cmocka_unit_test(a_loop_pauses_and_leaves),
    };
    char *error = eal_init_offline(32 << 20);
    int status;

    if (error) {
        fprintf(stderr, "test-shim-forward: %s\n", error);
        return EXIT_FAILURE;
    }
    pool = rte_pktmbuf_pool_create("frames", 8191, 0, 0, 256, SOCKET_ID_ANY);
    status = pool ? cmocka_run_group_tests(tests, NULL, NULL) : EXIT_FAILURE;
    eal_uninit();
    return status;
}
