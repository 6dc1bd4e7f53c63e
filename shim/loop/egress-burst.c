/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/loop/egress-internal.h"

#include <rte_mbuf.h>

#include "shim/capture/tap.h"
#include "shim/classify/classify.h"
#include "shim/classify/job-slot.h"
#include "shim/classify/tag.h"
#include "shim/ports/port.h"

void
egress_drop(struct egress *e, const struct queue_item *item)
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

/* Queues 'frame' where 'v' says.  If there is no room it, or one that has
 * waited in the longest queue, is dropped and counted. */
void
egress_push(struct egress *e, struct rte_mbuf *frame, const struct verdict *v)
{
    struct queue_item dropped, item = item_of(e, frame, v);

    if (!rank_queues_push(e->queues, v->queue, is_control(v), &item,
                          &dropped)) {
        egress_drop(e, &dropped);
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
            egress_drop(e, &dropped[k]);
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

/* What was sent. */
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

/* Counts items that were sent; those of length 0 were not. */
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
    count_items(e, items, n);
}

/* Returns how many of the first frames need no queue, where nobody waits: the
 * uplink is free for them. */
static uint32_t
count_direct(struct egress *e, const struct queue_item *items,
             const struct verdict *v, uint32_t n, uint64_t now)
{
    uint64_t bytes = 0, room;
    uint32_t i = 0, max;

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

/* Takes the frames that the port refused out of what was sent. */
static void __attribute__((noinline))
leave_out(struct rte_mbuf *const *frames, const struct verdict *v, uint32_t n,
          uint16_t *slots, uint32_t *lengths, struct sent *sent)
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

/* Sends all frames if all of them may go, and nobody looks.  Returns false if
 * not. */
static inline bool
send_at_once(struct egress *e, struct rte_mbuf **frames,
             const struct verdict *v, uint32_t n, uint64_t now)
{
    uint32_t lengths[PORT_BURST], special = 0, last = 0;
    struct sent sent = { .packets = n };
    uint16_t slots[PORT_BURST];

    if (tap_is_on(e->config.tap) || n > port_room(e->config.uplink)) {
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
    if (special || sent.bytes - last >= pace_room(&e->pace, now)) {
        return false;
    }
    pace_take(&e->pace, sent.bytes);
    if (port_send_burst(e->config.uplink, frames, n) < n) {
        leave_out(frames, v, n, slots, lengths, &sent);
    }
    sent.ip_bytes = sent.bytes;
    job_slots_count_tx(e->config.slots, slots, lengths, sent.packets);
    count_sent(e, &sent);
    return true;
}

/* Sends or queues up to PORT_BURST frames that came at 'now', each with its
 * verdict. */
void
egress_push_burst(struct egress *e, struct rte_mbuf **frames,
                  const struct verdict *v, uint32_t n, uint64_t now)
{
    bool waits = rank_queues_due(e->queues) <= now;
    struct queue_item items[PORT_BURST];
    uint32_t n_direct;

    e->now = now;
    if (!n || (!waits && send_at_once(e, frames, v, n, now))) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        items[i] = item_of(e, frames[i], &v[i]);
    }
    n_direct = waits ? 0 : count_direct(e, items, v, n, now);
    if (n_direct) {
        send_all(e, frames, items, n_direct);
    }
    push_runs(e, items + n_direct, v + n_direct, n - n_direct);
}

/* Tags a frame that waited while the order changed. */
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
                  rte_pktmbuf_data_len(frame), t.dscp);
    }
}

/* Sends what is due.  Returns true if there was anything. */
bool
egress_send(struct egress *e, uint64_t now)
{
    struct rte_mbuf *frames[PORT_BURST];
    struct queue_item items[PORT_BURST];
    uint32_t n;

    e->now = now;
    egress_apply(e, now);
    pace_forget(&e->pace, now, e->behind ? e->config.late_ns : 0);
    n = rank_queues_take(e->queues, now, &e->pace, items,
                         port_room(e->config.uplink));
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
