/* SPDX-License-Identifier: Apache-2.0 */

/* The downlink: who may send how much to this host. */

#include "shim/cc/state.h"

#include "shim/classify/job-slot.h"

#define MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

#define TAU_NS 10000u           /* Added to the round trip in a window... */
#define PACED_TAU_NS (20 * MS)  /* ...if the sender is paced as well: there
                                 * the excess waits before the network. */
#define MIN_SEGMENTS 3          /* Less, and acknowledgements are delayed. */
#define HOLD_MS 100             /* How long a grant holds. */
#define RENEW_NS (30 * MS)
#define LATER_NS (10 * MS)      /* Between two messages of changes that matter
                                 * to the flow, not to the link... */
#define SOON_NS (1 * MS)        /* ...of small ones that do... */
#define NOW_NS (MS / 5)         /* ...and of large ones. */
#define LINK_PARTS 256          /* Of which one matters to the link. */
#define MIN_RTT (MS / 2)        /* Of the law: sleeping loops need that. */
#define SLACK_FRAMES 4          /* See struct cc_seen. */
#define OTHER_NS (20 * MS)     /* Over which other traffic is smoothed. */
#define ALPHA_GAIN (1.0 / 16)
#define CORE_LEAST_NS (50 * MS) /* Between two segments, at most: slower ones
                                 * would run into TCP's time-outs. */
#define CORE_STEPS 32           /* From nothing to the downlink, at least: a
                                 * segment a round trip may be all of it. */

static uint64_t
smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Lowers or raises what the core lets through, once a round trip, as DCTCP
 * does its window.  But the round trip that is known has no queue in it: what
 * a long one still holds comes marked for many of them.  While it drains, what
 * arrives is what the core lets through, and half of that is low enough. */
