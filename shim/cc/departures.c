/* SPDX-License-Identifier: Apache-2.0 */

/* The uplink: flows that were told a rate leave at it.
 *
 * If they were told more than the uplink carries, its queues divide it: by
 * rank, in equal parts inside a rank, with a floor (see
 * queue/rank-queue.h).  To pace the flows to such parts here as well would
 * only lose what one of them leaves unused until that is noticed.
 *
 * A burst begins before its rate is known here.  Towards a near shim that
 * tells rates, as much of it leaves as makes it more than a small flow there,
 * and the rest waits for the answer, one round trip: what is going to wait
 * would otherwise have its first window among the frames of those who go
 * before it.  Homa's unscheduled bytes are the same (Montazeri et al., SIGCOMM
 * 2018). */

#include "shim/cc/state.h"

#include "shim/clock/counter.h"

#define MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

#define PAUSE_NS (30 * MS)      /* Untold and silent for longer, a flow begins
                                 * anew... */
#define START_FRAMES 2          /* ...with so many beyond a small flow... */
#define NEAR_NS (5 * MS)        /* ...if a round trip takes less... */
#define ANSWER_NS (20 * MS)     /* ...and does not wait longer than that. */
#define KEEP_NS NS_PER_S        /* How long a silent flow keeps its queue. */
#define EMPTY_NS (MS / 2)       /* Beyond a round trip, and a flow that has
                                 * sent nothing has nothing. */
#define MAX_HOLD_NS NS_PER_S    /* No grant holds longer. */
#define NO_RATE UINT64_MAX      /* Of a queue that starts. */

static void
pace(struct cc *cc, struct cc_flow *flow, uint64_t bps)
{
    flow->out.starts = false;
    if (bps != flow->out.paced) {
        flow->out.paced = bps;
        cc->config.flow_rate(cc->config.aux, flow->out.queue, bps);
    }
}

/* Is an answer to 'flow' worth waiting for? */
static bool
may_wait(struct cc *cc, struct cc_flow *flow)
{
    return (flow->peer != CC_NOBODY
            && cc_peers_get(cc->peers, flow->peer)->tells
            && !flow->out.unanswered && round_trip(cc, flow) <= NEAR_NS);
}

/* Lets 'flow', whose rate is not known, send what it may without. */
static void
start(struct cc *cc, struct cc_flow *flow)
{
    struct cc_leaving *out = &flow->out;

    out->started = 0;
    if (!may_wait(cc, flow)) {
        pace(cc, flow, 0);
        return;
    }
    out->starts = true;
    out->paced = NO_RATE;
    cc->config.flow_start(cc->config.aux, out->queue, CC_SMALL_BYTES
                          + START_FRAMES * cc->config.mtu);
}

static void
join(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct cc_leaving *out = &flow->out;

    out->queue = cc->config.flow_queue(cc->config.aux, flow->slot);
    if (!out->queue) {
        return;
    }
    out->slot = flow->slot;
    out->position = cc->out.n;
    out->paced = out->empty = out->said_empty = 0;
    out->last = now;
    cc->out.ids[cc->out.n++] = cc_flows_id(cc->flows, flow);
}

/* 'flow' needs no queue of its own any more. */
void
departures_leave(struct cc *cc, struct cc_flow *flow)
{
    struct cc_leaving *out = &flow->out;
    uint32_t last;

    if (out->queue) {
        last = cc->out.ids[--cc->out.n];
        cc->out.ids[out->position] = last;
        cc_flows_get(cc->flows, last)->out.position = out->position;
        cc->config.flow_free(cc->config.aux, out->queue);
        out->queue = 0;
        out->starts = false;
    }
}

/* Lets 'flow' leave at 'bps' until then, as far as that makes sense. */
void
departures_hold(struct cc *cc, struct cc_flow *flow, uint64_t bps,
                uint64_t until, uint64_t now)
{
    struct cc_leaving *out = &flow->out;
    uint64_t most = now + MAX_HOLD_NS;

    out->granted = bps < 1 ? 1 : bps > SHIM_MAX_RATE ? SHIM_MAX_RATE : bps;
    out->until = until < most ? until : most;
    out->told_at = now;
    out->told = true;
    out->unanswered = false;
    if (!out->queue) {
        join(cc, flow, now);
    }
    if (out->queue) {
        pace(cc, flow, out->granted);
    }
}

/* The receiver's shim tells the rate of 'flow'. */
void
departures_grant(struct cc *cc, struct cc_flow *flow,
                 const struct grant *grant, uint64_t now)
{
    counter_add(&cc->grants_taken, 1);
    departures_hold(cc, flow, grant->bps, now + grant->ms * MS, now);
}

/* The agent has found out whose flow it is: its queue is that job's. */
static void
change_slot(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct cc_leaving *out = &flow->out;
    uint64_t last = out->last;

    departures_leave(cc, flow);
    join(cc, flow, now);
    if (!out->queue) {
        return;
    }
    out->last = last;
    if (out->told) {
        pace(cc, flow, out->granted);
    } else {
        start(cc, flow);
    }
}

