/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/cc/remote-shim.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cc/segment.h"
#include "shim/clock/counter.h"

#define STALE_NS (60 * NS_PER_S)
#define SWEEP 16          /* Records to check in a sweep. */
#define MAX_ASKS 6        /* GRANT_HELLO without a reply. */
#define ASK_NS (100 * MS) /* Before the second one; it doubles. */
#define WINDOW 64         /* Numbers that may arrive out of order. */

#define PERIOD_NS (50 * MS) /* Of struct obedience. */
#define MAX_EXCEEDED 4      /* Periods. */
#define DISTRUST_NS (10 * NS_PER_S)
#define OBEDIENT 1.25 /* Arrivals by grants, at most... */
#define FREE_FRAMES 4 /* ...and frames in a period. */

#define RTT_NS (5 * NS_PER_S) /* Half the life of a minimum. */
#define ANY_RTT MS            /* Default. */
#define MAX_RTT NS_PER_S      /* A longer one is a pause. */

void
cc_rtt_sample(struct cc_rtt *rtt, uint64_t sample, uint64_t now)
{
    if (!sample || sample > MAX_RTT) {
        return;
    }
    if (!rtt->min || now - rtt->since > RTT_NS) {
        rtt->older = rtt->min ? rtt->min : sample;
        rtt->min = sample;
        rtt->since = now;
    } else if (sample < rtt->min) {
        rtt->min = sample;
    }
}

uint64_t
cc_rtt_get(const struct cc_rtt *rtt)
{
    return (!rtt->min               ? ANY_RTT
            : rtt->older < rtt->min ? rtt->older
                                    : rtt->min);
}

void
remote_shims_init(struct remote_shims *p, const struct cc_config *config)
{
    record_table_init(&p->table, sizeof(struct remote_shim), CC_MAX_PEERS);
    memcpy(p->secret, config->secret, sizeof p->secret);
    p->number = config->number;
    pthread_mutex_init(&p->lock, NULL);
}

void
remote_shims_uninit(struct remote_shims *p)
{
    pthread_mutex_destroy(&p->lock);
    record_table_uninit(&p->table);
}

/* Returns the key of a flow's remote host in the table. */
static struct shim_flow_key
hosts_of(const struct shim_flow_key *flow)
{
    struct shim_flow_key key = *flow;

    key.protocol = 0;
    key.local_port = key.remote_port = 0;
    return key;
}

/* Returns a nonce that no other record has, nor an earlier one of the host:
 * messages to that are not for this one. */
static uint64_t
make_nonce(const struct remote_shims *p, const struct record *r)
{
    uint8_t hash[8];
    struct {
        struct shim_flow_key hosts;
        uint64_t number;
    } words = { r->key, r->last };

    crypto_shorthash_siphash24(hash, (uint8_t *) &words, sizeof words,
                               p->secret);
    return get_be64(hash) ? get_be64(hash) : 1;
}

/* Orders keys by address. */
static int
compare_keys(const void *a_, const void *b_)
{
    const struct shim_key *a = a_, *b = b_;

    return (a->family != b->family
                ? a->family - b->family
                : memcmp(a->remote, b->remote, sizeof a->remote));
}

/* Gives the record the key that its host has now.  The previous one counts for
 * a while, but a removed key no longer. */
static void
take_key(const struct remote_shims *p, struct remote_shim *rs, uint64_t now)
{
    struct shim_key wanted = { .family = rs->kept.family };
    struct takeover_key key = { .kind = p->managed ? KEY_NONE : KEY_OPEN };
    struct takeover_remote *kept = &rs->kept;
    const struct shim_key *has;

    memcpy(wanted.remote, kept->remote, sizeof wanted.remote);
    has =
        bsearch(&wanted, p->keys.keys, p->keys.n, sizeof wanted, compare_keys);
    if (has) {
        key.kind = KEY_GIVEN;
        memcpy(key.bytes, has->key, sizeof key.bytes);
    }
    if (key.kind == kept->key.kind
        && !sodium_memcmp(key.bytes, kept->key.bytes, sizeof key.bytes)) {
        return;
    }
    if (kept->key.kind == KEY_GIVEN && !has) {
        kept->verified = false;
        kept->old_until = 0;
    } else if (kept->key.kind && kept->verified) {
        kept->old_key = kept->key;
        kept->old_until = now + REMOTE_OLD_NS;
    }
    kept->key = key;
    kept->key_at = now;
    kept->confirmed = false;
    rs->asks = has ? MAX_ASKS : rs->asks;
}

