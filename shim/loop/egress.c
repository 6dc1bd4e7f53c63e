/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/loop/egress.h"

#include <stdlib.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include "base/memory.h"
#include "shim/classify/classify.h"
#include "shim/classify/job-slot.h"
#include "shim/classify/tag.h"
#include "shim/clock/counter.h"
#include "shim/ports/port.h"
#include "shim/queue/control-share.h"
#include "shim/queue/job-queue.h"
#include "shim/queue/pace.h"
#include "shim/queue/rank-queue.h"

#define QUEUE_MS 400            /* A job's queues, in time on the uplink. */
#define QUEUE_MIN_FRAMES 64     /* A job's queues, at least. */
#define FULL_JOBS 8             /* Jobs with full queues that fit at once. */
#define JOB_MIN_PACKETS 512     /* Packets of such a job, at least. */
#define JOB_MAX_PACKETS 4096    /* Packets of such a job, at most. */
#define POOL_SPARE 512          /* Packets in bursts and caches. */

struct egress {
    struct egress_config config;
    struct rank_queues *queues;
    struct job_queues *jobs;    /* rank_queues_jobs() of 'queues'. */
    struct pace pace;           /* Pace of the uplink. */
    uint32_t min_share_applied; /* 'min_share' of the queues. */
    uint32_t classes_seen;      /* See job_slots_classes(). */
    bool leased;                /* The queues have the slots' classes. */
    bool behind;                /* Packets were due after the last send. */
    uint8_t n_orders;           /* Changes of classes; wraps around. */
    uint64_t now;               /* Time of the last push or send. */
    struct control_shares shares;       /* Of jobs in the control class. */

    /* Written by the forwarding thread, read by the control thread. */
    uint64_t tx_packets, tx_bytes;
    uint64_t tx_ip_bytes, tx_default_bytes;
    uint64_t queue_dropped, control_dropped;
    uint64_t exceeded;          /* Control packets above their job's share. */

    /* Written by the control thread, read by the forwarding thread. */
    uint64_t rate_bps;
    uint32_t min_share;         /* As in struct shim_min_share. */
};

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

/* Returns the capacity of all queues in packets. */
static uint32_t
queued_packets(uint64_t rate_bps, uint32_t mtu)
{
    uint64_t n = job_bytes(rate_bps, mtu) / max_frame(mtu);

    return FULL_JOBS * (n < JOB_MIN_PACKETS ? JOB_MIN_PACKETS
                        : n > JOB_MAX_PACKETS ? JOB_MAX_PACKETS : n);
}

/* Returns how many packet buffers the loop needs to receive while all queues
 * are full. */
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
apply_min_share(struct egress *e)
{
    uint32_t share = LOAD(&e->min_share);

    if (share != e->min_share_applied) {
        rank_queues_set_min_share(e->queues, share);
        e->min_share_applied = share;
    }
}

/* Applies a new order.  Without a lease all slots have the last class. */
static void
apply_classes(struct egress *e, uint64_t now)
{
    bool leased = job_slots_leased(e->config.slots, now);
    job_class classes[SHIM_MAX_SLOTS];

    if (leased != e->leased) {
        e->leased = leased;
        e->n_orders++;
        e->classes_seen = UINT32_MAX;
        if (!leased) {
            rank_queues_set_classes(e->queues, NULL);
        }
    }
    if (leased && job_slots_classes(e->config.slots, &e->classes_seen,
                                    classes)) {
        e->n_orders++;
        rank_queues_set_classes(e->queues, classes);
    }
}

struct egress *
egress_create(const struct egress_config *config)
{
    struct egress *e = allocate(1, sizeof *e);

    e->config = *config;
    e->rate_bps = config->rate_bps;
    e->min_share = e->min_share_applied = SHIM_MIN_SHARE_DEFAULT;
    e->queues = rank_queues_create(
        queued_packets(config->rate_bps, config->mtu), max_frame(config->mtu));
    e->jobs = rank_queues_jobs(e->queues);
    e->jobs->late = config->late_ns;
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

/* Returns the nanoseconds until a queued packet is due, UINT64_MAX without a
 * packet. */
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
    return job_queues_flow_new(e->jobs, slot);
}

