/* SPDX-License-Identifier: Apache-2.0 */

/* From verdicts to a port that is not one. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mbuf.h>

#include "shim/classify/classify.h"
#include "shim/classify/job-slot.h"
#include "shim/classify/tag.h"
#include "shim/loop/egress.h"
#include "shim/ports/port.h"
#include "shim/queue/job-queue.h"
#include "shim/queue/rank-queue.h"
#include "tests/unit/unit-test.h"

#define SECOND UINT64_C(1000000000)
#define MTU 1500
#define FULL (MTU + 14)         /* Bytes of a full frame. */
#define LIMIT 1400              /* Of the port, where it has one. */
#define N_SLOTS 10
#define N_FRAMES 4095

static struct rte_mempool *pool;

/* Collects what is sent.  A frame's hash has its flow and its number. */
struct port {
    uint16_t space;
    uint32_t limit;             /* Longer frames are dropped. */
    struct rte_mbuf *held[PORT_BURST];
    uint16_t n_held;

    /* What was taken since the start. */
    uint64_t packets, bytes, refused;
    uint64_t slot_packets[N_SLOTS], slot_bytes[N_SLOTS];
    uint32_t last[N_SLOTS];     /* Number of the last frame... */
    uint8_t dscp[N_SLOTS];      /* ...and its DSCP, were it IPv4. */
    uint16_t order[PORT_BURST]; /* Slots, in the last burst that was sent. */
    uint16_t n_order;
};

static uint32_t
slot_of(const struct rte_mbuf *frame)
{
    return frame->hash.usr >> 24;
}

uint16_t
port_tx_space(const struct port *port)
{
    return port->space - port->n_held;
}

bool
port_send(struct port *port, struct rte_mbuf *frame)
{
    uint32_t slot = slot_of(frame), number = frame->hash.usr & 0xffffff;

    assert_true(port->n_held < port->space);
    if (rte_pktmbuf_pkt_len(frame) > port->limit) {
        port->refused++;
        rte_pktmbuf_free(frame);
        return false;
    }
    assert_true(number > port->last[slot]);     /* In its job's order. */
    port->last[slot] = number;
    port->dscp[slot] = rte_pktmbuf_mtod(frame, uint8_t *)[15] >> 2;
    port->packets++;
    port->bytes += rte_pktmbuf_pkt_len(frame);
    port->slot_packets[slot]++;
    port->slot_bytes[slot] += rte_pktmbuf_pkt_len(frame);
    port->held[port->n_held++] = frame;
    return true;
}

uint16_t
port_send_burst(struct port *port, struct rte_mbuf **frames, uint16_t n)
{
    uint16_t taken = 0;

    for (uint16_t i = 0; i < n; i++) {
        if (port_send(port, frames[i])) {
            taken++;
        } else {
            frames[i] = NULL;
        }
    }
    return taken;
}

bool
port_flush(struct port *port, uint64_t now)
{
    bool sent = port->n_held > 0;

    port->n_order = port->n_held;
    for (uint16_t i = 0; i < port->n_held; i++) {
        port->order[i] = slot_of(port->held[i]);
    }
    rte_pktmbuf_free_bulk(port->held, port->n_held);
    port->n_held = 0;
    return sent;
}

struct fixture {
    struct port port;
    struct job_slots *slots;
    struct egress *e;
    uint64_t now;
    uint32_t n[N_SLOTS];        /* Frames so far. */
};

/* Slot N has rank N, and every second one the same level as the one before;
 * slot 0 is no job. */
static void
set_up(struct fixture *f, uint64_t rate_bps)
{
    struct egress_config config = {
        .uplink = &f->port, .rate_bps = rate_bps, .mtu = MTU,
        .late_ns = 500000, .tag = true,
    };

    memset(f, 0, sizeof *f);
    f->now = 10 * SECOND;
    f->port.space = PORT_BURST;
    f->port.limit = UINT32_MAX;
    f->slots = job_slots_create();
    for (uint16_t i = 1; i < N_SLOTS; i++) {
        struct shim_slot slot = {
            .slot = i, .level = 1 + i / 2, .rank = i,
        };

        assert_int_equal(job_slots_set(f->slots, &slot), 0);
    }
    job_slots_lease(f->slots, f->now, 3600000, 0);
    config.slots = f->slots;
    f->e = egress_create(&config);
    egress_set_min_share(f->e, 0);
    egress_send(f->e, f->now);
    f->now += SECOND;
}

