/* SPDX-License-Identifier: Apache-2.0 */

/* The downlink: tracks the flows to the host, divides the downlink among the
 * active ones, and sends the grants. */

#include "shim/cc/state.h"

#include "shim/classify/job-slot.h"
#include "shim/clock/counter.h"

/* Measuring a flow. */
#define MIN_WINDOW_NS (2 * MS)  /* Shortest window to measure a rate. */
#define WINDOW_SEGMENTS 3       /* Segments that the grant must have been able
                                 * to carry in a window. */
#define QUIET_SEGMENTS 2        /* Segments that the grant must have been able
                                 * to carry before a silent flow is quiet. */
#define QUIET_NS MS             /* Time besides the round trip before a silent
                                 * flow is quiet: its shim may have slept. */
#define PUSHED_NS MS            /* From the end of a burst until quiet. */
#define SLOW_NS (5 * MS)        /* Time for a segment above which the end of a
                                 * burst is not detected. */
#define IDLE_NS (10 * MS)       /* A quiet flow leaves the downlink. */
#define FORGET_NS NS_PER_S      /* A flow may be a small one again. */

/* Time between two bursts with first bytes that need no grant, see PAUSE_NS of
 * uplink.c. */
#define FREE_NS (30 * MS)

/* Limiting a flow. */
#define TAU_NS 10000u           /* Added to the round trip for the window. */
#define PACED_TAU_NS (20 * MS)  /* Added instead if the sender is also paced:
                                 * the excess waits in the sender's shim. */
#define MIN_SEGMENTS 3          /* Smallest window: with a smaller one, the
                                 * receiver delays its ACKs (40 ms). */
#define HOLD_MS 100             /* Validity of a grant. */
#define RENEW_NS (30 * MS)      /* Time after which a grant is sent again. */
#define LATER_NS (10 * MS)      /* Minimum time between two grants if the
                                 * change matters only to the flow. */
#define SOON_NS (1 * MS)        /* Minimum time if a small change matters to
                                 * the link. */
#define NOW_NS (MS / 5)         /* Minimum time if a large change matters to
                                 * the link. */
#define BUSY_NS (15 * MS)       /* Validity of a report that a sender is busy
                                 * with other flows. */
#define LINK_PARTS 256          /* 1/LINK_PARTS of the link matters to it. */

/* The law. */
#define MIN_RTT (MS / 2)        /* Round trip of the law, as loops sleep. */
#define SLACK_FRAMES 4          /* See struct cc_load. */
#define STRICT_NS (100 * MS)    /* Slack if the switch serves levels in order:
                                 * what arrives in this time... */
#define STRICT_BYTES 512000u    /* ...but at most so much. */
#define OTHER_NS (20 * MS)      /* Time constant of other traffic. */
#define ALPHA_GAIN (1.0 / 16)   /* As in DCTCP. */
#define CORE_LEAST_NS (50 * MS) /* Longest time between two segments under the
                                 * core's limit: TCP's timeouts are longer. */
#define CORE_STEPS 32           /* Round trips in which the core's limit rises
                                 * from 0 to the downlink, at least. */

/* Starts again, as if the rate had been 'bps'. */
static void
restart_rate(struct cc_rate *r, uint64_t now, uint64_t bps)
{
    *r = (struct cc_rate){ .since = now, .bps = bps, .before = bps };
}

/* Ends the current window if it has the length 'window'.  Returns true if it
 * has. */
static bool
step_rate(struct cc_rate *r, uint64_t now, uint64_t window)
{
    uint64_t ns = now - r->since;

    if (ns >= window && ns) {
        r->before = r->bps;
        r->bps = (double) r->bytes * 8 * NS_PER_S / ns;
        r->bytes = 0;
        r->since = now;
        return true;
    }
    return false;
}

/* Returns the rate that a flow can use, at most 'line': all of it if it uses
 * most of its grant, otherwise a little more than its rate. */
static uint64_t
rate_demand(const struct cc_rate *r, uint64_t granted, uint64_t line)
{
    uint64_t most = larger(r->bps, r->before), demand = most + most / 4;

    return most >= granted / 4 * 3 || demand > line ? line : demand;
}

void
downlink_remove(struct cc *cc, struct cc_flow *flow)
{
    struct cc_arriving *in = &flow->in;

    if (in->active) {
        struct cc_flow *last = cc->in.flows[--cc->in.n];

        cc->in.flows[in->position] = last;
        last->in.position = in->position;
        in->active = false;
    }
    if (in->ack_queue) {
        job_queues_flow_free(cc->jobs, in->ack_queue);
        in->ack_queue = 0;
    }
}

