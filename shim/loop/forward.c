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
#include "shim/loop/lanes.h"
#include "shim/ports/port.h"

struct forward {
    struct forward_config config;
    struct classifier classifier;
    struct egress *egress;
    struct cc *cc;              /* NULL for none. */
    struct rte_mempool *pool;   /* Pool of the last frame from the host, for
                                 * messages of 'cc'; NULL before. */
    struct ack_queues acks;
    struct lanes *lanes;        /* NULL if this is the only one. */
    unsigned int first;         /* Lane whose frames for the host are sent
                                 * first in this poll. */

    /* Written by the forwarding thread, read by the control thread. */
    uint64_t rx_packets, rx_bytes;
    bool ended;                 /* Lane 0 receives no more. */
    bool at_rest;               /* No lane receives any more. */
    uint32_t last_polls;        /* Polls since 'ending'. */

    /* Written by the control thread, read by the forwarding thread. */
    bool ending;
};

#define MAX_DISCARDS 256 /* Bursts: more than a port's ring holds. */

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

/* Returns NULL without file descriptors. */
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
    if (config->n_lanes > 1) {
        f->lanes = lanes_create(config, &f->ending, &f->ended);
        if (!f->lanes) {
            forward_destroy(f);
            return NULL;
        }
    }
    return f;
}

void
forward_destroy(struct forward *f)
{
    if (f) {
        lanes_destroy(f->lanes);
        cc_destroy(f->cc);
        egress_destroy(f->egress);
        free(f);
    }
}

/* Queues frames that this or another lane has classified. */
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
    if (f->lanes) {
        n = lanes_share(f->lanes, true, frames, n);
        if (!n) {
            return true;
        }
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

/* Queues the frames that other lanes have received from the host.  With
 * congestion control, DSCPs are written here. */
static bool
collect_from_lanes(struct forward *f, uint64_t now)
{
    bool any = false;

    for (unsigned int i = 1; i < f->config.n_lanes; i++) {
        struct rte_mbuf *frames[PORT_BURST];
        struct packet packets[PORT_BURST];
        struct verdict verdicts[PORT_BURST];
        uint16_t n = lane_take_sent(lanes_get(f->lanes, i), frames, verdicts,
                                    PORT_BURST);

        fetch_packets(frames, n, packets);
        if (f->cc) {
            n = control_from_host(f, frames, packets, verdicts, n, now);
            if (f->config.tag) {
                tag_burst(packets, verdicts, n,
                          job_slots_level_dscps(f->config.slots));
            }
        }
        push_frames(f, frames, packets, verdicts, n, now);
        any |= n > 0;
    }
    return any;
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
    job_slots_count_rx(f->config.slots, 0, slots, lengths, n);
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
    bool shared = false;

    if (f->lanes) {
        shared = n > 0;
        n = lanes_share(f->lanes, false, frames, n);
    }
    if (n) {
        fetch_packets(frames, n, packets);
        classify_burst_to_host(&f->classifier, packets, n, slots);
        if (f->cc) {
            n = control_from_uplink(f, frames, packets, slots, n, now);
        }
    }
    deliver(f, frames, slots, n, now);
    return port_flush(host, now) || shared;
}

/* Sends the frames of another lane to the host, or counts the bursts of frames
 * that the lane has sent itself. */
static bool
deliver_from_lane(struct forward *f, struct lane *lane, uint64_t now)
{
    struct lane_arrived arrived[PORT_BURST];
    struct rte_mbuf *frames[PORT_BURST];
    struct packet packets[PORT_BURST];
    uint16_t slots[PORT_BURST], n_frames = 0;
    uint16_t n = lane_take_arrived(lane, arrived,
                                   port_tx_space(f->config.host));

    for (uint16_t i = 0; i < n; i++) {
        if (arrived[i].frame) {
            frames[n_frames] = arrived[i].frame;
            slots[n_frames++] = arrived[i].slot;
        } else if (f->config.bursts) {
            bursts_count(f->config.bursts, arrived[i].slot, BURSTS_RX,
                         arrived[i].bytes, now);
        }
    }
    if (f->cc) {
        fetch_packets(frames, n_frames, packets);
        n_frames = control_from_uplink(f, frames, packets, slots, n_frames,
                                       now);
    }
    deliver(f, frames, slots, n_frames, now);
    port_flush(f->config.host, now);
    return n > 0;
}

/* Sends the frames of all lanes to the host, each poll beginning with another
 * lane, so that none starves if the port has little space. */
static bool
deliver_from_all(struct forward *f, uint64_t now)
{
    unsigned int n = f->config.n_lanes;
    bool any = false;

    f->first = (f->first + 1) % n;
    for (unsigned int i = 0; i < n; i++) {
        unsigned int lane = (f->first + i) % n;

        any |= lane ? deliver_from_lane(f, lanes_get(f->lanes, lane), now)
               : f->ended ? port_flush(f->config.host, now)
               : receive_from_uplink(f, now);
    }
    return any;
}

/* Stops receiving after the first poll without frames, so that none is left in
 * the ports, or after LANE_LAST_POLLS. */
static void
follow_end(struct forward *f, bool received)
{
    if (!LOAD(&f->ending)) {
        f->last_polls = 0;
        STORE(&f->ended, false);
        STORE(&f->at_rest, false);
    } else if (!f->ended
               && (!received || ++f->last_polls >= LANE_LAST_POLLS)) {
        STORE(&f->ended, true);
        if (f->lanes) {
            lanes_wake_up(f->lanes);
        }
    }
}

/* Moves a burst in each direction.  Returns false if there was none. */
bool
forward_poll(struct forward *f, uint64_t now)
{
    bool at_rest = f->ended && (!f->lanes || lanes_have_ended(f->lanes));
    bool received, sent;

    received = !f->ended && receive_from_host(f, now);
    received |= f->lanes && collect_from_lanes(f, now);
    sent = egress_send(f->egress, now);
    received |= f->lanes ? deliver_from_all(f, now)
                : f->ended ? port_flush(f->config.host, now)
                : receive_from_uplink(f, now);
    if (f->cc && !at_rest) {
        cc_poll(f->cc, now);
    }
    STORE(&f->at_rest, at_rest);
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
    return LOAD(&f->at_rest);
}

static void
discard_all(struct port *port)
{
    struct rte_mbuf *frames[PORT_BURST];
    uint16_t n;

    for (unsigned int i = 0; i < port_n_queues(port); i++) {
        struct port *queue = port_queue(port, i);

        for (int j = 0; j < MAX_DISCARDS
             && (n = port_receive(queue, frames, PORT_BURST)); j++) {
            rte_pktmbuf_free_bulk(frames, n);
        }
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
    stats->lane_lost = 0;
    for (unsigned int i = 1; i < f->config.n_lanes; i++) {
        lane_add_stats(lanes_get(f->lanes, i), stats);
    }
}

struct lane *
forward_lane(struct forward *f, unsigned int number)
{
    return lanes_get(f->lanes, number);
}

struct wake *
forward_wake(struct forward *f)
{
    return f->lanes ? lanes_main_wake(f->lanes) : NULL;
}