static void
tear_down(struct fixture *f)
{
    egress_destroy(f->e);
    job_slots_destroy(f->slots);
    assert_true(rte_mempool_full(pool));
}

/* It is UDP over IPv4, of 46 bytes and what else there is room for, to a port
 * of the slot's number. */
static struct rte_mbuf *
frame_of(struct fixture *f, uint16_t slot, uint32_t length)
{
    static const uint8_t start[] =
        "\2\0\0\0\0\2\2\0\0\0\0\1\x08\0\x45\0\0\x2e\0\1\x40\0\x40\x11\0\0";
    struct rte_mbuf *frame = rte_pktmbuf_alloc(pool);

    assert_non_null(frame);
    memset(rte_pktmbuf_mtod(frame, uint8_t *), 0, 60);
    memcpy(rte_pktmbuf_mtod(frame, uint8_t *), start, sizeof start);
    rte_pktmbuf_mtod(frame, uint8_t *)[37] = slot;
    rte_pktmbuf_mtod(frame, uint8_t *)[39] = 26;
    frame->pkt_len = frame->data_len = length;
    frame->hash.usr = (uint32_t) slot << 24 | ++f->n[slot];
    return frame;
}

static struct verdict
verdict_of(const struct fixture *f, uint16_t slot)
{
    return (struct verdict) {
        .slot = slot, .is_ip = true,
        .treatment = job_slots_treatment(f->slots, slot, true),
    };
}

/* Pushes a burst of full frames, one of each of the 'n' slots. */
static void
push_slots(struct fixture *f, const uint16_t *slots, uint32_t n)
{
    struct rte_mbuf *frames[PORT_BURST];
    struct verdict v[PORT_BURST];

    for (uint32_t i = 0; i < n; i++) {
        frames[i] = frame_of(f, slots[i], FULL);
        v[i] = verdict_of(f, slots[i]);
    }
    egress_push_burst(f->e, frames, v, n, f->now);
}

static struct shim_stats
stats_of(const struct fixture *f)
{
    struct shim_stats stats = { .tx_packets = 0 };

    egress_stats(f->e, &stats);
    return stats;
}

/* The next burst that leaves is of these slots. */
static void
expect_sent(struct fixture *f, const uint16_t *slots, uint32_t n)
{
    egress_send(f->e, f->now);
    assert_int_equal(f->port.n_order, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(f->port.order[i], slots[i]);
    }
}

/* Sends all that waits, each frame when it is due. */
static void
send_rest(struct fixture *f)
{
    uint64_t wait;

    while ((wait = egress_until_due(f->e, f->now)) != UINT64_MAX) {
        f->now += wait;
        egress_send(f->e, f->now);
    }
}

UNIT_TEST(frames_are_not_queued_when_the_uplink_is_free)
{
    static const uint16_t slots[] = { 3, 1, 0, 9, 9, 2 };
    struct fixture f;

    set_up(&f, UINT64_C(100000000));
    push_slots(&f, slots, 2);
    assert_int_equal(f.port.n_held, 2);
    assert_int_equal(stats_of(&f).queued_bytes, 0);
    expect_sent(&f, slots, 2);

    /* Two frames are all that may go at once, whatever way they take. */
    push_slots(&f, slots, 6);
    assert_int_equal(f.port.n_held, 0);
    assert_int_equal(stats_of(&f).queued_bytes, 6 * FULL);
    send_rest(&f);
    assert_int_equal(stats_of(&f).queued_bytes, 0);
    f.now += SECOND;
    push_slots(&f, slots, 6);
    assert_int_equal(f.port.n_held, 2);
    assert_int_equal(stats_of(&f).queued_bytes, 4 * FULL);
    expect_sent(&f, slots, 2);
    tear_down(&f);
}

