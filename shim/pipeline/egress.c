/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/egress.h"

#include <stdlib.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "shim/capture/tap.h"
#include "shim/pipeline/classify.h"
#include "shim/pipeline/counter.h"
#include "shim/pipeline/job-slot.h"
#include "shim/pipeline/pace.h"
#include "shim/pipeline/rank-queue.h"
#include "shim/pipeline/tag.h"
#include "shim/ports/port.h"

#define QUEUE_MS 400            /* A job's queues, in time on the uplink... */
#define QUEUE_MIN_FRAMES 64     /* ...but at least this. */
#define FULL_JOBS 8             /* So many full jobs have room, each... */
#define JOB_MIN_PACKETS 512     /* ...with at least so many packets... */
#define JOB_MAX_PACKETS 4096    /* ...and at most, for the memory's sake. */
#define POOL_SPARE 512          /* Packets in bursts and caches. */

struct egress {
    struct egress_config config;
    struct rank_queues *queues;
    struct pace pace;           /* Of the uplink. */
    uint32_t guard_applied;     /* 'guard' of the queues. */
    uint32_t places_seen;       /* See job_slots_places(). */
    bool leased;                /* The queues have the slots' places. */
    bool behind;                /* Something waits since the last send. */
    bool retags;                /* Something may wait since before the last
                                 * change of the slots' places. */
    uint64_t now;               /* Of the last send. */

    /* The forwarding thread writes, the control thread reads. */
    uint64_t tx_packets, tx_bytes;
    uint64_t tx_ip_bytes, tx_default_bytes;
    uint64_t queue_dropped;

    /* The control thread writes, the forwarding thread reads. */
    uint64_t rate_bps;
    uint32_t guard;             /* As in struct shim_guard. */
};

#define LOAD(P) __atomic_load_n(P, __ATOMIC_ACQUIRE)
#define STORE(P, V) __atomic_store_n(P, V, __ATOMIC_RELEASE)

static uint32_t
max_frame(uint32_t mtu)
{
    return mtu + RTE_ETHER_HDR_LEN + 4;
}

static uint64_t
job_bytes(uint64_t rate_bps, uint32_t mtu)
{
    uint64_t bytes = rate_bps / 8 * QUEUE_MS / 1000;
    uint64_t min = (uint64_t) QUEUE_MIN_FRAMES * max_frame(mtu);

    return bytes > min ? bytes : min;
}

/* Returns how many packets all queues hold at most. */
static uint32_t
queued_packets(uint64_t rate_bps, uint32_t mtu)
{
    uint64_t n = job_bytes(rate_bps, mtu) / max_frame(mtu);

    return FULL_JOBS * (n < JOB_MIN_PACKETS ? JOB_MIN_PACKETS
                        : n > JOB_MAX_PACKETS ? JOB_MAX_PACKETS : n);
}

/* Returns how many packet buffers the loop needs, so that full queues never
 * keep it from receiving. */
uint32_t
egress_pool_packets(uint64_t rate_bps, uint32_t mtu)
{
    return queued_packets(rate_bps, mtu) + POOL_SPARE;
}

static void
apply_rate(struct egress *e, uint64_t now)
{
    uint64_t bps = LOAD(&e->rate_bps);

    if (bps != e->pace.bps) {
        pace_set_rate(&e->pace, now, bps, max_frame(e->config.mtu));
        rank_queues_set_rate(e->queues, now, bps,
                             job_bytes(bps, e->config.mtu));
    }
}

static void
apply_guard(struct egress *e)
{
    uint32_t guard = LOAD(&e->guard);

    if (guard != e->guard_applied) {
        rank_queues_set_guard(e->queues, guard);
        e->guard_applied = guard;
    }
}

/* Takes the order over if it has changed.  Without lease there is none. */
static void
apply_places(struct egress *e, uint64_t now)
{
    bool leased = job_slots_leased(e->config.slots, now);
    job_place places[SHIM_MAX_SLOTS];

    if (leased != e->leased) {
        e->leased = leased;
        e->retags = e->config.tag;
        e->places_seen = UINT32_MAX;
        if (!leased) {
            rank_queues_set_places(e->queues, NULL);
        }
    }
    if (leased && job_slots_places(e->config.slots, &e->places_seen,
                                   places)) {
        e->retags = e->config.tag;
        rank_queues_set_places(e->queues, places);
    }
}

/* Returns NULL without memory. */
struct egress *
egress_create(const struct egress_config *config)
{
    struct egress *e = calloc(1, sizeof *e);

    if (!e) {
        return NULL;
    }
    e->config = *config;
    e->rate_bps = config->rate_bps;
    e->guard = e->guard_applied = SHIM_GUARD_UNTOLD;
    e->queues = rank_queues_create(
        queued_packets(config->rate_bps, config->mtu),
        max_frame(config->mtu));
    if (!e->queues) {
        free(e);
        return NULL;
    }
    rank_queues_set_late(e->queues, config->late_ns);
    apply_rate(e, 0);
    return e;
}

