/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/classify/flow-table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined __x86_64__
#include <immintrin.h>
#endif

#include "base/memory.h"

#define HUGE_PAGE (2u << 20)
#define AGE_STEPS 16            /* Steps of age in a timeout. */
#define N_WAYS 8                /* Words of a bucket. */
#define NONE UINT32_MAX         /* No flow. */

/* A hash has the number of the first bucket in bits 6-23 (fewer for a small
 * table), which masked are the bucket's offset.  The other bits are the
 * fingerprint: bits 24-63, and above them bits 0-5. */
#define BUCKET_SHIFT 6
#define PRINT_SHIFT 24
#define PRINT_BITS 46
#define PRINT_MASK ((UINT64_C(1) << PRINT_BITS) - 1)

/* A word: the fingerprint in bits 0-45, slot in 46-55, FLOW_CONTROL in 56, age
 * in 57-63.  A word with fingerprint 0 is free. */
#define SLOT_SHIFT 46
#define SLOT_MASK (FLOW_CONTROL | (SHIM_MAX_SLOTS - 1))
#define AGE_SHIFT 57
#define AGE_MASK 0x7f

/* What is learned of a flow: all but FLOW_CONTROL and age. */
#define LEARNED_MASK \
    (PRINT_MASK | (SHIM_MAX_SLOTS - UINT64_C(1)) << SLOT_SHIFT)

_Static_assert(SLOT_MASK + 1 == 1 << (AGE_SHIFT - SLOT_SHIFT), "11 bits");
_Static_assert(N_WAYS * sizeof(uint64_t) == 1 << BUCKET_SHIFT, "an offset");
_Static_assert(SHIM_MAX_FLOWS * 2 / N_WAYS <= 1 << (PRINT_SHIFT - BUCKET_SHIFT)
               && PRINT_SHIFT - BUCKET_SHIFT + PRINT_BITS == 64,
               "bucket number and fingerprint are the whole hash");

struct flow_table {
    uint64_t (*lookup_bulk)(struct flow_table *, const uint64_t *hashes,
                            uint32_t n, uint16_t *slots);
    uint64_t *words;            /* Buckets of N_WAYS words. */
    uint64_t mask;              /* Bits of a hash that are a bucket's offset in
                                 * bytes. */
    uint64_t secret[4];         /* The last two for IPv6 addresses. */
    uint32_t n_changes;         /* Incremented before and after a change. */
    uint8_t tick;               /* Current time in steps of the timeout, up to
                                 * AGE_MASK. */
    uint64_t (*unlearned)(const struct flow_table *, const uint64_t *hashes,
                          const uint16_t *slots, uint32_t n);

    /* Only for the thread that changes flows. */
    void *mapping;              /* 'words' are in it, from a huge page on. */
    size_t bytes;               /* Size of 'mapping'. */
    uint32_t *numbers;          /* By word: the flow's index in 'flows'. */
    struct shim_flow *flows;    /* A free one has family 0 and the index of the
                                 * next free one in its key's 'local'. */
    uint32_t free;              /* Index of the first free flow, or NONE. */
    uint32_t n_used;            /* Flows from this index on were never used. */
    uint32_t max;               /* Limit of 'n'. */
    uint32_t n;                 /* Number of flows. */
    uint64_t timeout;           /* Nanoseconds, 0: never. */
    uint64_t n_refused;         /* Flows that were not added. */
    uint64_t n_aged;            /* Flows deleted by flow_table_age(). */
};

#define LOAD(P) __atomic_load_n(P, __ATOMIC_RELAXED)
#define ACQUIRE(P) __atomic_load_n(P, __ATOMIC_ACQUIRE)
#define STORE(P, V) __atomic_store_n(P, V, __ATOMIC_RELAXED)
#define RELEASE(P, V) __atomic_store_n(P, V, __ATOMIC_RELEASE)

static inline uint64_t
print_of(uint64_t hash)
{
    return (hash >> PRINT_SHIFT | hash << (64 - PRINT_SHIFT)) & PRINT_MASK;
}

