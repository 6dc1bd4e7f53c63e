/* SPDX-License-Identifier: Apache-2.0 */

/* Measures packets per CPU-second of the pipeline, by the stages that run.
 *
 *    shim-pps MODE FLOWS FRAMES SECONDS
 *
 * FRAMES packets of 64 bytes circulate: host port, pipeline, uplink, and back
 * to the host port through a ring.  They are of FLOWS flows of 64 jobs, whose
 * slots the frames have in their tags, and the shim in its cache.  Two
 * pipelines alternate and give the jobs different DSCPs, so that the header of
 * each packet is rewritten in each round.  Frame i belongs to flow i modulo
 * FLOWS, so that flows are compared among as many frames in as much memory.
 *
 * "full" is the whole path with an idle uplink and a token bucket of two
 * frames of MTU 9000.  "queued" is the same with BACKLOG frames always in the
 * queues of each pipeline, so that each frame is queued and dequeued.
 *
 * Prints the packets, the CPU time, and the frequency of the timestamp
 * counter, one number per line.  shim-pps.py runs it. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include <rte_ring.h>

#include "shim/classify/classify.h"
#include "shim/classify/fetch.h"
#include "shim/classify/flow-cache.h"
#include "shim/classify/job-slot.h"
#include "shim/classify/tag.h"
#include "shim/clock/clock.h"
#include "shim/loop/egress.h"
#include "shim/loop/forward.h"
#include "shim/ports/port.h"
#include "tests/bench/ring-port.h"

#define N_JOBS 64
#define FIRST_ADDRESS (10u << 24)       /* In host byte order. */
#define FRAME_SIZE 60           /* 64 with the FCS. */
#define ROOM 64                 /* Bytes of a buffer: a cache line. */
#define RATE UINT64_C(800000000000)
#define MTU 9000
#define LATE_NS 500000         /* The shim's default. */
#define BACKLOG (3 * PORT_BURST)

struct bench {
    struct rte_ring *loop, *idle_in, *idle_out;
    struct port *host, *uplink;
    struct flow_cache *flows;

    /* Two of these, for two DSCPs. */
    struct job_slots *slots[2];
    struct forward *forwards[2];
    struct classifier classifiers[2];
    uint64_t sum;               /* Of the parser's results. */
};

static uint32_t n_flows, n_frames;

static void
die(const char *what)
{
    fprintf(stderr, "shim-pps: %s\n", what);
    exit(EXIT_FAILURE);
}

static void
start_dpdk(bool huge)
{
    const char *argv[] = {
        "shim-pps",
        "-l",
        getenv("SHIM_PPS_CPU") ? getenv("SHIM_PPS_CPU") : "0",
        "--no-pci",
        "--no-telemetry",
        "--no-shconf",
        "--log-level=*:error",
        huge ? "--in-memory" : "--no-huge",
        "-m",
        "400",
    };

    if (rte_eal_init(sizeof argv / sizeof *argv, (char **) argv) < 0) {
        die("DPDK does not start");
    }
}

static void
fill_frame(struct rte_mbuf *frame, uint32_t flow)
{
    static const uint8_t start[] =
        "\2\0\0\0\0\2\2\0\0\0\0\1\x08\0\x45\0\0\x2e\0\1\x40\0\x40\6\0\0"
        "\x0a\xff\0\1\0\0\0\0\x75\x30\xc3\x83";
    uint32_t remote = FIRST_ADDRESS + flow;
    uint8_t *data;

    frame->data_off = 0; /* Nothing is put before a frame. */
    data = (uint8_t *) rte_pktmbuf_append(frame, FRAME_SIZE);
    if (!data) {
        die("a frame does not fit");
    }
    memset(data, 0, FRAME_SIZE);
    memcpy(data, start, sizeof start - 1);
    memcpy(data + 30, &remote, sizeof remote);
    data[46] = 0x50;
    frame->vlan_tci = 1 + flow % N_JOBS;
    frame->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
}

static struct rte_ring *
new_ring(const char *name, uint32_t size)
{
    struct rte_ring *r =
        rte_ring_create(name, rte_align32pow2(size + 1), SOCKET_ID_ANY,
                        RING_F_SP_ENQ | RING_F_SC_DEQ);

    if (!r) {
        die("no memory for a ring");
    }
    return r;
}

static void
create_ports(struct bench *b)
{
    b->loop = new_ring("loop", n_frames);
    b->idle_in = new_ring("in", 63);
    b->idle_out = new_ring("out", 63);
    b->host = ring_port_create("host", b->idle_out, b->loop);
    b->uplink = ring_port_create("uplink", b->loop, b->idle_in);
    if (!b->host || !b->uplink) {
        die("no ring ports");
    }
}