struct remote_shim *
remote_shims_find(const struct remote_shims *p,
                  const struct shim_flow_key *flow)
{
    struct shim_flow_key key = hosts_of(flow);

    return (struct remote_shim *) record_table_find(&p->table, &key);
}

struct remote_shim *
remote_shims_add(struct remote_shims *p, const struct shim_flow_key *flow,
                 uint16_t slot, uint64_t now)
{
    struct shim_flow_key key = hosts_of(flow);
    struct record *old = record_table_choose(&p->table, slot, now);
    struct remote_shim *rs;

    if (old) {
        record_table_remove(&p->table, old);
    }
    rs = (struct remote_shim *) record_table_add(&p->table, &key, slot, now);
    if (rs) {
        rs->kept.family = key.family;
        rs->kept.own_nonce = make_nonce(p, &rs->record);
        rs->kept.sent = p->number + now / 1000;
        memcpy(rs->kept.local, key.local, sizeof rs->kept.local);
        memcpy(rs->kept.remote, key.remote, sizeof rs->kept.remote);
        take_key(p, rs, now);
    }
    return rs;
}

static void
put_open_key(uint64_t to, uint64_t from, uint8_t key[SHIM_KEY_BYTES])
{
    put_be64(key, to);
    put_be64(key + 8, from);
}

bool
remote_shim_key(const struct remote_shim *rs, uint64_t to, uint64_t now,
                uint8_t bytes[SHIM_KEY_BYTES])
{
    const struct takeover_remote *kept = &rs->kept;
    const struct takeover_key *key = &kept->key;

    if (!key->kind
        || (!kept->confirmed && kept->verified
            && now < kept->key_at + REMOTE_USE_NS)) {
        if (now >= kept->old_until) {
            return false;
        }
        key = &kept->old_key;
    }
    if (key->kind == KEY_OPEN) {
        put_open_key(to, kept->own_nonce, bytes);
    } else {
        memcpy(bytes, key->bytes, SHIM_KEY_BYTES);
    }
    return true;
}

/* Returns true if the message has the key. */
static bool
has_key(const struct takeover_remote *kept, const struct takeover_key *key,
        const uint8_t *bytes, const struct grant_message *m)
{
    uint8_t open_key[SHIM_KEY_BYTES];
    struct grant_ends ends = { .family = kept->family,
                               .sender = kept->remote,
                               .receiver = kept->local,
                               .key = key->bytes };

    if (key->kind == KEY_OPEN) {
        put_open_key(kept->own_nonce, m->from, open_key);
        ends.key = open_key;
    }
    return key->kind && grant_message_is_right(bytes, &ends);
}

/* Returns true if no message with the number has arrived. */
static bool
is_new(const struct takeover_remote *kept, uint64_t number)
{
    uint64_t age = kept->seen - number;

    return (number > kept->seen
            || (age < WINDOW && !(kept->window >> age & 1)));
}

static void
note_number(struct takeover_remote *kept, uint64_t number)
{
    if (number > kept->seen) {
        uint64_t step = number - kept->seen;

        kept->window = step < WINDOW ? kept->window << step : 0;
        kept->seen = number;
    }
    kept->window |= UINT64_C(1) << (kept->seen - number);
}

/* Returns true if the message has one of the keys.  Otherwise counts it unless
 * nothing is known of the shim, which may know more or less than this one. */