struct rank_queues *
egress_queues(struct egress *e)
{
    return e->queues;
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
egress_set_min_share(struct egress *e, uint32_t share)
{
    STORE(&e->min_share, share);
}

uint32_t
egress_min_share(const struct egress *e)
{
    return LOAD(&e->min_share);
}

void
egress_stats(const struct egress *e, struct shim_stats *stats)
{
    stats->tx_packets = counter_get(&e->tx_packets);
    stats->tx_bytes = counter_get(&e->tx_bytes);
    stats->tx_ip_bytes = counter_get(&e->tx_ip_bytes);
    stats->tx_default_bytes = counter_get(&e->tx_default_bytes);
    stats->queue_dropped = counter_get(&e->queue_dropped);
    stats->control_dropped = counter_get(&e->control_dropped);
    stats->queued_bytes = rank_queues_bytes(e->queues);
    stats->policed = (rank_queues_policed(e->queues)
                      + counter_get(&e->exceeded));
}

/* Frees and counts a frame for which the queues have no space. */
static void
drop_item(struct egress *e, const struct queue_item *item)
{
    counter_add(&e->queue_dropped, 1);
    counter_add(&e->control_dropped, !!(item->marks & QUEUE_ITEM_CONTROL));
    counter_add(&job_slots_counters(e->config.slots, item->slot)->tx_dropped,
                1);
    rte_pktmbuf_free(item->packet);
}

static inline bool
is_control(const struct verdict *v)
{
    return v->treatment.level == SHIM_LEVEL_CONTROL;
}

/* Returns the control queue of job 'slot' if a packet of 'length' bytes may
 * join it.  Returns 0 if it exceeds the job's share, or no queue is free. */
static uint16_t
control_queue(struct egress *e, uint16_t slot, uint32_t length)
{
    struct control_share *share = &e->shares.jobs[slot];
    uint32_t joined, left;

    control_shares_set_rate(&e->shares, e->pace.bps,
                            job_slots_count_control(e->config.slots));
    rank_queues_count(e->queues, slot, &joined, &left);
    if (!control_share_admits(share, &e->shares, e->now, length, left, joined,
                              PORT_BURST)) {
        counter_add(&e->exceeded, 1);
        return 0;
    }
    if (!share->queue) {
        share->queue = job_queues_flow_new(e->jobs, JOB_QUEUES_CONTROL);
    }
    return share->queue;
}

/* Chooses the queue of a frame in the control class of its job, or makes it a
 * frame like the job's others.  A job of the control level has no class. */
static void __attribute__((noinline))
police(struct egress *e, struct rte_mbuf *frame, struct verdict *v)
{
    struct treatment t = job_slots_treatment(e->config.slots, v->slot,
                                             e->leased);
    uint16_t queue;

    if (!v->slot || t.level == SHIM_LEVEL_CONTROL) {
        return;
    }
    queue = control_queue(e, v->slot, rte_pktmbuf_pkt_len(frame));
    if (queue) {
        v->queue = queue;
        return;
    }
    v->treatment = t;
    if (e->config.tag) {
        tag_frame(rte_pktmbuf_mtod(frame, uint8_t *),
                  rte_pktmbuf_data_len(frame), t,
                  job_slots_level_dscps(e->config.slots));
    }
}

static inline struct queue_item
item_of(const struct egress *e, struct rte_mbuf *frame,
        const struct verdict *v)
{
    return (struct queue_item) {
        .packet = frame,
        .length = rte_pktmbuf_pkt_len(frame),
        .slot = v->slot,
        .marks = (v->is_ip * QUEUE_ITEM_IP
                  | v->treatment.is_default * QUEUE_ITEM_DEFAULT
                  | is_control(v) * QUEUE_ITEM_CONTROL),
        .order = e->n_orders,
    };
}

/* Queues 'frame' by 'v'.  Without space, this frame or one of the longest
 * queue is dropped. */
void
egress_push(struct egress *e, struct rte_mbuf *frame, const struct verdict *v)
{
    struct queue_item dropped, item = item_of(e, frame, v);

    if (!rank_queues_push(e->queues, v->queue, is_control(v), &item,
                          &dropped)) {
        drop_item(e, &dropped);
    }
}

/* Queues 'n' frames, each with its verdict; runs of frames of one queue at
 * once. */
static void
push_runs(struct egress *e, const struct queue_item *items,
          const struct verdict *v, uint32_t n)
{
    struct queue_item dropped[PORT_BURST];

    for (uint32_t i = 0, end; i < n; i = end) {
        uint8_t control = items[i].marks & QUEUE_ITEM_CONTROL;
        uint32_t n_dropped;

        end = i + 1;
        while (end < n && items[end].slot == items[i].slot
               && v[end].queue == v[i].queue
               && (items[end].marks & QUEUE_ITEM_CONTROL) == control) {
            end++;
        }
        n_dropped = rank_queues_push_run(e->queues, v[i].queue, control,
                                         &items[i], end - i, dropped);
        for (uint32_t k = 0; k < n_dropped; k++) {
            drop_item(e, &dropped[k]);
        }
    }
}

/* Totals of sent frames. */
struct sent {
    uint64_t packets;
    uint64_t bytes, ip_bytes, default_bytes;
};

static inline void
count_sent(struct egress *e, const struct sent *sent)
{
    counter_add(&e->tx_packets, sent->packets);
    counter_add(&e->tx_bytes, sent->bytes);
    counter_add(&e->tx_ip_bytes, sent->ip_bytes);
    counter_add(&e->tx_default_bytes, sent->default_bytes);
}

/* Counts sent items.  Those with length 0 were not sent. */
static void
count_items(struct egress *e, const struct queue_item *items, uint32_t n)
{
    struct sent sent = { .packets = 0 };

    for (uint32_t i = 0; i < n; ) {
        uint16_t slot = items[i].slot;
        struct job_counters *job = job_slots_counters(e->config.slots, slot);
        uint64_t job_bytes = 0, job_packets = 0;

        do {
            uint32_t length = items[i].length, marks = items[i].marks;

            job_packets += length != 0;
            job_bytes += length;
            length = marks & QUEUE_ITEM_IP ? length : 0;
            sent.ip_bytes += length;
            sent.default_bytes += marks & QUEUE_ITEM_DEFAULT ? length : 0;
        } while (++i < n && items[i].slot == slot);
        counter_add(&job->tx_packets, job_packets);
        counter_add(&job->tx_bytes, job_bytes);
        sent.packets += job_packets;
        sent.bytes += job_bytes;
    }
    count_sent(e, &sent);
}

/* Sends 'frames', which are those of 'items', and counts them. */
static void
send_all(struct egress *e, struct rte_mbuf **frames,
         struct queue_item *items, uint32_t n)
{
    if (port_send_burst(e->config.uplink, frames, n) < n) {
        for (uint32_t i = 0; i < n; i++) {
            items[i].length = frames[i] ? items[i].length : 0;
        }
    }
    count_items(e, items, n);
}

/* Returns how many of the first frames can be sent at once, with empty queues,
 * and takes them out of the pace. */
static uint32_t
count_direct(struct egress *e, const struct queue_item *items,
             const struct verdict *v, uint32_t n, uint64_t now)
{
    uint64_t bytes = 0, max_bytes;
    uint32_t i = 0, max;

    pace_forget(&e->pace, now, 0);
    max_bytes = pace_allowance(&e->pace, now);
    max = port_tx_space(e->config.uplink);
    max = n < max ? n : max;
    while (i < max && bytes < max_bytes && !v[i].queue && !is_control(&v[i])) {
        bytes += items[i++].length;
    }
    if (i) {
        pace_take(&e->pace, bytes);
    }
    return i;
}

/* Removes the frames that the port dropped from 'sent'. */
static void __attribute__((noinline))
subtract_dropped(struct rte_mbuf *const *frames, const struct verdict *v,
                 uint32_t n, uint16_t *slots, uint32_t *lengths,
                 struct sent *sent)
{
    sent->packets = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t length = lengths[i];

        if (frames[i]) {
            slots[sent->packets] = v[i].slot;
            lengths[sent->packets++] = length;
        } else {
            sent->bytes -= length;
            sent->default_bytes -= v[i].treatment.is_default ? length : 0;
        }
    }
}