static inline uint64_t *
first_bucket(const struct flow_table *ft, uint64_t hash)
{
    return (uint64_t *) ((uint8_t *) ft->words + (hash & ft->mask));
}

/* Returns the second bucket, never the first.  Bucket and fingerprint
 * determine the other bucket, so that equal fingerprints in one bucket have
 * both buckets in common. */
static inline uint64_t *
second_bucket(const struct flow_table *ft, uint64_t hash)
{
    return first_bucket(ft, hash ^ (print_of(hash) | 1) << BUCKET_SHIFT);
}

/* Returns the word of 'bucket' with this fingerprint, 0 if there is none.
 * Branch-free, because the position cannot be predicted.  The two words of a
 * 16-byte load are each atomic, which ThreadSanitizer cannot know: with it the
 * portable code shows that the words are all that threads share. */
#if defined __SSE4_1__ && !defined __SANITIZE_THREAD__
/* Keeps a vector in its register: read from memory a second time, it could be
 * the words of other flows. */
#define KEEP(VECTOR) __asm__("" : "+x"(VECTOR))

static inline uint64_t
find_word(const uint64_t *bucket, uint64_t print)
{
    const __m128i mask = _mm_set1_epi64x(PRINT_MASK);
    const __m128i wanted = _mm_set1_epi64x(print);
    __m128i found = _mm_setzero_si128();

    for (int way = 0; way < N_WAYS; way += 2) {
        __m128i words = _mm_load_si128((const __m128i *) &bucket[way]), equal;

        KEEP(words);
        equal = _mm_cmpeq_epi64(_mm_and_si128(words, mask), wanted);
        found = _mm_or_si128(found, _mm_and_si128(words, equal));
    }
    return _mm_cvtsi128_si64(
        _mm_or_si128(found, _mm_unpackhi_epi64(found, found)));
}
#else
static inline uint64_t
find_word(const uint64_t *bucket, uint64_t print)
{
    uint64_t found = 0;

    for (int way = 0; way < N_WAYS; way++) {
        uint64_t word = ACQUIRE(&bucket[way]);

        found = (word ^ print) & PRINT_MASK ? found : word;
    }
    return found;
}
#endif

/* Does nothing to a word that changes meanwhile: it is young. */
static void __attribute__((noinline))
set_age(uint64_t *bucket, uint64_t print, uint8_t tick)
{
    const uint64_t mask = ~((uint64_t) AGE_MASK << AGE_SHIFT);

    for (int way = 0; way < N_WAYS; way++) {
        uint64_t word = LOAD(&bucket[way]);

        if (!((word ^ print) & PRINT_MASK)) {
            __atomic_compare_exchange_n(
                &bucket[way], &word,
                (word & mask) | (uint64_t) tick << AGE_SHIFT, false,
                __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        }
    }
}

static inline int
lookup(struct flow_table *ft, uint64_t hash)
{
    uint64_t *bucket = first_bucket(ft, hash), print = print_of(hash);
    uint64_t word = find_word(bucket, print);
    uint8_t tick;

    if (__builtin_expect(!word, 0)) {
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        bucket = second_bucket(ft, hash);
        word = find_word(bucket, print);
        if (!word) {
            return -1;
        }
    }
    tick = LOAD(&ft->tick);
    if (__builtin_expect(word >> AGE_SHIFT != tick, 0)) {
        set_age(bucket, print, tick);
    }
    return word >> SLOT_SHIFT & SLOT_MASK;
}

/* Returns the slot of 'key', with FLOW_CONTROL, or -1 if it is unknown. */
int
flow_table_lookup(struct flow_table *ft, const struct shim_flow_key *key)
{
    return lookup(ft, flow_table_hash(ft, key));
}

/* Looks up flow 'i' of a bulk.  Returns bit 'i' if it is unknown, else 0. */
static inline uint64_t
lookup_one(struct flow_table *ft, uint64_t hash, uint32_t i, uint16_t *slots)
{
    int slot = lookup(ft, hash);

    slots[i] = slot < 0 ? 0 : slot;
    return (uint64_t) (slot < 0) << i;
}

static uint64_t __attribute__((noinline))
lookup_one_call(struct flow_table *ft, uint64_t hash, uint32_t i,
                uint16_t *slots)
{
    return lookup_one(ft, hash, i, slots);
}

static uint64_t
lookup_bulk(struct flow_table *ft, const uint64_t *hashes, uint32_t n,
            uint16_t *slots)
{
    uint64_t unknown = 0;

    for (uint32_t i = 0; i < n; i++) {
        unknown |= lookup_one(ft, hashes[i], i, slots);
    }
    return unknown;
}

static uint64_t
unlearned(const struct flow_table *ft, const uint64_t *hashes,
          const uint16_t *slots, uint32_t n)
{
    uint64_t new = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t print = print_of(hashes[i]);
        uint64_t wanted = print | (uint64_t) slots[i] << SLOT_SHIFT;
        uint64_t word = find_word(first_bucket(ft, hashes[i]), print);

        new |= (uint64_t) (((word ^ wanted) & LEARNED_MASK) != 0) << i;
    }
    return new;
}

