/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/classify/flow-cache.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined __x86_64__
#include <immintrin.h>
#endif

#include "base/memory.h"
#include "base/shares.h"
#include "wire/slot-tag.h"

#define N_WAYS FLOW_CACHE_WAYS
#define N_BYTES (FLOW_CACHE_BUCKETS * N_WAYS * sizeof(uint64_t))

/* A word is the hash of its flow with the slot in bits 6 to 15, which the
 * offset of the bucket implies.  A free word is 0. */
#define SLOT_SHIFT 6
#define PRINT_MASK (~((uint64_t) SLOT_TAG_SLOT << SLOT_SHIFT))

_Static_assert((FLOW_CACHE_OFFSET & ~PRINT_MASK) == ~PRINT_MASK,
               "the bucket implies the bits that the slot replaces");

struct flow_cache {
    void (*lookup)(const struct flow_cache *, const uint64_t *hashes,
                   uint32_t n, uint16_t *slots);
    uint64_t (*unlearned)(const struct flow_cache *, const uint64_t *hashes,
                          const uint16_t *slots, uint32_t n);
    uint64_t *words;    /* Buckets of N_WAYS words. */
    uint64_t secret[4]; /* The last two for IPv6 addresses. */
    struct shares shares;
    struct shares_user users[SHIM_MAX_SLOTS]; /* By slot. */
};

#define LOAD(P) __atomic_load_n(P, __ATOMIC_RELAXED)

static inline uint64_t *
bucket_of(const struct flow_cache *fc, uint64_t hash)
{
    return (uint64_t *) ((uint8_t *) fc->words + (hash & FLOW_CACHE_OFFSET));
}

static inline uint64_t
word_of(uint64_t hash, uint16_t slot)
{
    return ((hash & PRINT_MASK)
            | (uint64_t) (slot & SLOT_TAG_SLOT) << SLOT_SHIFT);
}

static inline uint16_t
slot_of(uint64_t word)
{
    return word >> SLOT_SHIFT & SLOT_TAG_SLOT;
}

/* Returns the word of 'bucket' that equals 'wanted' in 'mask', or 0.
 * Branch-free, because the position cannot be predicted.  The two words of a
 * 16-byte load are each atomic, which ThreadSanitizer cannot know: with it the
 * portable code shows that the words are all that threads share. */
#if defined __SSE4_1__ && !defined __SANITIZE_THREAD__
/* Keeps a vector in its register: read from memory a second time, it could be
 * the words of other flows. */
#define KEEP(VECTOR) __asm__("" : "+x"(VECTOR))

static inline uint64_t
find_word(const uint64_t *bucket, uint64_t wanted, uint64_t mask)
{
    const __m128i masks = _mm_set1_epi64x(mask);
    const __m128i all = _mm_set1_epi64x(wanted & mask);
    __m128i found = _mm_setzero_si128();

    for (int way = 0; way < N_WAYS; way += 2) {
        __m128i words = _mm_load_si128((const __m128i *) &bucket[way]), equal;

        KEEP(words);
        equal = _mm_cmpeq_epi64(_mm_and_si128(words, masks), all);
        found = _mm_or_si128(found, _mm_and_si128(words, equal));
    }
    return _mm_cvtsi128_si64(
        _mm_or_si128(found, _mm_unpackhi_epi64(found, found)));
}
#else
static inline uint64_t
find_word(const uint64_t *bucket, uint64_t wanted, uint64_t mask)
{
    uint64_t found = 0;

    for (int way = 0; way < N_WAYS; way++) {
        uint64_t word = LOAD(&bucket[way]);

        found = (word ^ wanted) & mask ? found : word;
    }
    return found;
}
#endif

static void
lookup(const struct flow_cache *fc, const uint64_t *hashes, uint32_t n,
       uint16_t *slots)
{
    for (uint32_t i = 0; i < n; i++) {
        slots[i] = slot_of(
            find_word(bucket_of(fc, hashes[i]), hashes[i], PRINT_MASK));
    }
}

static uint64_t
unlearned(const struct flow_cache *fc, const uint64_t *hashes,
          const uint16_t *slots, uint32_t n)
{
    uint64_t new = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t wanted = word_of(hashes[i], slots[i]);
        uint64_t word =
            find_word(bucket_of(fc, hashes[i]), wanted, UINT64_MAX);

        new |= (uint64_t) (word != wanted) << i;
    }
    return new;
}

#if defined __x86_64__ && defined __OPTIMIZE__ && !defined __SANITIZE_THREAD__
#define HAVE_WIDE 1
#define WIDE __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

