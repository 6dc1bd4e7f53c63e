/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CC_STATE_H
#define SHIM_CC_STATE_H 1

/* What the parts of congestion control share: cc.c sees each packet,
 * arrivals.c what comes of each flow, downlink.c divides the downlink,
 * departures.c the uplink, greeting.c and messages.c speak to other shims, and
 * handover.c to a successor.
 *
 * Only those seven include this. */

#include "shim/cc/allocate.h"
#include "shim/cc/cc.h"
#include "shim/cc/flow.h"
#include "shim/cc/peer.h"
#include "shim/cc/segment.h"

#define CC_STEP_NS 100000u      /* Between two allocations, at least. */

/* Flows that share a link. */
struct cc_link {
    uint32_t ids[CC_MAX_FLOWS];
    uint32_t n;
    uint64_t stepped;           /* When it was last divided. */
};

struct cc {
    struct cc_config config;
    struct cc_flows *flows;
    struct cc_peers *peers;
    struct cc_law law;
    struct cc_budget budget;
    struct cc_link in, out;
    struct cc_share shares[CC_MAX_FLOWS];       /* While dividing. */
    uint64_t bytes;             /* That arrived since the last step... */
    uint64_t other_bytes;       /* ...of what takes no grants. */
    uint64_t other_bps;         /* Smoothed. */
    uint64_t swept;             /* When old flows were looked for. */
    uint8_t *frame;             /* A message being made. */

    /* The control thread writes, the forwarding thread reads: millionths. */
    uint32_t gamma, beta, floor;

    /* The forwarding thread writes, the control thread reads. */
    uint64_t windows, grants_sent, grants_taken, marks;
};

/* arrivals.c: */
void arrivals_data(struct cc *, struct cc_flow *, const struct segment *,
                   uint32_t length, uint64_t now);
uint16_t arrivals_ack(struct cc *, struct cc_flow *, const struct segment *,
                      uint32_t length);
void arrivals_empty(struct cc_flow *);
void arrivals_leave(struct cc *, struct cc_flow *);
void arrivals_turn(struct cc *, uint64_t now);

/* downlink.c: */
void downlink_divide(struct cc *, uint64_t ns, uint64_t now);

/* departures.c: */
uint16_t departures_queue(struct cc *, struct cc_flow *, uint32_t length,
                          uint64_t now);
void departures_hold(struct cc *, struct cc_flow *, uint64_t bps,
                     uint64_t until, uint64_t now);
void departures_grant(struct cc *, struct cc_flow *, const struct grant *,
                      uint64_t now);
void departures_leave(struct cc *, struct cc_flow *);
void departures_turn(struct cc *, uint64_t now);

/* greeting.c: */
void greeting_say(struct cc_frame *, struct segment *, struct cc_flow *,
                  struct cc_peer *, uint64_t now);
void greeting_hear(struct cc *, struct cc_frame *, struct segment *,
                   const struct segment_options *, struct cc_peer *);

/* messages.c: */
bool message_take(struct cc *, const struct cc_frame *, uint64_t now);
void message_add(struct cc *, struct cc_peer *, uint8_t type,
                 const struct grant *);
void message_send(struct cc *, struct cc_peer *, uint8_t type);

/* cc.c: */
uint32_t cc_rank(const struct cc *, const struct cc_flow *, bool leased);
struct cc_peer *cc_told_peer(struct cc *, const struct cc_flow *);
struct cc_rtt *cc_rtt_of(struct cc *, struct cc_flow *);

/* Nanoseconds. */
static inline uint64_t
round_trip(struct cc *cc, struct cc_flow *flow)
{
    return cc_rtt_get(cc_rtt_of(cc, flow));
}

static inline uint64_t
larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif /* shim/cc/state.h */
