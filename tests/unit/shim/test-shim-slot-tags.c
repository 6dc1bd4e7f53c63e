/* SPDX-License-Identifier: Apache-2.0 */

/* A shim between ring ports, with a host that tags its frames with job
 * slots. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "shim/cc/cc.h"
#include "shim/classify/bursts.h"
#include "shim/classify/flow-cache.h"
#include "shim/classify/job-slot.h"
#include "shim/classify/tag.h"
#include "shim/loop/forward.h"
#include "shim/ports/eal.h"
#include "shim/ports/port.h"
#include "tests/unit/unit-test.h"
#include "wire/slot-tag.h"

#define MAX_FRAME (9000 + 14 + 4)
#define N_JOBS 8 /* Slots 1 to 8 are in use. */
#define RATE UINT64_C(400000000000)
#define MS UINT64_C(1000000)

enum { HOST, UPLINK };

/* Where the slot tag of a frame is. */
enum place { IN_BYTES, IN_MBUF };

struct bed {
    struct rte_ring *in[2], *out[2];
    struct port *ports[2];
    struct flow_cache *flows;
    struct job_slots *slots;
    struct bursts *bursts;
    struct forward *forward;
    uint64_t now;
};

static struct rte_mempool *pool;
static int n_beds;

static void
new_end(struct bed *b, int which, uint32_t mtu)
{
    char name[32];

    snprintf(name, sizeof name, "in%d-%d", n_beds, which);
    b->in[which] = rte_ring_create(name, 64, SOCKET_ID_ANY, 0);
    snprintf(name, sizeof name, "out%d-%d", n_beds, which);
    b->out[which] = rte_ring_create(name, 64, SOCKET_ID_ANY, 0);
    snprintf(name, sizeof name, "port%d-%d", n_beds, which);
    assert_null(port_create_rings(name, mtu, which == HOST, pool, b->in[which],
                                  b->out[which], &b->ports[which]));
}

static void
set_up(struct bed *b, uint32_t mtu, struct cc_config *cc)
{
    struct forward_config config = { .rate_bps = RATE, .tag = true };

    memset(b, 0, sizeof *b);
    n_beds++;
    b->now = MS;
    new_end(b, HOST, mtu);
    new_end(b, UPLINK, mtu);
    b->flows = flow_cache_create(7);
    b->slots = job_slots_create();
    b->bursts = bursts_create();
    for (uint16_t i = 1; i <= N_JOBS; i++) {
        struct shim_slot slot = {
            .slot = i, .level = 1 + i % 6, .rank = i, .dscp = 8 + i
        };

        assert_int_equal(job_slots_set(b->slots, &slot), 0);
    }
    job_slots_lease(b->slots, 0, 3600000, 0);
    if (cc) {
        cc->slots = b->slots;
    }
    config.host = b->ports[HOST];
    config.uplink = b->ports[UPLINK];
    config.flows = b->flows;
    config.slots = b->slots;
    config.bursts = b->bursts;
    config.mtu = mtu;
    config.cc = cc;
    b->forward = forward_create(&config);
    assert_non_null(b->forward);
}