static void
create_frames(struct bench *b)
{
    struct rte_mempool *pool =
        rte_pktmbuf_pool_create("frames", n_frames, 0, 0, ROOM, SOCKET_ID_ANY);

    for (uint32_t i = 0; pool && i < n_frames; i++) {
        struct rte_mbuf *frame = rte_pktmbuf_alloc(pool);

        if (!frame) {
            break;
        }
        fill_frame(frame, i % n_flows);
        if (rte_ring_enqueue(b->loop, frame)) {
            break;
        }
    }
    if (rte_ring_count(b->loop) != n_frames) {
        die("no memory for the frames");
    }
}

static void
create_slots(struct bench *b)
{
    for (int which = 0; which < 2; which++) {
        b->slots[which] = job_slots_create();
        for (uint16_t i = 1; i <= N_JOBS; i++) {
            struct shim_slot slot = {
                .slot = i, .level = 1 + i % 6, .dscp = which ? 48 : 8,
                .rank = i,
            };

            job_slots_set(b->slots[which], &slot);
        }
        job_slots_lease(b->slots[which], clock_now(), 3600000, 0);
    }
}

static void
create_tables(struct bench *b)
{
    b->flows = flow_cache_create(0x8c3f7a9d12e45b67);
    if (getenv("SHIM_PPS_PORTABLE")) {
        flow_cache_use_portable(b->flows);
    }
    create_slots(b);
}

static void
create_classifiers(struct bench *b)
{
    for (int i = 0; i < 2; i++) {
        b->classifiers[i] = (struct classifier){
            .flows = b->flows,
            .slots = b->slots[i],
        };
    }
}

static void
create_forwards(struct bench *b)
{
    for (int i = 0; i < 2; i++) {
        struct forward_config config = {
            .host = b->host,
            .uplink = b->uplink,
            .flows = b->flows,
            .slots = b->slots[i],
            .rate_bps = RATE,
            .mtu = MTU,
            .tag = true,
            .late_ns = LATE_NS,
        };

        b->forwards[i] = forward_create(&config);
    }
}

static uint16_t
turn_full(struct bench *b, int which)
{
    forward_poll(b->forwards[which], clock_now());
    return PORT_BURST;
}

static struct shim_stats
stats_of(const struct bench *b, int which)
{
    struct shim_stats stats = { .tx_packets = 0 };

    forward_stats(b->forwards[which], &stats);
    return stats;
}

/* Fills the queues.  Returns the number of frames received. */
static uint64_t
make_backlog(struct bench *b)
{
    uint64_t n = 0;

    for (int i = 0; i < 2; i++) {
        egress_set_rate(forward_egress(b->forwards[i]), SHIM_MIN_RATE);
        do {
            n += turn_full(b, i);
        } while (stats_of(b, i).queued_bytes < BACKLOG * FRAME_SIZE);
        egress_set_rate(forward_egress(b->forwards[i]), RATE);
    }
    return n;
}

static uint16_t
turn_io(struct bench *b, int which)
{
    struct rte_mbuf *frames[PORT_BURST];
    uint16_t n = port_receive(b->host, frames, PORT_BURST);

    ring_port_send_burst(b->uplink, frames, n);
    return n;
}

/* Runs the stages up to 'last', from a frame's arrival to its counters. */
enum stage { PARSE, LOOKUP, TAG, COUNT };

static inline uint16_t
turn_stages(struct bench *b, int which, enum stage last)
{
    struct classifier *c = &b->classifiers[which];
    struct rte_mbuf *frames[PORT_BURST];
    struct packet packets[PORT_BURST];
    struct verdict v[PORT_BURST];
    uint16_t n = port_receive(b->host, frames, PORT_BURST);

    if (last == PARSE) {
        struct flow_id id = { 0, 0 };
        uint64_t n_other = 0, sum = 0;

        fetch_packets(frames, n, packets);
        for (uint16_t i = 0; i < n; i++) {
            n_other += !parse_common(packets[i].data, packets[i].length, true,
                                     &id);
            sum += id.addresses + id.rest;
        }
        c->n_malformed += n_other;
        b->sum += sum;
    }
    if (last >= LOOKUP && n) {
        classify_frames(c, frames, n, true, packets, v);
    }
    if (last >= TAG) {
        tag_burst(packets, v, n, 0);
    }
    if (last >= COUNT) {
        uint32_t lengths[PORT_BURST];
        uint16_t slots[PORT_BURST];

        for (uint16_t i = 0; i < n; i++) {
            lengths[i] = packets[i].length;
            slots[i] = v[i].slot;
        }
        job_slots_count_rx(b->slots[which], slots, lengths, n);
    }
    ring_port_send_burst(b->uplink, frames, n);
    return n;
}