UNIT_TEST(queued_frames_leave_by_rank)
{
    static const uint16_t slots[] = { 5, 6, 9, 0, 3, 2, 4, 2 };
    static const uint16_t sent[] = { 1, 1, 2, 2, 3, 4, 9, 0 };
    struct fixture f;

    set_up(&f, UINT64_C(100000000));
    push_slots(&f, slots, 8);           /* Two leave: the uplink is free. */
    expect_sent(&f, slots, 2);

    /* What comes now is not asked in what order it came. */
    f.now += 5000;
    push_slots(&f, (const uint16_t[]) { 1, 1 }, 2);
    assert_int_equal(f.port.n_held, 0);
    for (uint32_t i = 0; i < 8; i++) {
        f.now += FULL * 80;
        expect_sent(&f, &sent[i], 1);
    }
    tear_down(&f);
}

/* Nothing passes a frame that waits and may go, were it for its own pace
 * only. */
UNIT_TEST(frames_of_a_flow_do_not_overtake)
{
    struct verdict v;
    struct rte_mbuf *frame;
    struct fixture f;
    uint16_t queue;

    set_up(&f, UINT64_C(100000000));
    queue = egress_flow_queue(f.e, 3);
    rank_queues_flow_rate(egress_queues(f.e), f.now, queue, 1000000);
    v = verdict_of(&f, 3);
    v.queue = queue;
    for (int i = 0; i < 2; i++) {
        frame = frame_of(&f, 3, FULL);
        egress_push_burst(f.e, &frame, &v, 1, f.now);
    }
    assert_int_equal(f.port.n_held, 0);
    expect_sent(&f, (const uint16_t[]) { 3 }, 1);

    /* One waits for its pace, and only for that: others need no queue... */
    f.now += 1000000;
    push_slots(&f, (const uint16_t[]) { 7 }, 1);
    assert_int_equal(f.port.n_held, 1);
    expect_sent(&f, (const uint16_t[]) { 7 }, 1);

    /* ...until it is due, or its flow has its queue no longer. */
    job_queues_flow_free(rank_queues_jobs(egress_queues(f.e)), queue);
    f.now += 1000000;
    push_slots(&f, (const uint16_t[]) { 3 }, 1);
    assert_int_equal(f.port.n_held, 0);
    expect_sent(&f, (const uint16_t[]) { 3, 3 }, 2);
    tear_down(&f);
}

/* A flow with a large part of the uplink may send two frames at once, others
 * one. */
UNIT_TEST(many_slow_flows_do_not_meet_in_pairs)
{
    static const struct {
        uint64_t bps;
        uint32_t n;
    } paces[] = { { 24000000, 1 }, { 26000000, 2 }, { 100000000, 2 } };

    for (size_t i = 0; i < sizeof paces / sizeof *paces; i++) {
        struct verdict v;
        struct fixture f;

        set_up(&f, UINT64_C(100000000));
        v = verdict_of(&f, 3);
        v.queue = egress_flow_queue(f.e, 3);
        rank_queues_flow_rate(egress_queues(f.e), f.now, v.queue,
                              paces[i].bps);
        for (int k = 0; k < 4; k++) {
            egress_push(f.e, frame_of(&f, 3, FULL), &v);
        }
        expect_sent(&f, (const uint16_t[]) { 3, 3 }, paces[i].n);
        send_rest(&f);
        assert_int_equal(f.port.packets, 4);
        tear_down(&f);
    }
}

