/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/flow-table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define N_WAYS 4
#define HUGE_PAGE (2u << 20)
#define AGE_STEPS 16            /* Of a time-out. */

/* The word of an entry: protocol in bits 0-7, ports in 8-39, slot in 40-55,
 * age in 56-63.  A withdrawn one has protocol 0 and, in bits 8-55, the era in
 * which it was withdrawn; one that was never used is 0. */
#define KEY_MASK UINT64_C(0xffffffffff)
#define PROTOCOL_MASK UINT64_C(0xff)
#define ERA_MASK UINT64_C(0xffffffffffff)
#define SLOT_SHIFT 40
#define AGE_SHIFT 56

/* Buckets of one family: N_WAYS words, then the addresses of each way. */
struct family {
    uint64_t *words;
    size_t bytes;               /* Of the mapping. */
    uint64_t mask;              /* Number of buckets, less 1. */
    uint8_t n_addresses;        /* Words of them in an entry: 1 or 4. */
    uint8_t stride;             /* Words from bucket to bucket. */
};

struct reader {
    uint64_t era;               /* In which it last paused, 0: nobody. */
} __attribute__((aligned(64)));

struct flow_table {
    struct family v4, v6;
    uint64_t secret[4];
    uint8_t tick;               /* The time, in steps of the time-out. */

    /* The changing thread's. */
    uint32_t max;               /* Flows that are allowed. */
    uint32_t n;                 /* Flows that are there. */
    uint64_t timeout;           /* Nanoseconds, 0: never. */
    uint64_t n_refused;         /* Flows, since the table was full. */
    uint64_t n_aged;            /* Flows. */

    uint64_t era __attribute__((aligned(64)));  /* One more at each
                                                 * withdrawal. */
    struct reader readers[FLOW_TABLE_MAX_READERS];
};

#define LOAD(P) __atomic_load_n(P, __ATOMIC_RELAXED)
#define ACQUIRE(P) __atomic_load_n(P, __ATOMIC_ACQUIRE)
#define STORE(P, V) __atomic_store_n(P, V, __ATOMIC_RELAXED)
#define RELEASE(P, V) __atomic_store_n(P, V, __ATOMIC_RELEASE)

/* A key as it is compared. */
struct probe {
    struct family *family;
    uint64_t rest;              /* Low bits of the word. */
    uint64_t addresses[4];
    uint64_t hash;
};

/* The words are of the kernel's making, zeroed when they are first touched.
 * Huge pages save a miss of the address translation in nearly every lookup of
 * a large table. */
static bool
family_init(struct family *f, uint32_t max_flows, uint8_t n_addresses,
            uint8_t stride)
{
    uint64_t n = 2;
    void *p;

    while (n * N_WAYS < (uint64_t) max_flows * 2) {
        n *= 2;
    }
    f->mask = n - 1;
    f->n_addresses = n_addresses;
    f->stride = stride;
    f->bytes = n * stride * sizeof *f->words;
    p = mmap(NULL, f->bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        return false;
    }
    if (f->bytes >= 2 * HUGE_PAGE) {
        madvise(p, f->bytes, MADV_HUGEPAGE);
    }
    f->words = p;
    return true;
}

static void
family_uninit(struct family *f)
{
    if (f->words) {
        munmap(f->words, f->bytes);
    }
}