static void
guard_core(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct cc_arriving *in = &flow->in;
    uint64_t rtt = larger(round_trip(cc, flow), MIN_RTT);
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

/* Returns what 'flow' can use.  After what looked like the end of a burst that
 * is nothing: others are told at once, and begin when its last data arrive and
 * not a round trip later. */
static uint64_t
demand_of(const struct cc *cc, const struct cc_arriving *in)
{
    return (in->quiet || in->pushed ? 0
            : cc_rate_demand(&in->rate, in->granted,
                             cc->config.downlink_bps));
}

/* Judges what came of 'flow' in the last 'ns' by what was granted. */
static void
count_excess(const struct cc *cc, struct cc_arriving *in, uint64_t ns)
{
    in->excess += in->step_bytes - in->granted / 8.0 * ns / NS_PER_S;
    in->step_bytes = 0;
    if (in->excess < 0 || !cc->budget.phantom) {
        in->excess = 0;
    }
}

static void
ask_share(struct cc *cc, struct cc_flow *flow, bool leased, uint64_t now,
          struct cc_share *share)
{
    struct cc_arriving *in = &flow->in;

    guard_core(cc, flow, now);
    *share = (struct cc_share) {
        .demand = demand_of(cc, in),
        .excess = in->excess,
        .rank = cc_rank(cc, flow, leased),
        .id = cc_flows_id(cc->flows, flow),
    };
    if (in->core && share->demand > in->core) {
        share->demand = in->core;
    }
}

static void
take_share(struct cc *cc, struct cc_flow *flow, const struct cc_share *share)
{
    struct cc_arriving *in = &flow->in;
    uint64_t tau = cc_told_peer(cc, flow) ? PACED_TAU_NS : TAU_NS;
    uint64_t rate = share->rate, window;

    if (in->pushed && !in->quiet) {
        /* It keeps its part: perhaps it goes on. */
        rate = larger(rate, in->granted);
    }
    if (in->core && rate > in->core) {
        rate = in->core;
    }
    in->granted = rate;
    window = (double) rate / 8 * (round_trip(cc, flow) + tau) / NS_PER_S;
    in->slow = (window < MIN_SEGMENTS * flow->mss && !cc_told_peer(cc, flow)
                && cc_window_known(&flow->window));
    window = larger(window, MIN_SEGMENTS * flow->mss);
    in->window = window < CC_WINDOW_ANY ? window : CC_WINDOW_ANY - 1;
}

static uint64_t
change_of(const struct cc_arriving *in)
{
    return (in->granted > in->told ? in->granted - in->told
            : in->told - in->granted);
}

/* Is the rate of 'flow' worth its bytes in a message that goes anyway? */
static bool
is_worth_telling(const struct cc_arriving *in, uint64_t now)
{
    return (!in->quiet && (now - in->told_at >= LATER_NS
                           || change_of(in) > in->told / 16));
}

/* Is it time to tell the rate of 'flow' again?  One that is quiet needs none,
 * and is to go on where it was when it has something to send again.  The rates
 * of the many that wait change all the time, by next to nothing of the link,
 * which messages about them would only fill. */
static bool
is_news(const struct cc *cc, const struct cc_arriving *in, uint64_t now)
{
    uint64_t change = change_of(in), age = now - in->told_at;
    bool matters = change > cc->config.downlink_bps / LINK_PARTS;

    return (!in->quiet
            && (age >= RENEW_NS
                || (age >= LATER_NS && change > in->told / 4)
                || (matters && age >= SOON_NS && change > in->told / 16)
                || (matters && age >= NOW_NS && change > in->told / 4)));
}

static void
add_grant(struct cc *cc, struct cc_peer *peer, struct cc_flow *flow,
          uint64_t now)
{
    message_add(cc, peer, GRANT_RATES, &(struct grant) {
        .sender_port = flow->key.remote_port,
        .receiver_port = flow->key.local_port,
        .ms = HOLD_MS,
        .bps = flow->in.granted,
    });
    flow->in.told = flow->in.granted;
    flow->in.told_at = now;
}

/* Tells shims their flows' rates, if one of them has changed or was told long
 * ago. */
static void
tell(struct cc *cc, uint64_t now)
{
    for (uint32_t i = 0; i < cc->in.n; i++) {
        struct cc_flow *flow = cc_flows_get(cc->flows, cc->in.ids[i]);
        struct cc_peer *peer = cc_told_peer(cc, flow);

        if (peer && is_news(cc, &flow->in, now)) {
            peer->due = true;
        }
    }
    for (uint32_t i = 0; i < cc->in.n; i++) {
        struct cc_flow *flow = cc_flows_get(cc->flows, cc->in.ids[i]);
        struct cc_peer *peer = cc_told_peer(cc, flow);

        if (peer && peer->due && is_worth_telling(&flow->in, now)) {
            add_grant(cc, peer, flow, now);
        }
    }
    for (uint32_t i = 0; i < cc->in.n; i++) {
        struct cc_flow *flow = cc_flows_get(cc->flows, cc->in.ids[i]);
        struct cc_peer *peer = cc_told_peer(cc, flow);

        if (peer && peer->due) {
            peer->due = false;
            message_send(cc, peer, GRANT_RATES);
        }
    }
}

static void
smooth_other(struct cc *cc, uint64_t ns)
{
    uint64_t bps = (double) cc->other_bytes * 8 * NS_PER_S / ns;
    double part = ns < OTHER_NS ? (double) ns / OTHER_NS : 1;

    cc->other_bps += part * ((double) bps - cc->other_bps);
    cc->other_bytes = 0;
}

/* Returns 0 if there is a flow that nobody can be told about. */
static uint64_t
longest_rtt(struct cc *cc)
{
    uint64_t longest = MIN_RTT;

    for (uint32_t i = 0; i < cc->in.n; i++) {
        struct cc_flow *flow = cc_flows_get(cc->flows, cc->in.ids[i]);

        if (!cc_window_known(&flow->window) && !cc_told_peer(cc, flow)) {
            return 0;
        }
        longest = larger(longest, round_trip(cc, flow));
    }
    return longest;
}

/* Divides the downlink among those that share it, whose use of the last 'ns'
 * until 'now' has been judged, and tells them. */
void
downlink_divide(struct cc *cc, uint64_t ns, uint64_t now)
{
    bool leased = job_slots_leased(cc->config.slots, now);

    smooth_other(cc, ns);
    cc_budget(&cc->budget, &cc->law, &(struct cc_seen) {
        .capacity = cc->config.downlink_bps,
        .bytes = cc->bytes,
        .ns = ns,
        .other = cc->other_bps,
        .rtt_ns = longest_rtt(cc),
        .slack = SLACK_FRAMES * cc->config.mtu,
    });
    cc->bytes = 0;
    for (uint32_t i = 0; i < cc->in.n; i++) {
        struct cc_flow *flow = cc_flows_get(cc->flows, cc->in.ids[i]);

        count_excess(cc, &flow->in, ns);
        ask_share(cc, flow, leased, now, &cc->shares[i]);
    }
    cc_divide(cc->shares, cc->in.n, &cc->budget, cc->law.floor);
    for (uint32_t i = 0; i < cc->in.n; i++) {
        take_share(cc, cc_flows_get(cc->flows, cc->shares[i].id),
                   &cc->shares[i]);
    }
    tell(cc, now);
}
