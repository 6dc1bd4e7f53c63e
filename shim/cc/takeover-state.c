/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/takeover-state.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include "shim/cc/state.h"

_Static_assert(CC_MAX_REMOTES * sizeof(struct takeover_remote)
               + CC_MAX_FLOWS * sizeof(struct takeover_connection)
               + sizeof(struct takeover_state)
               <= CC_TAKEOVER_BYTES, "the state fits into a message");

size_t
takeover_state_size(uint32_t n_remotes, uint32_t n_connections)
{
    return (sizeof(struct takeover_state)
            + (size_t) n_remotes * sizeof(struct takeover_remote)
            + (size_t) n_connections * sizeof(struct takeover_connection));
}

void
takeover_state_connection(const struct takeover_state *head, uint32_t i,
                          struct takeover_connection *c)
{
    memcpy(c, (const char *) head + takeover_state_size(head->n_remotes, i),
           sizeof *c);
}

/* 'pad' and the unused part of addresses must be 0, see flow-cache.h. */
static int
check_key(const struct shim_flow_key *key)
{
    static const uint8_t zeros[12];
    bool has_rest = (memcmp(key->local + 4, zeros, sizeof zeros)
                     || memcmp(key->remote + 4, zeros, sizeof zeros));

    return (!key->pad && key->protocol == IPPROTO_TCP
                    && (key->family == 6 || (key->family == 4 && !has_rest))
                ? 0
                : EINVAL);
}

/* A byte of a message that is read as bool. */
static bool
is_bool(const bool *b)
{
    return *(const uint8_t *) b <= 1;
}

static int
check_remote(const struct takeover_remote *tr)
{
    struct shim_flow_key key = { .family = tr->family,
                                 .protocol = IPPROTO_TCP };

    memcpy(key.local, tr->local, sizeof key.local);
    memcpy(key.remote, tr->remote, sizeof key.remote);
    return (!is_bool(&tr->verified) || !is_bool(&tr->has_key)
                    || !is_bool(&tr->has_old_key) || !is_bool(&tr->confirmed)
                    || !is_bool(&tr->open) || tr->l2_size > TAKEOVER_MAX_L2
                    || tr->pad2[0] || tr->pad2[1] || !tr->own_nonce
                ? EINVAL
                : check_key(&key));
}

static int
check_connection(const struct takeover_connection *c)
{
    return (c->flags > CONNECTION_FLAGS || c->slot >= SHIM_MAX_SLOTS
            || c->marked > CONNECTION_UNIT
            || c->host_shift > CONNECTION_MAX_SHIFT
            || c->wire_shift > c->host_shift ? EINVAL
            : check_key(&c->key));
}

int
takeover_state_check(const void *body, size_t size)
{
    const struct takeover_state *head = body;
    const struct takeover_remote *remotes = (const void *) (head + 1);
    int error;

    if (size < sizeof *head
        || size != takeover_state_size(head->n_remotes, head->n_connections)) {
        return EPROTO;
    }
    error = head->pad ? EINVAL
                      : protocol_check_body(SHIM_CONGESTION, &head->law,
                                            sizeof head->law);
    for (uint32_t i = 0; !error && i < head->n_remotes; i++) {
        error = check_remote(&remotes[i]);
    }
    for (uint32_t i = 0; !error && i < head->n_connections; i++) {
        struct takeover_connection c;

        takeover_state_connection(head, i, &c);
        error = check_connection(&c);
    }
    return error;
}

static uint16_t
save_flags(const struct cc_flow *flow)
{
    const struct cc_window *w = &flow->window;

    return ((w->host_syn_seen ? CONNECTION_HOST_SYN_SEEN : 0)
            | (w->remote_syn_seen ? CONNECTION_REMOTE_SYN_SEEN : 0)
            | (w->host_scales ? CONNECTION_HOST_SCALES : 0)
            | (w->remote_scales ? CONNECTION_REMOTE_SCALES : 0)
            | (w->has_edge ? CONNECTION_HAS_EDGE : 0)
            | (flow->has_ecn ? CONNECTION_HAS_ECN : 0)
            | (flow->hello_sent ? CONNECTION_HELLO_SENT : 0)
            | (flow->ended ? CONNECTION_ENDED : 0)
            | (flow->in.bulk ? CONNECTION_BULK : 0));
}