#if defined __x86_64__ && defined __OPTIMIZE__ && !defined __SANITIZE_THREAD__
#define VECTOR 8                /* Words of 64 bits. */

_Static_assert(FLOW_TABLE_MAX_BULK % VECTOR == 0, "arrays end with a vector");

/* lookup_bulk() that compares fingerprint and age of a whole bucket at once;
 * the words of a 64-byte load are each atomic.  Steps that can be vectorized
 * over flows are: one instruction for each flow is half a per cent of the cost
 * of a packet.
 *
 * Flows that are not found with the current age are looked up afterwards,
 * since a call in the loop would spill its registers. */
static uint64_t __attribute__((target("avx512f,avx512dq")))
lookup_bulk_avx512(struct flow_table *ft, const uint64_t *hashes, uint32_t n,
                   uint16_t *slots)
{
    const uint8_t *buckets = (const uint8_t *) ft->words;
    const uint64_t mask = ft->mask;
    const __m512i young = _mm512_set1_epi64((uint64_t) LOAD(&ft->tick)
                                            << AGE_SHIFT);
    const __m512i print_mask = _mm512_set1_epi64(PRINT_MASK);
    const __m512i matters = _mm512_set1_epi64(
        PRINT_MASK | (uint64_t) AGE_MASK << AGE_SHIFT);
    uint64_t wanted[FLOW_TABLE_MAX_BULK] __attribute__((aligned(64)));
    uint64_t found[FLOW_TABLE_MAX_BULK] __attribute__((aligned(64)));
    uint64_t left = 0, unknown = 0;

    for (uint32_t i = 0; i < n; i += VECTOR) {
        __mmask8 there = n - i < VECTOR ? (1 << (n - i)) - 1 : 0xff;
        __m512i prints = _mm512_and_si512(print_mask, _mm512_ror_epi64(
            _mm512_maskz_loadu_epi64(there, &hashes[i]), PRINT_SHIFT));

        _mm512_store_si512(&wanted[i], _mm512_or_si512(prints, young));
    }
    for (uint32_t i = 0; i < n; i++) {
        __m512i bucket = _mm512_load_si512(buckets + (hashes[i] & mask));
        __m512i differs;
        __mmask8 equal;

        KEEP(bucket);
        differs = _mm512_xor_si512(bucket, _mm512_set1_epi64(wanted[i]));
        equal = _mm512_testn_epi64_mask(differs, matters);
        _mm_storel_epi64((__m128i *) &found[i], _mm512_castsi512_si128(
            _mm512_maskz_compress_epi64(equal, bucket)));
    }
    for (uint32_t i = 0; i < n; i += VECTOR) {
        __mmask8 there = n - i < VECTOR ? (1 << (n - i)) - 1 : 0xff;
        __m512i word = _mm512_load_si512(&found[i]);
        __m512i slot = _mm512_and_si512(_mm512_srli_epi64(word, SLOT_SHIFT),
                                        _mm512_set1_epi64(SLOT_MASK));

        _mm512_mask_cvtepi64_storeu_epi16(&slots[i], there, slot);
        left |= (uint64_t) _mm512_mask_testn_epi64_mask(there, word, matters)
                << i;
    }
    for (; __builtin_expect(left != 0, 0); left &= left - 1) {
        uint32_t i = __builtin_ctzll(left);

        unknown |= lookup_one_call(ft, hashes[i], i, slots);
    }
    return unknown;
}