static uint16_t
turn_parse(struct bench *b, int which)
{
    return turn_stages(b, which, PARSE);
}

static uint16_t
turn_lookup(struct bench *b, int which)
{
    return turn_stages(b, which, LOOKUP);
}

static uint16_t
turn_tag(struct bench *b, int which)
{
    return turn_stages(b, which, TAG);
}

static uint16_t
turn_classify(struct bench *b, int which)
{
    return turn_stages(b, which, COUNT);
}

static const struct {
    const char *name;
    uint16_t (*turn)(struct bench *, int which);
} modes[] = {
    { "io", turn_io },
    { "parse", turn_parse },
    { "lookup", turn_lookup },
    { "tag", turn_tag },
    { "classify", turn_classify },
    { "full", turn_full },
    { "queued", turn_full },
};

/* Returns NULL if the mode is unknown. */
static uint16_t
(*turn_of(const char *mode))(struct bench *, int)
{
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (!strcmp(mode, modes[i].name)) {
            return modes[i].turn;
        }
    }
    return NULL;
}

static uint64_t
cpu_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* Runs for 'ns' of 'clock'.  Returns the number of packets. */
static uint64_t
run_for(struct bench *b, uint16_t (*turn)(struct bench *, int), uint64_t ns,
        uint64_t (*clock)(void))
{
    uint64_t end = clock() + ns, n = 0;

    do {
        for (int which = 0; which < 2; which++) {
            for (uint32_t i = 0; i < n_frames; i += PORT_BURST) {
                n += turn(b, which);
            }
        }
    } while (clock() < end);
    return n;
}

/* Checks that each frame passed, with its tag. */
static void
check(struct bench *b, const char *mode, uint64_t n)
{
    uint64_t sent = 0, waiting = 0;

    for (int i = 0; i < 2; i++) {
        struct shim_stats stats = stats_of(b, i);

        sent += stats.tx_packets;
        waiting += stats.queued_bytes / FRAME_SIZE;
        if (stats.malformed || stats.queue_dropped || stats.untagged
            || b->classifiers[i].n_malformed || b->classifiers[i].n_untagged) {
            die("packets were not what they should be");
        }
    }
    if (rte_ring_count(b->loop) + waiting != n_frames) {
        die("packets were lost");
    }
    if (turn_of(mode) == turn_full
        && (sent + waiting != n || (waiting > 0) != !strcmp(mode, "queued"))) {
        die("packets waited that should not, or the other way round");
    }
}

static void
measure(struct bench *b, const char *mode,
        uint16_t (*turn)(struct bench *, int), uint64_t seconds_ns)
{
    uint64_t n, n_warm, ns;

    create_ports(b);
    create_forwards(b);
    create_classifiers(b);
    create_frames(b);
    n_warm = strcmp(mode, "queued") ? 0 : make_backlog(b);
    n_warm += run_for(b, turn, seconds_ns / 4, cpu_ns);
    ns = cpu_ns();
    n = run_for(b, turn, seconds_ns, cpu_ns);
    ns = cpu_ns() - ns;
    check(b, mode, n + n_warm);
    printf("packets %"PRIu64"\ncpu_ns %"PRIu64"\ntsc_hz %"PRIu64"\n", n, ns,
           rte_get_tsc_hz());
}

int
main(int argc, char *argv[])
{
    uint16_t (*turn)(struct bench *, int) = NULL;
    struct bench b = { .host = NULL };
    uint64_t seconds_ns;

    if (argc != 5) {
        die("usage: shim-pps MODE FLOWS FRAMES SECONDS");
    }
    turn = turn_of(argv[1]);
    n_flows = atoi(argv[2]);
    n_frames = atoi(argv[3]);
    seconds_ns = atof(argv[4]) * NS_PER_S;
    if (!turn || !n_flows || n_flows > n_frames || n_frames % PORT_BURST
        || !seconds_ns) {
        die("FRAMES is a multiple of 64, FLOWS is 1 to FRAMES, SECONDS is "
            "positive");
    }
    start_dpdk(!getenv("SHIM_PPS_NO_HUGE"));
    create_tables(&b);
    measure(&b, argv[1], turn, seconds_ns);
    return EXIT_SUCCESS;
}
