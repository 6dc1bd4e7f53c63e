/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/loop/egress-internal.h"

#include <stdlib.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "shim/classify/job-slot.h"

#define LOAD(P) __atomic_load_n(P, __ATOMIC_ACQUIRE)
#define STORE(P, V) __atomic_store_n(P, V, __ATOMIC_RELEASE)

#define QUEUE_MS 400            /* A job's queues, in time on the uplink... */
#define QUEUE_MIN_FRAMES 64     /* ...but at least this. */
#define FULL_JOBS 8             /* So many full jobs have room, each... */
#define JOB_MIN_PACKETS 512     /* ...with at least so many packets... */
#define JOB_MAX_PACKETS 4096    /* ...and at most, for the memory's sake. */
#define POOL_SPARE 512          /* Packets in bursts and caches. */

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
        e->n_orders++;
        e->places_seen = UINT32_MAX;
        if (!leased) {
            rank_queues_set_places(e->queues, NULL);
        }
    }
    if (leased && job_slots_places(e->config.slots, &e->places_seen,
                                   places)) {
        e->n_orders++;
        rank_queues_set_places(e->queues, places);
    }
}

void
egress_apply(struct egress *e, uint64_t now)
{
    apply_rate(e, now);
    apply_guard(e);
    apply_places(e, now);
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
egress_flow_start(struct egress *e, uint16_t queue, uint32_t bytes)
{
    if (queue) {
        rank_queues_flow_start(e->queues, e->now, queue, bytes);
    }
}

bool
egress_flow_started(const struct egress *e, uint16_t queue)
{
    return queue && rank_queues_flow_started(e->queues, e->now, queue);
}

bool
egress_flow_empty(const struct egress *e, uint16_t queue)
{
    return !queue || rank_queues_flow_empty(e->queues, queue);
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
