/* SPDX-License-Identifier: Apache-2.0 */

/* The uplink: flows that were told a rate leave at it.
 *
 * If they were told more than the uplink carries, its queues divide it: by
 * rank, in equal parts inside a rank, with a floor (see
 * pipeline/rank-queue.h).  To pace the flows to such parts here as well would
 * only lose what one of them leaves unused until that is noticed. */

#include "shim/cc/state.h"

#include "shim/pipeline/counter.h"

#define MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

#define PAUSE_NS (10 * MS)      /* Longer, and a flow begins at half... */
#define RESUME_NS (100 * MS)    /* ...until it is told, at most so long. */
#define KEEP_NS NS_PER_S        /* How long a silent flow keeps its queue. */
#define MAX_HOLD_NS NS_PER_S    /* No grant holds longer. */

static void
pace(struct cc *cc, struct cc_flow *flow, uint64_t bps)
{
    if (bps != flow->out.paced) {
        flow->out.paced = bps;
        cc->config.flow_rate(cc->config.aux, flow->out.queue, bps);
    }
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
    out->paced = 0;
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
    }
}

/* Lets 'flow' leave at 'bps' until then, as far as that makes sense. */
void
departures_hold(struct cc *cc, struct cc_flow *flow, uint64_t bps,
                uint64_t until, uint64_t now)
{
    struct cc_leaving *out = &flow->out;
    uint64_t most = now + MAX_HOLD_NS;

    out->granted = (bps < SHIM_MIN_RATE ? SHIM_MIN_RATE
                    : bps > SHIM_MAX_RATE ? SHIM_MAX_RATE : bps);
    out->until = until < most ? until : most;
    out->resumed = false;
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
    uint64_t paced = flow->out.paced, last = flow->out.last;

    departures_leave(cc, flow);
    join(cc, flow, now);
    if (flow->out.queue) {
        flow->out.last = last;
        pace(cc, flow, paced);
    }
}

/* Returns the queue for data of 'flow'. */
uint16_t
departures_queue(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct cc_leaving *out = &flow->out;

    if (out->queue && out->slot != flow->slot) {
        change_slot(cc, flow, now);
    }
    if (!out->queue) {
        return 0;
    }
    if (now - out->last > PAUSE_NS && !out->resumed) {
        /* Only once: of a sender that is sent nothing from, since it has lost
         * what it sent, half of a half would remain. */
        out->resumed = true;
        out->granted = (out->granted / 2 > SHIM_MIN_RATE ? out->granted / 2
                        : SHIM_MIN_RATE);
        out->until = now + RESUME_NS;
        pace(cc, flow, out->granted);
    } else if (now > out->until) {
        pace(cc, flow, 0);
    }
    out->last = now;
    return out->queue;
}

/* Lets go of the queues of silent flows. */
void
departures_turn(struct cc *cc, uint64_t now)
{
    if (now - cc->out.stepped < CC_STEP_NS) {
        return;
    }
    cc->out.stepped = now;
    for (uint32_t i = cc->out.n; i-- > 0; ) {
        struct cc_flow *flow = cc_flows_get(cc->flows, cc->out.ids[i]);

        if (now - flow->out.last > KEEP_NS) {
            departures_leave(cc, flow);
        }
    }
}
