/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/peer.h"

#include <stdlib.h>
#include <string.h>

#include "shim/cc/flow.h"

#define NS_PER_S UINT64_C(1000000000)
#define STALE_NS (60 * NS_PER_S)
#define N_PROBES 8              /* Places where a peer's record may be. */

struct cc_peers {
    struct cc_peer records[CC_MAX_PEERS];
    uint64_t seed;
};

/* Returns NULL without memory. */
struct cc_peers *
cc_peers_create(uint64_t seed)
{
    struct cc_peers *p = calloc(1, sizeof *p);

    if (p) {
        p->seed = seed;
    }
    return p;
}

void
cc_peers_destroy(struct cc_peers *p)
{
    free(p);
}

static uint64_t
hash_of(const struct cc_peers *p, const struct shim_flow_key *key)
{
    uint64_t words[4], hash = p->seed ^ key->family;

    memcpy(words, key->local, sizeof key->local);
    memcpy(words + 2, key->remote, sizeof key->remote);
    for (int i = 0; i < 4; i++) {
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 29;
    }
    return hash * 0xd6e8feb86659fd93 ^ hash >> 32;
}

static bool
is_peer(const struct cc_peer *peer, const struct shim_flow_key *key)
{
    return (peer->family == key->family
            && !memcmp(peer->local, key->local, sizeof peer->local)
            && !memcmp(peer->remote, key->remote, sizeof peer->remote));
}

static void
take_place(struct cc_peer *peer, const struct shim_flow_key *key,
           uint64_t hash)
{
    *peer = (struct cc_peer) {
        .family = key->family,
        .own_nonce = hash >> 32,
    };
    memcpy(peer->local, key->local, sizeof peer->local);
    memcpy(peer->remote, key->remote, sizeof peer->remote);
}

/* Returns the number of the peer of flow 'key', CC_NOBODY if it has no record
 * and, unless 'add', gets none, or there is no place for it. */
uint32_t
cc_peers_find(struct cc_peers *p, const struct shim_flow_key *key,
              uint64_t now, bool add)
{
    uint64_t hash = hash_of(p, key);
    uint32_t place = CC_NOBODY;

    for (uint32_t i = 0; i < N_PROBES; i++) {
        uint32_t id = (hash + i) % CC_MAX_PEERS;
        struct cc_peer *peer = &p->records[id];

        if (is_peer(peer, key)) {
            peer->last = now;
            return id;
        }
        if (place == CC_NOBODY
            && (!peer->family || now > peer->last + STALE_NS)) {
            place = id;
        }
    }
    if (!add || place == CC_NOBODY) {
        return CC_NOBODY;
    }
    take_place(&p->records[place], key, hash);
    p->records[place].last = now;
    return place;
}

struct cc_peer *
cc_peers_get(struct cc_peers *p, uint32_t id)
{
    return &p->records[id];
}

/* The peer's shim has shown itself. */
void
cc_peer_prove(struct cc_peer *peer, uint8_t flags, uint32_t nonce)
{
    peer->proven = true;
    peer->flags = flags;
    peer->nonce = nonce;
    peer->asks = 0;
}

/* Keeps the Ethernet header of the host's 'frame', whose IP header is at
 * 'l3'. */
void
cc_peer_learn_l2(struct cc_peer *peer, const uint8_t *frame, uint16_t l3)
{
    if (l3 <= CC_MAX_L2) {
        memcpy(peer->l2, frame, l3);
        peer->l2_size = l3;
    }
}
