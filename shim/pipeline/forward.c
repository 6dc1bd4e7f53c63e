/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/forward.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "shim/pipeline/classify.h"
#include "shim/pipeline/counter.h"
#include "shim/pipeline/level-queue.h"
#include "shim/pipeline/pace.h"
#include "shim/pipeline/tag.h"
#include "shim/ports/port.h"

#define US 1000u                /* Nanoseconds. */
#define MS 1000000u

#define MIN_NAP (10 * US)       /* The first one after some work... */
#define MAX_NAP (1 * MS)        /* ...doubles up to here. */
#define WAIT_AFTER (160 * US)   /* Naps longer than this end with a frame. */
#define MAX_WAIT (20 * MS)      /* To look at 'stop' and the rate. */

#define LOOP_NICE (-10)         /* Of the loop's thread... */
#define LOOP_SLICE (100 * US)   /* ...and how long it runs at a time. */

#define QUEUE_MS 400            /* A level's queue, in time on the uplink... */
#define QUEUE_MIN_FRAMES 64     /* ...but at least this. */
#define QUEUE_MIN_PACKETS 512   /* Small ones, where that is more. */
#define QUEUE_MAX_PACKETS 4096
#define CONTROL_FRAMES 64       /* Of the control level's queue. */
#define POOL_SPARE 512          /* Packets in bursts and caches. */

struct forward {
    struct forward_config config;
    struct classifier classifier;
    struct level_queues *queues;
    struct pace pace;           /* Of the uplink. */
    uint64_t nap;               /* Nanoseconds of the last one. */
    uint32_t guard_applied;     /* 'guard' of the queues. */

    /* The loop writes, the control thread reads. */
    uint64_t tx_packets, tx_bytes;
    uint64_t rx_packets, rx_bytes;
    uint64_t tx_ip_bytes, tx_default_bytes;
    uint64_t queue_dropped;
    clockid_t clock;            /* The loop's CPU time, if 'running'... */
    uint64_t clock_base;        /* ...and what it showed at the start. */
    bool running, paused;

    /* The control thread writes, the loop reads. */
    uint64_t rate_bps;
    uint32_t guard;             /* As in struct shim_guard. */
    bool stop, pause;
};

#define LOAD(P) __atomic_load_n(P, __ATOMIC_ACQUIRE)
#define STORE(P, V) __atomic_store_n(P, V, __ATOMIC_RELEASE)

