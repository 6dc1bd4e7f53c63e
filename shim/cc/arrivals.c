/* SPDX-License-Identifier: Apache-2.0 */

/* Flows to the host: which of them share the downlink, and how much of its
 * grant each uses. */

#include "shim/cc/state.h"

#include "shim/clock/counter.h"

#define MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

#define MIN_WINDOW_NS (2 * MS)  /* Shortest window in which a rate is
                                 * measured... */
#define WINDOW_SEGMENTS 3       /* ...and segments that the grant would have
                                 * carried in it. */
#define QUIET_SEGMENTS 2        /* A flow is quiet if its grant would have
                                 * carried these segments... */
#define QUIET_NS MS             /* ...besides a round trip and this time, for
                                 * the sender's shim may have slept. */
#define PUSHED_NS MS            /* A flow is quiet this long after the end of a
                                 * burst... */
#define SLOW_NS (5 * MS)        /* ...unless a segment takes longer than
                                 * this. */
#define IDLE_NS (10 * MS)       /* A quiet flow leaves the downlink. */
#define FORGET_NS NS_PER_S      /* A flow may be a small one again. */

static void
join_downlink(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct cc_arriving *in = &flow->in;

    /* A new flow may need the whole link. */
    cc_rate_restart(&in->rate, now, cc->config.downlink_bps);
    in->active = true;
    in->quiet = false;
    in->could = in->window_could = 0;
    in->step_bytes = in->excess = 0;
    in->position = cc->in.n;
    in->sent_at = 0;
    cc->in.ids[cc->in.n++] = cc_flows_id(cc->flows, flow);
}

/* Removes 'flow' from the downlink. */
void
arrivals_leave(struct cc *cc, struct cc_flow *flow)
{
    struct cc_arriving *in = &flow->in;
    uint32_t last;

    if (in->active) {
        last = cc->in.ids[--cc->in.n];
        cc->in.ids[in->position] = last;
        cc_flows_get(cc->flows, last)->in.position = in->position;
        in->active = false;
    }
    if (in->ack_queue) {
        cc->config.flow_free(cc->config.aux, in->ack_queue);
        in->ack_queue = 0;
    }
}

/* Paces the ACKs of 'flow', of 'length' bytes each, so that they trigger data
 * at the granted rate. */
static void
pace_acks(struct cc *cc, struct cc_flow *flow, uint32_t length)
{
    struct cc_arriving *in = &flow->in;
    uint64_t per_ack = larger(in->per_ack, flow->mss), bps = 0, change;

    if (in->slow) {
        bps = larger((double) in->granted * length / per_ack, 1000);
    }
    change = bps > in->ack_bps ? bps - in->ack_bps : in->ack_bps - bps;
    if (change > in->ack_bps / 16 || (change && !bps)) {
        in->ack_bps = bps;
        cc->config.flow_rate(cc->config.aux, in->ack_queue, bps);
    }
}

/* The host sends 'seg', a pure ACK.  Returns the queue for it, 0 for none: the
 * smallest window is three segments, and if a sender without a shim would
 * still be too fast, delayed ACKs make its round trip longer. */
uint16_t
arrivals_ack(struct cc *cc, struct cc_flow *flow, const struct segment *seg,
             uint32_t length)
{
    struct cc_arriving *in = &flow->in;
    uint32_t more = seg->ack - in->last_ack;

    in->last_ack = seg->ack;
    if (more && more < 64u * flow->mss) {
        in->per_ack += (more - (double) in->per_ack) / 8;
    }
    if (!in->active || (!in->slow && !in->ack_queue)) {
        return 0;
    }
    if (!in->ack_queue) {
        in->ack_queue = cc->config.flow_queue(cc->config.aux, flow->slot);
        in->ack_bps = 0;
    }
    if (in->ack_queue) {
        pace_acks(cc, flow, length);
    }
    return in->ack_queue;
}

