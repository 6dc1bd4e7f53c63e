/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/cc.h"

#include <netinet/in.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "shim/cc/state.h"
#include "shim/classify/classify.h"
#include "shim/classify/job-slot.h"
#include "shim/clock/counter.h"

#define SWEEP_NS MS             /* Between two searches for old flows. */
#define SWEEP 16                /* Flows to check in each. */

/* Time from the last packet of a connection until its record is removed. */
#define ENDED_NS NS_PER_S
#define IDLE_NS (60 * NS_PER_S)
#define TRANSLATED_NS (7200 * NS_PER_S)

struct cc *
cc_create(const struct cc_config *config)
{
    struct cc *cc = allocate(1, sizeof *cc);

    cc->config = *config;
    cc->jobs = rank_queues_jobs(config->queues);
    cc->law = (struct cc_law) CC_LAW_DEFAULT;
    memset(&cc->wanted, 0xff, sizeof cc->wanted); /* The default. */
    record_table_init(&cc->flows, sizeof(struct cc_flow), config->max_flows);
    remote_shims_init(&cc->remotes, config);
    return cc;
}

void
cc_destroy(struct cc *cc)
{
    if (cc) {
        record_table_uninit(&cc->flows);
        remote_shims_uninit(&cc->remotes);
        sodium_memzero(cc, sizeof *cc);
        free(cc);
    }
}

/* A segment with the timestamp 'stamp' leaves. */
static void
echo_sent(struct cc_echo *e, uint32_t stamp, uint64_t now)
{
    if (!e->waiting && (!e->sent_at || (int32_t) (stamp - e->stamp) > 0)) {
        e->stamp = stamp;
        e->sent_at = now;
        e->waiting = true;
    }
}

/* A segment that echoes 'echo' has arrived.  Returns the round trip, or 0 if
 * that is not known. */