/* A step of the generator "splitmix64". */
static uint64_t
next_secret(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* Creates a table for 'max_flows'.  'seed' should be random, so that nobody
 * can choose flows that fall into the same bucket.  Returns NULL without
 * memory. */
struct flow_table *
flow_table_create(uint32_t max_flows, uint64_t seed)
{
    size_t size = sizeof(struct flow_table);
    struct flow_table *ft = aligned_alloc(64, (size + 63) / 64 * 64);

    if (!ft) {
        return NULL;
    }
    memset(ft, 0, sizeof *ft);
    ft->max = max_flows;
    ft->era = 1;
    for (int i = 0; i < 4; i++) {
        ft->secret[i] = next_secret(&seed);
    }
    if (!family_init(&ft->v4, max_flows, 1, 8)
        || !family_init(&ft->v6, max_flows, 4, 24)) {
        flow_table_destroy(ft);
        return NULL;
    }
    return ft;
}

void
flow_table_destroy(struct flow_table *ft)
{
    if (ft) {
        family_uninit(&ft->v4);
        family_uninit(&ft->v6);
        free(ft);
    }
}

/* Lets a thread look up from now on.  Returns its number, -1 if there are too
 * many.  For the changing thread, or while nothing changes. */
int
flow_table_join(struct flow_table *ft)
{
    for (int i = 0; i < FLOW_TABLE_MAX_READERS; i++) {
        if (!LOAD(&ft->readers[i].era)) {
            RELEASE(&ft->readers[i].era, ACQUIRE(&ft->era));
            return i;
        }
    }
    return -1;
}

void
flow_table_leave(struct flow_table *ft, int reader)
{
    RELEASE(&ft->readers[reader].era, 0);
}

/* Says that 'reader' is between two lookups. */
void
flow_table_pause(struct flow_table *ft, int reader)
{
    uint64_t era = ACQUIRE(&ft->era);

    if (LOAD(&ft->readers[reader].era) != era) {
        RELEASE(&ft->readers[reader].era, era);
    }
}

static inline uint64_t
multiply(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128) a * b;

    return (uint64_t) product ^ (uint64_t) (product >> 64);
}

static inline uint64_t
hash_v4(const struct flow_table *ft, uint64_t addresses, uint64_t rest)
{
    return multiply(addresses ^ ft->secret[0], rest ^ ft->secret[1]);
}

static uint64_t
hash_v6(const struct flow_table *ft, const uint64_t *addresses, uint64_t rest)
{
    uint64_t h = multiply(addresses[0] ^ ft->secret[0],
                          addresses[1] ^ ft->secret[1]);

    h ^= multiply(addresses[2] ^ ft->secret[2], addresses[3] ^ ft->secret[3]);
    return multiply(h ^ ft->secret[0], rest ^ ft->secret[1]);
}

static inline uint64_t *
first_bucket(const struct family *f, uint8_t stride, uint64_t hash)
{
    return &f->words[(hash & f->mask) * stride];
}

/* Never the first one. */
static inline uint64_t *
second_bucket(const struct family *f, uint8_t stride, uint64_t hash)
{
    uint64_t i = hash & f->mask, j = hash >> 32 & f->mask;

    return &f->words[(j == i ? i ^ 1 : j) * stride];
}

static void
make_probe(struct flow_table *ft, const struct shim_flow_key *key,
           struct probe *p)
{
    uint32_t ports;

    memcpy(&ports, &key->local_port, sizeof ports);
    p->rest = flow_id_init(0, ports, key->protocol).rest;
    if (key->family == 4) {
        p->family = &ft->v4;
        memcpy(p->addresses, key->local, 4);
        memcpy((uint8_t *) p->addresses + 4, key->remote, 4);
        p->hash = hash_v4(ft, p->addresses[0], p->rest);
    } else {
        p->family = &ft->v6;
        memcpy(p->addresses, key->local, 16);
        memcpy(p->addresses + 2, key->remote, 16);
        p->hash = hash_v6(ft, p->addresses, p->rest);
    }
}

uint64_t
flow_table_hash(const struct flow_table *ft, const struct shim_flow_key *key)
{
    struct probe p;

    make_probe((struct flow_table *) ft, key, &p);
    return p.hash;
}

/* Returns the word of the entry of 'bucket' that has this key, 0 if there is
 * none.  Looks at all of them without a jump: which one it is cannot be
 * foreseen. */
static inline uint64_t
find_word(const uint64_t *bucket, uint8_t n_addresses,
          const uint64_t *addresses, uint64_t rest)
{
    uint64_t found = 0;

    for (int way = 0; way < N_WAYS; way++) {
        uint64_t word = ACQUIRE(&bucket[way]);
        uint64_t differs = (word ^ rest) & KEY_MASK;

        for (int i = 0; i < n_addresses; i++) {
            differs |= LOAD(&bucket[N_WAYS + way * n_addresses + i])
                       ^ addresses[i];
        }
        found = differs ? found : word;
    }
    return found;
}

