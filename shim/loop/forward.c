/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/loop/forward.h"

#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "base/memory.h"
#include "shim/cc/cc.h"
#include "shim/classify/bursts.h"
#include "shim/classify/classify.h"
#include "shim/classify/fetch.h"
#include "shim/classify/tag.h"
#include "shim/clock/counter.h"
#include "shim/loop/ack-queue.h"
#include "shim/loop/egress.h"
#include "shim/ports/port.h"

struct forward {
    struct forward_config config;
    struct classifier classifier;
    struct egress *egress;
    struct cc *cc;              /* NULL for none. */
    struct rte_mempool *pool;   /* Pool of the last frame from the host, for
                                 * messages of 'cc'; NULL before. */
    struct ack_queues acks;

    /* Written by the forwarding thread, read by the control thread. */
    uint64_t rx_packets, rx_bytes;
    bool ended;                 /* It receives no more. */
    uint32_t last_polls;        /* Polls since 'ending'. */

    /* Written by the control thread, read by the forwarding thread. */
    bool ending;
};

#define MAX_DISCARDS 256 /* Bursts: more than a port's ring holds. */
#define LAST_POLLS                                      \
    64 /* Polls after which it stops receiving although \
        * frames still arrive. */

/* Sends a message of congestion control.  Without a packet buffer it is
 * lost. */
static void
send_message(void *f_, const uint8_t *data, size_t length)
{
    struct forward *f = f_;
    struct verdict v = {
        .is_ip = true,
        .treatment = {
            .level = SHIM_LEVEL_CONTROL,
            .dscp = job_slots_control_dscp(f->config.slots),
        },
    };
    struct rte_mbuf *frame = f->pool ? rte_pktmbuf_alloc(f->pool) : NULL;
    char *body = frame ? rte_pktmbuf_append(frame, length) : NULL;

    if (body) {
        memcpy(body, data, length);
        tag_frame((uint8_t *) body, length, v.treatment, 0);
        egress_push(f->egress, frame, &v);
    } else {
        rte_pktmbuf_free(frame);
    }
}

static struct cc *
create_cc(struct forward *f)
{
    struct cc_config config = *f->config.cc;

    config.uplink_bps = f->config.rate_bps;
    config.tunnels = f->config.tunnels;
    config.queues = egress_queues(f->egress);
    config.send = send_message;
    config.aux = f;
    return cc_create(&config);
}

struct forward *
forward_create(const struct forward_config *config)
{
    struct egress_config egress = { .uplink = config->uplink,
                                    .slots = config->slots,
                                    .rate_bps = config->rate_bps,
                                    .mtu = config->mtu,
                                    .late_ns = config->late_ns,
                                    .tag = config->tag };
    struct forward *f = allocate(1, sizeof *f);

    f->config = *config;
    f->classifier = (struct classifier){ .flows = config->flows,
                                         .slots = config->slots,
                                         .tunnels = config->tunnels };
    f->egress = egress_create(&egress);
    f->cc = config->cc ? create_cc(f) : NULL;
    return f;
}

void
forward_destroy(struct forward *f)
{
    if (f) {
        cc_destroy(f->cc);
        egress_destroy(f->egress);
        free(f);
    }
}

/* Queues classified frames. */
static inline void
push_frames(struct forward *f, struct rte_mbuf **frames,
            const struct packet *packets, struct verdict *verdicts,
            uint16_t n, uint64_t now)
{
    if (!egress_is_empty(f->egress)) {
        ack_queues_steer(&f->acks, f->egress, packets, verdicts, n);
    }
    for (uint16_t i = 0; f->config.bursts && i < n; i++) {
        bursts_count(f->config.bursts, verdicts[i].slot, BURSTS_TX,
                     rte_pktmbuf_pkt_len(frames[i]), now);
    }
    egress_push_burst(f->egress, frames, verdicts, n, now);
}

static struct cc_frame
cc_frame_begin(struct rte_mbuf *frame)
{
    return (struct cc_frame) {
        .data = rte_pktmbuf_mtod(frame, uint8_t *),
        .length = rte_pktmbuf_data_len(frame),
        .headroom = frame->nb_segs == 1 ? rte_pktmbuf_headroom(frame) : 0,
    };
}

/* Moves the start of 'frame' as congestion control did. */
static void
cc_frame_end(struct rte_mbuf *frame, const struct cc_frame *cf,
             struct packet *packet)
{
    uint8_t *data = rte_pktmbuf_mtod(frame, uint8_t *);

    if (cf->data < data) {
        rte_pktmbuf_prepend(frame, data - cf->data);
    } else if (cf->data > data) {
        rte_pktmbuf_adj(frame, cf->data - data);
    }
    packet->data = cf->data;
    packet->length = rte_pktmbuf_data_len(frame);
}

/* Passes frames from the host to congestion control, frees those that it
 * drops, and updates 'packets', which have their bytes.  Returns how many
 * frames are left in all three arrays. */
static uint32_t
control_from_host(struct forward *f, struct rte_mbuf **frames,
                  struct packet *packets, struct verdict *v, uint32_t n,
                  uint64_t now)
{
    uint32_t n_left = 0;

    for (uint32_t i = 0; i < n; i++) {
        struct cc_frame cf = cc_frame_begin(frames[i]);

        f->pool = frames[i]->pool;
        if (!cc_from_host(f->cc, &cf, &v[i], now)) {
            rte_pktmbuf_free(frames[i]);
            continue;
        }
        frames[n_left] = frames[i];
        v[n_left] = v[i];
        cc_frame_end(frames[i], &cf, &packets[n_left]);
        n_left++;
    }
    return n_left;
}