void
egress_destroy(struct egress *e)
{
    struct queue_item item;

    if (e) {
        while (rank_queues_drain(e->queues, &item)) {
            rte_pktmbuf_free(item.packet);
        }
        rank_queues_destroy(e->queues);
        free(e);
    }
}

static void
drop(struct egress *e, const struct queue_item *item)
{
    counter_add(&e->queue_dropped, 1);
    counter_add(&job_slots_counters(e->config.slots, item->slot)->tx_dropped,
                1);
    rte_pktmbuf_free(item->packet);
}

static inline bool
is_control(const struct verdict *v)
{
    return v->treatment.level == SHIM_LEVEL_CONTROL;
}

static inline struct queue_item
item_of(struct rte_mbuf *frame, const struct verdict *v)
{
    return (struct queue_item) {
        .packet = frame,
        .length = rte_pktmbuf_pkt_len(frame),
        .slot = v->slot,
        .is_ip = v->is_ip,
        .is_default = v->treatment.is_default,
        .is_tagged = v->slot && v->is_ip && !is_control(v),
    };
}

/* Queues 'frame' where 'v' says.  If there is no room it, or one that has
 * waited in the longest queue, is dropped and counted. */
void
egress_push(struct egress *e, struct rte_mbuf *frame, const struct verdict *v)
{
    struct queue_item dropped, item = item_of(frame, v);

    if (!rank_queues_push(e->queues, v->queue, is_control(v), &item,
                          &dropped)) {
        drop(e, &dropped);
    }
}

/* The same for 'n' frames, each with its verdict: those in a row that belong
 * in one queue at once. */
static void
push_runs(struct egress *e, const struct queue_item *items,
          const struct verdict *v, uint32_t n)
{
    struct queue_item dropped[PORT_BURST];

    for (uint32_t i = 0, end; i < n; i = end) {
        uint32_t n_dropped;

        end = i + 1;
        while (end < n && v[end].slot == v[i].slot
               && v[end].queue == v[i].queue
               && is_control(&v[end]) == is_control(&v[i])) {
            end++;
        }
        n_dropped = rank_queues_push_run(e->queues, v[i].queue,
                                         is_control(&v[i]), &items[i],
                                         end - i, dropped);
        for (uint32_t k = 0; k < n_dropped; k++) {
            drop(e, &dropped[k]);
        }
    }
}

static void
show_to_tap(struct egress *e, const struct queue_item *items, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct rte_mbuf *frame = items[i].packet;

        tap_see(e->config.tap, items[i].slot, false,
                rte_pktmbuf_mtod(frame, uint8_t *),
                rte_pktmbuf_data_len(frame), items[i].length, e->now);
    }
}

/* Counts what was sent; items of length 0 were not. */
static void
count_sent(struct egress *e, const struct queue_item *items, uint32_t n)
{
    uint64_t bytes = 0, ip_bytes = 0, default_bytes = 0, packets = 0;

    for (uint32_t i = 0; i < n; ) {
        uint16_t slot = items[i].slot;
        struct job_counters *job = job_slots_counters(e->config.slots, slot);
        uint64_t job_bytes = 0, job_packets = 0;

        do {
            uint32_t length = items[i].length;
            uint32_t ip_length = length & -(uint32_t) items[i].is_ip;

            job_packets += length != 0;
            job_bytes += length;
            ip_bytes += ip_length;
            default_bytes += ip_length & -(uint32_t) items[i].is_default;
        } while (++i < n && items[i].slot == slot);
        counter_add(&job->tx_packets, job_packets);
        counter_add(&job->tx_bytes, job_bytes);
        packets += job_packets;
        bytes += job_bytes;
    }
    counter_add(&e->tx_packets, packets);
    counter_add(&e->tx_bytes, bytes);
    counter_add(&e->tx_ip_bytes, ip_bytes);
    counter_add(&e->tx_default_bytes, default_bytes);
}

/* Sends 'frames', which are those of 'items', in their order.  The tap sees
 * them before the port has them, whose they are then. */
static void
send_all(struct egress *e, struct rte_mbuf **frames,
         struct queue_item *items, uint32_t n)
{
    if (tap_is_on(e->config.tap)) {
        show_to_tap(e, items, n);
    }
    if (port_send_burst(e->config.uplink, frames, n) < n) {
        for (uint32_t i = 0; i < n; i++) {
            items[i].length = frames[i] ? items[i].length : 0;
        }
    }
    count_sent(e, items, n);
}

/* Returns how many of the first frames need no queue: nobody waits, and the
 * uplink is free for them. */
