/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/forward.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_mbuf.h>

#include "shim/cc/cc.h"
#include "shim/pipeline/classify.h"
#include "shim/pipeline/counter.h"
#include "shim/pipeline/egress.h"
#include "shim/pipeline/tag.h"
#include "shim/ports/port.h"

struct forward {
    struct forward_config config;
    struct classifier classifier;
    struct egress *egress;
    struct cc *cc;              /* NULL for none. */
    struct rte_mempool *pool;   /* Of the frames, from the first one on. */

    /* The forwarding thread writes, the control thread reads. */
    uint64_t rx_packets, rx_bytes;
};

/* Returns the time that everything here counts by. */
uint64_t
forward_now(void)
{
    struct timespec ts = { 0, 0 };

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

static uint64_t
cc_uplink_bps(void *f_)
{
    struct forward *f = f_;

    return egress_rate(f->egress);
}

static uint16_t
cc_flow_queue(void *f_, uint16_t slot)
{
    struct forward *f = f_;

    return egress_flow_queue(f->egress, slot);
}

static void
cc_flow_free(void *f_, uint16_t queue)
{
    struct forward *f = f_;

    egress_flow_free(f->egress, queue);
}

static void
cc_flow_rate(void *f_, uint16_t queue, uint64_t bps)
{
    struct forward *f = f_;

    egress_flow_rate(f->egress, queue, bps);
}

/* Sends a message of congestion control; without a packet buffer it is lost,
 * as on any network. */
static void
cc_send(void *f_, const uint8_t *data, size_t length)
{
    struct verdict v = {
        .is_ip = true,
        .treatment = { .level = SHIM_LEVEL_CONTROL, .dscp = CC_CONTROL_DSCP },
    };
    struct forward *f = f_;
    struct rte_mbuf *frame = f->pool ? rte_pktmbuf_alloc(f->pool) : NULL;
    char *room = frame ? rte_pktmbuf_append(frame, length) : NULL;

    if (room) {
        memcpy(room, data, length);
        egress_push(f->egress, frame, &v);
    } else {
        rte_pktmbuf_free(frame);
    }
}

static struct cc *
create_cc(struct forward *f)
{
    struct cc_config config = *f->config.cc;

    config.aux = f;
    config.uplink_bps = cc_uplink_bps;
    config.flow_queue = cc_flow_queue;
    config.flow_free = cc_flow_free;
    config.flow_rate = cc_flow_rate;
    config.send = cc_send;
    return cc_create(&config);
}

/* Returns NULL without memory. */
struct forward *
forward_create(const struct forward_config *config)
{
    struct egress_config egress = {
        .uplink = config->uplink,
        .slots = config->slots,
        .rate_bps = config->rate_bps,
        .mtu = config->mtu,
        .late_ns = config->late_ns,
    };
    struct forward *f = calloc(1, sizeof *f);

    if (!f) {
        return NULL;
    }
    f->config = *config;
    f->classifier = (struct classifier) {
        .flows = config->flows,
        .slots = config->slots,
        .misses = config->misses,
    };
    f->egress = egress_create(&egress);
    f->cc = config->cc ? create_cc(f) : NULL;
    if (!f->egress || (config->cc && !f->cc)) {
        forward_destroy(f);
        return NULL;
    }
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

static struct cc_frame
cc_frame_of(struct rte_mbuf *frame)
{
    return (struct cc_frame) {
        .data = rte_pktmbuf_mtod(frame, uint8_t *),
        .length = rte_pktmbuf_data_len(frame),
        .room = frame->nb_segs == 1 ? rte_pktmbuf_headroom(frame) : 0,
    };
}

/* Moves the beginning of 'frame' to where congestion control did. */
static void
cc_frame_end(struct rte_mbuf *frame, const struct cc_frame *cf)
{
    uint8_t *data = rte_pktmbuf_mtod(frame, uint8_t *);

    if (cf->data < data) {
        rte_pktmbuf_prepend(frame, data - cf->data);
    } else if (cf->data > data) {
        rte_pktmbuf_adj(frame, cf->data - data);
    }
}

/* Classifies, tags and queues one frame of the host's. */
static void
from_host(struct forward *f, struct rte_mbuf *frame, uint64_t now,
          bool leased)
{
    uint8_t *data = rte_pktmbuf_mtod(frame, uint8_t *);
    struct verdict v;

    classify_from_host(&f->classifier, data, rte_pktmbuf_data_len(frame), now,
                       leased, &v);
    if (f->cc) {
        struct cc_frame cf = cc_frame_of(frame);

        cc_from_host(f->cc, &cf, &v, now);
        cc_frame_end(frame, &cf);
        data = cf.data;
        f->pool = frame->pool;
    }
    if (v.family && f->config.tag) {
        if (v.family == 4) {
            tag_ipv4(data + v.l3, v.treatment.dscp);
        } else {
            tag_ipv6(data + v.l3, v.treatment.dscp);
        }
    }
    egress_push(f->egress, frame, &v);
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

        if (f->cc) {
            struct cc_frame cf = cc_frame_of(frames[i]);

            if (!cc_from_uplink(f->cc, &cf, slot, now)) {
                rte_pktmbuf_free(frames[i]);
                continue;
            }
            cc_frame_end(frames[i], &cf);
        }
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

/* Returns the nanoseconds from 'now' on until a queued packet is due, and
 * UINT64_MAX if none is queued. */
uint64_t
forward_until_due(const struct forward *f, uint64_t now)
{
    return egress_until_due(f->egress, now);
}

/* Moves what there is to move at 'now', forward_now() or, where packets come
 * out of a file, their time.  Returns false if there was nothing. */
bool
forward_turn(struct forward *f, uint64_t now)
{
    bool worked = receive_from_host(f, now);

    worked |= egress_send(f->egress, now);
    worked |= receive_from_uplink(f, now);
    if (f->cc) {
        cc_turn(f->cc, now);
    }
    return worked;
}

void
forward_set_rate(struct forward *f, uint64_t bps)
{
    egress_set_rate(f->egress, bps);
}

uint64_t
forward_rate(const struct forward *f)
{
    return egress_rate(f->egress);
}

void
forward_set_guard(struct forward *f, uint32_t share)
{
    egress_set_guard(f->egress, share);
}

void
forward_set_congestion(struct forward *f, const struct shim_congestion *told)
{
    if (f->cc) {
        cc_set_law(f->cc, told);
    }
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
    stats->misses = counter_get(&f->classifier.n_misses);
    stats->malformed = counter_get(&f->classifier.n_malformed);
}
