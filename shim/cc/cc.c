/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/cc.h"

#include <netinet/in.h>
#include <stdlib.h>

#include "shim/cc/state.h"
#include "shim/classify/classify.h"
#include "shim/clock/counter.h"
#include "shim/classify/job-slot.h"

#define MS UINT64_C(1000000)
#define SWEEP_NS MS             /* Between two looks for old flows. */
#define UNIT 1e6                /* Of the law's shares. */
#define MAX_MESSAGE_FRAME (CC_MAX_L2 + 40 + 8 + GRANT_MAX_MESSAGE)

/* Returns NULL without memory. */
struct cc *
cc_create(const struct cc_config *config)
{
    struct cc_law law = CC_LAW_DEFAULT;
    struct cc *cc = calloc(1, sizeof *cc);

    if (!cc) {
        return NULL;
    }
    cc->config = *config;
    cc->law = law;
    cc->gamma = law.gamma * UNIT;
    cc->beta = law.beta * UNIT;
    cc->floor = law.floor * UNIT;
    cc->flows = cc_flows_create(config->max_flows, config->seed);
    cc->peers = cc_peers_create(config->seed * 0x9e3779b97f4a7c15 + 1);
    cc->frame = malloc(MAX_MESSAGE_FRAME);
    if (!cc->flows || !cc->peers || !cc->frame) {
        cc_destroy(cc);
        return NULL;
    }
    return cc;
}

void
cc_destroy(struct cc *cc)
{
    if (cc) {
        free(cc->frame);
        cc_peers_destroy(cc->peers);
        cc_flows_destroy(cc->flows);
        free(cc);
    }
}

/* Returns the place of 'flow' in the order, the same for all without a
 * lease. */
uint32_t
cc_rank(const struct cc *cc, const struct cc_flow *flow, bool leased)
{
    return job_slots_rank(cc->config.slots, flow->slot, leased);
}

static bool
is_control_port(const struct cc *cc, const struct shim_flow_key *key)
{
    for (int i = 0; i < CC_MAX_CONTROL_PORTS; i++) {
        uint16_t port = htons(cc->config.control_ports[i]);

        if (!port) {
            return false;
        }
        if (key->local_port == port || key->remote_port == port) {
            return true;
        }
    }
    return false;
}

/* Is a packet of neither TCP nor of a known kind one of the control ports'? */
static bool
is_control_packet(const struct cc *cc, const struct cc_frame *frame)
{
    struct parsed p;

    if (!cc->config.control_ports[0]) {
        return false;
    }
    parse_frame(frame->data, frame->length, true, &p);
    return p.kind == PARSED_FLOW && is_control_port(cc, &p.key);
}

/* Returns the record of the segment's flow, a new one if need be, NULL if
 * there is no room. */
static struct cc_flow *
flow_of(struct cc *cc, const struct segment *seg, uint64_t now)
{
    struct cc_flow *flow = cc_flows_find(cc->flows, &seg->key);

    if (!flow && !(seg->flags & SEGMENT_RST)) {
        flow = cc_flows_add(cc->flows, &seg->key, now);
    }
    if (flow) {
        if (flow->peer == CC_NOBODY) {
            flow->peer = cc_peers_find(cc->peers, &seg->key, now, true);
        }
        flow->last = now;
        flow->ended |= (seg->flags & (SEGMENT_FIN | SEGMENT_RST)) != 0;
    }
    return flow;
}

static struct cc_peer *
peer_of(struct cc *cc, const struct cc_flow *flow)
{
    return (flow->peer == CC_NOBODY ? NULL
            : cc_peers_get(cc->peers, flow->peer));
}

/* Returns where the round trips of 'flow' are kept. */
struct cc_rtt *
cc_rtt_of(struct cc *cc, struct cc_flow *flow)
{
    struct cc_peer *peer = peer_of(cc, flow);

    return peer ? &peer->rtt : &flow->rtt;
}

/* Returns the peer that messages about 'flow' go to, NULL if none do. */
struct cc_peer *
cc_told_peer(struct cc *cc, const struct cc_flow *flow)
{
    struct cc_peer *peer = peer_of(cc, flow);

    return peer && peer->proven && peer->l2_size ? peer : NULL;
}