/* The words of a 64-byte load are each atomic. */
static inline WIDE __m512i
load_bucket(const struct flow_cache *fc, uint64_t hash)
{
    __m512i bucket = _mm512_load_si512(bucket_of(fc, hash));

    KEEP(bucket);
    return bucket;
}

/* lookup() that compares a whole bucket at once. */
static WIDE void
lookup_wide(const struct flow_cache *fc, const uint64_t *hashes, uint32_t n,
            uint16_t *slots)
{
    const __m512i mask = _mm512_set1_epi64(PRINT_MASK);

    for (uint32_t i = 0; i < n; i++) {
        __m512i bucket = load_bucket(fc, hashes[i]);
        __m512i differs =
            _mm512_xor_si512(bucket, _mm512_set1_epi64(hashes[i]));
        __mmask8 equal = _mm512_testn_epi64_mask(differs, mask);

        slots[i] = slot_of(_mm_cvtsi128_si64(_mm512_castsi512_si128(
            _mm512_maskz_compress_epi64(equal, bucket))));
    }
}

/* unlearned() that compares a whole bucket at once, and tests the results of
 * all flows at once. */
static WIDE uint64_t
unlearned_wide(const struct flow_cache *fc, const uint64_t *hashes,
               const uint16_t *slots, uint32_t n)
{
    uint8_t equal[FLOW_CACHE_MAX_BULK] __attribute__((aligned(64)));
    uint64_t wanted[FLOW_CACHE_MAX_BULK];
    __m512i found;

    /* The compiler makes vectors of this. */
    for (uint32_t i = 0; i < n; i++) {
        wanted[i] = word_of(hashes[i], slots[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        equal[i] = _mm512_cmpeq_epi64_mask(load_bucket(fc, hashes[i]),
                                           _mm512_set1_epi64(wanted[i]));
    }
    found = _mm512_load_si512(equal);
    return _mm512_mask_testn_epi8_mask(UINT64_MAX >> (64 - n), found, found);
}
#endif

/* Stores the slots of the 'n' flows of 'hashes', at most FLOW_CACHE_MAX_BULK;
 * 0 for an unknown flow. */
void
flow_cache_lookup(const struct flow_cache *fc, const uint64_t *hashes,
                  uint32_t n, uint16_t *slots)
{
    fc->lookup(fc, hashes, n, slots);
}

/* Returns the bits of those of the 'n' flows of 'hashes', 1 to
 * FLOW_CACHE_MAX_BULK, that the cache does not have with their slots.  Only
 * the bits of SLOT_TAG_SLOT of a slot matter. */
uint64_t
flow_cache_unlearned(const struct flow_cache *fc, const uint64_t *hashes,
                     const uint16_t *slots, uint32_t n)
{
    return fc->unlearned(fc, hashes, slots, n);
}

/* Returns the way of a bucket for a new flow of 'slot', -1 if it gets none.  A
 * flow of no job makes space for any other. */
static int
find_way(struct flow_cache *fc, const uint64_t *bucket, uint16_t slot,
         uint32_t chance)
{
    struct shares_entry old[N_WAYS];
    int none = -1, i;

    for (i = 0; i < N_WAYS; i++) {
        int way = (chance + i) % N_WAYS;
        uint64_t word = LOAD(&bucket[way]);

        if (!word) {
            return way;
        }
        none = slot_of(word) ? none : way;
        old[i] = (struct shares_entry){ &fc->users[slot_of(word)], 0, true };
    }
    if (none >= 0 || !slot) {
        return none;
    }
    i = shares_choose(&fc->shares, &fc->users[slot], old, N_WAYS);
    return i < 0 ? -1 : (int) ((chance + i) % N_WAYS);
}

/* Replaces a word, and counts the flows of both slots. */
static void
store(struct flow_cache *fc, uint64_t *word, uint64_t value)
{
    uint16_t slot = slot_of(value);
    uint16_t was = slot_of(__atomic_exchange_n(word, value, __ATOMIC_RELAXED));

    if (was && was != slot) {
        shares_drop(&fc->shares, &fc->users[was]);
    }
    if (slot && was != slot) {
        shares_take(&fc->shares, &fc->users[slot]);
    }
}

/* Makes the flow of 'hash' one of 'slot'.  If its bucket is full, another flow
 * is forgotten, or it is not learned; 'chance' selects among those of a slot:
 * it must differ from call to call, so that flows with packets do not displace
 * each other for ever while the bucket has flows without. */
void
flow_cache_learn(struct flow_cache *fc, uint64_t hash, uint16_t slot,
                 uint32_t chance)
{
    uint64_t *bucket = bucket_of(fc, hash);
    uint64_t value = word_of(hash, slot);
    bool found = false;
    int way;

    /* Two threads may have added the flow at the same time. */
    for (way = 0; way < N_WAYS; way++) {
        if (!((LOAD(&bucket[way]) ^ hash) & PRINT_MASK)) {
            store(fc, &bucket[way], value);
            found = true;
        }
    }
    way = found ? -1 : find_way(fc, bucket, slot & SLOT_TAG_SLOT, chance);
    if (way >= 0) {
        store(fc, &bucket[way], value);
    }
}

void
flow_cache_forget(struct flow_cache *fc, uint16_t slot)
{
    struct shares_user *user = &fc->users[slot];

    for (size_t i = 0; SHARES_LOAD(&user->n) && i < N_BYTES / 8; i++) {
        uint64_t word = LOAD(&fc->words[i]);

        if (slot_of(word) == slot
            && __atomic_compare_exchange_n(&fc->words[i], &word, 0, false,
                                           __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED)) {
            shares_drop(&fc->shares, user);
        }
    }
    user->n_refused = 0;
}

uint64_t
flow_cache_refused(const struct flow_cache *fc, uint16_t slot)
{
    const struct shares_user *user = &fc->users[slot];
    uint32_t n = SHARES_LOAD(&user->n), share = shares_of(&fc->shares, user);

    return SHARES_LOAD(&user->n_refused) + (n > share ? n - share : 0);
}

static void
choose_lookup(struct flow_cache *fc, bool portable)
{
    fc->lookup = lookup;
    fc->unlearned = unlearned;
#ifdef HAVE_WIDE
    if (!portable && __builtin_cpu_supports("avx512f")
        && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512vl")) {
        fc->lookup = lookup_wide;
        fc->unlearned = unlearned_wide;
    }
#else
    (void) portable;
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

/* 'seed' should be random, so that flows cannot be chosen to collide. */
struct flow_cache *
flow_cache_create(uint64_t seed)
{
    struct flow_cache *fc = allocate(1, sizeof *fc);

    choose_lookup(fc, false);
    for (int i = 0; i < 4; i++) {
        fc->secret[i] = next_secret(&seed);
    }

    /* A huge page saves a TLB miss in nearly every lookup. */
    fc->words = must(aligned_alloc(N_BYTES, N_BYTES));
    madvise(fc->words, N_BYTES, MADV_HUGEPAGE);
    memset(fc->words, 0, N_BYTES);

    /* As many flows in buckets of eight find a way, but for one in 10^6. */
    fc->shares.size = FLOW_CACHE_BUCKETS;
    return fc;
}

/* Disables the processor-specific lookup, for tests. */
void
flow_cache_use_portable(struct flow_cache *fc)
{
    choose_lookup(fc, true);
}

void
flow_cache_destroy(struct flow_cache *fc)
{
    if (fc) {
        free(fc->words);
        free(fc);
    }
}

struct flow_hasher
flow_cache_hasher(const struct flow_cache *fc)
{
    return (struct flow_hasher){
        .secrets = { fc->secret[0], fc->secret[1] },
        .buckets = (const uint8_t *) fc->words,
    };
}

/* IPv6 addresses are hashed, with secrets, to the size of IPv4's; the bit
 * above the ports separates the two families. */
struct flow_id
flow_cache_id(const struct flow_cache *fc, const struct shim_flow_key *key)
{
    struct flow_id id;
    uint64_t a[4];
    uint32_t ports;

    memcpy(&ports, &key->local_port, sizeof ports);
    id = flow_id_init(0, ports, key->protocol);
    if (key->family == 4) {
        memcpy(&id.addresses, key->local, 4);
        memcpy((uint8_t *) &id.addresses + 4, key->remote, 4);
    } else {
        memcpy(a, key->local, 16);
        memcpy(a + 2, key->remote, 16);
        id.addresses =
            (flow_multiply(a[0] ^ fc->secret[0], a[1] ^ fc->secret[1])
             ^ flow_multiply(a[2] ^ fc->secret[2], a[3] ^ fc->secret[3]));
        id.rest |= UINT64_C(1) << 40;
    }
    return id;
}

uint64_t
flow_cache_hash(const struct flow_cache *fc, const struct shim_flow_key *key)
{
    struct flow_hasher hasher = flow_cache_hasher(fc);
    struct flow_id id = flow_cache_id(fc, key);

    return flow_hash(&hasher, &id);
}