static bool
is_right(struct remote_shims *p, struct remote_shim *rs, const uint8_t *bytes,
         const struct grant_message *m, uint64_t now)
{
    struct takeover_remote *kept = &rs->kept;

    if (has_key(kept, &kept->key, bytes, m)) {
        kept->confirmed = true;
        return true;
    }
    if (now < kept->old_until && has_key(kept, &kept->old_key, bytes, m)) {
        return true;
    }
    if (kept->verified || kept->key.kind == KEY_GIVEN
        || (p->managed && m->type != GRANT_HELLO)) {
        rs->refused++;
        counter_add(&p->n_refused, 1);
    }
    return false;
}

bool
remote_shim_check(struct remote_shims *p, struct remote_shim *rs,
                  const uint8_t *bytes, const struct grant_message *m,
                  uint64_t now)
{
    struct takeover_remote *kept = &rs->kept;

    if (!is_right(p, rs, bytes, m, now)) {
        return false;
    }
    if (!is_new(kept, m->number)
        || (m->from != kept->nonce && m->number < kept->seen)) {
        counter_add(&p->n_repeated, 1);
        return false;
    }
    if (m->to != kept->own_nonce) {
        /* Its shim does not know this one's nonce. */
        remote_shim_hint(rs, m->from, true);
        return false;
    }
    note_number(kept, m->number);
    kept->verified = true;
    kept->flags = m->flags;
    kept->nonce = m->from;
    rs->n_hellos = rs->asks = 0;
    return true;
}

void
remote_shim_hint(struct remote_shim *rs, uint64_t nonce, bool again)
{
    if (again || !rs->kept.verified || nonce != rs->kept.nonce) {
        rs->asks = MAX_ASKS;
    }
    /* What was asked before went to no nonce. */
    rs->asked_at = rs->hint ? rs->asked_at : 0;
    rs->hint = nonce;
}

/* Closes the period.  A sender honours a grant when it arrives, and may use it
 * for a tenth of a second, so the largest of three periods counts. */
static bool
end_period(struct obedience *o, uint32_t mtu, uint64_t now)
{
    double most = o->granted[0];
    bool exceeds;

    for (int i = 1; i < 3; i++) {
        most = o->granted[i] > most ? o->granted[i] : most;
    }
    exceeds = o->arrived > OBEDIENT * most + FREE_FRAMES * mtu;
    o->exceeded += exceeds ? 1 : -(o->exceeded > 0);
    o->granted[2] = o->granted[1];
    o->granted[1] = o->granted[0];
    o->granted[0] = o->arrived = 0;
    o->since = now;
    if (o->exceeded < MAX_EXCEEDED) {
        return false;
    }
    o->exceeded = 0;
    o->until = now + DISTRUST_NS;
    return true;
}

bool
remote_shim_count(struct remote_shim *rs, double arrived, double granted,
                  uint32_t mtu, uint64_t now)
{
    struct obedience *o = &rs->obedience;

    o->arrived += arrived;
    o->granted[0] += granted;
    if (!mtu || now - o->since < PERIOD_NS || !end_period(o, mtu, now)) {
        return false;
    }
    rs->disobeyed++;
    return true;
}

void
remote_shim_learn_l2(struct remote_shim *rs, const uint8_t *frame, uint16_t l3)
{
    if (l3 <= TAKEOVER_MAX_L2) {
        memcpy(rs->kept.l2, frame, l3);
        rs->kept.l2_size = l3;
    }
}

bool
remote_shim_asks(struct remote_shim *rs, uint64_t now)
{
    if (!rs->asks || !rs->kept.l2_size
        || (!rs->hint && rs->kept.key.kind != KEY_GIVEN)
        || (rs->asked_at
            && now - rs->asked_at < ASK_NS << (MAX_ASKS - rs->asks))) {
        return false;
    }
    rs->asks--;
    rs->asked_at = now;
    return true;
}

