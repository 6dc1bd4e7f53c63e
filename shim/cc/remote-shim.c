/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/remote-shim.h"

#include <string.h>

#include "shim/cc/flow.h"

#define STALE_NS (60 * NS_PER_S)
#define N_PROBES 8              /* Records where a host may be stored. */

static uint64_t
hash_of(const struct remote_shims *p, const struct shim_flow_key *key)
{
    uint64_t words[4], hash;

    memcpy(words, key->local, sizeof key->local);
    memcpy(words + 2, key->remote, sizeof key->remote);
    hash = cc_hash(p->seed ^ key->family, words, 4);
    return hash * 0xd6e8feb86659fd93 ^ hash >> 32;
}

static bool
is_remote(const struct remote_shim *rs, const struct shim_flow_key *key)
{
    return (rs->kept.family == key->family
            && !memcmp(rs->kept.local, key->local, sizeof rs->kept.local)
            && !memcmp(rs->kept.remote, key->remote, sizeof rs->kept.remote));
}

bool
remote_shim_seen(struct remote_shim *rs, const struct shim_flow_key *key,
                 uint64_t now)
{
    bool seen = is_remote(rs, key);

    rs->last = seen ? now : rs->last;
    return seen;
}

struct remote_shim *
remote_shims_find(struct remote_shims *p, const struct shim_flow_key *key,
                  uint64_t now, bool add)
{
    uint64_t hash = hash_of(p, key);
    struct remote_shim *free = NULL;

    for (uint32_t i = 0; i < N_PROBES; i++) {
        struct remote_shim *rs = &p->records[(hash + i) % CC_MAX_REMOTES];

        if (is_remote(rs, key)) {
            rs->last = now;
            return rs;
        }
        if (!free && (!rs->kept.family || now > rs->last + STALE_NS)) {
            free = rs;
        }
    }
    if (!add || !free) {
        return NULL;
    }
    *free = (struct remote_shim){
        .kept = { .family = key->family, .own_nonce = hash >> 32 }, .last = now
    };
    memcpy(free->kept.local, key->local, sizeof free->kept.local);
    memcpy(free->kept.remote, key->remote, sizeof free->kept.remote);
    return free;
}

void
remote_shim_verify(struct remote_shim *rs, uint8_t flags, uint32_t nonce)
{
    rs->kept.verified = true;
    rs->kept.flags = flags;
    rs->kept.nonce = nonce;
    rs->n_hellos = 0;
}

void
remote_shim_learn_l2(struct remote_shim *rs, const uint8_t *frame, uint16_t l3)
{
    if (l3 <= TAKEOVER_MAX_L2) {
        memcpy(rs->kept.l2, frame, l3);
        rs->kept.l2_size = l3;
    }
}
