/* SPDX-License-Identifier: Apache-2.0 */

#if defined __x86_64__
#include <immintrin.h>
#endif

#include "shim/classify/flow-table-internal.h"

/* Returns the word of 'bucket' that has this print, 0 if there is none.  Looks
 * at all of them without a jump: which one it is cannot be foreseen. */
#ifdef __SSE4_1__
static inline uint64_t
find_word(const uint64_t *bucket, uint64_t print)
{
    const __m128i mask = _mm_set1_epi64x(PRINT_MASK);
    const __m128i wanted = _mm_set1_epi64x(print);
    __m128i found = _mm_setzero_si128();

    for (int way = 0; way < N_WAYS; way += 2) {
        __m128i words = _mm_load_si128((const __m128i *) &bucket[way]);
        __m128i equal = _mm_cmpeq_epi64(_mm_and_si128(words, mask), wanted);

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

static uint8_t *
age_byte(uint64_t *word)
{
    return (uint8_t *) word + (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
                               ? 7 : 0);
}

/* Makes the word of 'bucket' that has 'print' young. */
static void __attribute__((noinline))
touch(uint64_t *bucket, uint64_t print, uint8_t tick)
{
    for (int way = 0; way < N_WAYS; way++) {
        if (!((LOAD(&bucket[way]) ^ print) & PRINT_MASK)) {
            STORE(age_byte(&bucket[way]), tick);
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
        touch(bucket, print, tick);
    }
    return word >> SLOT_SHIFT & SLOT_MASK;
}

/* Returns the slot of 'key', or -1 if it is unknown. */
int
flow_table_lookup(struct flow_table *ft, const struct shim_flow_key *key)
{
    return lookup(ft, flow_table_hash(ft, key));
}

/* Finds one flow of a bulk, and says with its bit if it is unknown. */
static inline uint64_t
lookup_one(struct flow_table *ft, uint64_t hash, uint32_t i, uint16_t *slots)
{
    int slot = lookup(ft, hash);

    slots[i] = slot < 0 ? 0 : slot;
    return (uint64_t) (slot < 0) << i;
}

static uint64_t __attribute__((noinline))
lookup_one_slowly(struct flow_table *ft, uint64_t hash, uint32_t i,
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

#if defined __x86_64__ && defined __OPTIMIZE__
#define VECTOR 8                /* Words of 64 bits. */

_Static_assert(FLOW_TABLE_MAX_BULK % VECTOR == 0, "arrays end with a vector");

/* The same with a bucket compared at once, print and age.  Each word of a load
 * of 64 bytes is whole.  What can be done for many flows at once is: here an
 * instruction for each of them is half a percent of a packet.
 *
 * What is not found at once is looked up when all others are: with no call in
 * the loop all that it needs stays in registers. */
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
        PRINT_MASK | UINT64_C(0xff) << AGE_SHIFT);
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
        __m512i differs = _mm512_xor_si512(
            bucket, _mm512_set1_epi64(wanted[i]));
        __mmask8 equal = _mm512_testn_epi64_mask(differs, matters);

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

        unknown |= lookup_one_slowly(ft, hashes[i], i, slots);
    }
    return unknown;
}
#endif

/* Stores the slots of the 'n' flows of 'hashes', at most FLOW_TABLE_MAX_BULK,
 * in 'slots'.  Returns a bit, and stores 0, for each that is unknown. */
uint64_t
flow_table_lookup_bulk(struct flow_table *ft, const uint64_t *hashes,
                       uint32_t n, uint16_t *slots)
{
    return (n == 1 ? lookup_one(ft, hashes[0], 0, slots)
            : ft->lookup_bulk(ft, hashes, n, slots));
}

void
flow_lookup_choose(struct flow_table *ft, bool portable)
{
    ft->lookup_bulk = lookup_bulk;
#if defined __x86_64__ && defined __OPTIMIZE__
    if (!portable && __builtin_cpu_supports("avx512f")
        && __builtin_cpu_supports("avx512dq")) {
        ft->lookup_bulk = lookup_bulk_avx512;
    }
#else
    (void) portable;
#endif
}