/* Passes frames from the uplink to congestion control, and frees its messages.
 * Returns how many frames are left in all three arrays. */
static uint32_t
control_from_uplink(struct forward *f, struct rte_mbuf **frames,
                    struct packet *packets, uint16_t *slots, uint32_t n,
                    uint64_t now)
{
    uint32_t n_left = 0;

    for (uint32_t i = 0; i < n; i++) {
        struct cc_frame cf = cc_frame_begin(frames[i]);

        if (!cc_from_uplink(f->cc, &cf, slots[i], now)) {
            rte_pktmbuf_free(frames[i]);
            continue;
        }
        frames[n_left] = frames[i];
        slots[n_left] = slots[i];
        cc_frame_end(frames[i], &cf, &packets[n_left]);
        n_left++;
    }
    return n_left;
}

static bool
receive_from_host(struct forward *f, uint64_t now)
{
    struct rte_mbuf *frames[PORT_BURST];
    struct packet packets[PORT_BURST];
    struct verdict verdicts[PORT_BURST];
    uint16_t n = port_receive(f->config.host, frames, PORT_BURST);

    if (!n) {
        return false;
    }
    classify_frames(&f->classifier, frames, n,
                    job_slots_leased(f->config.slots, now), packets, verdicts);
    if (f->cc) {
        n = control_from_host(f, frames, packets, verdicts, n, now);
    }
    if (f->config.tag) {
        tag_burst(packets, verdicts, n,
                  job_slots_level_dscps(f->config.slots));
    }
    push_frames(f, frames, packets, verdicts, n, now);
    return true;
}

static void
count_received(struct forward *f, const uint16_t *slots,
               const uint32_t *lengths, uint32_t n, uint64_t now)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < n; i++) {
        bytes += lengths[i];
    }
    counter_add(&f->rx_packets, n);
    counter_add(&f->rx_bytes, bytes);
    job_slots_count_rx(f->config.slots, slots, lengths, n);
    for (uint32_t i = 0; f->config.bursts && i < n; i++) {
        bursts_count(f->config.bursts, slots[i], BURSTS_RX, lengths[i], now);
    }
}

/* Sends 'frames' to the host and counts them.  Changes 'slots'. */
static inline void
deliver(struct forward *f, struct rte_mbuf **frames, uint16_t *slots,
        uint16_t n, uint64_t now)
{
    uint32_t lengths[PORT_BURST], n_sent = 0;

    for (uint16_t i = 0; i < n; i++) {
        lengths[n_sent] = rte_pktmbuf_pkt_len(frames[i]);
        slots[n_sent] = slots[i];
        n_sent += port_send(f->config.host, frames[i]);
    }
    count_received(f, slots, lengths, n_sent, now);
}

static bool
receive_from_uplink(struct forward *f, uint64_t now)
{
    struct port *host = f->config.host;
    struct rte_mbuf *frames[PORT_BURST];
    struct packet packets[PORT_BURST];
    uint16_t slots[PORT_BURST];
    uint16_t n = port_receive(f->config.uplink, frames, port_tx_space(host));

    if (n) {
        fetch_packets(frames, n, packets);
        classify_burst_to_host(&f->classifier, packets, n, slots);
        if (f->cc) {
            n = control_from_uplink(f, frames, packets, slots, n, now);
        }
    }
    deliver(f, frames, slots, n, now);
    return port_flush(host, now);
}

/* Stops receiving after the first poll without frames, so that none is left in
 * the ports, or after LAST_POLLS. */
static void
follow_end(struct forward *f, bool received)
{
    if (!LOAD(&f->ending)) {
        f->last_polls = 0;
        STORE(&f->ended, false);
    } else if (!f->ended && (!received || ++f->last_polls >= LAST_POLLS)) {
        STORE(&f->ended, true);
    }
}

/* Moves a burst in each direction.  Returns false if there was none. */
bool
forward_poll(struct forward *f, uint64_t now)
{
    bool received = !f->ended && receive_from_host(f, now);
    bool sent = egress_send(f->egress, now);

    received |= (f->ended ? port_flush(f->config.host, now)
                          : receive_from_uplink(f, now));
    if (f->cc && !f->ended) {
        cc_poll(f->cc, now);
    }
    follow_end(f, received);
    return received || sent;
}

void
forward_end(struct forward *f, bool end)
{
    STORE(&f->ending, end);
}

bool
forward_is_ending(const struct forward *f)
{
    return LOAD(&f->ending);
}

bool
forward_has_ended(const struct forward *f)
{
    return LOAD(&f->ended);
}

static void
discard_all(struct port *port)
{
    struct rte_mbuf *frames[PORT_BURST];
    uint16_t n;

    for (int i = 0;
         i < MAX_DISCARDS && (n = port_receive(port, frames, PORT_BURST));
         i++) {
        rte_pktmbuf_free_bulk(frames, n);
    }
}

void
forward_discard(struct forward *f)
{
    discard_all(f->config.host);
    discard_all(f->config.uplink);
}

struct egress *
forward_egress(struct forward *f)
{
    return f->egress;
}

struct cc *
forward_cc(struct forward *f)
{
    return f->cc;
}

void
forward_stats(const struct forward *f, struct shim_stats *stats)
{
    egress_stats(f->egress, stats);
    if (f->cc) {
        cc_stats(f->cc, stats);
    }
    stats->rx_packets = counter_get(&f->rx_packets);
    stats->rx_bytes = counter_get(&f->rx_bytes);
    stats->malformed = counter_get(&f->classifier.n_malformed);
    stats->untagged = counter_get(&f->classifier.n_untagged);
}