static uint8_t *
age_byte(uint64_t *word)
{
    return (uint8_t *) word + (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
                               ? 7 : 0);
}

/* Makes the entry of 'bucket' that has 'rest' young.  More than one may have;
 * it does no harm. */
static void __attribute__((noinline))
touch(uint64_t *bucket, uint64_t rest, uint8_t tick)
{
    for (int way = 0; way < N_WAYS; way++) {
        if (!((LOAD(&bucket[way]) ^ rest) & KEY_MASK)) {
            STORE(age_byte(&bucket[way]), tick);
        }
    }
}

static inline int
lookup(struct flow_table *ft, const struct family *f, uint8_t n_addresses,
       uint8_t stride, const uint64_t *addresses, uint64_t rest,
       uint64_t hash)
{
    uint64_t *bucket = first_bucket(f, stride, hash);
    uint64_t word = find_word(bucket, n_addresses, addresses, rest);
    uint8_t tick;

    if (__builtin_expect(!word, 0)) {
        bucket = second_bucket(f, stride, hash);
        word = find_word(bucket, n_addresses, addresses, rest);
        if (!word) {
            return -1;
        }
    }
    tick = LOAD(&ft->tick);
    if (__builtin_expect(word >> AGE_SHIFT != tick, 0)) {
        touch(bucket, rest, tick);
    }
    return word >> SLOT_SHIFT & 0xffff;
}

/* Returns the slot of 'key', or -1 if it is unknown. */
int
flow_table_lookup(struct flow_table *ft, const struct shim_flow_key *key)
{
    struct probe p;

    make_probe(ft, key, &p);
    return (p.family == &ft->v4
            ? lookup(ft, &ft->v4, 1, 8, p.addresses, p.rest, p.hash)
            : lookup(ft, &ft->v6, 4, 24, p.addresses, p.rest, p.hash));
}

/* Stores the slots of the 'n' IPv4 flows 'ids', at most FLOW_TABLE_MAX_BULK,
 * or -1 where one is unknown, in 'slots'. */
void
flow_table_lookup_bulk(struct flow_table *ft, const struct flow_id *ids,
                       uint32_t n, int32_t *slots)
{
    uint64_t hashes[FLOW_TABLE_MAX_BULK];

    for (uint32_t i = 0; i < n; i++) {
        hashes[i] = hash_v4(ft, ids[i].addresses, ids[i].rest);
        __builtin_prefetch(first_bucket(&ft->v4, 8, hashes[i]));
    }
    for (uint32_t i = 0; i < n; i++) {
        slots[i] = lookup(ft, &ft->v4, 1, 8, &ids[i].addresses, ids[i].rest,
                          hashes[i]);
    }
}

uint32_t
flow_table_count(const struct flow_table *ft)
{
    return LOAD(&ft->n);
}

uint32_t
flow_table_max(const struct flow_table *ft)
{
    return ft->max;
}

static bool
find(const struct probe *p, uint64_t **bucket, int *way)
{
    const struct family *f = p->family;

    for (int which = 0; which < 2; which++) {
        *bucket = (which ? second_bucket : first_bucket)(f, f->stride,
                                                         p->hash);
        for (*way = 0; *way < N_WAYS; ++*way) {
            const uint64_t *a = *bucket + N_WAYS + *way * f->n_addresses;

            if (!(((*bucket)[*way] ^ p->rest) & KEY_MASK)
                && !memcmp(a, p->addresses, f->n_addresses * sizeof *a)) {
                return true;
            }
        }
    }
    return false;
}

/* Returns the era before which every reader has paused. */
static uint64_t
oldest_era(const struct flow_table *ft)
{
    uint64_t oldest = ft->era;

    for (int i = 0; i < FLOW_TABLE_MAX_READERS; i++) {
        uint64_t era = ACQUIRE(&ft->readers[i].era);

        oldest = era && era < oldest ? era : oldest;
    }
    return oldest;
}

/* Returns an entry of 'bucket' that nobody reads any more, -1 if there is
 * none. */
