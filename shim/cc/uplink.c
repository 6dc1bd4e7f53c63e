/* SPDX-License-Identifier: Apache-2.0 */

/* The uplink: flows that the receiver's shim grants a rate.
 *
 * If the grants exceed the uplink, its queues divide it: by rank, in equal
 * parts within a rank, with a minimum share (see queue/rank-queue.h).  Pacing
 * the flows to those parts here too would only lose what one of them leaves
 * unused until that is noticed.
 *
 * A burst starts before its grant arrives.  Where the receiver's switch has
 * one queue, the first window of a flow of a late rank would compete with
 * flows of earlier ranks, and took a sixth of the servers' links in the
 * quickstart.  So if the remote shim wants that (HELLO_WAITING) and is near,
 * the bytes of a small flow leave, the remote shim is informed, and the rest
 * waits a round trip for the grant.  Homa's unscheduled bytes are the same
 * idea (Montazeri et al., SIGCOMM 2018). */

#include "shim/cc/state.h"

#define PAUSE_NS (30 * MS)      /* Time without data that ends a burst. */
#define NEAR_NS (5 * MS)        /* Longest round trip to wait for a grant. */
#define ANSWER_NS (20 * MS)     /* Longest wait for a grant. */
#define ASK_NS (5 * MS)         /* Minimum time between two reports that a flow
                                 * waits for a grant, and between two that it
                                 * waits for the uplink. */
#define LATE_NS (2 * MS)        /* A longer wait for the uplink is reported. */
#define KEEP_NS NS_PER_S        /* How long a silent flow keeps its queue. */
#define EMPTY_NS (MS / 2)       /* After a round trip and this time without
                                 * data, a flow has none to send. */
#define MAX_HOLD_NS NS_PER_S    /* Longest validity of a grant. */
/* The least grant is a flow's part of the congestion floor of this uplink, by
 * the number of hosts that may send to one receiver.  To a late rank the
 * receiver grants its part of the floor, 2 % of the link, divided by all flows
 * that arrive there.  Were 2 % of each sender's uplink the least, 50 senders
 * would fill the link and the first rank would starve; now as many senders as
 * this get no more than the receiver grants, and the 512 that it may know a
 * third of the link. */
#define FLOOR_SENDERS 32
#define NO_RATE UINT64_MAX      /* 'paced' of a queue that is starting. */

static void
set_pace(struct cc *cc, struct cc_flow *flow, uint64_t bps, uint64_t now)
{
    flow->out.starting = false;
    if (bps != flow->out.paced) {
        flow->out.paced = bps;
        rank_queues_flow_rate(cc->config.queues, now, flow->out.queue, bps);
    }
}

/* Returns true if 'flow' should wait for a grant. */
static bool
may_await_grant(struct cc_flow *flow)
{
    const struct remote_shim *rs = cc_verified_remote(flow);

    return (rs && rs->kept.flags & HELLO_WAITING && !rs->silent
            && !flow->out.unanswered && round_trip(flow) <= NEAR_NS);
}

/* Limits 'flow' to the bytes that it may send before a grant. */
static void
start_burst(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct cc_leaving *out = &flow->out;

    out->held_since = 0;
    if (!may_await_grant(flow)) {
        set_pace(cc, flow, 0, now);
        return;
    }
    out->starting = true;
    out->paced = NO_RATE;
    job_queues_flow_start(cc->jobs, now, out->queue, CC_SMALL_BYTES);
}

static void
add_queue(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct cc_leaving *out = &flow->out;

    out->queue = job_queues_flow_new(cc->jobs, flow->record.slot);
    if (!out->queue) {
        return;
    }
    out->slot = flow->record.slot;
    out->position = cc->out.n;
    out->paced = out->empty_since = out->empty_sent_at = 0;
    out->last = now;
    cc->out.flows[cc->out.n++] = flow;
}

void
uplink_remove(struct cc *cc, struct cc_flow *flow)
{
    struct cc_leaving *out = &flow->out;

    if (out->queue) {
        struct cc_flow *last = cc->out.flows[--cc->out.n];

        cc->out.flows[out->position] = last;
        last->out.position = out->position;
        job_queues_flow_free(cc->jobs, out->queue);
        out->queue = 0;
        out->starting = false;
    }
}

/* Paces 'flow' by its grant. */
static void
hold(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    if (!flow->out.queue) {
        add_queue(cc, flow, now);
    }
    if (flow->out.queue) {
        set_pace(cc, flow, flow->out.granted, now);
    }
}

void
uplink_hold(struct cc *cc, struct cc_flow *flow, uint64_t bps, uint64_t until,
            uint64_t now)
{
    struct cc_leaving *out = &flow->out;
    uint64_t most = now + MAX_HOLD_NS;
    double least = cc->law.floor * cc->config.uplink_bps / FLOOR_SENDERS;

    bps = larger(bps, larger(least / larger(cc->out.n, 1), 1));
    out->granted = bps < SHIM_MAX_RATE ? bps : SHIM_MAX_RATE;
    out->until = until < most ? until : most;
    out->granted_at = now;
    out->has_grant = true;
    out->unanswered = false;
    hold(cc, flow, now);
}

/* Starts a burst of 'flow' without a grant. */
static void
begin_burst(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct cc_leaving *out = &flow->out;

    out->has_grant = false;
    out->burst_at = now;
    out->burst_bytes = 0;
    if (out->queue) {
        start_burst(cc, flow, now);
    }
}