/* Fast path: sends the whole burst if the pace and the port allow it.
 * Otherwise returns false. */
static inline bool
send_at_once(struct egress *e, struct rte_mbuf **frames,
             const struct verdict *v, uint32_t n, uint64_t now)
{
    uint32_t lengths[PORT_BURST], special = 0, last = 0;
    struct sent sent = { .packets = n };
    uint16_t slots[PORT_BURST];

    if (n > port_tx_space(e->config.uplink)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        last = rte_pktmbuf_pkt_len(frames[i]);
        special |= v[i].queue | !v[i].is_ip | is_control(&v[i]);
        slots[i] = v[i].slot;
        lengths[i] = last;
        sent.bytes += last;
        sent.default_bytes += last & -(uint32_t) v[i].treatment.is_default;
    }
    pace_forget(&e->pace, now, 0);
    if (special || sent.bytes - last >= pace_allowance(&e->pace, now)) {
        return false;
    }
    pace_take(&e->pace, sent.bytes);
    if (port_send_burst(e->config.uplink, frames, n) < n) {
        subtract_dropped(frames, v, n, slots, lengths, &sent);
    }
    sent.ip_bytes = sent.bytes;
    job_slots_count_tx(e->config.slots, slots, lengths, sent.packets);
    count_sent(e, &sent);
    return true;
}