/* Paces the ACKs of 'flow', of 'length' bytes each, so that they trigger data
 * at the granted rate. */
static void
pace_acks(struct cc *cc, struct cc_flow *flow, uint32_t length, uint64_t now)
{
    struct cc_arriving *in = &flow->in;
    uint64_t per_ack = larger(in->per_ack, flow->mss), bps = 0, change;

    if (in->slow) {
        bps = larger((double) in->granted * length / per_ack, 1000);
    }
    change = bps > in->ack_bps ? bps - in->ack_bps : in->ack_bps - bps;
    if (change > in->ack_bps / 16 || (change && !bps)) {
        in->ack_bps = bps;
        rank_queues_flow_rate(cc->config.queues, now, in->ack_queue, bps);
    }
}

/* The host sends 'seg', a pure ACK.  Returns the queue for it, 0 for none: the
 * smallest window is three segments, and if a sender without a shim would
 * still be too fast, delayed ACKs make its round trip longer. */
uint16_t
downlink_ack(struct cc *cc, struct cc_flow *flow, const struct segment *seg,
             uint32_t length, uint64_t now)
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
        in->ack_queue = job_queues_flow_new(cc->jobs, flow->record.slot);
        in->ack_bps = 0;
    }
    if (in->ack_queue) {
        pace_acks(cc, flow, length, now);
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

/* 'flow' has data to send, maybe for the whole link. */
static void
begin_burst(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct remote_shim *rs = cc_remote_of(flow);
    struct cc_arriving *in = &flow->in;

    if (in->active && !in->quiet) {
        return;
    }
    if (rs && now - in->free_at > FREE_NS) {
        in->free_at = now;
        remote_shim_count(rs, 0, CC_SMALL_BYTES, 0, now);
    }
    in->quiet = false;
    in->window_could = 0;
    restart_rate(&in->rate, now, cc->config.downlink_bps);
    if (!in->active) {
        in->active = true;
        in->step_bytes = in->excess = 0;
        in->position = cc->in.n;
        in->sent_at = 0;
        cc->in.flows[cc->in.n++] = flow;
    }
}

void
downlink_data(struct cc *cc, struct cc_flow *flow, const struct segment *seg,
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
    begin_burst(cc, flow, now);
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

void
downlink_waiting(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct cc_arriving *in = &flow->in;

    in->bulk = true;
    in->last = now;
    begin_burst(cc, flow, now);
    in->could = 0;
    in->pushed = false;
}

/* Measures how 'flow' used its grant in the last 'ns'.  At a slow rate a frame
 * takes longer than any fixed time, so silence counts only after the grant
 * would have carried some segments. */
static void
measure_flow(struct cc_flow *flow, uint64_t ns, uint64_t now)
{
    struct cc_arriving *in = &flow->in;
    uint64_t rtt = round_trip(flow);
    double rate = in->granted / 8.0 / NS_PER_S;

    in->could += rate * ns;
    in->window_could += rate * ns;
    in->quiet |= ((in->pushed && now - in->last > PUSHED_NS)
                  || in->could > QUIET_SEGMENTS * flow->mss
                                 + rate * (rtt + QUIET_NS));
    if (in->window_could >= WINDOW_SEGMENTS * flow->mss
        && step_rate(&in->rate, now, larger(2 * rtt, MIN_WINDOW_NS))) {
        in->window_could = 0;
    }
}

static void
measure_flows(struct cc *cc, uint64_t ns, uint64_t now)
{
    for (uint32_t i = cc->in.n; i-- > 0; ) {
        struct cc_flow *flow = cc->in.flows[i];

        measure_flow(flow, ns, now);
        if (flow->in.quiet && now - flow->in.last
            > larger(IDLE_NS, 4 * round_trip(flow))) {
            downlink_remove(cc, flow);
        }
    }
}

static uint64_t
smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Adapts the core's limit once a round trip, as DCTCP adapts its window.  The
 * measured round trip contains no queue, so a long queue in the core marks
 * data for many round trips after the limit was lowered.  The flow's rate
 * meanwhile is what the core carries, and half of that is low enough. */
static void
adapt_core_limit(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct cc_arriving *in = &flow->in;
    uint64_t rtt = larger(round_trip(flow), MIN_RTT);
    double share;

    if (now < in->round_end || !in->round_bytes) {
        return;
    }
    share = (double) in->round_marked / in->round_bytes;
    in->alpha += ALPHA_GAIN * (share - in->alpha);
    if (in->round_marked) {
        uint64_t from = in->core ? in->core
                        : larger(in->rate.bps, in->rate.before);

        uint64_t least = larger(in->rate.bps / 2,
                                flow->mss * 8 * NS_PER_S / CORE_LEAST_NS);

        in->core = larger(from * (1 - in->alpha / 2), least);
    } else if (in->core) {
        in->core += smaller(flow->mss * 8 * NS_PER_S / rtt,
                            cc->config.downlink_bps / CORE_STEPS);
        in->core = in->core < cc->config.downlink_bps ? in->core : 0;
    }
    in->round_bytes = in->round_marked = 0;
    in->round_end = now + rtt;
}

/* Returns the rate that the flow can use: the whole link where no flow needs a
 * limit, so that a flow that was slow behind others goes on at full rate when
 * they end.  Elsewhere it is 0 after a segment that may be the end of a burst:
 * the grants of other flows then arrive when the burst's last data do, and not
 * a round trip later. */
static uint64_t
demand_of(const struct cc *cc, const struct cc_arriving *in)
{
    return (cc->budget.again == CC_UNLIMITED ? cc->config.downlink_bps
            : in->quiet || in->pushed        ? 0
                                      : rate_demand(&in->rate, in->granted,
                                                    cc->config.downlink_bps));
}

/* Compares the data of the last 'ns' with the grant. */
static void
count_excess(struct cc *cc, struct cc_flow *flow, uint64_t ns, uint64_t now)
{
    struct cc_arriving *in = &flow->in;
    struct remote_shim *rs = cc_verified_remote(flow);
    double granted = in->granted / 8.0 * ns / NS_PER_S;

    if (rs) {
        counter_add(&cc->disobeyed,
                    remote_shim_count(rs, in->step_bytes, granted,
                                      cc->config.mtu, now));
    }
    in->excess += in->step_bytes - granted;
    in->step_bytes = 0;
    if (in->excess < 0 || !cc->budget.phantom) {
        in->excess = 0;
    }
}

static void
fill_share(struct cc *cc, struct cc_flow *flow, bool leased, uint64_t now,
           struct cc_share *share)
{
    struct cc_arriving *in = &flow->in;

    adapt_core_limit(cc, flow, now);
    *share =
        (struct cc_share){ .demand = demand_of(cc, in),
                           .excess = in->excess,
                           .rank = job_slots_rank(cc->config.slots,
                                                  flow->record.slot, leased),
                           .id = in->position };
    if (in->core && share->demand > in->core) {
        share->demand = in->core;
    }
}

static void
apply_share(const struct cc *cc, struct cc_flow *flow,
            const struct cc_share *share)
{
    struct cc_arriving *in = &flow->in;
    bool paced = cc_verified_remote(flow) != NULL;
    uint64_t tau = paced ? PACED_TAU_NS : TAU_NS;
    uint64_t rate = share->rate, window;

    if (in->pushed && !in->quiet) {
        /* The burst may go on: keep the rate. */
        rate = larger(rate, in->granted);
    }
    if (in->core && rate > in->core) {
        rate = in->core;
    }
    in->granted = rate;
    window = (double) rate / 8 * (round_trip(flow) + tau) / NS_PER_S;
    in->slow = (window < MIN_SEGMENTS * flow->mss && !paced
                && cc_window_known(&flow->window));
    window = larger(window, MIN_SEGMENTS * flow->mss);
    in->window = cc->budget.again == CC_UNLIMITED ? CC_WINDOW_ANY
                 : window < CC_WINDOW_ANY ? window : CC_WINDOW_ANY - 1;
}

static uint64_t
change_of(const struct cc_arriving *in)
{
    return (in->granted > in->sent ? in->granted - in->sent
            : in->sent - in->granted);
}

/* Returns true if the grant should be part of a message that is sent anyway,
 * which includes that it is due. */
static bool
is_worth_sending(const struct cc_arriving *in, uint64_t now)
{
    return (!in->quiet && (now - in->sent_at >= LATER_NS
                           || change_of(in) > in->sent / 16));
}

/* Returns true if the grant must be sent now.  A quiet flow keeps its last
 * grant for its next data.  The rates of many waiting flows change all the
 * time by tiny parts of the link: messages about each change took 2 % of a
 * server's uplink. */
static bool
is_grant_due(const struct cc *cc, const struct cc_arriving *in, uint64_t now)
{
    uint64_t change = change_of(in), age = now - in->sent_at;
    bool matters = change > cc->config.downlink_bps / LINK_PARTS;

    return (!in->quiet
            && (age >= RENEW_NS || (age >= LATER_NS && change > in->sent / 4)
                || (matters && age >= SOON_NS && change > in->sent / 16)
                || (matters && age >= NOW_NS && change > in->sent / 4)));
}

/* Sends the grants of each remote shim that has one due. */
static void
send_grants(struct cc *cc, uint64_t now)
{
    for (uint32_t i = 0; i < cc->in.n; i++) {
        struct remote_shim *rs = cc_verified_remote(cc->in.flows[i]);

        if (rs && is_grant_due(cc, &cc->in.flows[i]->in, now)) {
            rs->due = true;
        }
    }
    for (uint32_t i = 0; i < cc->in.n; i++) {
        struct cc_flow *flow = cc->in.flows[i];
        struct remote_shim *rs = cc_verified_remote(flow);
        const struct grant grant = { .sender_port =
                                         flow->record.key.remote_port,
                                     .receiver_port =
                                         flow->record.key.local_port,
                                     .ms = HOLD_MS,
                                     .bps = flow->in.granted };

        if (rs && rs->due && is_worth_sending(&flow->in, now)) {
            message_add(cc, rs, GRANT_RATES, &grant, now);
            flow->in.sent = flow->in.granted;
            flow->in.sent_at = now;
        }
    }
    message_send_all(cc, now);
}

/* Returns the slack of the phantom queue, in bytes. */
static uint64_t
get_slack(const struct cc *cc)
{
    return (cc->config.strict_switch
            ? smaller(cc->config.downlink_bps / 8.0 * STRICT_NS / NS_PER_S,
                      STRICT_BYTES)
            : SLACK_FRAMES * cc->config.mtu);
}

/* Measures what has arrived in the last 'ns', and what the active flows have
 * to send. */
static void
measure_load(struct cc *cc, uint64_t ns, uint64_t now, struct cc_load *load)
{
    uint64_t bps = (double) cc->other_bytes * 8 * NS_PER_S / ns;
    double part = ns < OTHER_NS ? (double) ns / OTHER_NS : 1;
    bool unlimited = false;

    cc->other_bps += part * ((double) bps - cc->other_bps);
    *load = (struct cc_load){ .capacity = cc->config.downlink_bps,
                              .bytes = cc->bytes,
                              .ns = ns,
                              .other = cc->other_bps,
                              .rtt_ns = MIN_RTT,
                              .slack = get_slack(cc),
                              .sorted = cc->config.strict_switch };
    for (uint32_t i = 0; i < cc->in.n; i++) {
        struct cc_flow *flow = cc->in.flows[i];
        const struct cc_arriving *in = &flow->in;

        load->busy |= !in->quiet && !in->pushed;
        load->elsewhere |= in->busy_at && now - in->busy_at < BUSY_NS;
        load->rtt_ns = larger(load->rtt_ns, round_trip(flow));
        unlimited |=
            !cc_window_known(&flow->window) && !cc_verified_remote(flow);
    }
    load->rtt_ns = unlimited ? 0 : load->rtt_ns;
    cc->bytes = cc->other_bytes = 0;
}

/* Divides the downlink among the active flows, 'ns' after the last time, and
 * sends their grants. */
static void
divide_downlink(struct cc *cc, uint64_t ns, uint64_t now)
{
    bool leased = job_slots_leased(cc->config.slots, now);
    struct cc_load load;

    measure_load(cc, ns, now, &load);
    cc_budget(&cc->budget, &cc->law, &load);
    for (uint32_t i = 0; i < cc->in.n; i++) {
        struct cc_flow *flow = cc->in.flows[i];

        count_excess(cc, flow, ns, now);
        fill_share(cc, flow, leased, now, &cc->shares[i]);
    }
    cc_divide(cc->shares, cc->in.n, &cc->budget, cc->law.floor);
    for (uint32_t i = 0; i < cc->in.n; i++) {
        apply_share(cc, cc->in.flows[cc->shares[i].id], &cc->shares[i]);
    }
    send_grants(cc, now);
}

void
downlink_poll(struct cc *cc, uint64_t now)
{
    uint64_t ns = now - cc->in.stepped;

    if (ns >= CC_STEP_NS) {
        measure_flows(cc, ns, now);
        divide_downlink(cc, ns, now);
        cc->in.stepped = now;
    }
}