static void
tear_down(struct bed *b)
{
    forward_destroy(b->forward);
    for (int i = 0; i < 2; i++) {
        port_destroy(b->ports[i]);
        rte_ring_free(b->in[i]);
        rte_ring_free(b->out[i]);
    }
    bursts_destroy(b->bursts);
    job_slots_destroy(b->slots);
    flow_cache_destroy(b->flows);
    assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

/* Returns TCP data of 'flow' in a frame of 'length' bytes, in VLAN 'vlan' of
 * the host unless that is 0. */
static struct rte_mbuf *
new_frame(int from, uint16_t flow, uint16_t vlan, uint32_t length)
{
    static const uint8_t start[] =
        "\2\0\0\0\0\2\2\0\0\0\0\1\x08\0\x45\xb8\0\0\0\1\x40\0\x40\6\x12\x34";
    static const uint8_t ends[2][4] = { "\x0a\0\0\1", "\x0a\0\0\2" };
    struct rte_mbuf *frame = rte_pktmbuf_alloc(pool);
    uint32_t ip = length - 14 - (vlan ? 4 : 0);
    uint8_t *data;

    assert_non_null(frame);
    data = (uint8_t *) rte_pktmbuf_append(frame, 14 + ip);
    assert_non_null(data);
    memset(data, 0, 14 + ip);
    memcpy(data, start, 26);
    data[16] = ip >> 8;
    data[17] = ip;
    memcpy(data + 26, ends[from], 4);
    memcpy(data + 30, ends[!from], 4);
    data[from == HOST ? 34 : 36] = flow >> 8;
    data[from == HOST ? 35 : 37] = flow;
    data[46] = 0x50;
    if (vlan) {
        frame->vlan_tci = vlan;
        assert_int_equal(rte_vlan_insert(&frame), 0);
        frame->vlan_tci = 0;
    }
    return frame;
}

static void
put_tag(struct rte_mbuf *frame, uint16_t tci, enum place place)
{
    frame->vlan_tci = tci;
    if (place == IN_BYTES) {
        assert_int_equal(rte_vlan_insert(&frame), 0);
        frame->vlan_tci = 0xffff;
    } else {
        frame->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
    }
}

/* Moves all that can be moved. */
static void
settle(struct bed *b)
{
    do {
        b->now += MS;
    } while (forward_poll(b->forward, b->now));
}

/* Passes 'frame' through the shim.  Copies what leaves to 'bytes', and returns
 * its length. */
static uint32_t
pass(struct bed *b, int from, struct rte_mbuf *frame, uint8_t *bytes)
{
    struct rte_mbuf *sent = NULL;
    uint32_t length;

    assert_int_equal(rte_ring_enqueue(b->in[from], frame), 0);
    settle(b);
    assert_int_equal(rte_ring_dequeue(b->out[!from], (void **) &sent), 0);
    length = rte_pktmbuf_pkt_len(sent);
    assert_int_equal(rte_pktmbuf_data_len(sent), length);
    memcpy(bytes, rte_pktmbuf_mtod(sent, uint8_t *), length);
    rte_pktmbuf_free(sent);
    return length;
}

/* A frame of 'flow' with the tag 'tci' leaves without the tag and is otherwise
 * what came, with the DSCP 'dscp'. */
static void
check_tagged(struct bed *b, uint16_t flow, uint16_t vlan, uint32_t length,
             uint16_t tci, enum place place, uint8_t dscp)
{
    static uint8_t before[MAX_FRAME], after[MAX_FRAME];
    struct rte_mbuf *frame = new_frame(HOST, flow, vlan, length);

    memcpy(before, rte_pktmbuf_mtod(frame, uint8_t *), length);
    tag_frame(before, length, (struct treatment){ .dscp = dscp }, 0);
    put_tag(frame, tci, place);
    assert_int_equal(pass(b, HOST, frame, after), length);
    assert_memory_equal(before, after, length);
}

static struct shim_stats
stats_of(const struct bed *b)
{
    struct shim_stats stats = { .tx_packets = 0 };

    forward_stats(b->forward, &stats);
    return stats;
}

static struct shim_slot_stats
job_of(const struct bed *b, uint16_t slot)
{
    struct shim_slot_stats stats;

    assert_true(job_slots_stats(b->slots, slot, b->now, &stats));
    return stats;
}

/* Slot 99 is not in use. */
static void
the_tag_decides_and_is_removed(void **state)
{
    const uint16_t priority = 0xe000;
    struct bed b;

    set_up(&b, 1500, NULL);
    for (enum place place = IN_BYTES; place <= IN_MBUF; place++) {
        check_tagged(&b, 1, 0, 100, 3, place, 11);
        check_tagged(&b, 1, 0, 100, 4 | priority, place, 12);
        check_tagged(&b, 1, 0, 100, 4 | SLOT_TAG_CONTROL, place,
                     SHIM_CONTROL_DSCP);
        check_tagged(&b, 1, 0, 100, 0, place, 0xb8 >> 2);
        check_tagged(&b, 1, 0, 100, 99 | SLOT_TAG_CONTROL, place, 0xb8 >> 2);
    }
    assert_int_equal(job_of(&b, 3).tx_bytes, 2 * 100);
    assert_int_equal(job_of(&b, 4).tx_bytes, 4 * 100);
    assert_int_equal(stats_of(&b).tx_default_bytes, 4 * 100);
    assert_int_equal(stats_of(&b).untagged, 0);
    tear_down(&b);
}

/* The shortest one ends where the tag's type does. */
static void
a_frame_without_a_tag_is_unchanged_and_counted(void **state)
{
    uint8_t before[100], after[MAX_FRAME];
    struct rte_mbuf *frame = new_frame(HOST, 1, 0, sizeof before);
    struct bed b;

    memcpy(before, rte_pktmbuf_mtod(frame, uint8_t *), sizeof before);
    frame->vlan_tci = 5;
    set_up(&b, 1500, NULL);
    check_tagged(&b, 1, 0, 100, 3, IN_MBUF, 11);
    assert_int_equal(pass(&b, HOST, frame, after), sizeof before);
    assert_memory_equal(before, after, sizeof before);
    assert_int_equal(stats_of(&b).untagged, 1);
    assert_int_equal(job_of(&b, 5).tx_packets, 0);

    /* It does not change the job of its flow. */
    pass(&b, UPLINK, new_frame(UPLINK, 1, 0, 200), after);
    assert_int_equal(job_of(&b, 3).rx_bytes, 200);

    for (uint32_t length = 14; length < 18; length++) {
        frame = new_frame(HOST, 1, 0, 60);
        memcpy(rte_pktmbuf_mtod_offset(frame, uint8_t *, 12), "\x81\0", 2);
        rte_pktmbuf_trim(frame, 60 - length);
        assert_int_equal(pass(&b, HOST, frame, after), length);
    }
    assert_int_equal(stats_of(&b).untagged, 5);
    assert_int_equal(stats_of(&b).tx_default_bytes, sizeof before);
    tear_down(&b);
}

static void
full_frames_and_the_vlans_of_hosts_pass(void **state)
{
    static const uint32_t mtus[] = { 1500, 9000 };

    for (int i = 0; i < 2; i++) {
        struct bed b;

        set_up(&b, mtus[i], NULL);
        for (enum place place = IN_BYTES; place <= IN_MBUF; place++) {
            check_tagged(&b, 1, 0, mtus[i] + 14, 3, place, 11);
            check_tagged(&b, 1, 7, mtus[i] + 18, 3, place, 11);
        }
        assert_int_equal(job_of(&b, 3).tx_packets, 4);
        assert_int_equal(stats_of(&b).port_dropped, 0);
        tear_down(&b);
    }
}

static void
received_bytes_are_those_of_the_learned_slot(void **state)
{
    uint8_t bytes[MAX_FRAME];
    struct bed b;

    set_up(&b, 1500, NULL);
    check_tagged(&b, 1, 0, 100, 3, IN_MBUF, 11);
    check_tagged(&b, 2, 7, 100, 4 | SLOT_TAG_CONTROL, IN_MBUF,
                 SHIM_CONTROL_DSCP);
    check_tagged(&b, 2, 7, 100, 3 | SLOT_TAG_NO_LEARN, IN_MBUF, 11);
    check_tagged(&b, 3, 0, 100, 3 | SLOT_TAG_NO_LEARN, IN_MBUF, 11);
    for (uint16_t flow = 1; flow <= 4; flow++) {
        pass(&b, UPLINK, new_frame(UPLINK, flow, flow == 2 ? 7 : 0, 200),
             bytes);
    }
    assert_int_equal(job_of(&b, 3).rx_bytes, 200);
    assert_int_equal(job_of(&b, 4).rx_bytes, 200);
    assert_int_equal(stats_of(&b).rx_bytes, 4 * 200);

    check_tagged(&b, 1, 0, 100, 4, IN_MBUF, 12);
    pass(&b, UPLINK, new_frame(UPLINK, 1, 0, 200), bytes);
    assert_int_equal(job_of(&b, 3).rx_bytes, 200);
    assert_int_equal(job_of(&b, 4).rx_bytes, 400);
    tear_down(&b);
}

static void
bursts_have_the_slots_of_tags(void **state)
{
    struct shim_bin bins[SHIM_MAX_BINS];
    uint64_t first;
    uint32_t tx = 0, rx = 0;
    uint8_t bytes[MAX_FRAME];
    struct bed b;
    size_t n;

    set_up(&b, 1500, NULL);
    check_tagged(&b, 2, 0, 100, 4, IN_BYTES, 12);
    check_tagged(&b, 1, 0, 100, 3, IN_BYTES, 11);
    pass(&b, UPLINK, new_frame(UPLINK, 1, 0, 200), bytes);
    n = bursts_bins(b.bursts, 3, b.now + 100 * MS, 0, &first, bins);
    for (size_t i = 0; i < n; i++) {
        tx += bins[i].tx;
        rx += bins[i].rx;
    }
    assert_int_equal(tx, 100);
    assert_int_equal(rx, 200);
    tear_down(&b);
}

/* Flow N of slot N: congestion control knows it, and the counters are those of
 * its job. */
static void
congestion_control_reads_tags(void **state)
{
    struct cc_config cc = { .downlink_bps = RATE,
                            .mtu = 1500,
                            .max_flows = 64 };
    uint8_t bytes[MAX_FRAME];
    struct bed b;

    set_up(&b, 1500, &cc);
    for (uint16_t i = 1; i <= N_JOBS; i++) {
        check_tagged(&b, i, 0, 100, i, i % 2, 8 + i);
        pass(&b, UPLINK, new_frame(UPLINK, i, 0, 200), bytes);
        pass(&b, HOST, new_frame(HOST, 100 + i, 0, 100), bytes);
        assert_int_equal(job_of(&b, i).tx_bytes, 100);
        assert_int_equal(job_of(&b, i).rx_bytes, 200);
    }
    assert_int_equal(stats_of(&b).cc_flows, 2 * N_JOBS);
    assert_int_equal(stats_of(&b).untagged, N_JOBS);
    tear_down(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tag_decides_and_is_removed),
        cmocka_unit_test(a_frame_without_a_tag_is_unchanged_and_counted),
        cmocka_unit_test(full_frames_and_the_vlans_of_hosts_pass),
        cmocka_unit_test(received_bytes_are_those_of_the_learned_slot),
        cmocka_unit_test(bursts_have_the_slots_of_tags),
        cmocka_unit_test(congestion_control_reads_tags),
    };
    char *error = eal_init_offline(64 << 20);
    int status;

    if (error) {
        fprintf(stderr, "test-shim-slot-tags: %s\n", error);
        return EXIT_FAILURE;
    }
    pool = rte_pktmbuf_pool_create(
        "frames", 511, 0, 0, MAX_FRAME + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
    status = pool ? cmocka_run_group_tests(tests, NULL, NULL) : EXIT_FAILURE;
    eal_uninit();
    return status;
}
