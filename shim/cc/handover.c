/* SPDX-License-Identifier: Apache-2.0 */

/* What a shim leaves to the one that takes its place: see
 * wire/shim-connections.h.  What a flow's rate is and who is active is measured
 * anew within milliseconds. */

#include <string.h>

#include "shim/cc/state.h"

#include "wire/shim-connections.h"

_Static_assert(CC_MAX_L2 == SHIM_PEER_MAX_L2, "one header");
_Static_assert(CC_MAX_PEERS * sizeof(struct shim_peer)
               + CC_MAX_FLOWS * sizeof(struct shim_connection)
               + sizeof(struct shim_connections)
               <= CC_HANDOVER_BYTES, "all of it in a message");

static void
save_peer(const struct cc_peer *peer, struct shim_peer *sp)
{
    *sp = (struct shim_peer) {
        .family = peer->family,
        .proven = peer->proven,
        .flags = peer->flags,
        .l2_size = peer->l2_size,
        .nonce = peer->nonce,
        .own_nonce = peer->own_nonce,
    };
    memcpy(sp->local, peer->local, sizeof sp->local);
    memcpy(sp->remote, peer->remote, sizeof sp->remote);
    memcpy(sp->l2, peer->l2, sizeof sp->l2);
}

static uint16_t
save_flags(const struct cc_flow *flow)
{
    const struct cc_window *w = &flow->window;

    return ((w->host_said ? SHIM_CONNECTION_HOST_SAID : 0)
            | (w->peer_said ? SHIM_CONNECTION_PEER_SAID : 0)
            | (w->host_scales ? SHIM_CONNECTION_HOST_SCALES : 0)
            | (w->peer_scales ? SHIM_CONNECTION_PEER_SCALES : 0)
            | (w->has_edge ? SHIM_CONNECTION_HAS_EDGE : 0)
            | (flow->has_ecn ? SHIM_CONNECTION_HAS_ECN : 0)
            | (flow->said_hello ? SHIM_CONNECTION_SAID_HELLO : 0)
            | (flow->ended ? SHIM_CONNECTION_ENDED : 0)
            | (flow->in.bulk ? SHIM_CONNECTION_BULK : 0));
}

static void
save_flow(struct cc *cc, struct cc_flow *flow, struct shim_connection *c)
{
    const struct cc_rtt *rtt = cc_rtt_of(cc, flow);

    *c = (struct shim_connection) {
        .key = flow->key,
        .last = flow->last,
        .rtt_ns = rtt->min ? cc_rtt_get(rtt) : 0,
        .out_bps = flow->out.queue ? flow->out.granted : 0,
        .out_until = flow->out.until,
        .core_bps = flow->in.core,
        .marked = flow->in.alpha * SHIM_CONNECTION_UNIT,
        .window = flow->in.window,
        .edge = flow->window.edge,
        .syn_seq = flow->syn_seq,
        .flags = save_flags(flow),
        .slot = flow->slot,
        .mss = flow->mss,
        .host_shift = flow->window.host_shift,
        .wire_shift = flow->window.wire_shift,
    };
}

/* Writes what a successor must know to 'body', which has room for
 * CC_HANDOVER_BYTES and is aligned.  Returns its size. */
size_t
cc_save(struct cc *cc, void *body)
{
    struct shim_connections *head = body;
    struct shim_peer *peers = (struct shim_peer *) (head + 1);
    struct shim_connection c;
    char *end;

    *head = (struct shim_connections) {
        .law = { .gamma = cc->gamma, .beta = cc->beta, .floor = cc->floor },
    };
    for (uint32_t i = 0; i < CC_MAX_PEERS; i++) {
        const struct cc_peer *peer = cc_peers_get(cc->peers, i);

        if (peer->family) {
            save_peer(peer, &peers[head->n_peers++]);
        }
    }
    end = (char *) (peers + head->n_peers);
    for (uint32_t i = 0; i < cc->config.max_flows; i++) {
        struct cc_flow *flow = cc_flows_get(cc->flows, i);

        if (flow->used) {
            save_flow(cc, flow, &c);
            memcpy(end, &c, sizeof c);
            end += sizeof c;
            head->n_connections++;
        }
    }
    return end - (char *) body;
}