/* Returns true if 'flow' has sent its first bytes and waits for a grant. */
static bool
is_held(struct cc *cc, const struct cc_flow *flow, uint64_t now)
{
    return (flow->out.starting
            && job_queues_flow_started(cc->jobs, now, flow->out.queue));
}

/* 'flow' sends 'length' bytes without a grant.  At a low rate it remains a
 * small flow, which never gets a grant. */
static void
send_ungranted(struct cc *cc, struct cc_flow *flow, uint32_t length,
               uint64_t now)
{
    struct cc_leaving *out = &flow->out;

    if (now - out->burst_at > CC_SMALL_NS && !is_held(cc, flow, now)) {
        begin_burst(cc, flow, now);
    }
    out->burst_bytes += length;
    if (!out->queue && out->burst_bytes > CC_SMALL_BYTES
        && may_await_grant(flow)) {
        add_queue(cc, flow, now);
        if (out->queue) {
            start_burst(cc, flow, now);
        }
    }
}

uint16_t
uplink_queue(struct cc *cc, struct cc_flow *flow, uint32_t length,
             uint64_t now)
{
    struct cc_leaving *out = &flow->out;

    if (out->has_grant
        && now > larger(out->granted_at, out->last) + PAUSE_NS) {
        begin_burst(cc, flow, now);
    }
    if (out->queue && out->slot != flow->record.slot) {
        uplink_remove(cc, flow);
    }
    if (!out->has_grant) {
        send_ungranted(cc, flow, length, now);
    } else if (!out->queue) {
        hold(cc, flow, now);
    }
    out->last = now;
    out->empty_since = out->empty_sent_at = 0;
    return out->queue;
}

/* Returns true, once in ASK_NS, if the receiver's shim should be informed that
 * 'flow' cannot use its grant, because the uplink is busy with other flows:
 * while it waited, its grant would have carried at least one packet. */
static bool
is_busy(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct cc_leaving *out = &flow->out;
    uint64_t late;

    if (!out->has_grant || !(flow->remote->kept.flags & HELLO_WAITING)
        || now - out->busy_sent_at < ASK_NS) {
        return false;
    }
    late = job_queues_flow_late(cc->jobs, now, out->queue);
    if (late <= LATE_NS || (double) late * out->granted / 8 / NS_PER_S
                           < cc->config.mtu) {
        return false;
    }
    out->busy_sent_at = now;
    return true;
}

/* Checks how long the queue of 'flow', which has a grant, has been empty.
 * Returns true if the receiver's shim should be informed, once: ACKs would
 * have triggered more data by now. */
static bool
is_empty(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct cc_leaving *out = &flow->out;
    uint64_t rtt = round_trip(flow);

    if (!out->has_grant || !job_queues_flow_empty(cc->jobs, out->queue)) {
        out->empty_since = 0;
    } else if (!out->empty_since) {
        out->empty_since = now;
    }
    if (out->empty_since && now - out->empty_since > rtt + EMPTY_NS
        && (!out->empty_sent_at
            || out->granted_at > out->empty_sent_at + rtt)) {
        out->empty_sent_at = now;
        return true;
    }
    return false;
}

static void
report(struct cc *cc, struct cc_flow *flow, enum grant_type type, uint64_t now)
{
    message_add(
        cc, flow->remote, type,
        &(struct grant){ .sender_port = flow->record.key.local_port,
                         .receiver_port = flow->record.key.remote_port },
        now);
}

/* 'flow' has sent its first bytes and waits for a grant: informs the
 * receiver's shim once in ASK_NS.  After ANSWER_NS, marks the flow as
 * unanswered and the remote shim as silent: neither this flow nor others to
 * that host wait again until a grant arrives. */
static void
await_grant(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct remote_shim *rs = cc_remote_of(flow);
    struct cc_leaving *out = &flow->out;

    out->held_since = out->held_since ? out->held_since : now;
    if (cc_verified_remote(flow) && now - out->asked_at >= ASK_NS) {
        out->asked_at = now;
        report(cc, flow, GRANT_WAITING, now);
    }
    if (now - out->held_since > ANSWER_NS) {
        out->unanswered = true;
        if (rs) {
            rs->silent = true;
        }
        set_pace(cc, flow, 0, now);
    }
}

/* Ends grants that have expired, and removes the queues of silent flows. */
void
uplink_poll(struct cc *cc, uint64_t now)
{
    if (now - cc->out.stepped < CC_STEP_NS) {
        return;
    }
    cc->out.stepped = now;
    for (uint32_t i = cc->out.n; i-- > 0; ) {
        struct cc_flow *flow = cc->out.flows[i];
        struct cc_leaving *out = &flow->out;

        if (cc_verified_remote(flow)) {
            if (is_empty(cc, flow, now)) {
                report(cc, flow, GRANT_EMPTY, now);
            }
            if (is_busy(cc, flow, now)) {
                report(cc, flow, GRANT_BUSY, now);
            }
        }
        if (out->has_grant && now > out->until) {
            begin_burst(cc, flow, now);
        }
        if (is_held(cc, flow, now)) {
            await_grant(cc, flow, now);
        } else {
            out->held_since = 0;
        }
        if (now - larger(out->last, out->granted_at) > KEEP_NS) {
            uplink_remove(cc, flow);
        }
    }
    message_send_all(cc, now);
}