/* A level that changes while a frame waits is the one that it leaves with. */
UNIT_TEST(queued_frames_leave_with_their_new_level)
{
    static const uint16_t slots[] = { 1, 1, 8, 9, 0 };
    struct shim_slot slot = { .slot = 9, .level = 1, .rank = 0, .dscp = 40 };
    struct verdict control = {
        .slot = 7, .is_ip = true,
        .treatment = { .level = SHIM_LEVEL_CONTROL },
    };
    struct rte_mbuf *frame;
    struct fixture f;

    set_up(&f, UINT64_C(100000000));
    push_slots(&f, slots, 5);           /* Two leave. */
    frame = frame_of(&f, 7, FULL);
    egress_push(f.e, frame, &control);
    assert_int_equal(job_slots_set(f.slots, &slot), 0);
    slot = (struct shim_slot) { .slot = 7, .level = 2, .dscp = 24, .rank = 7 };
    assert_int_equal(job_slots_set(f.slots, &slot), 0);
    send_rest(&f);
    assert_int_equal(f.port.dscp[9], 40);
    assert_int_equal(f.port.dscp[8], 0);
    assert_int_equal(f.port.dscp[0], 0);
    assert_int_equal(f.port.dscp[7], 0);        /* Not its job's. */

    /* What comes later is tagged before it comes here. */
    push_slots(&f, (const uint16_t[]) { 9 }, 1);
    send_rest(&f);
    assert_int_equal(f.port.dscp[9], 0);

    /* Without lease no job has a level: 1 is the default, and 0 is a level's
     * DSCP, which no packet keeps. */
    f.now += SECOND;
    job_slots_set_control(f.slots, SHIM_CONTROL_DSCP, 1);
    push_slots(&f, slots, 5);
    job_slots_lease(f.slots, f.now, 0, 1);
    send_rest(&f);
    assert_int_equal(f.port.dscp[1], 0);        /* They had left. */
    assert_int_equal(f.port.dscp[8], 1);
    assert_int_equal(f.port.dscp[9], 1);
    assert_int_equal(f.port.dscp[0], 0); /* Of no job. */
    assert_int_equal(stats_of(&f).tx_default_bytes, 4 * FULL);
    tear_down(&f);
}

UNIT_TEST(control_is_policed_on_a_free_uplink_too)
{
    struct verdict v = { .treatment = { .level = SHIM_LEVEL_CONTROL } };
    struct fixture f;

    set_up(&f, UINT64_C(100000000));
    for (int i = 0; i < 2000; i++) {
        struct rte_mbuf *frame = frame_of(&f, 0, 100);

        egress_push_burst(f.e, &frame, &v, 1, f.now);
        assert_int_equal(f.port.n_held, 0);
        egress_send(f.e, f.now);
        f.now += 100000; /* 8 Mbit/s, and 1 is due. */
    }
    assert_int_equal(f.port.packets, 2000);
    assert_in_range(stats_of(&f).policed, 1750 - 70, 1750);
    tear_down(&f);
}

/* What is dropped is counted by its class. */
UNIT_TEST(drops_of_control_are_counted)
{
    struct fixture f;

    for (int control = 0; control < 2; control++) {
        struct verdict v = { .treatment.level =
                                 control ? SHIM_LEVEL_CONTROL : 3 };

        set_up(&f, UINT64_C(1000000));
        for (int i = 0; i < 100; i++) {
            struct rte_mbuf *frame = frame_of(&f, 0, FULL);

            egress_push(f.e, frame, &v);
        }
        assert_true(stats_of(&f).queue_dropped > 0);
        assert_int_equal(stats_of(&f).control_dropped,
                         control * stats_of(&f).queue_dropped);
        tear_down(&f);
    }
}

/* Pushes 'n' frames of 'length' bytes of job 'slot' in one burst.  They count
 * for 'port_slot' of the port. */
static void
push_control(struct fixture *f, uint16_t slot, uint16_t port_slot, uint32_t n,
             uint32_t length)
{
    struct rte_mbuf *frames[PORT_BURST];
    struct verdict v[PORT_BURST];

    for (uint32_t i = 0; i < n; i++) {
        frames[i] = frame_of(f, port_slot, length);
        v[i] = verdict_of(f, slot | SLOT_TAG_CONTROL);
        v[i].slot = slot;
        tag_frame(rte_pktmbuf_mtod(frames[i], uint8_t *), length,
                  v[i].treatment, 0);
    }
    egress_push_burst(f->e, frames, v, n, f->now);
}