/* The host's SYN: what windows will mean, and whether the hosts want ECN. */
static void
host_syn(struct cc_frame *frame, struct segment *seg,
         const struct segment_options *o, struct cc_flow *flow, uint64_t now)
{
    bool again = flow->window.host_said && flow->syn_seq == seg->seq;

    cc_window_syn(&flow->window, frame->data, seg, o);
    flow->syn_at = again ? 0 : now;
    flow->syn_seq = seg->seq;
    flow->said_hello &= again;
    flow->ended = false;
    if (!again && !(seg->flags & SEGMENT_ACK)) {
        flow->has_ecn = flow->window.peer_said = false;
    }
    flow->has_ecn |= (seg->flags & SEGMENT_ECE) != 0;
}

/* May the shims use ECN for the two hosts, which do not? */
static bool
marks_for(const struct cc_flow *flow)
{
    return cc_window_known(&flow->window) && !flow->has_ecn;
}

/* Data of the host's: the queue, and the mark that they take marks. */
static void
host_data(struct cc *cc, struct cc_frame *frame, struct segment *seg,
          struct cc_flow *flow, struct verdict *v, uint64_t now)
{
    const struct cc_peer *peer = peer_of(cc, flow);

    v->queue = departures_queue(cc, flow, frame->length, now);
    if (v->queue && now <= flow->out.until && marks_for(flow)
        && peer && peer->flags & HELLO_ECN
        && seg->ecn == SEGMENT_NOT_ECT) {
        segment_set_ecn(frame->data, seg, SEGMENT_ECT_0);
    }
}

/* Bounds the window that the host's segment tells. */
static void
host_window(struct cc *cc, struct cc_frame *frame, struct segment *seg,
            struct cc_flow *flow)
{
    uint32_t limit = flow->in.bulk ? flow->in.window : CC_WINDOW_ANY;

    if (cc_window_apply(&flow->window, frame->data, seg, limit)) {
        counter_add(&cc->windows, 1);
    }
}

static void
make_control(struct verdict *v)
{
    v->treatment.level = SHIM_LEVEL_CONTROL;
    v->treatment.dscp = CC_CONTROL_DSCP;
}

/* Looks at, and changes, a frame of the host's that was classified as '*v',
 * before it is tagged and queued. */
void
cc_from_host(struct cc *cc, struct cc_frame *frame, struct verdict *v,
             uint64_t now)
{
    struct segment_options o;
    struct cc_flow *flow;
    struct cc_peer *peer;
    struct segment seg;

    if (!segment_parse(frame->data, frame->length, true, &seg)) {
        if (v->is_ip && is_control_packet(cc, frame)) {
            make_control(v);
        }
        return;
    }
    if (is_control_port(cc, &seg.key)) {
        make_control(v);
        return;
    }
    flow = flow_of(cc, &seg, now);
    if (!flow) {
        return;
    }
    flow->slot = v->slot;
    segment_options(frame->data, &seg, &o);
    if (seg.flags & SEGMENT_SYN) {
        host_syn(frame, &seg, &o, flow, now);
    } else {
        host_window(cc, frame, &seg, flow);
    }
    if (o.has_timestamp) {
        cc_echo_ask(&flow->echo, o.ts_value, now);
    }
    if (!seg.payload && seg.flags == SEGMENT_ACK) {
        v->queue = arrivals_ack(cc, flow, &seg, frame->length);
    } else if (seg.payload) {
        host_data(cc, frame, &seg, flow, v, now);
    }
    peer = peer_of(cc, flow);
    if (peer) {
        cc_peer_learn_l2(peer, frame->data, seg.l3);
        greeting_say(frame, &seg, flow, peer, now);
    }
}

static void
peer_syn(struct cc *cc, const struct segment *seg,
         const struct segment_options *o, struct cc_flow *flow, uint64_t now)
{
    if (!(seg->flags & SEGMENT_ACK)) {
        /* A new connection, perhaps of the ports of an old one. */
        flow->window.host_said = flow->window.has_edge = false;
        flow->said_hello = flow->has_ecn = flow->ended = false;
        flow->in.bulk = false;
        flow->in.window = CC_WINDOW_ANY;
        flow->syn_at = 0;
    }
    cc_window_peer_syn(&flow->window, seg, o);
    flow->has_ecn |= (seg->flags & SEGMENT_ECE) != 0;
    if (seg->flags & SEGMENT_ACK && flow->syn_at) {
        cc_rtt_sample(cc_rtt_of(cc, flow), now - flow->syn_at, now);
    }
    flow->syn_at = 0;
}