/* Sends or queues up to PORT_BURST frames, each with its verdict, which may
 * change. */
void
egress_push_burst(struct egress *e, struct rte_mbuf **frames,
                  struct verdict *v, uint32_t n, uint64_t now)
{
    bool waits = rank_queues_due(e->queues) <= now;
    struct queue_item items[PORT_BURST];
    uint32_t n_direct;

    e->now = now;
    if (!n || (!waits && send_at_once(e, frames, v, n, now))) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (is_control(&v[i])) {
            police(e, frames[i], &v[i]);
        }
        items[i] = item_of(e, frames[i], &v[i]);
    }
    n_direct = waits ? 0 : count_direct(e, items, v, n, now);
    if (n_direct) {
        send_all(e, frames, items, n_direct);
    }
    push_runs(e, items + n_direct, v + n_direct, n - n_direct);
}

/* Updates the DSCP of a frame that waited while the order changed. */
static void __attribute__((noinline))
retag(struct egress *e, struct queue_item *item)
{
    struct rte_mbuf *frame = item->packet;
    struct treatment t = job_slots_treatment(e->config.slots, item->slot,
                                             e->leased);

    if (!item->slot || !(item->marks & QUEUE_ITEM_IP)
        || item->marks & QUEUE_ITEM_CONTROL) {
        return;
    }
    item->marks &= ~QUEUE_ITEM_DEFAULT;
    item->marks |= t.is_default * QUEUE_ITEM_DEFAULT;
    if (e->config.tag) {
        tag_frame(rte_pktmbuf_mtod(frame, uint8_t *),
                  rte_pktmbuf_data_len(frame), t,
                  job_slots_level_dscps(e->config.slots));
    }
}

/* Sends what is due.  Returns true if the port took something. */
bool
egress_send(struct egress *e, uint64_t now)
{
    struct rte_mbuf *frames[PORT_BURST];
    struct queue_item items[PORT_BURST];
    uint32_t n;

    e->now = now;
    apply_rate(e, now);
    apply_min_share(e);
    apply_classes(e, now);
    pace_forget(&e->pace, now, e->behind ? e->config.late_ns : 0);
    n = rank_queues_take(e->queues, now, &e->pace, items,
                         port_tx_space(e->config.uplink));
    if (n) {
        for (uint32_t i = 0; i < n; i++) {
            frames[i] = items[i].packet;
            if (__builtin_expect(items[i].order != e->n_orders, 0)) {
                retag(e, &items[i]);
            }
        }
        send_all(e, frames, items, n);
    }
    e->behind = rank_queues_due(e->queues) <= now;
    return port_flush(e->config.uplink, now);
}
