/* SPDX-License-Identifier: Apache-2.0 */

/* Flows whose part of the downlink is less than the smallest window.
 *
 * Three segments each round trip are more than some flows may have: of many
 * that share the link as equals, and of each that waits for its turn behind
 * others.  Such a flow gets its part as credit, and when that is three
 * segments, its sender is let go so far and no farther.  All that it sends
 * arrives soon and is acknowledged, so nothing of it waits in a queue, and no
 * time-out of the sender's runs while it has to wait: it only may not send.
 *
 * Nobody's data could carry the news when it may again, so the shim repeats
 * the host's last acknowledgement with the new window, and once more if
 * nothing comes of it.  Whoever takes no part any more has three segments to
 * begin with. */

#include <netinet/in.h>
#include <string.h>

#include "shim/cc/state.h"

#include "shim/pipeline/counter.h"

#define MS UINT64_C(1000000)

#define PATIENCE_NS (10 * MS)   /* Until the first repetition, then double. */
#define MAX_PATIENCE_NS (500 * MS)

enum {
    TCP_SIZE = 20,
    TIMESTAMP_SIZE = 12,
};

/* Returns how far a sender is let go at a time. */
static uint32_t
quantum(const struct cc_flow *flow)
{
    uint32_t least = CC_MIN_SEGMENTS * flow->mss;

    return (flow->in.slow && flow->in.window > least ? flow->in.window
            : least);
}

/* Returns how many bytes the sender may send beyond what has arrived. */
static int32_t
room(const struct cc_flow *flow)
{
    return flow->window.edge - flow->in.end;
}

/* Is there what a window needs to be told without the host? */
static bool
can_tell(struct cc *cc, const struct cc_flow *flow)
{
    return (flow->in.has_end && flow->in.has_ack && flow->window.has_edge
            && cc_window_known(&flow->window) && !flow->ended
            && flow->peer != CC_NOBODY
            && cc_peers_get(cc->peers, flow->peer)->l2_size);
}

/* Does the sender wait for its window? */
bool
turnstile_holds(const struct cc_flow *flow)
{
    const struct cc_arriving *in = &flow->in;

    return in->slow && in->has_end && room(flow) < flow->mss;
}

/* The part of 'flow' is less than the smallest window, or is not. */
void
turnstile_set(struct cc *cc, struct cc_flow *flow, bool slow)
{
    struct cc_arriving *in = &flow->in;

    slow &= can_tell(cc, flow);
    if (slow && !in->slow) {
        in->credit = 0;
        in->edge = flow->window.edge;
    }
    in->slow = slow;
}

/* 'seg' has arrived, in a frame of 'length' bytes. */
void
turnstile_arrived(struct cc_flow *flow, const struct segment *seg,
                  uint32_t length)
{
    struct cc_arriving *in = &flow->in;
    uint32_t end = seg->seq + seg->payload;

    if (!in->has_end || (int32_t) (end - in->end) > 0) {
        in->end = end;
        in->has_end = true;
    }
    in->patience = 0;
    in->headers = length - seg->payload;
}

/* The host sends 'seg', which nobody has changed yet. */
void
turnstile_ack(struct cc_flow *flow, const struct segment *seg,
              const struct segment_options *o)
{
    struct cc_ack *a = &flow->in.ack;
    uint32_t next = seg->seq + seg->payload;
    bool first = !flow->in.has_ack;

    if (!(seg->flags & SEGMENT_ACK)
        || (!first && (int32_t) (seg->ack - a->ack) < 0)) {
        return;
    }
    *a = (struct cc_ack) {
        .ack = seg->ack,
        .next = first || (int32_t) (next - a->next) > 0 ? next : a->next,
        .ts_value = o->ts_value,
        .ts_echo = o->ts_echo,
        .window = seg->window,
        .has_timestamp = o->has_timestamp,
    };
    flow->in.has_ack = true;
}

/* Returns the bound of the window in an acknowledgement of the host's, which
 * would be 'window' without the turnstile. */
uint32_t
turnstile_window(const struct cc_flow *flow, uint32_t window)
{
    return flow->in.slow ? 1 : window;
}

/* Writes the host's last acknowledgement, with its own window, to 'tcp'.
 * Returns its size. */
static size_t
put_ack(const struct cc_flow *flow, const struct cc_peer *peer, uint8_t *tcp)
{
    const struct cc_ack *a = &flow->in.ack;
    size_t size = TCP_SIZE + (a->has_timestamp ? TIMESTAMP_SIZE : 0);

    memset(tcp, 0, size);
    memcpy(tcp, &flow->key.local_port, 2);
    memcpy(tcp + 2, &flow->key.remote_port, 2);
    put_be32(tcp + 4, a->next);
    put_be32(tcp + 8, a->ack);
    tcp[12] = size / 4 << 4;
    tcp[13] = SEGMENT_ACK;
    put_be16(tcp + 14, a->window);
    if (a->has_timestamp) {
        memcpy(tcp + TCP_SIZE, "\1\1\x08\x0a", 4);
        put_be32(tcp + TCP_SIZE + 4, a->ts_value);
        put_be32(tcp + TCP_SIZE + 8, a->ts_echo);
    }
    put_be16(tcp + 16, checksum_of(tcp, size, message_pseudo_sum(
                                       peer, IPPROTO_TCP, size)));
    return size;
}