/* Counts, and learns from, a segment from the network. */
static void
peer_segment(struct cc *cc, struct cc_frame *frame, struct segment *seg,
             uint16_t slot, uint64_t now)
{
    struct cc_flow *flow = flow_of(cc, seg, now);
    uint32_t length = frame->length;
    struct segment_options o;

    if (!flow) {
        cc->other_bytes += length;
        return;
    }
    flow->slot = slot ? slot : flow->slot;
    segment_options(frame->data, seg, &o);
    if (seg->flags & SEGMENT_SYN) {
        peer_syn(cc, seg, &o, flow, now);
    } else if (flow->syn_at) {
        cc_rtt_sample(cc_rtt_of(cc, flow), now - flow->syn_at, now);
        flow->syn_at = 0;
    }
    if (o.has_timestamp) {
        cc_rtt_sample(cc_rtt_of(cc, flow),
                      cc_echo_answer(&flow->echo, o.ts_echo, now), now);
    }
    if (seg->payload) {
        arrivals_data(cc, flow, seg, length, now);
    } else {
        cc->other_bytes += length;
    }
    if (seg->ecn && marks_for(flow) && peer_of(cc, flow)
        && peer_of(cc, flow)->proven) {
        segment_set_ecn(frame->data, seg, SEGMENT_NOT_ECT);
    }
    if (o.hello_at) {
        greeting_hear(cc, frame, seg, &o, peer_of(cc, flow));
    }
}

/* Looks at, and changes, a frame from the network for the job of 'slot'.
 * Returns false if it was for this shim and must not reach the host. */
bool
cc_from_uplink(struct cc *cc, struct cc_frame *frame, uint16_t slot,
               uint64_t now)
{
    struct segment seg;

    cc->bytes += frame->length;
    if (!segment_parse(frame->data, frame->length, false, &seg)) {
        cc->other_bytes += frame->length;
        return !message_take(cc, frame, now);
    }
    if (is_control_port(cc, &seg.key)) {
        cc->other_bytes += frame->length;
        return true;
    }
    peer_segment(cc, frame, &seg, slot, now);
    return true;
}

static void
apply_law(struct cc *cc)
{
    cc->law.gamma = __atomic_load_n(&cc->gamma, __ATOMIC_RELAXED) / UNIT;
    cc->law.beta = __atomic_load_n(&cc->beta, __ATOMIC_RELAXED) / UNIT;
    cc->law.floor = __atomic_load_n(&cc->floor, __ATOMIC_RELAXED) / UNIT;
}

static void
sweep(struct cc *cc, uint64_t now)
{
    struct cc_flow *flow;

    if (now - cc->swept < SWEEP_NS) {
        return;
    }
    cc->swept = now;
    apply_law(cc);
    while ((flow = cc_flows_sweep(cc->flows, now))) {
        arrivals_leave(cc, flow);
        departures_leave(cc, flow);
        cc_flows_remove(cc->flows, flow);
    }
}

/* Divides the links again if it is time to. */
void
cc_turn(struct cc *cc, uint64_t now)
{
    arrivals_turn(cc, now);
    departures_turn(cc, now);
    sweep(cc, now);
}

/* Sets what the controller's policy says; SHIM_CONGESTION_DEFAULT leaves what
 * the shim began with. */
void
cc_set_law(struct cc *cc, const struct shim_congestion *told)
{
    struct cc_law law = CC_LAW_DEFAULT;
    uint32_t untold = SHIM_CONGESTION_DEFAULT;

    __atomic_store_n(&cc->gamma, told->gamma == untold ? law.gamma * UNIT
                     : told->gamma, __ATOMIC_RELAXED);
    __atomic_store_n(&cc->beta, told->beta == untold ? law.beta * UNIT
                     : told->beta, __ATOMIC_RELAXED);
    __atomic_store_n(&cc->floor, told->floor == untold ? law.floor * UNIT
                     : told->floor, __ATOMIC_RELAXED);
}

/* Fills in what was counted here of 'stats'. */
void
cc_stats(const struct cc *cc, struct shim_stats *stats)
{
    stats->cc_flows = cc_flows_count(cc->flows);
    stats->cc_windows = counter_get(&cc->windows);
    stats->cc_grants_sent = counter_get(&cc->grants_sent);
    stats->cc_grants_taken = counter_get(&cc->grants_taken);
    stats->cc_marks = counter_get(&cc->marks);
}