static void
save_flow(struct cc_flow *flow, struct takeover_connection *c)
{
    const struct cc_rtt *rtt = cc_rtt_of(flow);

    *c = (struct takeover_connection){
        .key = flow->record.key,
        .last = flow->record.last,
        .rtt_ns = rtt->min ? cc_rtt_get(rtt) : 0,
        .out_bps = flow->out.queue ? flow->out.granted : 0,
        .out_until = flow->out.until,
        .core_bps = flow->in.core,
        .marked = flow->in.alpha * CONNECTION_UNIT,
        .window = flow->in.window,
        .edge = flow->window.edge,
        .syn_seq = flow->syn_seq,
        .flags = save_flags(flow),
        .slot = flow->record.slot,
        .mss = flow->mss,
        .host_shift = flow->window.host_shift,
        .wire_shift = flow->window.wire_shift
    };
}

size_t
cc_save(struct cc *cc, void *body)
{
    struct takeover_state *head = body;
    struct takeover_remote *remotes = (struct takeover_remote *) (head + 1);
    struct takeover_connection c;
    char *end;

    *head = (struct takeover_state){
        .managed_at = cc->remotes.managed_at,
        .law = { .gamma = cc->gamma, .beta = cc->beta, .floor = cc->floor },
    };
    for (uint32_t i = 0; i < CC_MAX_REMOTES; i++) {
        const struct remote_shim *rs =
            (struct remote_shim *) record_at(&cc->remotes.table, i);

        if (rs->record.number) {
            remotes[head->n_remotes++] = rs->kept;
        }
    }
    end = (char *) (remotes + head->n_remotes);
    for (uint32_t i = 0; i < cc->config.max_flows; i++) {
        struct cc_flow *flow = (struct cc_flow *) record_at(&cc->flows, i);

        if (flow->record.number) {
            save_flow(flow, &c);
            memcpy(end, &c, sizeof c);
            end += sizeof c;
            head->n_connections++;
        }
    }
    return end - (char *) body;
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
restore_window(const struct takeover_connection *c, struct cc_window *w)
{
    *w = (struct cc_window) {
        .edge = c->edge, .has_edge = c->flags & CONNECTION_HAS_EDGE,
        .host_syn_seen = c->flags & CONNECTION_HOST_SYN_SEEN,
        .remote_syn_seen = c->flags & CONNECTION_REMOTE_SYN_SEEN,
        .host_scales = c->flags & CONNECTION_HOST_SCALES,
        .remote_scales = c->flags & CONNECTION_REMOTE_SCALES,
        .host_shift = c->host_shift, .wire_shift = c->wire_shift
    };
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
    restore_window(c, &flow->window);
    cc_find_remote(cc, flow, now);
    cc_rtt_sample(cc_rtt_of(flow), c->rtt_ns, now);
    r->last = c->last < now ? c->last : now;
    flow->syn_seq = c->syn_seq;
    flow->mss = c->mss;
    flow->has_ecn = c->flags & CONNECTION_HAS_ECN;
    flow->hello_sent = c->flags & CONNECTION_HELLO_SENT;
    flow->ended = c->flags & CONNECTION_ENDED;
    flow->in.bulk = c->flags & CONNECTION_BULK;
    flow->in.last = r->last;
    flow->in.window = c->window;
    flow->in.core = c->core_bps < cc->config.downlink_bps ? c->core_bps : 0;
    flow->in.alpha = (double) c->marked / CONNECTION_UNIT;
    if (c->out_bps && c->out_until > now) {
        uplink_hold(cc, flow, c->out_bps, c->out_until, now);
    }
}

void
cc_restore(struct cc *cc, const void *body, uint64_t now)
{
    const struct takeover_state *head = body;
    const struct takeover_remote *remotes = (const void *) (head + 1);

    cc_set_law(cc, &head->law);
    cc->remotes.managed_at = head->managed_at;
    for (uint32_t i = 0; i < head->n_remotes; i++) {
        restore_remote(cc, &remotes[i], now);
    }
    for (uint32_t i = 0; i < head->n_connections; i++) {
        struct takeover_connection c;

        takeover_state_connection(head, i, &c);
        restore_flow(cc, &c, now);
    }
}