static uint64_t
echo_received(struct cc_echo *e, uint32_t echo, uint64_t now)
{
    if (!e->waiting || (int32_t) (echo - e->stamp) < 0) {
        return 0;
    }
    e->waiting = false;
    return echo == e->stamp ? now - e->sent_at : 0;
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

static void
remove_flow(struct cc *cc, struct cc_flow *flow)
{
    downlink_remove(cc, flow);
    uplink_remove(cc, flow);
    record_table_remove(&cc->flows, &flow->record);
}

/* Returns the record of a new flow, maybe in place of another, or NULL. */
static struct cc_flow *
add_flow(struct cc *cc, const struct shim_flow_key *key, uint16_t slot,
         uint64_t now)
{
    struct record *old = record_table_choose(&cc->flows, slot, now);
    struct cc_flow *flow;

    if (old) {
        remove_flow(cc, (struct cc_flow *) old);
    }
    flow = (struct cc_flow *) record_table_add(&cc->flows, key, slot, now);
    if (flow) {
        flow->in.window = CC_WINDOW_ANY;
    }
    return flow;
}

/* Returns the record of the segment's flow, maybe a new one, or NULL.  From
 * the uplink, slot 0 means that its job is not known. */
static struct cc_flow *
find_flow(struct cc *cc, const struct segment *seg, bool from_host,
          uint16_t slot, uint64_t now)
{
    struct cc_flow *flow =
        (struct cc_flow *) record_table_find(&cc->flows, &seg->key);

    if (!flow && !(seg->flags & SEGMENT_RST)) {
        flow = add_flow(cc, &seg->key, slot, now);
    }
    if (flow) {
        if (slot != flow->record.slot && (slot || from_host)) {
            record_table_move(&cc->flows, &flow->record, slot);
        }
        cc_find_remote(cc, flow, now);
        flow->record.last = now;
        flow->ended |= (seg->flags & (SEGMENT_FIN | SEGMENT_RST)) != 0;
    }
    return flow;
}

/* The host's SYN contains its window scale and whether it wants ECN.  Its
 * SYN-ACK shows that it has accepted the remote end's SYN. */
static void
host_syn(struct cc_frame *frame, struct segment *seg,
         const struct segment_options *o, struct cc_flow *flow, uint64_t now)
{
    bool again = flow->window.host_syn_seen && flow->syn_seq == seg->seq;

    cc_window_syn(&flow->window, frame->data, seg, o);
    flow->syn_at = again ? 0 : now;
    flow->syn_seq = seg->seq;
    flow->ended = false;
    if (!again) {
        bool taken = seg->flags & SEGMENT_ACK && flow->remote_syn.seen;

        flow->window.remote_syn_seen = taken;
        flow->window.remote_scales = taken && flow->remote_syn.scales;
        flow->has_ecn = taken && flow->remote_syn.has_ecn;
        flow->remote_syn.seen = flow->hello_sent = flow->in.bulk = false;
        flow->in.window = CC_WINDOW_ANY;
    }
    flow->has_ecn |= (seg->flags & SEGMENT_ECE) != 0;
}

/* Returns true if the two hosts do not use ECN, so that the shims may. */
static bool
may_use_ecn(const struct cc_flow *flow)
{
    return cc_window_known(&flow->window) && !flow->has_ecn;
}

/* Chooses the queue of data from the host, and marks them as ECN-capable. */
static void
host_data(struct cc *cc, struct cc_frame *frame, struct segment *seg,
          struct cc_flow *flow, struct verdict *v, uint64_t now)
{
    const struct remote_shim *rs = flow->remote;

    v->queue = uplink_queue(cc, flow, frame->length, now);
    if (v->queue && now <= flow->out.until && may_use_ecn(flow) && rs
        && rs->kept.flags & HELLO_ECN && seg->ecn == SEGMENT_NOT_ECT) {
        segment_set_ecn(frame->data, seg, SEGMENT_ECT_0);
    }
}

/* Moves a packet to the control class of its job, or without a job to the
 * control class of other packets. */
static void
make_control(const struct cc *cc, struct verdict *v)
{
    v->treatment.level = SHIM_LEVEL_CONTROL;
    v->treatment.dscp = job_slots_control_dscp(cc->config.slots);
}

/* Handles a packet of the host that is not a TCP segment.  Returns false if it
 * is or may become a message to a shim, which only shims may send. */
static bool
host_packet(struct cc *cc, const struct cc_frame *frame, struct verdict *v)
{
    struct parsed p;

    parse_frame(frame->data, frame->length, true, &p);
    if (parse_is_udp_to(frame->data, &p, cc->config.tunnels, GRANT_PORT)) {
        counter_add(&cc->forged, 1);
        return false;
    }
    if (p.kind == PARSED_FLOW && is_control_port(cc, &p.key)) {
        make_control(cc, v);
    }
    return true;
}

/* Handles a segment of the host on 'flow'. */
static void
host_segment(struct cc *cc, struct cc_frame *frame, struct segment *seg,
             const struct segment_options *o, struct cc_flow *flow,
             struct verdict *v, uint64_t now)
{
    if (seg->flags & SEGMENT_SYN) {
        host_syn(frame, seg, o, flow, now);
    } else if (cc_window_apply(&flow->window, frame->data, seg,
                               flow->in.bulk ? flow->in.window
                                             : CC_WINDOW_ANY)) {
        counter_add(&cc->windows, 1);
    }
    if (o->has_timestamp) {
        echo_sent(&flow->echo, o->ts_value, now);
    }
    if (!seg->payload && seg->flags == SEGMENT_ACK) {
        v->queue = downlink_ack(cc, flow, seg, frame->length, now);
    } else if (seg->payload) {
        host_data(cc, frame, seg, flow, v, now);
    }
    if (flow->remote) {
        remote_shim_learn_l2(flow->remote, frame->data, seg->l3);
        hello_send(cc, frame, seg, flow, now);
    }
}

bool
cc_from_host(struct cc *cc, struct cc_frame *frame, struct verdict *v,
             uint64_t now)
{
    struct segment_options o;
    struct cc_flow *flow;
    struct segment seg;

    if (!segment_parse(frame->data, frame->length, true, &seg)) {
        return !v->is_ip || host_packet(cc, frame, v);
    }
    segment_options(frame->data, &seg, &o);
    if (o.hello_at) {
        hello_remove(frame, &seg, &o);
    }
    if (is_control_port(cc, &seg.key)) {
        make_control(cc, v);
        return true;
    }
    flow = find_flow(cc, &seg, true, v->slot, now);
    if (flow) {
        host_segment(cc, frame, &seg, &o, flow, v, now);
    }
    return true;
}

/* A SYN of the remote end changes nothing until the host has taken it, nor
 * does one that repeats a SYN-ACK: a connection that a SYN could reset would
 * escape its limits. */
static void
remote_syn(const struct segment *seg, const struct segment_options *o,
           struct cc_flow *flow, uint64_t now)
{
    bool has_ecn = seg->flags & SEGMENT_ECE;

    if (!(seg->flags & SEGMENT_ACK)) {
        flow->remote_syn.seen = true;
        flow->remote_syn.scales = o->scale_at != 0;
        flow->remote_syn.has_ecn = has_ecn;
    } else if (!flow->window.remote_syn_seen) {
        cc_window_remote_syn(&flow->window, o);
        flow->has_ecn |= has_ecn;
        if (flow->syn_at) {
            cc_rtt_sample(cc_rtt_of(flow), now - flow->syn_at, now);
        }
    }
    flow->syn_at = 0;
}

static void
uplink_segment(struct cc *cc, struct cc_frame *frame, struct segment *seg,
               uint16_t slot, uint64_t now)
{
    struct cc_flow *flow = find_flow(cc, seg, false, slot, now);
    uint32_t length = frame->length;
    struct segment_options o;

    if (!flow) {
        cc->other_bytes += length;
        return;
    }
    segment_options(frame->data, seg, &o);
    if (seg->flags & SEGMENT_SYN) {
        remote_syn(seg, &o, flow, now);
    } else if (flow->syn_at) {
        cc_rtt_sample(cc_rtt_of(flow), now - flow->syn_at, now);
        flow->syn_at = 0;
    }
    if (o.has_timestamp) {
        cc_rtt_sample(cc_rtt_of(flow),
                      echo_received(&flow->echo, o.ts_echo, now), now);
    }
    if (seg->payload) {
        downlink_data(cc, flow, seg, length, now);
    } else {
        cc->other_bytes += length;
    }
    if (seg->ecn && may_use_ecn(flow) && flow->remote
        && flow->remote->kept.verified) {
        segment_set_ecn(frame->data, seg, SEGMENT_NOT_ECT);
    }
    if (o.hello_at) {
        hello_receive(cc, frame, seg, &o, flow->remote, now);
    }
}

/* Handles the flows of a message, which are between 'hosts': grants are for
 * flows from this host, other types are about flows to it. */
static void
take_flows(struct cc *cc, const struct shim_flow_key *hosts,
           const struct grant_message *m, uint64_t now)
{
    bool is_grant = m->type == GRANT_RATES;
    struct shim_flow_key key = *hosts;

    key.protocol = IPPROTO_TCP;
    for (int i = 0; i < m->n; i++) {
        const struct grant *g = &m->grants[i];
        struct cc_flow *flow;

        key.local_port = is_grant ? g->sender_port : g->receiver_port;
        key.remote_port = is_grant ? g->receiver_port : g->sender_port;
        flow = (struct cc_flow *) record_table_find(&cc->flows, &key);
        if (flow && is_grant) {
            counter_add(&cc->grants_taken, 1);
            uplink_hold(cc, flow, g->bps, now + g->ms * MS, now);
        } else if (flow && m->type == GRANT_EMPTY) {
            /* Data in flight make it active again when they arrive. */
            flow->in.quiet |= flow->in.active;
        } else if (flow && m->type == GRANT_WAITING) {
            downlink_waiting(cc, flow, now);
        } else if (flow && m->type == GRANT_BUSY) {
            flow->in.busy_at = now;
        }
    }
}

bool
cc_from_uplink(struct cc *cc, struct cc_frame *frame, uint16_t slot,
               uint64_t now)
{
    bool is_segment, is_message = false;
    struct shim_flow_key hosts;
    struct grant_message m;
    struct segment seg;

    cc->bytes += frame->length;
    is_segment = segment_parse(frame->data, frame->length, false, &seg);
    if (is_segment && !is_control_port(cc, &seg.key)) {
        uplink_segment(cc, frame, &seg, slot, now);
        return true;
    }
    cc->other_bytes += frame->length;
    if (!is_segment) {
        is_message = message_receive(cc, frame, now, &hosts, &m);
    }
    if (is_message && m.type) {
        take_flows(cc, &hosts, &m, now);
    }
    return !is_message;
}

/* Removes a flow that is old, and takes one from a job that has ended. */
static void
check_flow(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    uint64_t lifetime = (flow->ended                           ? ENDED_NS
                         : cc_window_translates(&flow->window) ? TRANSLATED_NS
                                                               : IDLE_NS);

    if (now > flow->record.last + lifetime) {
        remove_flow(cc, flow);
    } else if (!job_slots_treatment(cc->config.slots, flow->record.slot, true)
                    .in_use) {
        record_table_move(&cc->flows, &flow->record, 0);
    }
}

/* Returns a share of the law that the control thread has set. */
static double
share_of(const uint32_t *share, double by_default)
{
    uint32_t wanted = __atomic_load_n(share, __ATOMIC_RELAXED);

    return (wanted == SHIM_CONGESTION_DEFAULT
                ? by_default
                : (double) wanted / SHIM_CONGESTION_UNIT);
}

/* Applies the law, checks some flows and asks for answers, from time to
 * time. */
static void
sweep(struct cc *cc, uint64_t now)
{
    const struct cc_law law = CC_LAW_DEFAULT;
    struct remote_shim *rs;

    if (now - cc->swept < SWEEP_NS) {
        return;
    }
    cc->swept = now;
    cc->law.gamma =
        cc->config.strict_switch ? 1 : share_of(&cc->wanted.gamma, law.gamma);
    cc->law.beta = share_of(&cc->wanted.beta, law.beta);
    cc->law.floor = share_of(&cc->wanted.floor, law.floor);
    for (int i = 0; i < SWEEP; i++) {
        struct record *r = record_table_next(&cc->flows);

        if (r) {
            check_flow(cc, (struct cc_flow *) r, now);
        }
    }
    rs = remote_shims_run(&cc->remotes, now);
    if (rs) {
        message_ask(cc, rs, now);
    }
}

void
cc_poll(struct cc *cc, uint64_t now)
{
    downlink_poll(cc, now);
    uplink_poll(cc, now);
    sweep(cc, now);
}

void
cc_set_law(struct cc *cc, const struct shim_congestion *c)
{
    __atomic_store_n(&cc->wanted.gamma, c->gamma, __ATOMIC_RELAXED);
    __atomic_store_n(&cc->wanted.beta, c->beta, __ATOMIC_RELAXED);
    __atomic_store_n(&cc->wanted.floor, c->floor, __ATOMIC_RELAXED);
}

void
cc_set_keys(struct cc *cc, const struct shim_key *keys, size_t n)
{
    remote_shims_set_keys(&cc->remotes, keys, n);
}

bool
cc_peers(struct cc *cc, struct shim_peer *peers, size_t *n)
{
    return remote_shims_list(&cc->remotes, peers, n);
}

uint64_t
cc_refused(const struct cc *cc, uint16_t slot)
{
    return (record_table_refused(&cc->flows, slot)
            + record_table_refused(&cc->remotes.table, slot));
}

void
cc_forget(struct cc *cc, uint16_t slot)
{
    record_table_forget(&cc->flows, slot);
    record_table_forget(&cc->remotes.table, slot);
}

void
cc_stats(const struct cc *cc, struct shim_stats *stats)
{
    stats->cc_flows = SHARES_LOAD(&cc->flows.shares.n);
    stats->cc_windows = counter_get(&cc->windows);
    stats->cc_grants_sent = counter_get(&cc->grants_sent);
    stats->cc_grants_taken = counter_get(&cc->grants_taken);
    stats->cc_marks = counter_get(&cc->marks);
    stats->cc_forged = counter_get(&cc->forged);
    stats->cc_refused = counter_get(&cc->remotes.n_refused);
    stats->cc_repeated = counter_get(&cc->remotes.n_repeated);
    stats->cc_disobeyed = counter_get(&cc->disobeyed);
}
