/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/shim-connections.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

size_t
connections_size(uint32_t n_peers, uint32_t n_connections)
{
    return (sizeof(struct shim_connections)
            + (size_t) n_peers * sizeof(struct shim_peer)
            + (size_t) n_connections * sizeof(struct shim_connection));
}

void
connections_head(const void *body, struct shim_connections *head)
{
    memcpy(head, body, sizeof *head);
}

void
connections_peer(const void *body, uint32_t i, struct shim_peer *peer)
{
    memcpy(peer, (const char *) body + connections_size(i, 0), sizeof *peer);
}

void
connections_get(const void *body, uint32_t i, struct shim_connection *c)
{
    struct shim_connections head;

    connections_head(body, &head);
    memcpy(c, (const char *) body + connections_size(head.n_peers, i),
           sizeof *c);
}

static int
check_key(const struct shim_flow_key *key)
{
    return (key->protocol != IPPROTO_TCP ? EINVAL
            : protocol_check_body(SHIM_FLOW_DELETE, key, sizeof *key));
}

static int
check_peer(const struct shim_peer *peer)
{
    struct shim_flow_key key = {
        .family = peer->family,
        .protocol = IPPROTO_TCP,
    };

    memcpy(key.local, peer->local, sizeof key.local);
    memcpy(key.remote, peer->remote, sizeof key.remote);
    return (peer->proven > 1 || peer->l2_size > SHIM_PEER_MAX_L2
            || peer->pad[0] || peer->pad[1] ? EINVAL
            : check_key(&key));
}

static int
check_connection(const struct shim_connection *c)
{
    return (c->flags > SHIM_CONNECTION_FLAGS || c->slot >= SHIM_MAX_SLOTS
            || c->marked > SHIM_CONNECTION_UNIT
            || c->host_shift > SHIM_CONNECTION_MAX_SHIFT
            || c->wire_shift > c->host_shift ? EINVAL
            : check_key(&c->key));
}

int
connections_check(const void *body, size_t size)
{
    struct shim_connections head;
    int error;

    if (size < sizeof head) {
        return EPROTO;
    }
    connections_head(body, &head);
    if (size != connections_size(head.n_peers, head.n_connections)) {
        return EPROTO;
    }
    error = protocol_check_body(SHIM_CONGESTION, &head.law, sizeof head.law);
    for (uint32_t i = 0; !error && i < head.n_peers; i++) {
        struct shim_peer peer;

        connections_peer(body, i, &peer);
        error = check_peer(&peer);
    }
    for (uint32_t i = 0; !error && i < head.n_connections; i++) {
        struct shim_connection c;

        connections_get(body, i, &c);
        error = check_connection(&c);
    }
    return error;
}
