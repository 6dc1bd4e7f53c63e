/* SPDX-License-Identifier: Apache-2.0 */

/* Several lanes between ring ports: nothing is lost, twice, or out of its
 * flow's order, and everything is counted once. */

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
#include "shim/loop/lanes.h"
#include "shim/loop/loop.h"
#include "shim/ports/eal.h"
#include "shim/ports/port.h"
#include "tests/unit/unit-test.h"

#define MAX_LANES 4
#define RING 4096
#define N_FLOWS 64 /* The first half of them have a job. */
#define N_JOBS 8
#define N_FRAMES 20000          /* In each direction. */
#define IN_FLIGHT 256           /* Less than a lane's ring holds. */
#define FRAME_SIZE 64
#define MAX_POLLS 100000000
#define RATE UINT64_C(400000000000)

enum { HOST, UPLINK };

struct end {
    struct rte_ring *in[MAX_LANES], *out[MAX_LANES];
    struct port *port;
};

struct bed {
    unsigned int n_lanes, n_queues;
    struct end ends[2];
    struct flow_cache *flows;
    struct job_slots *slots;
    struct forward *forward;
    uint64_t now;
    bool stop;
};

static struct rte_mempool *pool;
static int n_beds;

/* Orders all that was done with 'frame' before all that follows.  The rings of
 * the driver do so too, but ThreadSanitizer does not know it, because DPDK's
 * libraries are not compiled with it. */
static void
order_frame(struct rte_mbuf *frame)
{
    __atomic_fetch_add((uint64_t *) rte_mbuf_to_priv(frame), 1,
                       __ATOMIC_ACQ_REL);
}

static uint16_t
order_received(uint16_t port, uint16_t queue, struct rte_mbuf *frames[],
               uint16_t n, uint16_t max, void *aux)
{
    for (uint16_t i = 0; i < n; i++) {
        order_frame(frames[i]);
    }
    return n;
}

static uint16_t
order_sent(uint16_t port, uint16_t queue, struct rte_mbuf *frames[],
           uint16_t n, void *aux)
{
    return order_received(port, queue, frames, n, n, aux);
}

/* Takes a frame from 'ring'.  Returns NULL if it is empty. */
static struct rte_mbuf *
take_frame(struct rte_ring *ring)
{
    struct rte_mbuf *frame;

    if (rte_ring_dequeue(ring, (void **) &frame)) {
        return NULL;
    }
    order_frame(frame);
    return frame;
}