/* Job 8 marks its bulk as control, and jobs 1 and 8 have more bulk than the
 * uplink carries.  The heartbeats of job 9, the last one, leave at once, and
 * job 8 gains no more than its share of a hundredth. */
UNIT_TEST(bulk_that_is_marked_as_control_gains_nothing)
{
    const uint32_t n_ms = 4000;
    uint64_t marked = 0, share;
    struct fixture f;

    set_up(&f, UINT64_C(40000000));
    for (uint16_t i = 0; i < N_SLOTS - 1; i++) {
        struct shim_slot slot = {
            .slot = 1 + i, .level = 1 + i / 2, .rank = i, .dscp = 8 + i,
        };

        assert_int_equal(job_slots_set(f.slots, &slot), 0);
    }
    for (uint32_t ms = 0; ms < n_ms; ms++) {
        push_control(&f, 8, 8, 9, FULL);
        push_slots(&f, (const uint16_t[]) { 1, 1, 1, 1, 1, 1, 1, 1, 1 }, 9);
        if (ms % 100 == 0) {
            push_control(&f, 9, 9, 1, 100);
        }
        for (int i = 0; i < 10; i++) {
            uint64_t before = f.port.slot_packets[8];

            egress_send(f.e, f.now);
            if (f.port.slot_packets[8] > before) {
                assert_int_equal(f.port.dscp[8], SHIM_CONTROL_DSCP);
                marked += f.port.slot_packets[8] - before;
            }
            f.now += 100000;
        }
        assert_int_equal(f.port.slot_packets[9], ms / 100 + 1);
        assert_int_equal(f.port.dscp[9], SHIM_CONTROL_DSCP);
    }
    share = n_ms * UINT64_C(40000) / 8 / 100 / N_SLOTS;
    assert_in_range(f.port.slot_bytes[8], FULL, share + 4096 + FULL);
    assert_int_equal(f.port.slot_packets[8], marked);
    send_rest(&f);
    assert_int_equal(f.port.dscp[8], 15);       /* The rest is not control. */
    assert_true(stats_of(&f).policed > n_ms * 8);
    assert_int_equal(stats_of(&f).control_dropped, 0);
    assert_int_equal(stats_of(&f).queue_dropped,
                     job_slots_counters(f.slots, 1)->tx_dropped
                     + job_slots_counters(f.slots, 8)->tx_dropped);
    tear_down(&f);
}

/* A flow that exceeds its share stays in order, which port_send() checks, and
 * is control again when what exceeded has left. */
UNIT_TEST(control_beyond_its_share_stays_in_order)
{
    struct shim_slot row = { .slot = 5, .level = 3, .rank = 5, .dscp = 20 };
    struct fixture f;

    set_up(&f, UINT64_C(100000000));
    assert_int_equal(job_slots_set(f.slots, &row), 0);
    for (int i = 0; i < 100; i++) {
        push_slots(&f, (const uint16_t[]) { 1 }, 1);
        push_control(&f, 5, 5, 3, 700);
        egress_send(f.e, f.now);
        f.now += 20000;
    }
    assert_in_range(f.port.slot_packets[5], 6, 7);
    send_rest(&f);
    assert_int_equal(f.port.slot_packets[5], 300);
    assert_int_equal(f.port.dscp[5], 20);
    f.now += SECOND;
    push_slots(&f, (const uint16_t[]) { 1, 1, 1, 1, 1, 1, 1, 1 }, 8);
    push_control(&f, 5, 5, 1, 700);
    expect_sent(&f, (const uint16_t[]) { 1, 1 }, 2);
    f.now += SECOND / 1000;
    egress_send(f.e, f.now);
    assert_int_equal(f.port.order[0], 5);
    assert_int_equal(f.port.dscp[5], SHIM_CONTROL_DSCP);
    send_rest(&f);
    tear_down(&f);
}