/* unlearned() that compares fingerprint and slot of a whole bucket at once. */
static uint64_t __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
unlearned_avx512(const struct flow_table *ft, const uint64_t *hashes,
                 const uint16_t *slots, uint32_t n)
{
    const uint8_t *buckets = (const uint8_t *) ft->words;
    const uint64_t mask = ft->mask;
    const __m512i print_mask = _mm512_set1_epi64(PRINT_MASK);
    const __m512i matters = _mm512_set1_epi64(LEARNED_MASK);
    uint64_t wanted[FLOW_TABLE_MAX_BULK] __attribute__((aligned(64)));
    uint8_t equal[FLOW_TABLE_MAX_BULK] __attribute__((aligned(64)));
    __m512i found;

    for (uint32_t i = 0; i < n; i += VECTOR) {
        __mmask8 there = n - i < VECTOR ? (1 << (n - i)) - 1 : 0xff;
        __m512i prints = _mm512_and_si512(
            print_mask,
            _mm512_ror_epi64(_mm512_maskz_loadu_epi64(there, &hashes[i]),
                             PRINT_SHIFT));
        __m512i slot =
            _mm512_cvtepu16_epi64(_mm_maskz_loadu_epi16(there, &slots[i]));

        _mm512_store_si512(
            &wanted[i],
            _mm512_or_si512(prints, _mm512_slli_epi64(slot, SLOT_SHIFT)));
    }
    for (uint32_t i = 0; i < n; i++) {
        __m512i bucket = _mm512_load_si512(buckets + (hashes[i] & mask));
        __m512i differs =
            _mm512_xor_si512(bucket, _mm512_set1_epi64(wanted[i]));

        equal[i] = _mm512_testn_epi64_mask(differs, matters);
    }
    found = _mm512_load_si512(equal);
    return _mm512_mask_testn_epi8_mask(UINT64_MAX >> (64 - n), found, found);
}
#endif

/* Stores in 'slots' the slots of the 'n' flows of 'hashes', with FLOW_CONTROL,
 * at most FLOW_TABLE_MAX_BULK.  For each unknown flow stores 0 and sets its
 * bit in the result. */
uint64_t
flow_table_lookup_bulk(struct flow_table *ft, const uint64_t *hashes,
                       uint32_t n, uint16_t *slots)
{
    return (n == 1 ? lookup_one(ft, hashes[0], 0, slots)
            : ft->lookup_bulk(ft, hashes, n, slots));
}

/* Returns the bits of those of the 'n' flows of 'hashes', 1 to
 * FLOW_TABLE_MAX_BULK, that the table does not have with their slots.
 * FLOW_CONTROL is ignored. */
uint64_t
flow_table_unlearned(const struct flow_table *ft, const uint64_t *hashes,
                     const uint16_t *slots, uint32_t n)
{
    return ft->unlearned(ft, hashes, slots, n);
}

static void
choose_lookup(struct flow_table *ft, bool portable)
{
    ft->lookup_bulk = lookup_bulk;
    ft->unlearned = unlearned;
#if defined __x86_64__ && defined __OPTIMIZE__ && !defined __SANITIZE_THREAD__
    if (!portable && __builtin_cpu_supports("avx512f")
        && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512vl")) {
        ft->lookup_bulk = lookup_bulk_avx512;
        ft->unlearned = unlearned_avx512;
    }
#else
    (void) portable;
#endif
}

/* Maps the words; the kernel zeroes a page when it is first used.  Huge pages
 * save a TLB miss in nearly every lookup in a large table. */