static uint64_t
clock_ns(clockid_t clock)
{
    struct timespec ts = { 0, 0 };

    clock_gettime(clock, &ts);
    return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

/* Returns the time that everything here counts by. */
uint64_t
forward_now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static uint32_t
max_frame(uint32_t mtu)
{
    return mtu + RTE_ETHER_HDR_LEN + 4;
}

static uint64_t
queue_bytes(uint64_t rate_bps, uint32_t mtu)
{
    uint64_t bytes = rate_bps / 8 * QUEUE_MS / 1000;
    uint64_t min = (uint64_t) QUEUE_MIN_FRAMES * max_frame(mtu);

    return bytes > min ? bytes : min;
}

/* Returns how many packets each level's queue holds at most: as many whole
 * frames as its bytes allow, within bounds that its memory sets. */
uint32_t
forward_queue_packets(uint64_t rate_bps, uint32_t mtu)
{
    uint64_t n = queue_bytes(rate_bps, mtu) / max_frame(mtu);

    return n < QUEUE_MIN_PACKETS ? QUEUE_MIN_PACKETS
           : n > QUEUE_MAX_PACKETS ? QUEUE_MAX_PACKETS : n;
}

/* Returns how many packet buffers the loop needs, so that full queues never
 * keep it from receiving. */
uint32_t
forward_pool_packets(uint64_t rate_bps, uint32_t mtu)
{
    return SHIM_N_LEVELS * forward_queue_packets(rate_bps, mtu) + POOL_SPARE;
}

static void
apply_rate(struct forward *f, uint64_t now)
{
    uint64_t bps = LOAD(&f->rate_bps);
    uint32_t frame = max_frame(f->config.mtu);

    if (bps == f->pace.bps) {
        return;
    }
    pace_set_rate(&f->pace, now, bps, pace_burst(bps, frame));
    for (int level = 1; level < SHIM_N_LEVELS; level++) {
        level_queues_set_limit(f->queues, level,
                               queue_bytes(bps, f->config.mtu));
    }
    level_queues_set_limit(f->queues, SHIM_LEVEL_CONTROL,
                           (uint64_t) CONTROL_FRAMES * frame);
}

static void
apply_guard(struct forward *f)
{
    uint32_t guard = LOAD(&f->guard);

    if (guard != f->guard_applied) {
        level_queues_set_guard(f->queues, guard);
        f->guard_applied = guard;
    }
}

/* Returns NULL without memory. */
struct forward *
forward_create(const struct forward_config *config)
{
    struct forward *f = calloc(1, sizeof *f);

    if (!f) {
        return NULL;
    }
    f->config = *config;
    f->rate_bps = config->rate_bps;
    f->guard = f->guard_applied = SHIM_GUARD_UNTOLD;
    f->classifier = (struct classifier) {
        .flows = config->flows,
        .slots = config->slots,
        .misses = config->misses,
    };
    f->queues = level_queues_create(
        forward_queue_packets(config->rate_bps, config->mtu), 0);
    if (!f->queues) {
        free(f);
        return NULL;
    }
    apply_rate(f, forward_now());
    return f;
}

void
forward_destroy(struct forward *f)
{
    const struct queue_item *item;

    if (f) {
        while ((item = level_queues_first(f->queues))) {
            rte_pktmbuf_free(item->packet);
            level_queues_pop(f->queues);
        }
        level_queues_destroy(f->queues);
        free(f);
    }
}

/* Classifies, tags and queues one frame of the host's. */
static void
from_host(struct forward *f, struct rte_mbuf *frame, uint64_t now,
          bool leased)
{
    uint8_t *data = rte_pktmbuf_mtod(frame, uint8_t *);
    uint32_t length = rte_pktmbuf_pkt_len(frame);
    struct queue_item item;
    struct verdict v;

    classify_from_host(&f->classifier, data, rte_pktmbuf_data_len(frame), now,
                       leased, &v);
    if (v.family && f->config.tag) {
        if (v.family == 4) {
            tag_ipv4(data + v.l3, v.treatment.dscp);
        } else {
            tag_ipv6(data + v.l3, v.treatment.dscp);
        }
    }
    item = (struct queue_item) {
        .packet = frame,
        .length = length,
        .slot = v.slot,
        .is_ip = v.is_ip,
        .is_default = v.treatment.is_default,
    };
    if (!level_queues_push(f->queues, v.treatment.level, &item)) {
        counter_add(&f->queue_dropped, 1);
        counter_add(&job_slots_counters(f->config.slots, v.slot)->tx_dropped,
                    1);
        rte_pktmbuf_free(frame);
    }
}

static bool
receive_from_host(struct forward *f, uint64_t now)
{
    struct rte_mbuf *frames[PORT_BURST];
    uint16_t n = port_receive(f->config.host, frames, PORT_BURST);
    bool leased = job_slots_leased(f->config.slots, now);

    for (uint16_t i = 0; i < n; i++) {
        from_host(f, frames[i], now, leased);
    }
    return n > 0;
}

static void
count_sent(struct forward *f, const struct queue_item *item)
{
    struct job_counters *job = job_slots_counters(f->config.slots,
                                                  item->slot);

    counter_add(&f->tx_packets, 1);
    counter_add(&f->tx_bytes, item->length);
    if (item->is_ip) {
        counter_add(&f->tx_ip_bytes, item->length);
        counter_add(&f->tx_default_bytes,
                    item->is_default ? item->length : 0);
    }
    counter_add(&job->tx_packets, 1);
    counter_add(&job->tx_bytes, item->length);
}

/* Sends the queues' packets that are due.  Returns true if there were any. */
static bool
send_to_uplink(struct forward *f, uint64_t now)
{
    const struct queue_item *item;

    while (port_room(f->config.uplink)
           && (item = level_queues_first(f->queues))
           && pace_due(&f->pace, item->length) <= now) {
        if (port_send(f->config.uplink, item->packet)) {
            pace_take(&f->pace, now, item->length);
            count_sent(f, item);
        }
        level_queues_pop(f->queues);
    }
    return port_flush(f->config.uplink, now);
}

static bool
receive_from_uplink(struct forward *f, uint64_t now)
{
    struct port *host = f->config.host;
    struct rte_mbuf *frames[PORT_BURST];
    uint16_t n = port_receive(f->config.uplink, frames, port_room(host));

    for (uint16_t i = 0; i < n; i++) {
        uint32_t length = rte_pktmbuf_pkt_len(frames[i]);
        uint16_t slot = classify_to_host(
            &f->classifier, rte_pktmbuf_mtod(frames[i], const uint8_t *),
            rte_pktmbuf_data_len(frames[i]));

        if (port_send(host, frames[i])) {
            struct job_counters *job = job_slots_counters(f->config.slots,
                                                          slot);

            counter_add(&f->rx_packets, 1);
            counter_add(&f->rx_bytes, length);
            counter_add(&job->rx_packets, 1);
            counter_add(&job->rx_bytes, length);
        }
    }
    return port_flush(host, now);
}

/* Returns how long the loop may sleep before a packet is due. */
static uint64_t
until_due(const struct forward *f, uint64_t now)
{
    const struct queue_item *item = level_queues_first(f->queues);
    uint64_t due;

    if (!item) {
        return UINT64_MAX;
    }
    due = pace_due(&f->pace, item->length);
    return due > now ? due - now : 0;
}

static void
sleep_ns(uint64_t ns)
{
    struct timespec ts = { 0, ns };

    clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* Sleeps up to 'ns', less if a frame arrives.  An interface that is down makes
 * poll() return at once, so that the rest of a nap follows. */
static void
wait_for_frame(struct forward *f, uint64_t ns)
{
    struct pollfd fds[] = {
        { .fd = port_fd(f->config.host), .events = POLLIN },
        { .fd = port_fd(f->config.uplink), .events = POLLIN },
    };
    struct timespec ts = { 0, ns };

    if (ppoll(fds, 2, &ts, NULL) > 0
        && (fds[0].revents | fds[1].revents) & ~POLLIN) {
        sleep_ns(ns < MAX_NAP ? ns : MAX_NAP);
    }
}

/* Sleeps, after a turn of the loop that found nothing to do. */
static void
idle(struct forward *f, uint64_t now)
{
    bool late_host = port_kick(f->config.host);
    bool late_uplink = port_kick(f->config.uplink);
    bool held = (port_room(f->config.host) < PORT_BURST
                 || port_room(f->config.uplink) < PORT_BURST);
    uint64_t due = held ? UINT64_MAX : until_due(f, now);

    f->nap = f->nap < MIN_NAP ? MIN_NAP
             : f->nap < MAX_NAP / 2 ? f->nap * 2 : MAX_NAP;
    if (f->nap <= WAIT_AFTER || late_host || late_uplink || held
        || port_fd(f->config.host) < 0 || port_fd(f->config.uplink) < 0) {
        sleep_ns(due < f->nap ? due : f->nap);
    } else {
        wait_for_frame(f, due < MAX_WAIT ? due : MAX_WAIT);
    }
}

static void
wait_while_paused(struct forward *f)
{
    STORE(&f->paused, true);
    while (LOAD(&f->pause) && !LOAD(&f->stop)) {
        sleep_ns(MAX_NAP);
    }
    STORE(&f->paused, false);
}

/* Asks the kernel to run this thread soon when it wakes up: a turn takes some
 * microseconds, while the training beside it computes for milliseconds, which
 * is more than the uplink's burst.  With six busy processes on two CPUs and
 * eight shims this took flows from 80 to 96 % of their links.  Where it is not
 * allowed, or the kernel knows no slices, packets wait a little longer. */
static void
ask_to_run_soon(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attr = {
        .size = sizeof attr,
        .policy = SCHED_OTHER,
        .nice = LOOP_NICE,
        .runtime = LOOP_SLICE,
    };

    if (syscall(SYS_sched_setattr, 0, &attr, 0)) {
        attr.nice = 0;
        syscall(SYS_sched_setattr, 0, &attr, 0);
    }
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
}

/* Forwards packets until forward_stop(). */
void
forward_loop(struct forward *f)
{
    ask_to_run_soon();
    pthread_getcpuclockid(pthread_self(), &f->clock);
    f->clock_base = clock_ns(f->clock);
    STORE(&f->running, true);
    while (!LOAD(&f->stop)) {
        uint64_t now = forward_now();
        bool worked;

        if (LOAD(&f->pause)) {
            wait_while_paused(f);
            continue;
        }
        apply_rate(f, now);
        apply_guard(f);
        worked = receive_from_host(f, now);
        worked |= send_to_uplink(f, now);
        worked |= receive_from_uplink(f, now);
        if (worked) {
            f->nap = 0;
        } else {
            idle(f, now);
        }
    }
    STORE(&f->running, false);
}

void
forward_stop(struct forward *f)
{
    STORE(&f->stop, true);
}

/* Makes the loop keep off its ports.  Returns false if it does not within a
 * second or so; then nothing has changed. */
bool
forward_pause(struct forward *f)
{
    STORE(&f->pause, true);
    for (int i = 0; i < 1000; i++) {
        if (LOAD(&f->paused)) {
            return true;
        }
        sleep_ns(MAX_NAP);
    }
    STORE(&f->pause, false);
    return false;
}

void
forward_resume(struct forward *f)
{
    STORE(&f->pause, false);
}

void
forward_set_rate(struct forward *f, uint64_t bps)
{
    STORE(&f->rate_bps, bps);
}

uint64_t
forward_rate(const struct forward *f)
{
    return LOAD(&f->rate_bps);
}

void
forward_set_guard(struct forward *f, uint32_t share)
{
    STORE(&f->guard, share);
}

void
forward_stats(struct forward *f, struct shim_stats *stats)
{
    stats->tx_packets = counter_get(&f->tx_packets);
    stats->tx_bytes = counter_get(&f->tx_bytes);
    stats->rx_packets = counter_get(&f->rx_packets);
    stats->rx_bytes = counter_get(&f->rx_bytes);
    stats->tx_ip_bytes = counter_get(&f->tx_ip_bytes);
    stats->tx_default_bytes = counter_get(&f->tx_default_bytes);
    stats->queue_dropped = counter_get(&f->queue_dropped);
    stats->misses = counter_get(&f->classifier.n_misses);
    stats->malformed = counter_get(&f->classifier.n_malformed);
    stats->queued_bytes = level_queues_bytes(f->queues);
    if (LOAD(&f->running)) {
        stats->busy_ns = clock_ns(f->clock) - f->clock_base;
    }
}