static uint32_t
count_direct(struct egress *e, const struct queue_item *items,
             const struct verdict *v, uint32_t n, uint64_t now)
{
    uint64_t bytes = 0, room;
    uint32_t i = 0, max;

    if (rank_queues_due(e->queues) <= now) {
        return 0;
    }
    pace_forget(&e->pace, now, 0);
    room = pace_room(&e->pace, now);
    max = port_room(e->config.uplink);
    max = n < max ? n : max;
    while (i < max && bytes < room && !v[i].queue && !is_control(&v[i])) {
        bytes += items[i++].length;
    }
    if (i) {
        pace_take(&e->pace, bytes);
    }
    return i;
}

/* Sends or queues up to PORT_BURST frames that came at 'now', each with its
 * verdict. */
void
egress_push_burst(struct egress *e, struct rte_mbuf **frames,
                  const struct verdict *v, uint32_t n, uint64_t now)
{
    struct queue_item items[PORT_BURST];
    uint32_t n_direct;

    for (uint32_t i = 0; i < n; i++) {
        items[i] = item_of(frames[i], &v[i]);
    }
    e->now = now;
    n_direct = count_direct(e, items, v, n, now);
    if (n_direct) {
        send_all(e, frames, items, n_direct);
    }
    push_runs(e, items + n_direct, v + n_direct, n - n_direct);
}

/* Tags anew what may have waited while its job's level changed. */
static void
retag(struct egress *e, struct queue_item *items, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct rte_mbuf *frame = items[i].packet;
        struct treatment t;

        if (items[i].is_tagged) {
            t = job_slots_treatment(e->config.slots, items[i].slot,
                                    e->leased);
            items[i].is_default = t.is_default;
            tag_frame(rte_pktmbuf_mtod(frame, uint8_t *),
                      rte_pktmbuf_data_len(frame), t.dscp);
        }
    }
    e->retags = !egress_is_empty(e);
}

/* Sends what is due.  Returns true if there was anything. */
bool
egress_send(struct egress *e, uint64_t now)
{
    struct rte_mbuf *frames[PORT_BURST];
    struct queue_item items[PORT_BURST];
    uint32_t n;

    e->now = now;
    apply_rate(e, now);
    apply_guard(e);
    apply_places(e, now);
    pace_forget(&e->pace, now, e->behind ? e->config.late_ns : 0);
    n = rank_queues_take(e->queues, now, &e->pace, items,
                         port_room(e->config.uplink));
    if (n) {
        for (uint32_t i = 0; i < n; i++) {
            frames[i] = items[i].packet;
        }
        if (__builtin_expect(e->retags, 0)) {
            retag(e, items, n);
        }
        send_all(e, frames, items, n);
    }
    e->behind = rank_queues_due(e->queues) <= now;
    return port_flush(e->config.uplink, now);
}

/* Returns the nanoseconds from 'now' on until a queued packet is due, and
 * UINT64_MAX if none is queued. */
uint64_t
egress_until_due(const struct egress *e, uint64_t now)
{
    uint64_t due = rank_queues_due(e->queues);
    uint64_t paced = pace_due(&e->pace);

    if (due == UINT64_MAX) {
        return UINT64_MAX;
    }
    due = due > paced ? due : paced;
    return due > now ? due - now : 0;
}

bool
egress_is_empty(const struct egress *e)
{
    return !rank_queues_bytes(e->queues);
}

uint16_t
egress_flow_queue(struct egress *e, uint16_t slot)
{
    return rank_queues_flow_new(e->queues, slot);
}

void
egress_flow_free(struct egress *e, uint16_t queue)
{
    if (queue) {
        rank_queues_flow_free(e->queues, queue);
    }
}

void
egress_flow_rate(struct egress *e, uint16_t queue, uint64_t bps)
{
    if (queue) {
        rank_queues_flow_rate(e->queues, e->now, queue, bps);
    }
}

void
egress_set_rate(struct egress *e, uint64_t bps)
{
    STORE(&e->rate_bps, bps);
}

uint64_t
egress_rate(const struct egress *e)
{
    return LOAD(&e->rate_bps);
}

void
egress_set_guard(struct egress *e, uint32_t share)
{
    STORE(&e->guard, share);
}

uint32_t
egress_guard(const struct egress *e)
{
    return LOAD(&e->guard);
}

void
egress_stats(const struct egress *e, struct shim_stats *stats)
{
    stats->tx_packets = counter_get(&e->tx_packets);
    stats->tx_bytes = counter_get(&e->tx_bytes);
    stats->tx_ip_bytes = counter_get(&e->tx_ip_bytes);
    stats->tx_default_bytes = counter_get(&e->tx_default_bytes);
    stats->queue_dropped = counter_get(&e->queue_dropped);
    stats->queued_bytes = rank_queues_bytes(e->queues);
    stats->policed = rank_queues_policed(e->queues);
}