static int
free_way(const struct flow_table *ft, const uint64_t *bucket)
{
    uint64_t oldest = 0;

    for (int way = 0; way < N_WAYS; way++) {
        uint64_t word = LOAD(&bucket[way]);
        uint64_t era = word >> 8 & ERA_MASK;

        if (word & PROTOCOL_MASK) {
            continue;
        }
        oldest = era && !oldest ? oldest_era(ft) : oldest;
        if (era < oldest || !era) {
            return way;
        }
    }
    return -1;
}

static void
publish(const struct family *f, uint64_t *bucket, int way, uint64_t word,
        const uint64_t *addresses)
{
    uint64_t *a = bucket + N_WAYS + way * f->n_addresses;

    for (int i = 0; i < f->n_addresses; i++) {
        STORE(&a[i], addresses[i]);
    }
    RELEASE(&bucket[way], word);
}

static void
withdraw(struct flow_table *ft, uint64_t *bucket, int way)
{
    RELEASE(&bucket[way], (ft->era & ERA_MASK) << 8);
    RELEASE(&ft->era, ft->era + 1);
}

static uint64_t
hash_entry(const struct flow_table *ft, const struct family *f,
           const uint64_t *bucket, int way)
{
    const uint64_t *a = bucket + N_WAYS + way * f->n_addresses;
    uint64_t rest = LOAD(&bucket[way]) & KEY_MASK;

    return (f->n_addresses == 1 ? hash_v4(ft, *a, rest)
            : hash_v6(ft, a, rest));
}

/* Moves one flow of 'bucket' for which this is the first one to its second
 * one.  What it leaves may be used when all readers have paused; until then it
 * is no more room than before. */
static void
move_one(struct flow_table *ft, const struct family *f, uint64_t *bucket)
{
    for (int way = 0; way < N_WAYS; way++) {
        const uint64_t *a = bucket + N_WAYS + way * f->n_addresses;
        uint64_t hash = hash_entry(ft, f, bucket, way), *other;
        int free;

        if (!(LOAD(&bucket[way]) & PROTOCOL_MASK)
            || first_bucket(f, f->stride, hash) != bucket) {
            continue;
        }
        other = second_bucket(f, f->stride, hash);
        free = free_way(ft, other);
        if (free >= 0) {
            publish(f, other, free, LOAD(&bucket[way]), a);
            withdraw(ft, bucket, way);
            return;
        }
    }
}

/* Finds room for 'p'. */
static bool
find_room(struct flow_table *ft, const struct probe *p, uint64_t **bucket,
          int *way)
{
    const struct family *f = p->family;

    for (int which = 0; which < 4; which++) {
        *bucket = (which % 2 ? second_bucket : first_bucket)(f, f->stride,
                                                             p->hash);
        if (which >= 2) {
            move_one(ft, f, *bucket);
        }
        *way = free_way(ft, *bucket);
        if (*way >= 0) {
            return true;
        }
    }
    return false;
}

/* Makes 'key' belong to 'slot', whether it was there or not.  Returns 0, or
 * ENOSPC if the table is full. */
int
flow_table_set(struct flow_table *ft, const struct shim_flow_key *key,
               uint16_t slot)
{
    struct probe p;
    uint64_t *bucket, word;
    int way;

    make_probe(ft, key, &p);
    word = (p.rest | (uint64_t) slot << SLOT_SHIFT
            | (uint64_t) ft->tick << AGE_SHIFT);
    if (find(&p, &bucket, &way)) {
        RELEASE(&bucket[way], word);
        return 0;
    }
    if (ft->n >= ft->max || !find_room(ft, &p, &bucket, &way)) {
        STORE(&ft->n_refused, ft->n_refused + 1);
        return ENOSPC;
    }
    publish(p.family, bucket, way, word, p.addresses);
    STORE(&ft->n, ft->n + 1);
    return 0;
}

static void
remove_entry(struct flow_table *ft, uint64_t *bucket, int way)
{
    withdraw(ft, bucket, way);
    STORE(&ft->n, ft->n - 1);
}