/* Ends what no longer counts. */
static void
expire_record(struct remote_shim *rs, uint64_t now)
{
    struct takeover_remote *kept = &rs->kept;

    if (kept->verified && now >= kept->old_until
        && !(kept->key.kind && kept->confirmed)) {
        kept->verified = false;
        rs->asks = MAX_ASKS;
    }
    if (rs->obedience.until && now >= rs->obedience.until) {
        rs->obedience = (struct obedience){ .since = now };
    }
}

/* Takes the keys of the control thread. */
static void
take_keys(struct remote_shims *p, uint64_t now)
{
    p->keys = p->new_keys;
    p->managed = true;
    p->has_keys = false;
    for (uint32_t i = 0; i < CC_MAX_PEERS; i++) {
        struct remote_shim *rs = remote_at(p, i);

        if (rs->record.number) {
            take_key(p, rs, now);
        }
    }
}

/* Makes the list that the control thread wants. */
static void
give_list(struct remote_shims *p)
{
    p->n_list = 0;
    for (uint32_t i = 0; i < CC_MAX_PEERS; i++) {
        const struct remote_shim *rs = remote_at(p, i);
        struct shim_peer *peer = &p->list[p->n_list];

        if (rs->record.number) {
            *peer = (struct shim_peer){ .family = rs->kept.family,
                                        .verified = rs->kept.verified,
                                        .refused = rs->refused,
                                        .disobeyed = rs->disobeyed };
            memcpy(peer->local, rs->kept.local, sizeof peer->local);
            memcpy(peer->remote, rs->kept.remote, sizeof peer->remote);
            p->n_list++;
        }
    }
    p->wants_list = false;
    p->has_list = true;
}

struct remote_shim *
remote_shims_run(struct remote_shims *p, uint64_t now)
{
    if (__atomic_load_n(&p->asked, __ATOMIC_RELAXED)
        && !pthread_mutex_trylock(&p->lock)) {
        p->asked = false;
        if (p->has_keys) {
            take_keys(p, now);
        }
        if (p->wants_list) {
            give_list(p);
        }
        pthread_mutex_unlock(&p->lock);
    }
    for (int i = 0; i < SWEEP; i++) {
        struct record *r = record_table_next(&p->table);
        struct remote_shim *rs = (struct remote_shim *) r;

        if (r && now > r->last + STALE_NS) {
            record_table_remove(&p->table, r);
        } else if (r) {
            expire_record(rs, now);
            if (remote_shim_asks(rs, now)) {
                return rs;
            }
        }
    }
    return NULL;
}

/* Adds, replaces or removes a key. */
static void
change_key(struct key_table *all, const struct shim_key *key)
{
    size_t i = 0;

    while (i < all->n && compare_keys(&all->keys[i], key)) {
        i++;
    }
    if (i < all->n || (!key->removed && i == 2 * CC_MAX_PEERS)) {
        i = i < all->n ? i : 0; /* The oldest one. */
        all->n--;
        memmove(&all->keys[i], &all->keys[i + 1],
                (all->n - i) * sizeof *all->keys);
    }
    if (!key->removed) {
        all->keys[all->n++] = *key;
    }
}

void
remote_shims_set_keys(struct remote_shims *p, const struct shim_key *keys,
                      size_t n)
{
    for (size_t i = 0; i < n; i++) {
        change_key(&p->all, &keys[i]);
    }
    pthread_mutex_lock(&p->lock);
    p->new_keys = p->all;
    qsort(p->new_keys.keys, p->all.n, sizeof *keys, compare_keys);
    p->has_keys = true;
    __atomic_store_n(&p->asked, true, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&p->lock);
}

bool
remote_shims_list(struct remote_shims *p, struct shim_peer *list, size_t *n)
{
    bool is_ready;

    pthread_mutex_lock(&p->lock);
    is_ready = p->has_list;
    p->has_list = false;
    *n = p->n_list;
    memcpy(list, p->list, *n * sizeof *list);
    p->wants_list = true;
    __atomic_store_n(&p->asked, true, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&p->lock);
    return is_ready;
}
