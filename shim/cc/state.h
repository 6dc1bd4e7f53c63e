/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_STATE_H
#define SHIM_CC_STATE_H 1

/* State that the parts of congestion control share:
 *
 *    cc.c              each packet
 *    takeover-state.c  exchange with a new shim
 *    downlink.c        flows to the host
 *    uplink.c          flows to the uplink
 *    exchange.c        hellos and messages of remote shims
 *
 * Each calls only files that are below it in this list.  Only these files
 * include it. */

#include "shim/cc/allocate.h"
#include "shim/cc/cc.h"
#include "shim/cc/flow.h"
#include "shim/cc/remote-shim.h"
#include "shim/cc/segment.h"
#include "shim/queue/job-queue.h"
#include "shim/queue/rank-queue.h"

#define CC_STEP_NS 100000u      /* Minimum time between two divisions. */

/* Flows that share a link. */
struct cc_link {
    struct cc_flow *flows[CC_MAX_FLOWS];
    uint32_t n;
    uint64_t stepped;           /* Time of the last division. */
};

struct cc {
    struct cc_config config;
    struct job_queues *jobs;   /* Of the config's queues. */
    struct record_table flows; /* Contains struct cc_flow. */
    struct remote_shims remotes;
    struct cc_law law;
    struct cc_budget budget;
    struct cc_link in, out;     /* Downlink, uplink. */
    struct cc_share shares[CC_MAX_FLOWS];       /* During a division. */
    uint64_t bytes;             /* Arrived since the last division. */
    uint64_t other_bytes;       /* Part of 'bytes': not limited by grants. */
    uint64_t other_bps;         /* Rate of 'other_bytes', smoothed. */
    uint64_t swept;             /* Time of the last search for old flows. */

    /* Buffer for a message: Ethernet, IPv6, UDP, payload. */
    uint8_t frame[TAKEOVER_MAX_L2 + 40 + 8 + GRANT_MAX_MESSAGE];

    /* The law in millionths: written by the control thread, read by the
     * forwarding thread. */
    uint32_t gamma, beta, floor;

    /* Counters: written by the forwarding thread, read by the control
     * thread. */
    uint64_t windows, grants_sent, grants_taken, marks;
    uint64_t forged, refused, repeated, disobeyed;
};

/* downlink.c.  Data of a flow, in a frame of 'length' bytes, or a report that
 * its data wait for a grant, have arrived; the host sends a pure ACK, and gets
 * the queue for it, 0 for none; the flow is removed. */
void downlink_data(struct cc *, struct cc_flow *, const struct segment *,
                   uint32_t length, uint64_t now);
void downlink_waiting(struct cc *, struct cc_flow *, uint64_t now);
uint16_t downlink_ack(struct cc *, struct cc_flow *, const struct segment *,
                      uint32_t length, uint64_t now);
void downlink_remove(struct cc *, struct cc_flow *);
void downlink_poll(struct cc *, uint64_t now);

/* uplink.c.  uplink_queue() returns the queue for data of a flow, 0 for none.
 * uplink_hold() paces a flow until a time. */
uint16_t uplink_queue(struct cc *, struct cc_flow *, uint32_t length,
                      uint64_t now);
void uplink_hold(struct cc *, struct cc_flow *, uint64_t bps, uint64_t until,
                 uint64_t now);
void uplink_remove(struct cc *, struct cc_flow *);
void uplink_poll(struct cc *, uint64_t now);

/* exchange.c.  hello_send() adds the option to a segment from the host if it
 * is one of these: the first SYN of a flow (a repeated one has none, since a
 * middlebox may drop it), the SYN-ACK if the SYN had the option, and some ACKs
 * until the remote shim has replied.  hello_remove_all() removes what another
 * has added, and updates the options; hello_receive() does that for a segment
 * to the host and notes the hint; the remote shim may be null. */
void hello_send(const struct cc *, struct cc_frame *, struct segment *,
                struct cc_flow *, uint64_t now);
void hello_remove_all(struct cc_frame *, struct segment *,
                      struct segment_options *);
void hello_receive(struct cc *, struct cc_frame *, struct segment *,
                   struct segment_options *, struct remote_shim *,
                   uint64_t now);

/* message_receive() returns true if the frame is a message to this shim, and
 * stores its content and the two hosts; type 0 means that it was refused.
 * message_add() adds a grant to the next message of a type, which
 * message_send() sends to a shim that is verified.  message_ask() asks one
 * that is not. */
bool message_receive(struct cc *, const struct cc_frame *, uint64_t now,
                     struct shim_flow_key *hosts, struct grant_message *);
void message_add(struct cc *, struct remote_shim *, uint8_t type,
                 const struct grant *, uint64_t now);
void message_send(struct cc *, struct remote_shim *, uint8_t type,
                  uint64_t now);
void message_ask(struct cc *, struct remote_shim *, uint64_t now);

/* Returns the HELLO_* flags of this shim. */
static inline uint8_t
cc_own_flags(const struct cc *cc)
{
    return HELLO_ECN | (cc->config.strict_switch ? 0 : HELLO_WAITING);
}

/* Returns the record of the flow's remote host, or NULL. */
static inline struct remote_shim *
cc_remote_of(const struct cc_flow *flow)
{
    struct remote_shim *rs = flow->remote;

    return rs && rs->record.number == flow->remote_number ? rs : NULL;
}

/* Returns the flow's remote shim if messages can be sent to it and it is
 * believed to pace, or NULL. */
static inline struct remote_shim *
cc_verified_remote(const struct cc_flow *flow)
{
    struct remote_shim *rs = cc_remote_of(flow);

    return rs && remote_shim_is_trusted(rs) ? rs : NULL;
}

/* Notes a packet of 'flow' on the record of its remote host, maybe a new
 * one. */
static inline void
cc_find_remote(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct remote_shim *rs = cc_remote_of(flow);
    const struct record *r = &flow->record;

    if (rs) {
        remote_shims_share(&cc->remotes, rs, r->slot, now);
        return;
    }
    rs = remote_shims_find(&cc->remotes, &r->key);
    rs = rs ? rs : remote_shims_add(&cc->remotes, &r->key, r->slot, now);
    flow->remote = rs;
    flow->remote_number = rs ? rs->record.number : 0;
}

static inline struct cc_rtt *
cc_rtt_of(struct cc_flow *flow)
{
    struct remote_shim *rs = cc_remote_of(flow);

    return rs ? &rs->rtt : &flow->rtt;
}

/* Returns nanoseconds. */
static inline uint64_t
round_trip(struct cc_flow *flow)
{
    return cc_rtt_get(cc_rtt_of(flow));
}

#endif /* shim/cc/state.h */