/* Pushes a burst of anything. */
static uint32_t
push_anything(struct fixture *f, const uint16_t *queues)
{
    struct rte_mbuf *frames[PORT_BURST];
    struct verdict v[PORT_BURST];
    uint32_t n = 1 + random() % PORT_BURST;
    uint16_t slot = random() % N_SLOTS;

    for (uint32_t i = 0; i < n; i++) {
        slot = random() % 4 ? slot : random() % N_SLOTS;
        frames[i] = frame_of(f, slot, 60 + random() % (FULL - 59));
        v[i] = verdict_of(f, slot);
        v[i].queue = queues[slot];
        v[i].is_ip = slot != 3;
    }
    egress_push_burst(f->e, frames, v, n, f->now);
    return n;
}

/* All that was counted is what the port has seen. */
static void
check_counters(const struct fixture *f)
{
    const struct port *port = &f->port;
    struct shim_stats stats = stats_of(f);

    assert_int_equal(stats.tx_packets, port->packets);
    assert_int_equal(stats.tx_bytes, port->bytes);
    assert_int_equal(stats.tx_ip_bytes, port->bytes - port->slot_bytes[3]);
    assert_int_equal(stats.tx_default_bytes, port->slot_bytes[0]);
    for (uint16_t i = 1; i < N_SLOTS; i++) {
        struct shim_slot_stats slot;

        assert_true(job_slots_stats(f->slots, i, f->now, &slot));
        assert_int_equal(slot.tx_packets, port->slot_packets[i]);
        assert_int_equal(slot.tx_bytes, port->slot_bytes[i]);
    }
}

/* Fast and slow uplinks, ports with little space that refuse long frames, and
 * flows with queues of their own. */
UNIT_TEST(every_frame_is_sent_or_counted_as_dropped)
{
    static const uint64_t rates[] = {
        1000000, 100000000, UINT64_C(10000000000), UINT64_C(400000000000),
    };

    for (int round = 0; round < 16; round++) {
        uint16_t queues[N_SLOTS] = { 0 };
        uint64_t pushed = 0, rate = rates[round % 4], start;
        struct shim_stats stats;
        struct fixture f;

        srandom(round);
        set_up(&f, rate);
        start = f.now;
        f.port.limit = round & 4 ? LIMIT : FULL;
        for (int i = 4; round & 8 && i < N_SLOTS; i += 3) {
            queues[i] = egress_flow_queue(f.e, i);
            rank_queues_flow_rate(egress_queues(f.e), f.now, queues[i],
                                  rate / i);
        }
        for (int i = 0; i < 3000; i++) {
            f.now += random() % 3000;
            f.port.space = 1 + random() % PORT_BURST;
            if (rte_mempool_avail_count(pool) >= PORT_BURST) {
                pushed += push_anything(&f, queues);
            }
            egress_send(f.e, f.now);
        }
        f.port.space = PORT_BURST;
        assert_true(f.port.bytes <= (f.now - start + 500000) / 1e9 * rate / 8
                    + 2 * (FULL + 4));
        send_rest(&f);
        stats = stats_of(&f);
        assert_int_equal(pushed, (stats.tx_packets + stats.queue_dropped
                                  + f.port.refused));
        assert_int_equal(stats.queued_bytes, 0);
        assert_true(!f.port.refused == !(round & 4));
        check_counters(&f);
        tear_down(&f);
    }
}

int
unit_test_set_up(void **state)
{
    const char *argv[] = { "test", "--no-huge", "--no-pci", "--no-shconf",
                           "--no-telemetry", "-m", "16", "-l", "0",
                           "--log-level=*:error",
                           "--file-prefix=sc-egress" };

    if (rte_eal_init(sizeof argv / sizeof *argv, (char **) argv) < 0) {
        return -1;
    }
    pool = rte_pktmbuf_pool_create("test", N_FRAMES, 0, 0,
                                   RTE_PKTMBUF_HEADROOM + 64, SOCKET_ID_ANY);
    return pool ? 0 : -1;
}

int
unit_test_tear_down(void **state)
{
    rte_mempool_free(pool);
    return rte_eal_cleanup() || rmdir(rte_eal_get_runtime_dir());
}