static bool
map_words(struct flow_table *ft, uint64_t n_buckets)
{
    uint64_t bytes = n_buckets * N_WAYS * sizeof *ft->words;
    uintptr_t at;

    ft->bytes = bytes + HUGE_PAGE;
    ft->mapping = mmap(NULL, ft->bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ft->mapping == MAP_FAILED) {
        ft->mapping = NULL;
        return false;
    }
    at = ((uintptr_t) ft->mapping + HUGE_PAGE - 1) & -(uintptr_t) HUGE_PAGE;
    ft->words = (uint64_t *) at;
    if (bytes >= HUGE_PAGE) {
        madvise(ft->words, bytes, MADV_HUGEPAGE);
    }
    return true;
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

/* Creates a table for 'max_flows'.  'seed' should be random, so that flows
 * cannot be chosen to collide.  Returns NULL without memory. */
struct flow_table *
flow_table_create(uint32_t max_flows, uint64_t seed)
{
    struct flow_table *ft = allocate_lines(sizeof *ft);
    uint64_t n = 2;

    while (n * N_WAYS < (uint64_t) max_flows * 2) {
        n *= 2;
    }
    memset(ft, 0, sizeof *ft);
    choose_lookup(ft, false);
    ft->max = max_flows;
    ft->free = NONE;
    ft->mask = (n - 1) << BUCKET_SHIFT;
    for (int i = 0; i < 4; i++) {
        ft->secret[i] = next_secret(&seed);
    }
    ft->numbers = allocate(n * N_WAYS, sizeof *ft->numbers);
    ft->flows = allocate(max_flows, sizeof *ft->flows);
    if (!map_words(ft, n)) {
        flow_table_destroy(ft);
        return NULL;
    }
    return ft;
}

/* Disables the processor-specific lookup, for tests. */
void
flow_table_use_portable(struct flow_table *ft)
{
    choose_lookup(ft, true);
}

void
flow_table_destroy(struct flow_table *ft)
{
    if (ft) {
        if (ft->mapping) {
            munmap(ft->mapping, ft->bytes);
        }
        free(ft->flows);
        free(ft->numbers);
        free(ft);
    }
}

struct flow_hasher
flow_table_hasher(const struct flow_table *ft)
{
    return (struct flow_hasher) {
        .secrets = { ft->secret[0], ft->secret[1] },
        .buckets = (const uint8_t *) ft->words,
        .mask = ft->mask,
    };
}

/* IPv6 addresses are hashed, with secrets, to the size of IPv4's; the bit
 * above the ports separates the two families. */
struct flow_id
flow_table_id(const struct flow_table *ft, const struct shim_flow_key *key)
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
        id.addresses = (flow_multiply(a[0] ^ ft->secret[0],
                                      a[1] ^ ft->secret[1])
                        ^ flow_multiply(a[2] ^ ft->secret[2],
                                        a[3] ^ ft->secret[3]));
        id.rest |= UINT64_C(1) << 40;
    }
    return id;
}

uint64_t
flow_table_hash(const struct flow_table *ft, const struct shim_flow_key *key)
{
    struct flow_hasher hasher = flow_table_hasher(ft);
    struct flow_id id = flow_table_id(ft, key);

    return flow_hash(&hasher, &id);
}