static void
restore_peer(struct cc *cc, const struct shim_peer *sp, uint64_t now)
{
    struct shim_flow_key key = { .family = sp->family };
    struct cc_peer *peer;
    uint32_t id;

    memcpy(key.local, sp->local, sizeof key.local);
    memcpy(key.remote, sp->remote, sizeof key.remote);
    id = cc_peers_find(cc->peers, &key, now, true);
    if (id == CC_NOBODY) {
        return;
    }
    peer = cc_peers_get(cc->peers, id);
    peer->proven = peer->tells = sp->proven;
    peer->flags = sp->flags;
    peer->nonce = sp->nonce;
    peer->own_nonce = sp->own_nonce;
    peer->l2_size = sp->l2_size;
    memcpy(peer->l2, sp->l2, sizeof peer->l2);
}

static void
restore_window(const struct shim_connection *c, struct cc_window *w)
{
    *w = (struct cc_window) {
        .edge = c->edge,
        .has_edge = c->flags & SHIM_CONNECTION_HAS_EDGE,
        .host_said = c->flags & SHIM_CONNECTION_HOST_SAID,
        .peer_said = c->flags & SHIM_CONNECTION_PEER_SAID,
        .host_scales = c->flags & SHIM_CONNECTION_HOST_SCALES,
        .peer_scales = c->flags & SHIM_CONNECTION_PEER_SCALES,
        .host_shift = c->host_shift,
        .wire_shift = c->wire_shift,
    };
}

static void
restore_flow(struct cc *cc, const struct shim_connection *c, uint64_t now)
{
    struct cc_flow *flow = (cc_flows_find(cc->flows, &c->key) ? NULL
                            : cc_flows_add(cc->flows, &c->key, now));

    if (!flow) {
        return;
    }
    restore_window(c, &flow->window);
    flow->peer = cc_peers_find(cc->peers, &c->key, now, true);
    cc_rtt_sample(cc_rtt_of(cc, flow), c->rtt_ns, now);
    flow->last = c->last < now ? c->last : now;
    flow->syn_seq = c->syn_seq;
    flow->slot = c->slot;
    flow->mss = c->mss;
    flow->has_ecn = c->flags & SHIM_CONNECTION_HAS_ECN;
    flow->said_hello = c->flags & SHIM_CONNECTION_SAID_HELLO;
    flow->ended = c->flags & SHIM_CONNECTION_ENDED;
    flow->in.bulk = c->flags & SHIM_CONNECTION_BULK;
    flow->in.last = flow->last;
    flow->in.window = c->window;
    flow->in.core = c->core_bps < cc->config.downlink_bps ? c->core_bps : 0;
    flow->in.alpha = (double) c->marked / SHIM_CONNECTION_UNIT;
    if (c->out_bps && c->out_until > now) {
        departures_hold(cc, flow, c->out_bps, c->out_until, now);
    }
}

/* Goes on where another's cc_save() was, whose 'body' is known to be good.
 * What there is no room for is forgotten. */
void
cc_restore(struct cc *cc, const void *body, uint64_t now)
{
    struct shim_connections head;

    connections_head(body, &head);
    cc_set_law(cc, &head.law);
    for (uint32_t i = 0; i < head.n_peers; i++) {
        struct shim_peer peer;

        connections_peer(body, i, &peer);
        restore_peer(cc, &peer, now);
    }
    for (uint32_t i = 0; i < head.n_connections; i++) {
        struct shim_connection c;

        connections_get(body, i, &c);
        restore_flow(cc, &c, now);
    }
}