static void
new_end(struct bed *b, struct end *end, char which)
{
    char name[32], device[64];
    uint16_t id;

    for (unsigned int i = 0; i < b->n_queues; i++) {
        snprintf(name, sizeof name, "in%d%c%u", n_beds, which, i);
        end->in[i] = rte_ring_create(name, RING, SOCKET_ID_ANY,
                                     RING_F_SP_ENQ | RING_F_SC_DEQ);
        snprintf(name, sizeof name, "out%d%c%u", n_beds, which, i);
        end->out[i] = rte_ring_create(name, RING, SOCKET_ID_ANY,
                                      RING_F_SP_ENQ | RING_F_SC_DEQ);
        assert_non_null(end->in[i]);
        assert_non_null(end->out[i]);
    }
    snprintf(name, sizeof name, "port%d%c", n_beds, which);
    assert_null(port_create_rings(name, 1500, false, pool, end->in, end->out,
                                  b->n_queues, &end->port));
    snprintf(device, sizeof device, "net_ring_%s", name);
    assert_int_equal(rte_eth_dev_get_port_by_name(device, &id), 0);
    for (unsigned int i = 0; i < b->n_queues; i++) {
        assert_non_null(rte_eth_add_rx_callback(id, i, order_received, NULL));
        assert_non_null(rte_eth_add_tx_callback(id, i, order_sent, NULL));
    }
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
set_up_with(struct bed *b, unsigned int n_lanes, bool own_queues,
            struct cc_config *cc)
{
    struct forward_config config;

    memset(b, 0, sizeof *b);
    n_beds++;
    b->now = 1;
    b->n_lanes = n_lanes;
    b->n_queues = own_queues ? n_lanes : 1;
    new_end(b, &b->ends[HOST], 'h');
    new_end(b, &b->ends[UPLINK], 'u');
    fill_tables(b);
    config = (struct forward_config){
        .host = b->ends[HOST].port,
        .uplink = b->ends[UPLINK].port,
        .flows = b->flows,
        .slots = b->slots,
        .rate_bps = RATE,
        .mtu = 1500,
        .tag = true,
        .n_lanes = n_lanes,
        .cc = cc,
    };
    if (cc) {
        cc->slots = b->slots;
    }
    b->forward = forward_create(&config);
    assert_non_null(b->forward);
}

static void
set_up(struct bed *b, unsigned int n_lanes, bool own_queues)
{
    set_up_with(b, n_lanes, own_queues, NULL);
}

static void
tear_down(struct bed *b)
{
    forward_destroy(b->forward);
    for (int i = 0; i < 2; i++) {
        struct end *end = &b->ends[i];

        port_destroy(end->port);
        for (unsigned int q = 0; q < b->n_queues; q++) {
            assert_true(rte_ring_empty(end->in[q]));
            assert_true(rte_ring_empty(end->out[q]));
            rte_ring_free(end->in[q]);
            rte_ring_free(end->out[q]);
        }
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
    order_frame(frame);
    return frame;
}

/* Puts packet 'number' of 'flow' where it arrives. */
static void
inject(struct bed *b, int from, uint32_t flow, uint32_t number)
{
    assert_int_equal(rte_ring_enqueue(b->ends[from].in[flow % b->n_queues],
                                      new_frame(from, flow, number)), 0);
}

/* From the host, without data. */
static void
inject_ack(struct bed *b, uint32_t flow)
{
    struct rte_mbuf *frame = new_frame(HOST, flow, 0);
    uint8_t *data = rte_pktmbuf_mtod(frame, uint8_t *);

    data[17] = 40;
    data[47] = 0x10;
    assert_int_equal(rte_ring_enqueue(b->ends[HOST].in[flow % b->n_queues],
                                      frame), 0);
}

/* Takes what has left to 'to', and checks that it is its flow's next packet,
 * 'next[flow]', or a later one if some 'may_miss'.  Returns how many. */
static uint32_t
take(struct bed *b, int to, uint32_t *next, bool may_miss)
{
    struct rte_mbuf *frame;
    uint32_t n = 0;

    for (unsigned int q = 0; q < b->n_queues; q++) {
        while ((frame = take_frame(b->ends[to].out[q]))) {
            const uint8_t *data = rte_pktmbuf_mtod(frame, uint8_t *);
            uint32_t flow, number;

            memcpy(&flow, data + 54, sizeof flow);
            memcpy(&number, data + 58, sizeof number);
            rte_pktmbuf_free(frame);
            assert_true(flow < N_FLOWS);
            if (!may_miss) {
                assert_int_equal(number, next[flow]);
            }
            assert_true(number >= next[flow]);
            next[flow] = number + 1;
            n++;
        }
    }
    return n;
}

static bool
main_turn(struct bed *b)
{
    b->now += 100000;
    return forward_poll(b->forward, b->now);
}

struct thread {
    pthread_t id;
    struct bed *bed;
    struct lane *lane;
};

static void *
run_lane(void *thread_)
{
    struct thread *t = thread_;

    while (!__atomic_load_n(&t->bed->stop, __ATOMIC_ACQUIRE)) {
        if (!lane_poll(t->lane, 1)) {
            sched_yield();
        }
    }
    return NULL;
}

/* Writes and reads, as the control thread does, what the lanes use. */
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

/* Starts the control thread, as number 0, and the lanes from 1 on. */
static void
start_threads(struct bed *b, struct thread *threads)
{
    assert_int_equal(pthread_create(&threads[0].id, NULL, run_control, b), 0);
    for (unsigned int i = 1; i < b->n_lanes; i++) {
        threads[i].bed = b;
        threads[i].lane = forward_lane(b->forward, i);
        assert_int_equal(pthread_create(&threads[i].id, NULL, run_lane,
                                        &threads[i]), 0);
    }
}

static void
stop_threads(struct bed *b, struct thread *threads)
{
    __atomic_store_n(&b->stop, true, __ATOMIC_RELEASE);
    for (unsigned int i = 0; i < b->n_lanes; i++) {
        pthread_join(threads[i].id, NULL);
    }
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
        if (!main_turn(b)) {
            sched_yield();
        }
        n_got[HOST] += take(b, HOST, got[HOST], false);
        n_got[UPLINK] += take(b, UPLINK, got[UPLINK], false);
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
    assert_int_equal(stats.lane_lost, 0);
    assert_int_equal(stats.queue_dropped, 0);
}

/* Each of several lanes has classified its share. */
static void
check_shares(struct bed *b)
{
    for (unsigned int i = 1; i < b->n_lanes; i++) {
        struct shim_stats stats = { .tx_packets = 0 };

        lane_add_stats(forward_lane(b->forward, i), &stats);
        assert_in_range(stats.untagged, N_FRAMES / 2 / b->n_lanes / 4,
                        N_FRAMES / 2 / b->n_lanes * 2);
    }
}

static void
exchange_with(unsigned int n_lanes, bool own_queues)
{
    struct thread threads[MAX_LANES];
    struct bed b;

    set_up(&b, n_lanes, own_queues);
    start_threads(&b, threads);
    exchange(&b);
    stop_threads(&b, threads);
    check_counters(&b);
    check_shares(&b);
    while (main_turn(&b)) {
        continue;
    }
    tear_down(&b);
}

static void
flows_stay_in_order_where_lane_0_receives(void **state)
{
    for (unsigned int n = 1; n <= MAX_LANES; n++) {
        exchange_with(n, false);
    }
}

static void
flows_stay_in_order_with_queues_for_each_lane(void **state)
{
    for (unsigned int n = 1; n <= MAX_LANES; n++) {
        exchange_with(n, true);
    }
}

/* Moves all that can be moved, in this thread. */
static void
settle(struct bed *b)
{
    bool any;

    do {
        any = main_turn(b);
        for (unsigned int i = 1; i < b->n_lanes; i++) {
            any |= lane_poll(forward_lane(b->forward, i), b->now);
        }
    } while (any);
}

static void
a_lane_that_does_not_run_loses_only_its_own(void **state)
{
    enum { EACH = 40 };
    uint32_t next[N_FLOWS] = { 0 }, n;
    struct shim_stats stats = { .tx_packets = 0 };
    struct bed b;

    set_up(&b, 2, false);
    for (uint32_t i = 0; i < N_FLOWS * EACH; i++) {
        inject(&b, HOST, i % N_FLOWS, i / N_FLOWS);
    }
    while (main_turn(&b)) {
        continue;
    }
    n = take(&b, UPLINK, next, false);
    assert_true(n > 0 && n < N_FLOWS * EACH);
    for (int i = 0; i < N_FLOWS; i++) {
        assert_true(next[i] == 0 || next[i] == EACH);
    }
    forward_stats(b.forward, &stats);
    assert_true(stats.lane_lost > 0);
    settle(&b);
    n += take(&b, UPLINK, next, true);
    assert_int_equal(n + stats.lane_lost, N_FLOWS * EACH);
    tear_down(&b);
}

/* Returns the DSCP of the one frame that has left to the uplink. */
static uint8_t
take_dscp(struct bed *b)
{
    struct rte_mbuf *frame = NULL;
    uint8_t dscp;

    for (unsigned int q = 0; q < b->n_queues && !frame; q++) {
        frame = take_frame(b->ends[UPLINK].out[q]);
    }
    assert_non_null(frame);
    dscp = rte_pktmbuf_mtod(frame, uint8_t *)[15] >> 2;
    rte_pktmbuf_free(frame);
    for (unsigned int q = 0; q < b->n_queues; q++) {
        assert_null(take_frame(b->ends[UPLINK].out[q]));
    }
    return dscp;
}

/* Whichever lane classifies a flow: congestion control knows it, by what comes
 * from either side, and what is of its ports has its DSCP, the others their
 * job's. */
static void
check_congestion_control(unsigned int n_lanes, bool own_queues)
{
    const uint32_t control = N_FLOWS / 2 - 1;
    struct cc_config cc = {
        .downlink_bps = RATE, .mtu = 1500, .max_flows = 1024,
        .control_ports = { 30000 + N_FLOWS / 2 - 1 },
    };
    struct shim_stats stats = { .tx_packets = 0 };
    uint32_t next[N_FLOWS] = { 0 };
    struct bed b;

    set_up_with(&b, n_lanes, own_queues, &cc);
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
    assert_int_equal(take(&b, HOST, next, false), N_FLOWS / 2);
    forward_stats(b.forward, &stats);
    assert_int_equal(stats.cc_flows, N_FLOWS - 1);
    assert_int_equal(stats.rx_packets, N_FLOWS / 2);
    tear_down(&b);
}

static void
congestion_control_sees_all_lanes(void **state)
{
    for (unsigned int n = 1; n <= MAX_LANES; n++) {
        check_congestion_control(n, false);
        check_congestion_control(n, true);
    }
}

/* Turns until the port has sent a frame, and returns its flow. */
static uint32_t
next_flow(struct bed *b)
{
    struct rte_mbuf *frame = NULL;
    uint32_t flow;

    for (int poll = 0; !frame; poll++) {
        assert_true(poll < MAX_POLLS);
        for (unsigned int q = 0; q < b->n_queues && !frame; q++) {
            frame = take_frame(b->ends[UPLINK].out[q]);
        }
        main_turn(b);
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
acknowledgements_of_all_lanes_overtake_data(void **state)
{
    struct bed b;

    for (unsigned int n = 1; n <= MAX_LANES; n++) {
        set_up(&b, n, false);
        egress_set_rate(forward_egress(b.forward), 1000000);
        for (uint32_t i = 0; i < N_JOBS; i++) {
            /* The first one makes the queue, which begins behind them. */
            place_of_acknowledgement(&b, i, i + N_JOBS, 200);
            assert_in_range(place_of_acknowledgement(&b, i, i + N_JOBS, 200),
                            1, 100);
        }
        while (main_turn(&b)) {
            continue;
        }
        tear_down(&b);
    }
}

static void
the_end_waits_for_all_lanes(void **state)
{
    uint32_t next[N_FLOWS] = { 0 };
    struct bed b;

    set_up(&b, 3, false);
    for (uint32_t i = 0; i < N_FLOWS; i++) {
        inject(&b, UPLINK, i, 0);
    }
    forward_end(b.forward, true);
    while (main_turn(&b)) {
        continue;
    }
    assert_false(forward_has_ended(b.forward));
    lane_poll(forward_lane(b.forward, 1), b.now);
    lane_poll(forward_lane(b.forward, 1), b.now);
    main_turn(&b);
    assert_false(forward_has_ended(b.forward));
    settle(&b);
    assert_true(forward_has_ended(b.forward));
    assert_int_equal(take(&b, HOST, next, false), N_FLOWS);

    /* Nothing more is received until it goes on. */
    inject(&b, UPLINK, 0, 1);
    settle(&b);
    assert_int_equal(take(&b, HOST, next, false), 0);
    forward_end(b.forward, false);
    settle(&b);
    assert_false(forward_has_ended(b.forward));
    settle(&b);
    assert_int_equal(take(&b, HOST, next, false), 1);
    tear_down(&b);
}

static void
frames_left_in_rings_are_freed(void **state)
{
    struct bed b;

    set_up(&b, 4, false);
    for (uint32_t i = 0; i < N_FLOWS; i++) {
        inject(&b, i % 2 ? HOST : UPLINK, i, 0);
    }
    for (int i = 0; i < 8; i++) {
        main_turn(&b);
    }
    lane_poll(forward_lane(b.forward, 1), b.now);
    for (int to = 0; to < 2; to++) {
        uint32_t next[N_FLOWS] = { 0 };

        take(&b, to, next, false);
    }
    tear_down(&b);
}

static void *
run_loop(void *loop)
{
    loop_run(loop);
    return NULL;
}

static void
all_lanes_loops_pause_and_leave(void **state)
{
    pthread_t threads[3];
    struct loop *loops[3];
    struct bed b;

    set_up(&b, 3, false);
    loops[0] = loop_create(b.forward, b.ends[HOST].port, b.ends[UPLINK].port,
                           LOOP_AUTO);
    for (unsigned int i = 1; i < 3; i++) {
        loops[i] = loop_add_lane(loops[0], forward_lane(b.forward, i), NULL,
                                 NULL);
        assert_non_null(loops[i]);
    }
    for (int i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, run_loop, loops[i]);
    }
    while (!loop_polls(loops[0]) || !loop_polls(loops[1])
           || !loop_polls(loops[2])) {
        sched_yield();
    }
    assert_true(loop_pause(loops[0]));
    for (int i = 0; i < 3; i++) {
        uint64_t polls = loop_polls(loops[i]);

        sched_yield();
        assert_int_equal(loop_polls(loops[i]), polls);
    }
    loop_resume(loops[0]);
    assert_true(loop_leave(loops[0], UINT64_C(10000000000)));
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    loop_destroy(loops[0]);
    tear_down(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flows_stay_in_order_where_lane_0_receives),
        cmocka_unit_test(flows_stay_in_order_with_queues_for_each_lane),
        cmocka_unit_test(a_lane_that_does_not_run_loses_only_its_own),
        cmocka_unit_test(congestion_control_sees_all_lanes),
        cmocka_unit_test(acknowledgements_of_all_lanes_overtake_data),
        cmocka_unit_test(the_end_waits_for_all_lanes),
        cmocka_unit_test(frames_left_in_rings_are_freed),
        cmocka_unit_test(all_lanes_loops_pause_and_leave),
    };
    char *error = eal_init_offline(32 << 20);
    int status;

    if (error) {
        fprintf(stderr, "test-shim-lanes: %s\n", error);
        return EXIT_FAILURE;
    }

    /* The frame that was freed last is used first, so that ThreadSanitizer
     * sees a lane that still reads it. */
    pool = rte_pktmbuf_pool_create_by_ops("frames", 8191, 0, sizeof(uint64_t),
                                          256, SOCKET_ID_ANY, "stack");
    status = pool ? cmocka_run_group_tests(tests, NULL, NULL) : EXIT_FAILURE;
    eal_uninit();
    return status;
}