/* Counts 'length' bytes, to decide whether the flow is a small one. */
static void
count_size(struct cc_arriving *in, uint32_t length, uint64_t now)
{
    if (in->bulk && now - in->last > FORGET_NS) {
        in->bulk = false;
        in->window = CC_WINDOW_ANY;
    }
    if (now - in->small_since > CC_SMALL_NS) {
        in->small_since = now;
        in->small_bytes = 0;
    }
    in->small_bytes += length;
    in->bulk |= in->small_bytes > CC_SMALL_BYTES;
}

/* Returns true if 'seg' may be the end of a burst.  At a slow rate that is
 * not known: the next message may wait in the sender's shim. */
static bool
is_end(const struct cc_flow *flow, const struct segment *seg)
{
    return (seg->flags & SEGMENT_PSH && seg->payload < flow->mss
            && flow->in.granted / 8.0 * SLOW_NS / NS_PER_S >= flow->mss);
}

/* Data of 'flow' have arrived, in a frame of 'length' bytes. */
void
arrivals_data(struct cc *cc, struct cc_flow *flow, const struct segment *seg,
              uint32_t length, uint64_t now)
{
    struct cc_arriving *in = &flow->in;

    if (seg->payload > flow->mss) {
        flow->mss = seg->payload;
    }
    count_size(in, length, now);
    in->last = now;
    if (!in->bulk) {
        cc->other_bytes += length;
        return;
    }
    if (!in->active) {
        join_downlink(cc, flow, now);
    } else if (in->quiet) {
        in->quiet = false;
        in->window_could = 0;
        cc_rate_restart(&in->rate, now, cc->config.downlink_bps);
    }
    in->could = 0;
    in->pushed = is_end(flow, seg);
    in->rate.bytes += length;
    in->step_bytes += length;
    in->round_bytes += length;
    if (seg->ecn == SEGMENT_CE && !flow->has_ecn) {
        in->round_marked += length;
        counter_add(&cc->marks, 1);
    }
}

/* The sender's shim has reported that 'flow' has nothing to send.  Data in
 * flight make it active again when they arrive. */
void
arrivals_empty(struct cc_flow *flow)
{
    flow->in.quiet |= flow->in.active;
}

/* Measures how 'flow' used its grant in the last 'ns'.  At a slow rate a frame
 * takes longer than any fixed time, so silence counts only after the grant
 * would have carried some segments. */
static void
measure_flow(struct cc *cc, struct cc_flow *flow, uint64_t ns, uint64_t now)
{
    struct cc_arriving *in = &flow->in;
    uint64_t rtt = round_trip(cc, flow);
    double rate = in->granted / 8.0 / NS_PER_S;

    in->could += rate * ns;
    in->window_could += rate * ns;
    in->quiet |= ((in->pushed && now - in->last > PUSHED_NS)
                  || in->could > QUIET_SEGMENTS * flow->mss
                                 + rate * (rtt + QUIET_NS));
    if (in->window_could >= WINDOW_SEGMENTS * flow->mss
        && cc_rate_step(&in->rate, now, larger(2 * rtt, MIN_WINDOW_NS))) {
        in->window_could = 0;
    }
}

static void
measure_flows(struct cc *cc, uint64_t ns, uint64_t now)
{
    for (uint32_t i = cc->in.n; i-- > 0; ) {
        struct cc_flow *flow = cc_flows_get(cc->flows, cc->in.ids[i]);

        measure_flow(cc, flow, ns, now);
        if (flow->in.quiet && now - flow->in.last
            > larger(IDLE_NS, 4 * round_trip(cc, flow))) {
            arrivals_leave(cc, flow);
        }
    }
}

/* Divides the downlink every CC_STEP_NS. */
void
arrivals_poll(struct cc *cc, uint64_t now)
{
    uint64_t ns = now - cc->in.stepped;

    if (ns >= CC_STEP_NS) {
        measure_flows(cc, ns, now);
        downlink_divide(cc, ns, now);
        cc->in.stepped = now;
    }
}
