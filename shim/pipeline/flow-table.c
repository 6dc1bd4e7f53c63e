/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/flow-table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined __x86_64__ && defined __OPTIMIZE__
#include <immintrin.h>
#endif

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

/* Buckets of one family.  An entry is a word and its addresses, a bucket
 * N_WAYS of them, without a gap. */
struct family {
    uint64_t *words;
    void *mapping;              /* 'words' begins in it, at a huge page... */
    size_t bytes;               /* ...and it has so many. */
    uint64_t mask;              /* Number of buckets, less 1. */
    uint8_t n_addresses;        /* Words of them in an entry: 1 or 4. */
    uint8_t stride;             /* Words from bucket to bucket. */
};

struct reader {
    uint64_t era;               /* In which it last paused, 0: nobody. */
} __attribute__((aligned(64)));

struct flow_table {
    uint64_t (*lookup_bulk)(struct flow_table *, const struct flow_id *,
                            uint32_t n, uint16_t *slots);
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
    uintptr_t at;

    while (n * N_WAYS < (uint64_t) max_flows * 2) {
        n *= 2;
    }
    f->mask = n - 1;
    f->n_addresses = n_addresses;
    f->stride = stride;
    f->bytes = n * stride * sizeof *f->words + HUGE_PAGE;
    f->mapping = mmap(NULL, f->bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f->mapping == MAP_FAILED) {
        f->mapping = NULL;
        return false;
    }
    at = ((uintptr_t) f->mapping + HUGE_PAGE - 1) & -(uintptr_t) HUGE_PAGE;
    f->words = (uint64_t *) at;
    if (n * stride * sizeof *f->words >= HUGE_PAGE) {
        madvise(f->words, n * stride * sizeof *f->words, MADV_HUGEPAGE);
    }
    return true;
}

static void
family_uninit(struct family *f)
{
    if (f->mapping) {
        munmap(f->mapping, f->bytes);
    }
}

static uint64_t lookup_bulk(struct flow_table *, const struct flow_id *,
                            uint32_t n, uint16_t *slots);
#if defined __x86_64__ && defined __OPTIMIZE__
static uint64_t lookup_bulk_avx512(struct flow_table *,
                                   const struct flow_id *, uint32_t n,
                                   uint16_t *slots);
#endif

