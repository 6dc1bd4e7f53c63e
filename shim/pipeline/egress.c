/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/egress.h"

#include <stdlib.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "shim/pipeline/classify.h"
#include "shim/pipeline/counter.h"
#include "shim/pipeline/level-queue.h"
#include "shim/pipeline/pace.h"
#include "shim/ports/port.h"

#define QUEUE_MS 400            /* A level's queue, in time on the uplink... */
#define QUEUE_MIN_FRAMES 64     /* ...but at least this. */
#define QUEUE_MIN_PACKETS 512   /* Small ones, where that is more. */
#define QUEUE_MAX_PACKETS 4096
#define CONTROL_FRAMES 64       /* Of the control level's queue. */
#define POOL_SPARE 512          /* Packets in bursts and caches. */

struct egress {
    struct egress_config config;
    struct level_queues *queues;
    struct pace pace;           /* Of the uplink. */
    uint32_t guard_applied;     /* 'guard' of the queues. */

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
queue_bytes(uint64_t rate_bps, uint32_t mtu)
{
    uint64_t bytes = rate_bps / 8 * QUEUE_MS / 1000;
    uint64_t min = (uint64_t) QUEUE_MIN_FRAMES * max_frame(mtu);

    return bytes > min ? bytes : min;
}

/* Returns how many packets each level's queue holds at most: as many whole
 * frames as its bytes allow, within bounds that its memory sets. */
static uint32_t
queue_packets(uint64_t rate_bps, uint32_t mtu)
{
    uint64_t n = queue_bytes(rate_bps, mtu) / max_frame(mtu);

    return n < QUEUE_MIN_PACKETS ? QUEUE_MIN_PACKETS
           : n > QUEUE_MAX_PACKETS ? QUEUE_MAX_PACKETS : n;
}

/* Returns how many packet buffers the loop needs, so that full queues never
 * keep it from receiving. */
uint32_t
egress_pool_packets(uint64_t rate_bps, uint32_t mtu)
{
    return SHIM_N_LEVELS * queue_packets(rate_bps, mtu) + POOL_SPARE;
}

static void
apply_rate(struct egress *e, uint64_t now)
{
    uint64_t bps = LOAD(&e->rate_bps);
    uint32_t frame = max_frame(e->config.mtu);

    if (bps == e->pace.bps) {
        return;
    }
    pace_set_rate(&e->pace, now, bps, pace_burst(bps, frame));
    for (int level = 1; level < SHIM_N_LEVELS; level++) {
        level_queues_set_limit(e->queues, level,
                               queue_bytes(bps, e->config.mtu));
    }
    level_queues_set_limit(e->queues, SHIM_LEVEL_CONTROL,
                           (uint64_t) CONTROL_FRAMES * frame);
}

static void
apply_guard(struct egress *e)
{
    uint32_t guard = LOAD(&e->guard);

    if (guard != e->guard_applied) {
        level_queues_set_guard(e->queues, guard);
        e->guard_applied = guard;
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
    e->queues = level_queues_create(
        queue_packets(config->rate_bps, config->mtu), 0);
    if (!e->queues) {
        free(e);
        return NULL;
    }
    apply_rate(e, 0);
    return e;
}

void
egress_destroy(struct egress *e)
{
    const struct queue_item *item;

    if (e) {
        while ((item = level_queues_first(e->queues))) {
            rte_pktmbuf_free(item->packet);
            level_queues_pop(e->queues);
        }
        level_queues_destroy(e->queues);
        free(e);
    }
}

/* Queues 'frame' where 'v' says, or drops and counts it. */
void
egress_push(struct egress *e, struct rte_mbuf *frame, const struct verdict *v)
{
    struct queue_item item = {
        .packet = frame,
        .length = rte_pktmbuf_pkt_len(frame),
        .slot = v->slot,
        .is_ip = v->is_ip,
        .is_default = v->treatment.is_default,
    };

    if (!level_queues_push(e->queues, v->treatment.level, &item)) {
        counter_add(&e->queue_dropped, 1);
        counter_add(&job_slots_counters(e->config.slots, v->slot)->tx_dropped,
                    1);
        rte_pktmbuf_free(frame);
    }
}

/* Queues 'n' frames, each where its verdict says. */
void
egress_push_burst(struct egress *e, struct rte_mbuf **frames,
                  const struct verdict *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        egress_push(e, frames[i], &v[i]);
    }
}

static void
count_sent(struct egress *e, const struct queue_item *item)
{
    struct job_counters *job = job_slots_counters(e->config.slots,
                                                  item->slot);

    counter_add(&e->tx_packets, 1);
    counter_add(&e->tx_bytes, item->length);
    if (item->is_ip) {
        counter_add(&e->tx_ip_bytes, item->length);
        counter_add(&e->tx_default_bytes,
                    item->is_default ? item->length : 0);
    }
    counter_add(&job->tx_packets, 1);
    counter_add(&job->tx_bytes, item->length);
}

/* Sends what is due.  Returns true if there was anything. */
bool
egress_send(struct egress *e, uint64_t now)
{
    const struct queue_item *item;

    apply_rate(e, now);
    apply_guard(e);
    while (port_room(e->config.uplink)
           && (item = level_queues_first(e->queues))
           && pace_due(&e->pace, item->length) <= now) {
        if (port_send(e->config.uplink, item->packet)) {
            pace_take(&e->pace, now, item->length);
            count_sent(e, item);
        }
        level_queues_pop(e->queues);
    }
    return port_flush(e->config.uplink, now);
}

/* Returns the nanoseconds from 'now' on until a queued packet is due, and
 * UINT64_MAX if none is queued. */
uint64_t
egress_until_due(const struct egress *e, uint64_t now)
{
    const struct queue_item *item = level_queues_first(e->queues);
    uint64_t due;

    if (!item) {
        return UINT64_MAX;
    }
    due = pace_due(&e->pace, item->length);
    return due > now ? due - now : 0;
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

void
egress_stats(const struct egress *e, struct shim_stats *stats)
{
    stats->tx_packets = counter_get(&e->tx_packets);
    stats->tx_bytes = counter_get(&e->tx_bytes);
    stats->tx_ip_bytes = counter_get(&e->tx_ip_bytes);
    stats->tx_default_bytes = counter_get(&e->tx_default_bytes);
    stats->queue_dropped = counter_get(&e->queue_dropped);
    stats->queued_bytes = level_queues_bytes(e->queues);
}
