/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/takeover-state.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "shim/cc/state.h"

_Static_assert(CC_MAX_PEERS * sizeof(struct takeover_remote)
                       + CC_MAX_FLOWS * sizeof(struct takeover_connection)
                       + sizeof(struct takeover_state)
                   <= CC_TAKEOVER_BYTES,
               "the state fits into a message");

size_t
takeover_state_size(uint32_t n_remotes, uint32_t n_connections)
{
    return (sizeof(struct takeover_state)
            + (size_t) n_remotes * sizeof(struct takeover_remote)
            + (size_t) n_connections * sizeof(struct takeover_connection));
}

/* Returns true if each of 'n' bytes is at most 'most'. */
static bool
are_small(const void *bytes, size_t n, uint8_t most)
{
    const uint8_t *p = bytes;

    while (n && p[n - 1] <= most) {
        n--;
    }
    return !n;
}

/* 'pad' and the unused part of addresses must be 0, see flow-cache.h. */
static bool
is_key(const struct shim_flow_key *key)
{
    return (!key->pad && key->protocol == IPPROTO_TCP
            && (key->family == 6
                || (key->family == 4 && are_small(key->local + 4, 12, 0)
                    && are_small(key->remote + 4, 12, 0))));
}

static bool
is_remote(const struct takeover_remote *tr)
{
    struct shim_flow_key key = { .family = tr->family,
                                 .protocol = IPPROTO_TCP };

    memcpy(key.local, tr->local, sizeof key.local);
    memcpy(key.remote, tr->remote, sizeof key.remote);
    return (are_small(&tr->verified, 1, 1) && are_small(&tr->confirmed, 1, 1)
            && are_small(tr->pad, sizeof tr->pad, 0) && tr->own_nonce
            && tr->key.kind <= KEY_GIVEN && tr->old_key.kind <= KEY_GIVEN
            && tr->l2_size <= TAKEOVER_MAX_L2 && is_key(&key));
}

static bool
is_connection(const struct takeover_connection *c)
{
    const uint8_t *p = (const uint8_t *) c;

    return (
        are_small(p + offsetof(struct takeover_connection, window.has_edge), 5,
                  1)
        && are_small(p + offsetof(struct takeover_connection, has_ecn), 4, 1)
        && c->window.host_shift <= CC_WINDOW_LARGEST_SHIFT
        && c->window.wire_shift <= c->window.host_shift
        && c->slot < SHIM_MAX_SLOTS && c->alpha >= 0 && c->alpha <= 1
        && is_key(&c->key));
}

int
takeover_state_check(const void *body, size_t size)
{
    const struct takeover_state *head = body;
    bool good;

    if (size < sizeof *head
        || size != takeover_state_size(head->n_remotes, head->n_connections)) {
        return EPROTO;
    }
    good =
        head->managed <= 1
        && !protocol_check_body(SHIM_CONGESTION, &head->law, sizeof head->law);
    for (uint32_t i = 0; good && i < head->n_remotes; i++) {
        good = is_remote(&takeover_state_remotes(head)[i]);
    }
    for (uint32_t i = 0; good && i < head->n_connections; i++) {
        good = is_connection(&takeover_state_connections(head)[i]);
    }
    return good ? 0 : EINVAL;
}

static void
save_flow(const struct cc_flow *flow, struct takeover_connection *c)
{
    memset(c, 0, sizeof *c);
    c->key = flow->record.key;
    c->last = flow->record.last;
    c->slot = flow->record.slot;
    c->out_bps = flow->out.queue ? flow->out.granted : 0;
    c->out_until = flow->out.until;
    c->core = flow->in.core;
    c->alpha = flow->in.alpha;
    c->window = flow->window;
    c->most = flow->in.window;
    c->syn_seq = flow->syn_seq;
    c->mss = flow->mss;
    c->has_ecn = flow->has_ecn;
    c->hello_sent = flow->hello_sent;
    c->ended = flow->ended;
    c->bulk = flow->in.bulk;
}

size_t
cc_save(struct cc *cc, void *body)
{
    struct takeover_state *head = body;

    *head = (struct takeover_state){ .law = cc->wanted,
                                     .managed = cc->remotes.managed };
    for (uint32_t i = 0; i < CC_MAX_PEERS; i++) {
        const struct remote_shim *rs = remote_at(&cc->remotes, i);

        if (rs->record.number) {
            takeover_state_remotes(head)[head->n_remotes++] = rs->kept;
        }
    }
    for (uint32_t i = 0; i < cc->config.max_flows; i++) {
        struct cc_flow *flow = (struct cc_flow *) record_at(&cc->flows, i);

        if (flow->record.number) {
            save_flow(flow, &takeover_state_connections(
                                head)[head->n_connections++]);
        }
    }
    return takeover_state_size(head->n_remotes, head->n_connections);
}

static void
restore_remote(struct cc *cc, const struct takeover_remote *tr, uint64_t now)
{
    struct shim_flow_key key = { .family = tr->family };
    struct remote_shim *rs;

    memcpy(key.local, tr->local, sizeof key.local);
    memcpy(key.remote, tr->remote, sizeof key.remote);
    rs = remote_shims_find(&cc->remotes, &key);
    rs = rs ? rs : remote_shims_add(&cc->remotes, &key, 0, now);
    if (rs) {
        rs->kept = *tr;
    }
}

static void
restore_flow(struct cc *cc, const struct takeover_connection *c, uint64_t now)
{
    struct record *r =
        record_table_find(&cc->flows, &c->key)
            ? NULL
            : record_table_add(&cc->flows, &c->key, c->slot, now);
    struct cc_flow *flow = (struct cc_flow *) r;

    if (!r) {
        return;
    }
    cc_find_remote(cc, flow, now);
    r->last = c->last < now ? c->last : now;
    flow->window = c->window;
    flow->syn_seq = c->syn_seq;
    flow->mss = c->mss;
    flow->has_ecn = c->has_ecn;
    flow->hello_sent = c->hello_sent;
    flow->ended = c->ended;
    flow->in.bulk = c->bulk;
    flow->in.last = r->last;
    flow->in.window = c->most;
    flow->in.core = c->core < cc->config.downlink_bps ? c->core : 0;
    flow->in.alpha = c->alpha;
    if (c->out_bps && c->out_until > now) {
        uplink_hold(cc, flow, c->out_bps, c->out_until, now);
    }
}

void
cc_restore(struct cc *cc, const void *body, uint64_t now)
{
    const struct takeover_state *head = body;

    cc_set_law(cc, &head->law);
    cc->remotes.managed = head->managed;
    for (uint32_t i = 0; i < head->n_remotes; i++) {
        restore_remote(cc, &takeover_state_remotes(head)[i], now);
    }
    for (uint32_t i = 0; i < head->n_connections; i++) {
        restore_flow(cc, &takeover_state_connections(head)[i], now);
    }
}