uint32_t
flow_table_changes(const struct flow_table *ft)
{
    return ACQUIRE(&ft->n_changes);
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

/* Sets the members of 'stats' that the table counts. */
void
flow_table_stats(const struct flow_table *ft, struct shim_stats *stats)
{
    stats->n_flows = LOAD(&ft->n);
    stats->flows_refused = LOAD(&ft->n_refused);
    stats->flows_aged = LOAD(&ft->n_aged);
}

static struct shim_flow *
flow_of(const struct flow_table *ft, const uint64_t *word)
{
    return &ft->flows[ft->numbers[word - ft->words]];
}

/* Returns the word of 'bucket' with fingerprint 'print', or NULL.  Fingerprint
 * 0 finds a free word. */
static uint64_t *
find_print(uint64_t *bucket, uint64_t print)
{
    for (int way = 0; way < N_WAYS; way++) {
        if ((LOAD(&bucket[way]) & PRINT_MASK) == print) {
            return &bucket[way];
        }
    }
    return NULL;
}

/* Makes the flow of 'hash' one of 'slot', without FLOW_CONTROL.  If its bucket
 * is full, another flow is forgotten, which 'chance' selects: it must differ
 * from call to call, so that flows with packets do not displace each other for
 * ever while the bucket has flows without. */
void
flow_table_learn(struct flow_table *ft, uint64_t hash, uint16_t slot,
                 uint32_t chance)
{
    uint64_t *bucket = first_bucket(ft, hash), print = print_of(hash);
    uint64_t value = (print | (uint64_t) slot << SLOT_SHIFT) & LEARNED_MASK;
    uint64_t *free = find_print(bucket, 0);
    bool found = !print;

    /* Two threads may have added the flow at the same time. */
    for (int way = 0; way < N_WAYS && print; way++) {
        if ((LOAD(&bucket[way]) & PRINT_MASK) == print) {
            RELEASE(&bucket[way], value);
            found = true;
        }
    }
    if (!found) {
        RELEASE(free ? free : &bucket[chance % N_WAYS], value);
    }
}

/* Returns the word of the flow of 'hash', NULL if there is none. */
static uint64_t *
find_flow(const struct flow_table *ft, uint64_t hash)
{
    uint64_t print = print_of(hash);
    uint64_t *word = find_print(first_bucket(ft, hash), print);

    return word ? word : find_print(second_bucket(ft, hash), print);
}

static void
set_word(struct flow_table *ft, uint64_t *word, uint64_t value,
         uint32_t number)
{
    ft->numbers[word - ft->words] = number;
    RELEASE(word, value);
}

/* Moves one flow of 'bucket', its first bucket, to its second bucket.  Returns
 * the freed word, or NULL if no flow can be moved. */
static uint64_t *
move_one(struct flow_table *ft, uint64_t *bucket)
{
    for (int way = 0; way < N_WAYS; way++) {
        uint64_t *word = &bucket[way], *free;
        uint64_t hash = flow_table_hash(ft, &flow_of(ft, word)->key);

        free = (first_bucket(ft, hash) == bucket
                ? find_print(second_bucket(ft, hash), 0) : NULL);
        if (free) {
            set_word(ft, free, LOAD(word), ft->numbers[word - ft->words]);
            RELEASE(word, 0);
            return word;
        }
    }
    return NULL;
}

/* Returns a free word for 'hash', NULL if there is none. */
static uint64_t *
find_free_word(struct flow_table *ft, uint64_t hash)
{
    uint64_t *first = first_bucket(ft, hash);
    uint64_t *second = second_bucket(ft, hash), *word = find_print(first, 0);

    word = word ? word : find_print(second, 0);
    word = word ? word : move_one(ft, first);
    return word ? word : move_one(ft, second);
}

/* Returns the index of a free flow, which must exist. */
static uint32_t
alloc_number(struct flow_table *ft)
{
    uint32_t number = ft->free;

    if (number == NONE) {
        return ft->n_used++;
    }
    memcpy(&ft->free, ft->flows[number].key.local, sizeof ft->free);
    return number;
}

static void
free_number(struct flow_table *ft, uint32_t number)
{
    struct shim_flow *flow = &ft->flows[number];

    flow->key.family = 0;
    memcpy(flow->key.local, &ft->free, sizeof ft->free);
    ft->free = number;
}

static int
add_flow(struct flow_table *ft, const struct shim_flow *flow, uint64_t hash,
         uint64_t value)
{
    uint64_t *word = ft->n < ft->max ? find_free_word(ft, hash) : NULL;
    uint32_t number;

    if (!word) {
        return ENOSPC;
    }
    number = alloc_number(ft);
    ft->flows[number] = *flow;
    set_word(ft, word, value, number);
    STORE(&ft->n, ft->n + 1);
    return 0;
}

/* Adds 'key' with 'slot', which may have FLOW_CONTROL, or changes its slot.
 * Returns 0, or ENOSPC if the table is full or another flow has the same
 * hash. */
int
flow_table_set(struct flow_table *ft, const struct shim_flow_key *key,
               uint16_t slot)
{
    const struct shim_flow flow = {
        .key = *key, .slot = slot & ~FLOW_CONTROL,
        .control = (slot & FLOW_CONTROL) != 0,
    };
    uint64_t hash = flow_table_hash(ft, key), print = print_of(hash);
    uint64_t value = (print | (uint64_t) slot << SLOT_SHIFT
                      | (uint64_t) ft->tick << AGE_SHIFT);
    uint64_t *word = print ? find_flow(ft, hash) : NULL;
    bool same = word && !memcmp(&flow_of(ft, word)->key, key, sizeof *key);
    int error = 0;

    /* Before, so that a thread that finds the flow also sees the change; and
     * after, so that one that looked too early looks again. */
    RELEASE(&ft->n_changes, ft->n_changes + 1);
    if (same) {
        *flow_of(ft, word) = flow;
        RELEASE(word, value);
    } else {
        error = word || !print ? ENOSPC : add_flow(ft, &flow, hash, value);
    }
    RELEASE(&ft->n_changes, ft->n_changes + 1);
    if (error) {
        STORE(&ft->n_refused, ft->n_refused + 1);
    }
    return error;
}

static void
remove_word(struct flow_table *ft, uint64_t *word)
{
    free_number(ft, ft->numbers[word - ft->words]);
    RELEASE(word, 0);
    STORE(&ft->n, ft->n - 1);
}

/* Returns 0, or ENOENT if 'key' was not there. */
int
flow_table_delete(struct flow_table *ft, const struct shim_flow_key *key)
{
    uint64_t hash = flow_table_hash(ft, key);
    uint64_t *word = print_of(hash) ? find_flow(ft, hash) : NULL;

    if (!word || memcmp(&flow_of(ft, word)->key, key, sizeof *key)) {
        return ENOENT;
    }
    remove_word(ft, word);
    return 0;
}

/* Copies up to 'max' flows from '*cursor' on, initially 0, to 'flows', in no
 * order.  Returns their number, and stores where to continue in '*cursor', 0
 * after the last flow.  A flow that exists all the time is listed once, even
 * if others change meanwhile. */
uint32_t
flow_table_list(const struct flow_table *ft, uint64_t *cursor,
                struct shim_flow *flows, uint32_t max)
{
    uint64_t at = *cursor;
    uint32_t n = 0;

    for (; at < ft->n_used; at++) {
        if (ft->flows[at].key.family) {
            if (n >= max) {
                break;
            }
            flows[n++] = ft->flows[at];
        }
    }
    *cursor = at < ft->n_used ? at : 0;
    return n;
}

static uint8_t
tick_at(const struct flow_table *ft, uint64_t now)
{
    return (ft->timeout ? now / (ft->timeout / AGE_STEPS + 1) & AGE_MASK : 0);
}

/* Sets the idle timeout of flows, in nanoseconds; 0 disables aging.  Must be
 * called before the first flow is added. */
void
flow_table_set_timeout(struct flow_table *ft, uint64_t ns, uint64_t now)
{
    ft->timeout = ns;
    STORE(&ft->tick, tick_at(ft, now));
}

static uint32_t
age_all(struct flow_table *ft)
{
    uint64_t n_words = ((ft->mask >> BUCKET_SHIFT) + 1) * N_WAYS;
    uint32_t n = 0;

    for (uint64_t i = 0; i < n_words; i++) {
        uint64_t word = LOAD(&ft->words[i]);
        uint8_t age = (ft->tick - (word >> AGE_SHIFT)) & AGE_MASK;

        /* The age is in whole steps, so one more must pass. */
        if (word & PRINT_MASK && age > AGE_STEPS) {
            remove_word(ft, &ft->words[i]);
            n++;
        }
    }
    return n;
}

/* Deletes flows that are idle for longer than the timeout, and returns their
 * number.  To be called several times in a timeout; most calls return at
 * once. */
uint32_t
flow_table_age(struct flow_table *ft, uint64_t now)
{
    uint8_t tick = tick_at(ft, now);
    uint32_t n;

    if (tick == ft->tick) {
        return 0;
    }
    STORE(&ft->tick, tick);
    n = age_all(ft);
    STORE(&ft->n_aged, ft->n_aged + n);
    return n;
}