/* Nothing that was told of 'flow' holds any more. */
static void
begin(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct cc_leaving *out = &flow->out;

    out->told = false;
    out->begun = now;
    out->begun_bytes = 0;
    if (out->queue) {
        start(cc, flow);
    }
}

/* Has 'flow' sent what it may, and waits? */
static bool
waits(struct cc *cc, const struct cc_flow *flow)
{
    return (flow->out.starts
            && cc->config.flow_started(cc->config.aux, flow->out.queue));
}

/* 'flow', whose rate is not known, sends 'length' bytes.  Slowly, it stays a
 * small one, which nobody tells a rate. */
static void
send_untold(struct cc *cc, struct cc_flow *flow, uint32_t length,
            uint64_t now)
{
    struct cc_leaving *out = &flow->out;

    if (now - out->begun > CC_SMALL_NS && !waits(cc, flow)) {
        begin(cc, flow, now);
    }
    out->begun_bytes += length;
    if (!out->queue && out->begun_bytes > CC_SMALL_BYTES
        && may_wait(cc, flow)) {
        join(cc, flow, now);
        if (out->queue) {
            start(cc, flow);
        }
    }
}

/* Returns the queue for 'length' bytes of data of 'flow'. */
uint16_t
departures_queue(struct cc *cc, struct cc_flow *flow, uint32_t length,
                 uint64_t now)
{
    struct cc_leaving *out = &flow->out;

    if (out->queue && out->slot != flow->slot) {
        change_slot(cc, flow, now);
    }
    if (out->told && now > larger(out->told_at, out->last) + PAUSE_NS) {
        begin(cc, flow, now);
    }
    if (!out->told) {
        send_untold(cc, flow, length, now);
    }
    out->last = now;
    out->empty = out->said_empty = 0;
    return out->queue;
}

/* Sees how long 'flow' has waited to be told a rate.  Who waits in vain does
 * not do so again before it is told one, and no other flow to that host
 * does. */
static void
await(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct cc_leaving *out = &flow->out;

    if (!waits(cc, flow)) {
        out->started = 0;
    } else if (!out->started) {
        out->started = now;
    } else if (now - out->started > ANSWER_NS) {
        out->unanswered = true;
        cc_peers_get(cc->peers, flow->peer)->tells = false;
        pace(cc, flow, 0);
    }
}

/* Sees how long 'flow', which is told rates, has had nothing to send.  Returns
 * true if acknowledgements would have brought more by now, and the receiver's
 * shim does not know it. */
static bool
see_empty(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct cc_leaving *out = &flow->out;
    uint64_t rtt = round_trip(cc, flow);

    if (!out->told || !cc->config.flow_empty(cc->config.aux, out->queue)) {
        out->empty = 0;
    } else if (!out->empty) {
        out->empty = now;
    }
    return (out->empty && now - out->empty > rtt + EMPTY_NS
            && (!out->said_empty || out->told_at > out->said_empty + rtt));
}

/* Tells the other shims which flows have nothing to send, once. */
static void
say_empty(struct cc *cc, uint64_t now)
{
    bool any = false;

    for (uint32_t i = 0; i < cc->out.n; i++) {
        struct cc_flow *flow = cc_flows_get(cc->flows, cc->out.ids[i]);
        struct cc_peer *peer = cc_told_peer(cc, flow);

        if (peer && see_empty(cc, flow, now)) {
            flow->out.said_empty = now;
            any = true;
            message_add(cc, peer, GRANT_EMPTY, &(struct grant) {
                .sender_port = flow->key.local_port,
                .receiver_port = flow->key.remote_port,
            });
        }
    }
    for (uint32_t i = 0; any && i < cc->out.n; i++) {
        struct cc_flow *flow = cc_flows_get(cc->flows, cc->out.ids[i]);
        struct cc_peer *peer = cc_told_peer(cc, flow);

        if (peer && peer->message.n) {
            message_send(cc, peer, GRANT_EMPTY);
        }
    }
}

/* Lets go of what holds no more, and of the queues of silent flows. */
void
departures_turn(struct cc *cc, uint64_t now)
{
    if (now - cc->out.stepped < CC_STEP_NS) {
        return;
    }
    cc->out.stepped = now;
    say_empty(cc, now);
    for (uint32_t i = cc->out.n; i-- > 0; ) {
        struct cc_flow *flow = cc_flows_get(cc->flows, cc->out.ids[i]);
        struct cc_leaving *out = &flow->out;

        if (out->told && now > out->until) {
            begin(cc, flow, now);
        }
        await(cc, flow, now);
        if (now - larger(out->last, out->told_at) > KEEP_NS) {
            departures_leave(cc, flow);
        }
    }
}