static void
choose_lookup(struct flow_table *ft)
{
    ft->lookup_bulk = lookup_bulk;
#if defined __x86_64__ && defined __OPTIMIZE__
    if (__builtin_cpu_supports("avx512f")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("bmi")
        && __builtin_cpu_supports("bmi2")) {
        ft->lookup_bulk = lookup_bulk_avx512;
    }
#endif
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
    choose_lookup(ft);
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

/* Makes lookups do without the processor's extensions, to compare. */
void
flow_table_use_portable(struct flow_table *ft)
{
    ft->lookup_bulk = lookup_bulk;
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

static inline uint64_t *
entry_of(const uint64_t *bucket, uint8_t n_addresses, int way)
{
    return (uint64_t *) bucket + way * (1 + n_addresses);
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
        const uint64_t *entry = entry_of(bucket, n_addresses, way);
        uint64_t word = ACQUIRE(entry);
        uint64_t differs = (word ^ rest) & KEY_MASK;

        for (int i = 0; i < n_addresses; i++) {
            differs |= LOAD(&entry[1 + i]) ^ addresses[i];
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
touch(uint64_t *bucket, uint8_t n_addresses, uint64_t rest, uint8_t tick)
{
    for (int way = 0; way < N_WAYS; way++) {
        uint64_t *entry = entry_of(bucket, n_addresses, way);

        if (!((LOAD(entry) ^ rest) & KEY_MASK)) {
            STORE(age_byte(entry), tick);
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
        touch(bucket, n_addresses, rest, tick);
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

/* Finds one flow of a bulk, and says with its bit if it is unknown. */
static inline uint64_t
lookup_one(struct flow_table *ft, const struct flow_id *id, uint32_t i,
           uint16_t *slots)
{
    int slot = lookup(ft, &ft->v4, 1, 8, &id->addresses, id->rest,
                      hash_v4(ft, id->addresses, id->rest));

    slots[i] = slot < 0 ? 0 : slot;
    return (uint64_t) (slot < 0) << i;
}

static uint64_t __attribute__((noinline))
lookup_one_slowly(struct flow_table *ft, const struct flow_id *id, uint32_t i,
                  uint16_t *slots)
{
    return lookup_one(ft, id, i, slots);
}

/* Stores the lines in which the lookups will begin, and asks for them. */
static inline void
prefetch_all(const struct flow_table *ft, const struct flow_id *ids,
             uint32_t n, const uint64_t **buckets)
{
    const uint64_t secret0 = ft->secret[0], secret1 = ft->secret[1];
    const uint64_t mask = ft->v4.mask, *words = ft->v4.words;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t hash = multiply(ids[i].addresses ^ secret0,
                                 ids[i].rest ^ secret1);

        buckets[i] = words + (hash & mask) * 8;
        __builtin_prefetch(buckets[i]);
    }
}

static uint64_t
lookup_bulk(struct flow_table *ft, const struct flow_id *ids, uint32_t n,
            uint16_t *slots)
{
    const uint64_t *buckets[FLOW_TABLE_MAX_BULK];
    uint64_t unknown = 0;

    prefetch_all(ft, ids, n, buckets);
    for (uint32_t i = 0; i < n; i++) {
        unknown |= lookup_one(ft, &ids[i], i, slots);
    }
    return unknown;
}

#if defined __x86_64__ && defined __OPTIMIZE__
/* The same with a bucket compared at once.  Each word of a load of 64 bytes is
 * whole, but they may be read in any order, so a hit only says where to look:
 * the entry's word is read and compared, and then its addresses, as above. */
static uint64_t __attribute__((target("avx512f,avx512dq,bmi,bmi2")))
lookup_bulk_avx512(struct flow_table *ft, const struct flow_id *ids,
                   uint32_t n, uint16_t *slots)
{
    const uint64_t young = (uint64_t) LOAD(&ft->tick) << AGE_SHIFT;
    const uint64_t check = KEY_MASK | UINT64_C(0xff) << AGE_SHIFT;
    const __m512i mask = _mm512_broadcast_i64x2(
        _mm_set_epi64x(-1, KEY_MASK));
    const uint64_t *buckets[FLOW_TABLE_MAX_BULK];
    uint64_t unknown = 0;

    prefetch_all(ft, ids, n, buckets);
    for (uint32_t i = 0; i < n; i++) {
        __m512i key = _mm512_broadcast_i64x2(
            _mm_load_si128((const __m128i *) &ids[i]));
        __m512i differs = _mm512_xor_si512(
            key, _mm512_load_si512(buckets[i]));
        uint32_t equal = _mm512_testn_epi64_mask(differs, mask);
        uint32_t at = _tzcnt_u32((equal & equal >> 1 & 0x55) | 0x100);
        const uint64_t *entry = buckets[i] + (at & 6);
        uint64_t word = ACQUIRE(entry);

        if (__builtin_expect(((word ^ ids[i].rest ^ young) & check)
                             | (LOAD(entry + 1) ^ ids[i].addresses), 0)) {
            unknown |= lookup_one_slowly(ft, &ids[i], i, slots);
        } else {
            slots[i] = word >> SLOT_SHIFT;
        }
    }
    return unknown;
}
#endif

/* Stores the slots of the 'n' IPv4 flows 'ids', at most FLOW_TABLE_MAX_BULK,
 * in 'slots'.  Returns a bit, and stores 0, for each that is unknown. */
uint64_t
flow_table_lookup_bulk(struct flow_table *ft, const struct flow_id *ids,
                       uint32_t n, uint16_t *slots)
{
    return ft->lookup_bulk(ft, ids, n, slots);
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
find(const struct probe *p, uint64_t **entry)
{
    const struct family *f = p->family;

    for (int which = 0; which < 2; which++) {
        uint64_t *bucket = (which ? second_bucket
                            : first_bucket)(f, f->stride, p->hash);

        for (int way = 0; way < N_WAYS; way++) {
            *entry = entry_of(bucket, f->n_addresses, way);
            if (!((LOAD(*entry) ^ p->rest) & KEY_MASK)
                && !memcmp(*entry + 1, p->addresses,
                           f->n_addresses * sizeof **entry)) {
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

/* Returns an entry of 'bucket' that nobody reads any more, NULL if there is
 * none. */
static uint64_t *
free_entry(const struct flow_table *ft, const struct family *f,
           const uint64_t *bucket)
{
    uint64_t oldest = 0;

    for (int way = 0; way < N_WAYS; way++) {
        uint64_t *entry = entry_of(bucket, f->n_addresses, way);
        uint64_t word = LOAD(entry);
        uint64_t era = word >> 8 & ERA_MASK;

        if (word & PROTOCOL_MASK) {
            continue;
        }
        oldest = era && !oldest ? oldest_era(ft) : oldest;
        if (era < oldest || !era) {
            return entry;
        }
    }
    return NULL;
}

static void
publish(const struct family *f, uint64_t *entry, uint64_t word,
        const uint64_t *addresses)
{
    for (int i = 0; i < f->n_addresses; i++) {
        STORE(&entry[1 + i], addresses[i]);
    }
    RELEASE(entry, word);
}

static void
withdraw(struct flow_table *ft, uint64_t *entry)
{
    RELEASE(entry, (ft->era & ERA_MASK) << 8);
    RELEASE(&ft->era, ft->era + 1);
}

static uint64_t
hash_entry(const struct flow_table *ft, const struct family *f,
           const uint64_t *entry)
{
    uint64_t rest = LOAD(entry) & KEY_MASK;

    return (f->n_addresses == 1 ? hash_v4(ft, entry[1], rest)
            : hash_v6(ft, entry + 1, rest));
}

/* Moves one flow of 'bucket' for which this is the first one to its second
 * one.  What it leaves may be used when all readers have paused; until then it
 * is no more room than before. */
static void
move_one(struct flow_table *ft, const struct family *f, uint64_t *bucket)
{
    for (int way = 0; way < N_WAYS; way++) {
        uint64_t *entry = entry_of(bucket, f->n_addresses, way), *free;
        uint64_t hash = hash_entry(ft, f, entry);

        if (!(LOAD(entry) & PROTOCOL_MASK)
            || first_bucket(f, f->stride, hash) != bucket) {
            continue;
        }
        free = free_entry(ft, f, second_bucket(f, f->stride, hash));
        if (free) {
            publish(f, free, LOAD(entry), entry + 1);
            withdraw(ft, entry);
            return;
        }
    }
}

/* Returns an entry for 'p', NULL if there is no room. */
static uint64_t *
find_room(struct flow_table *ft, const struct probe *p)
{
    const struct family *f = p->family;
    uint64_t *entry = NULL;

    for (int which = 0; which < 4 && !entry; which++) {
        uint64_t *bucket = (which % 2 ? second_bucket
                            : first_bucket)(f, f->stride, p->hash);

        if (which >= 2) {
            move_one(ft, f, bucket);
        }
        entry = free_entry(ft, f, bucket);
    }
    return entry;
}

/* Makes 'key' belong to 'slot', whether it was there or not.  Returns 0, or
 * ENOSPC if the table is full. */
int
flow_table_set(struct flow_table *ft, const struct shim_flow_key *key,
               uint16_t slot)
{
    uint64_t *entry, word;
    struct probe p;

    make_probe(ft, key, &p);
    word = (p.rest | (uint64_t) slot << SLOT_SHIFT
            | (uint64_t) ft->tick << AGE_SHIFT);
    if (find(&p, &entry)) {
        RELEASE(entry, word);
        return 0;
    }
    entry = ft->n < ft->max ? find_room(ft, &p) : NULL;
    if (!entry) {
        STORE(&ft->n_refused, ft->n_refused + 1);
        return ENOSPC;
    }
    publish(p.family, entry, word, p.addresses);
    STORE(&ft->n, ft->n + 1);
    return 0;
}

static void
remove_entry(struct flow_table *ft, uint64_t *entry)
{
    withdraw(ft, entry);
    STORE(&ft->n, ft->n - 1);
}

/* Returns 0, or ENOENT if 'key' was not there. */
int
flow_table_delete(struct flow_table *ft, const struct shim_flow_key *key)
{
    struct probe p;
    uint64_t *entry;

    make_probe(ft, key, &p);
    if (!find(&p, &entry)) {
        return ENOENT;
    }
    remove_entry(ft, entry);
    return 0;
}

static void
fill_flow(const struct family *f, const uint64_t *entry,
          struct shim_flow *flow)
{
    uint32_t size = f->n_addresses * 4, ports = *entry >> 8;
    const uint8_t *addresses = (const uint8_t *) (entry + 1);

    memset(flow, 0, sizeof *flow);
    flow->key.family = size == 4 ? 4 : 6;
    flow->key.protocol = *entry & PROTOCOL_MASK;
    memcpy(&flow->key.local_port, &ports, sizeof ports);
    memcpy(flow->key.local, addresses, size);
    memcpy(flow->key.remote, addresses + size, size);
    flow->slot = *entry >> SLOT_SHIFT;
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
        const uint64_t *entry = entry_of(&f->words[i / N_WAYS * f->stride],
                                         f->n_addresses, i % N_WAYS);

        if (LOAD(entry) & PROTOCOL_MASK) {
            if (n >= max) {
                break;
            }
            fill_flow(f, entry, &flows[n++]);
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
            uint64_t *entry = entry_of(bucket, f->n_addresses, way);
            uint64_t word = LOAD(entry);
            uint8_t age = ft->tick - (word >> AGE_SHIFT);

            /* Counted in whole steps, so one more may be missing. */
            if (word & PROTOCOL_MASK && age > AGE_STEPS) {
                remove_entry(ft, entry);
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