/* Returns 0, or ENOENT if 'key' was not there. */
int
flow_table_delete(struct flow_table *ft, const struct shim_flow_key *key)
{
    uint64_t *bucket;
    struct probe p;
    int way;

    make_probe(ft, key, &p);
    if (!find(&p, &bucket, &way)) {
        return ENOENT;
    }
    remove_entry(ft, bucket, way);
    return 0;
}

static void
fill_flow(const struct family *f, const uint64_t *bucket, int way,
          struct shim_flow *flow)
{
    const uint8_t *a = (const uint8_t *) (bucket + N_WAYS
                                          + way * f->n_addresses);
    uint32_t size = f->n_addresses * 4, ports = bucket[way] >> 8;

    memset(flow, 0, sizeof *flow);
    flow->key.family = size == 4 ? 4 : 6;
    flow->key.protocol = bucket[way] & PROTOCOL_MASK;
    memcpy(&flow->key.local_port, &ports, sizeof ports);
    memcpy(flow->key.local, a, size);
    memcpy(flow->key.remote, a + size, size);
    flow->slot = bucket[way] >> SLOT_SHIFT;
}

/* Copies flows to 'flows', in no order, from '*cursor' on, 0 at first, until
 * there are 'max' or no more.  Returns how many, and stores where to go on in
 * '*cursor', 0 after the last.  A flow that is there all the time and does not
 * move is listed once, whatever else changes. */
uint32_t
flow_table_list(const struct flow_table *ft, uint64_t *cursor,
                struct shim_flow *flows, uint32_t max)
{
    uint64_t n_v4 = (ft->v4.mask + 1) * N_WAYS;
    uint64_t end = n_v4 + (ft->v6.mask + 1) * N_WAYS, at = *cursor;
    uint32_t n = 0;

    for (; at < end; at++) {
        const struct family *f = at < n_v4 ? &ft->v4 : &ft->v6;
        uint64_t i = at < n_v4 ? at : at - n_v4;
        const uint64_t *bucket = &f->words[i / N_WAYS * f->stride];

        if (LOAD(&bucket[i % N_WAYS]) & PROTOCOL_MASK) {
            if (n >= max) {
                break;
            }
            fill_flow(f, bucket, i % N_WAYS, &flows[n++]);
        }
    }
    *cursor = at < end ? at : 0;
    return n;
}

static uint8_t
tick_at(const struct flow_table *ft, uint64_t now)
{
    return ft->timeout ? now / (ft->timeout / AGE_STEPS + 1) : 0;
}

/* Lets flows go that nobody sees for 'ns', 0: never.  To be called before any
 * is there. */
void
flow_table_set_timeout(struct flow_table *ft, uint64_t ns, uint64_t now)
{
    ft->timeout = ns;
    STORE(&ft->tick, tick_at(ft, now));
}

static uint32_t
age_family(struct flow_table *ft, const struct family *f)
{
    uint32_t n = 0;

    for (uint64_t i = 0; i <= f->mask; i++) {
        uint64_t *bucket = &f->words[i * f->stride];

        for (int way = 0; way < N_WAYS; way++) {
            uint64_t word = LOAD(&bucket[way]);
            uint8_t age = ft->tick - (word >> AGE_SHIFT);

            /* Counted in whole steps, so one more may be missing. */
            if (word & PROTOCOL_MASK && age > AGE_STEPS) {
                remove_entry(ft, bucket, way);
                n++;
            }
        }
    }
    return n;
}

/* Deletes the flows whose time is out at 'now', nanoseconds.  To be called
 * several times in a time-out; most calls return at once.  Returns how many
 * those were. */
uint32_t
flow_table_age(struct flow_table *ft, uint64_t now)
{
    uint8_t tick = tick_at(ft, now);
    uint32_t n;

    if (tick == ft->tick) {
        return 0;
    }
    STORE(&ft->tick, tick);
    n = age_family(ft, &ft->v4) + age_family(ft, &ft->v6);
    STORE(&ft->n_aged, ft->n_aged + n);
    return n;
}

uint64_t
flow_table_n_refused(const struct flow_table *ft)
{
    return LOAD(&ft->n_refused);
}

uint64_t
flow_table_n_aged(const struct flow_table *ft)
{
    return LOAD(&ft->n_aged);
}
