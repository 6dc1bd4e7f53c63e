/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/loop/congestion.h"

#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "base/memory.h"
#include "shim/cc/cc.h"
#include "shim/classify/classify.h"
#include "shim/loop/egress.h"

struct congestion {
    struct cc *cc;
    struct egress *egress;
    struct rte_mempool *pool;   /* Pool of the last frame from the host, NULL
                                 * before. */
};

static uint16_t
flow_queue(void *c_, uint16_t slot)
{
    struct congestion *c = c_;

    return egress_flow_queue(c->egress, slot);
}

static void
flow_free(void *c_, uint16_t queue)
{
    struct congestion *c = c_;

    egress_flow_free(c->egress, queue);
}

static void
flow_rate(void *c_, uint16_t queue, uint64_t bps)
{
    struct congestion *c = c_;

    egress_flow_rate(c->egress, queue, bps);
}

static void
flow_start(void *c_, uint16_t queue, uint32_t bytes)
{
    struct congestion *c = c_;

    egress_flow_start(c->egress, queue, bytes);
}

static bool
flow_started(void *c_, uint16_t queue)
{
    struct congestion *c = c_;

    return egress_flow_started(c->egress, queue);
}

static bool
flow_empty(void *c_, uint16_t queue)
{
    struct congestion *c = c_;

    return egress_flow_empty(c->egress, queue);
}

/* Sends a message.  Without a packet buffer it is lost. */
static void
send_message(void *c_, const uint8_t *data, size_t length)
{
    struct verdict v = {
        .is_ip = true,
        .treatment = { .level = SHIM_LEVEL_CONTROL, .dscp = CC_CONTROL_DSCP },
    };
    struct congestion *c = c_;
    struct rte_mbuf *frame = c->pool ? rte_pktmbuf_alloc(c->pool) : NULL;
    char *body = frame ? rte_pktmbuf_append(frame, length) : NULL;

    if (body) {
        memcpy(body, data, length);
        egress_push(c->egress, frame, &v);
    } else {
        rte_pktmbuf_free(frame);
    }
}

struct congestion *
congestion_create(const struct cc_config *config, struct egress *egress)
{
    struct congestion *c = allocate(1, sizeof *c);
    struct cc_config full = *config;

    full.aux = c;
    full.flow_queue = flow_queue;
    full.flow_free = flow_free;
    full.flow_rate = flow_rate;
    full.flow_start = flow_start;
    full.flow_started = flow_started;
    full.flow_empty = flow_empty;
    full.send = send_message;
    c->egress = egress;
    c->cc = cc_create(&full);
    return c;
}

void
congestion_destroy(struct congestion *c)
{
    if (c) {
        cc_destroy(c->cc);
        free(c);
    }
}

static struct cc_frame
frame_begin(struct rte_mbuf *frame)
{
    return (struct cc_frame) {
        .data = rte_pktmbuf_mtod(frame, uint8_t *),
        .length = rte_pktmbuf_data_len(frame),
        .headroom = frame->nb_segs == 1 ? rte_pktmbuf_headroom(frame) : 0,
    };
}

/* Moves the start of 'frame' as congestion control did. */
static void
frame_end(struct rte_mbuf *frame, const struct cc_frame *cf,
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

void
congestion_from_host(struct congestion *c, struct rte_mbuf **frames,
                     struct packet *packets, struct verdict *v, uint32_t n,
                     uint64_t now)
{
    for (uint32_t i = 0; i < n; i++) {
        struct cc_frame cf = frame_begin(frames[i]);

        cc_from_host(c->cc, &cf, &v[i], now);
        frame_end(frames[i], &cf, &packets[i]);
        c->pool = frames[i]->pool;
    }
}

uint32_t
congestion_from_uplink(struct congestion *c, struct rte_mbuf **frames,
                       struct packet *packets, uint16_t *slots, uint32_t n,
                       uint64_t now)
{
    uint32_t n_left = 0;

    for (uint32_t i = 0; i < n; i++) {
        struct cc_frame cf = frame_begin(frames[i]);

        if (!cc_from_uplink(c->cc, &cf, slots[i], now)) {
            rte_pktmbuf_free(frames[i]);
            continue;
        }
        frames[n_left] = frames[i];
        slots[n_left] = slots[i];
        frame_end(frames[i], &cf, &packets[n_left]);
        n_left++;
    }
    return n_left;
}

struct cc *
congestion_cc(struct congestion *c)
{
    return c->cc;
}