/* Tells the sender, as the host, that it may send 'limit' bytes from what is
 * acknowledged on. */
static void
tell_window(struct cc *cc, struct cc_flow *flow, uint32_t limit, uint64_t now)
{
    const struct cc_peer *peer = cc_peers_get(cc->peers, flow->peer);
    size_t tcp_size = TCP_SIZE + (flow->in.ack.has_timestamp
                                  ? TIMESTAMP_SIZE : 0);
    uint8_t *p = cc->frame;
    struct segment seg;

    memcpy(p, peer->l2, peer->l2_size);
    p += peer->l2_size;
    p += message_put_ip(peer, p, IPPROTO_TCP, tcp_size);
    p += put_ack(flow, peer, p);
    if (segment_parse(cc->frame, p - cc->frame, true, &seg)) {
        cc_window_apply(&flow->window, cc->frame, &seg, limit);
        cc->config.send(cc->config.aux, cc->frame, p - cc->frame);
        counter_add(&cc->windows, 1);
        flow->in.opened = now;
    }
}

/* Nothing came after the sender was let go: what told it may be lost. */
static void
tell_again(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    struct cc_arriving *in = &flow->in;

    if (!in->patience || in->patience > MAX_PATIENCE_NS
        || now - in->opened < in->patience) {
        return;
    }
    in->patience *= 2;
    tell_window(cc, flow, 1, now);
}

/* Lets the sender go so that it has 'limit' bytes from what is acknowledged
 * on. */
static void
let_go(struct cc *cc, struct cc_flow *flow, uint32_t limit, uint64_t now)
{
    uint32_t edge = flow->window.edge;

    tell_window(cc, flow, limit, now);
    if (flow->window.edge != edge) {
        flow->in.patience = PATIENCE_NS;
    }
}

/* Returns true if 'flow' will have used what it may send before a word that it
 * may go on reaches its sender. */
static bool
runs_out(const struct cc_flow *flow)
{
    uint64_t ns = cc_rtt_get(&flow->rtt) + CC_STEP_NS;

    return room(flow) < flow->mss + flow->in.granted / 8e9 * ns;
}

/* Counts what 'flow' may have after 'ns' more, and lets its sender go if that
 * is enough. */
static void
turn_one(struct cc *cc, struct cc_flow *flow, uint64_t ns, uint64_t now)
{
    struct cc_arriving *in = &flow->in;
    double most = 2.0 * quantum(flow);

    if (!can_tell(cc, flow)) {
        return;
    }
    if (in->slow) {
        /* A rate is one of frames, an edge one of what is in them. */
        double part = (double) flow->mss / (flow->mss + in->headers);

        in->credit += (in->granted / 8e9 * ns * part
                       - (int32_t) (flow->window.edge - in->edge));
        in->credit = (in->credit > most ? most
                      : in->credit < -most ? -most : in->credit);
        in->edge = flow->window.edge;
    }
    if (!runs_out(flow)) {
        tell_again(cc, flow, now);
    } else if (in->slow && in->credit >= quantum(flow) && cc->gate >= 0) {
        cc->gate -= quantum(flow);
        let_go(cc, flow, flow->window.edge - in->ack.ack + quantum(flow), now);
    } else if (!in->slow && in->was_slow) {
        let_go(cc, flow, in->window, now);
    }
    in->was_slow = in->slow;
}

/* Returns the bit/s that those have together who are held. */
static uint64_t
sum_of_parts(struct cc *cc)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < cc->in.n; i++) {
        const struct cc_flow *flow = cc_flows_get(cc->flows, cc->in.ids[i]);

        sum += flow->in.slow ? flow->in.granted : 0;
    }
    return sum;
}

/* Lets go whose turn it is, 'ns' after the last time, one after the other:
 * flows with equal parts would all have their credit in the same moment, and
 * what they send would wait for each other before the link. */
void
turnstile_turn(struct cc *cc, uint64_t ns, uint64_t now)
{
    double rate = sum_of_parts(cc) / 8e9, most = rate * 2 * CC_STEP_NS;
    uint32_t n = cc->in.n;

    /* A look that comes late costs nothing. */
    cc->gate += rate * ns;
    cc->gate = cc->gate < most ? cc->gate : most;
    cc->first = n ? (cc->first + 1) % n : 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = cc->in.ids[(cc->first + i) % n];

        turn_one(cc, cc_flows_get(cc->flows, id), ns, now);
    }
}

/* 'flow' takes no part any more. */
void
turnstile_leave(struct cc *cc, struct cc_flow *flow, uint64_t now)
{
    if (can_tell(cc, flow) && room(flow) < (int32_t) quantum(flow)) {
        tell_window(cc, flow,
                    flow->in.end - flow->in.ack.ack + quantum(flow), now);
    }
}
