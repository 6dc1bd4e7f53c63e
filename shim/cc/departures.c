/* SPDX-License-Identifier: Apache-2.0 */

/* The uplink: flows that were told a rate leave at it. */

#include "shim/cc/state.h"

#include "shim/pipeline/counter.h"
#include "shim/pipeline/job-slot.h"

#define MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

#define WINDOW_NS (4 * MS)      /* In which a flow's rate is measured. */
#define PAUSE_NS (10 * MS)      /* Longer, and a flow begins at half... */
#define RESUME_NS (100 * MS)    /* ...until it is told, at most so long. */
#define KEEP_NS NS_PER_S        /* How long a silent flow keeps its queue. */
#define MAX_HOLD_MS 1000u       /* No grant holds longer. */

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
    cc_rate_restart(&out->rate, now, cc->config.uplink_bps(cc->config.aux));
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

/* The receiver's shim tells the rate of 'flow'. */
void
departures_grant(struct cc *cc, struct cc_flow *flow,
                 const struct grant *grant, uint64_t now)
{
    struct cc_leaving *out = &flow->out;
    uint32_t ms = grant->ms < MAX_HOLD_MS ? grant->ms : MAX_HOLD_MS;

    counter_add(&cc->grants_taken, 1);
    out->granted = (grant->bps < SHIM_MIN_RATE ? SHIM_MIN_RATE
                    : grant->bps > SHIM_MAX_RATE ? SHIM_MAX_RATE
                    : grant->bps);
    out->until = now + ms * MS;
    out->resumed = false;
    if (!out->queue) {
        join(cc, flow, now);
    }
    if (out->queue) {
        pace(cc, flow, out->granted);
    }
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

/* Returns the queue for 'length' bytes of data of 'flow'. */
uint16_t
departures_queue(struct cc *cc, struct cc_flow *flow, uint32_t length,
                 uint64_t now)
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
    out->rate.bytes += length;
    return out->queue;
}

/* Lets go of the queues of silent flows.  Returns the sum of the rates of the
 * others. */
static uint64_t
sum_granted(struct cc *cc, uint64_t now)
{
    uint64_t sum = 0;

    for (uint32_t i = cc->out.n; i-- > 0; ) {
        struct cc_flow *flow = cc_flows_get(cc->flows, cc->out.ids[i]);

        if (now - flow->out.last > KEEP_NS) {
            departures_leave(cc, flow);
        } else if (now <= flow->out.until) {
            sum += flow->out.granted;
        }
    }
    return sum;
}

/* Fills the uplink over the flows that were told more than it carries. */
static void
divide(struct cc *cc, uint64_t line, uint64_t now)
{
    bool leased = job_slots_leased(cc->config.slots, now);
    uint32_t n = 0;

    for (uint32_t i = 0; i < cc->out.n; i++) {
        struct cc_flow *flow = cc_flows_get(cc->flows, cc->out.ids[i]);
        uint64_t demand;

        if (now > flow->out.until) {
            continue;
        }
        cc_rate_step(&flow->out.rate, now, WINDOW_NS);
        demand = cc_rate_demand(&flow->out.rate, flow->out.paced, line);
        cc->shares[n++] = (struct cc_share) {
            .demand = demand < flow->out.granted ? demand
                      : flow->out.granted,
            .rank = cc_rank(cc, flow, leased),
            .id = cc->out.ids[i],
        };
    }
    cc_allocate(cc->shares, n, line, cc->law.floor);
    for (uint32_t i = 0; i < n; i++) {
        struct cc_flow *flow = cc_flows_get(cc->flows, cc->shares[i].id);
        uint64_t rate = cc->shares[i].rate;

        rate = rate < flow->out.granted ? rate : flow->out.granted;
        pace(cc, flow, rate < SHIM_MIN_RATE ? SHIM_MIN_RATE : rate);
    }
}

/* Divides the uplink if it is time to, and it has to be. */
void
departures_turn(struct cc *cc, uint64_t now)
{
    uint64_t line;

    if (now - cc->out.stepped < CC_STEP_NS || !cc->out.n) {
        return;
    }
    cc->out.stepped = now;
    line = cc->config.uplink_bps(cc->config.aux);
    if (sum_granted(cc, now) > line) {
        divide(cc, line, now);
        return;
    }
    for (uint32_t i = 0; i < cc->out.n; i++) {
        struct cc_flow *flow = cc_flows_get(cc->flows, cc->out.ids[i]);

        if (now <= flow->out.until) {
            pace(cc, flow, flow->out.granted);
        }
    }
}
