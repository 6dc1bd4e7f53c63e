/* SPDX-License-Identifier: Apache-2.0 */

#if defined __x86_64__ && defined __OPTIMIZE__
#include <immintrin.h>
#endif

#include "shim/pipeline/flow-table-internal.h"

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

    flow_probe_init(ft, key, &p);
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
lookup_one_slowly(struct flow_table *ft, const struct flow_id *ids, uint32_t i,
                  uint16_t *slots)
{
    return lookup_one(ft, &ids[i], i, slots);
}

/* Stores the lines in which the lookups will begin, and asks for them.  Not
 * inline: in its caller, gcc would keep the loop's counter in memory. */
static void __attribute__((noinline))
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
 * the entry's word is read and compared, and then its addresses, as above.
 *
 * What is not found at once is looked up when all others are: with no call in
 * the loop all that it needs stays in registers. */
static uint64_t __attribute__((target("avx512f,avx512dq,bmi,bmi2")))
lookup_bulk_avx512(struct flow_table *ft, const struct flow_id *ids,
                   uint32_t n, uint16_t *slots)
{
    const uint64_t young = (uint64_t) LOAD(&ft->tick) << AGE_SHIFT;
    const uint64_t check = KEY_MASK | UINT64_C(0xff) << AGE_SHIFT;
    const __m512i mask = _mm512_broadcast_i64x2(
        _mm_set_epi64x(-1, KEY_MASK));
    const uint64_t *buckets[FLOW_TABLE_MAX_BULK];
    uint64_t left = 0, unknown = 0;

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

        slots[i] = word >> SLOT_SHIFT;
        if (__builtin_expect(((word ^ ids[i].rest ^ young) & check)
                             | (LOAD(entry + 1) ^ ids[i].addresses), 0)) {
            left |= UINT64_C(1) << i;
        }
    }
    for (; __builtin_expect(left != 0, 0); left &= left - 1) {
        unknown |= lookup_one_slowly(ft, ids, __builtin_ctzll(left), slots);
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

void
flow_lookup_choose(struct flow_table *ft, bool portable)
{
    ft->lookup_bulk = lookup_bulk;
#if defined __x86_64__ && defined __OPTIMIZE__
    if (!portable && __builtin_cpu_supports("avx512f")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("bmi")
        && __builtin_cpu_supports("bmi2")) {
        ft->lookup_bulk = lookup_bulk_avx512;
    }
#else
    (void) portable;
#endif
}
