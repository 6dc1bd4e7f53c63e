/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/flow-table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define KEY_WORDS (sizeof(struct shim_flow_key) / sizeof(uint64_t))
#define N_WAYS 4

_Static_assert(sizeof(struct shim_flow_key) % sizeof(uint64_t) == 0,
               "keys are compared by words");

struct flow_bucket {
    uint32_t signature[N_WAYS];         /* 0: the entry is free. */
    uint16_t slot[N_WAYS];
    uint64_t key[N_WAYS][KEY_WORDS];
} __attribute__((aligned(64)));

struct flow_table {
    struct flow_bucket *buckets;
    uint32_t mask;              /* Number of buckets, less 1. */
    uint32_t max;               /* Flows that are allowed. */
    uint32_t n;                 /* Flows that are there. */
    uint64_t seed;
};

#define LOAD(P) __atomic_load_n(P, __ATOMIC_RELAXED)
#define STORE(P, V) __atomic_store_n(P, V, __ATOMIC_RELAXED)

/* Creates a table for 'max_flows'.  'seed' should be random, so that nobody
 * can choose flows that fall into the same bucket.  Returns NULL without
 * memory.  The buckets are twice as many as needed: with two choices of four
 * entries each they are practically never full before 'max_flows'. */
struct flow_table *
flow_table_create(uint32_t max_flows, uint64_t seed)
{
    struct flow_table *ft = calloc(1, sizeof *ft);
    uint32_t n = 1;

    while (n * N_WAYS < max_flows * 2) {
        n *= 2;
    }
    if (ft) {
        ft->mask = n - 1;
        ft->max = max_flows;
        ft->seed = seed;
        ft->buckets = aligned_alloc(64, n * sizeof *ft->buckets);
    }
    if (!ft || !ft->buckets) {
        free(ft);
        return NULL;
    }
    memset(ft->buckets, 0, n * sizeof *ft->buckets);
    return ft;
}

void
flow_table_destroy(struct flow_table *ft)
{
    if (ft) {
        free(ft->buckets);
        free(ft);
    }
}

uint64_t
flow_table_hash(const struct flow_table *ft, const struct shim_flow_key *key)
{
    uint64_t words[KEY_WORDS], hash = ft->seed;

    memcpy(words, key, sizeof words);
    for (size_t i = 0; i < KEY_WORDS; i++) {
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 29;
    }
    return hash * 0xd6e8feb86659fd93 ^ hash >> 32;
}

static uint32_t
signature(uint64_t hash)
{
    return hash >> 32 | 1;
}

static struct flow_bucket *
first_bucket(const struct flow_table *ft, uint64_t hash)
{
    return &ft->buckets[hash & ft->mask];
}

static struct flow_bucket *
second_bucket(const struct flow_table *ft, uint64_t hash)
{
    return &ft->buckets[(hash ^ hash >> 23 ^ hash >> 41) & ft->mask];
}

static bool
key_equals(const uint64_t *entry, const uint64_t *key)
{
    for (size_t i = 0; i < KEY_WORDS; i++) {
        if (LOAD(&entry[i]) != key[i]) {
            return false;
        }
    }
    return true;
}

static int
find_way(const struct flow_bucket *b, const struct shim_flow_key *key,
         uint64_t hash)
{
    uint64_t words[KEY_WORDS];

    memcpy(words, key, sizeof words);
    for (int i = 0; i < N_WAYS; i++) {
        if (__atomic_load_n(&b->signature[i], __ATOMIC_ACQUIRE)
            == signature(hash) && key_equals(b->key[i], words)) {
            return i;
        }
    }
    return -1;
}

static int
lookup_in(const struct flow_bucket *b, const struct shim_flow_key *key,
          uint64_t hash)
{
    int way = find_way(b, key, hash);
    int slot;

    if (way < 0) {
        return -1;
    }
    slot = LOAD(&b->slot[way]);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return LOAD(&b->signature[way]) == signature(hash) ? slot : -1;
}

/* Returns the slot of 'key', whose flow_table_hash() is 'hash', or -1 if it is
 * unknown. */
int
flow_table_lookup(const struct flow_table *ft,
                  const struct shim_flow_key *key, uint64_t hash)
{
    int slot = lookup_in(first_bucket(ft, hash), key, hash);

    return slot >= 0 ? slot : lookup_in(second_bucket(ft, hash), key, hash);
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

static int
n_used(const struct flow_bucket *b)
{
    int n = 0;

    for (int i = 0; i < N_WAYS; i++) {
        n += b->signature[i] != 0;
    }
    return n;
}

static bool
find(const struct flow_table *ft, const struct shim_flow_key *key,
     uint64_t hash, struct flow_bucket **bucket, int *way)
{
    *bucket = first_bucket(ft, hash);
    *way = find_way(*bucket, key, hash);
    if (*way < 0) {
        *bucket = second_bucket(ft, hash);
        *way = find_way(*bucket, key, hash);
    }
    return *way >= 0;
}

static void
publish(struct flow_bucket *b, const struct shim_flow_key *key, uint16_t slot,
        uint64_t hash)
{
    uint64_t words[KEY_WORDS];
    int way = 0;

    memcpy(words, key, sizeof words);
    while (b->signature[way]) {
        way++;
    }

    /* A reader that still compares the entry that was here before must not
     * see the new words under the old signature. */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (size_t i = 0; i < KEY_WORDS; i++) {
        STORE(&b->key[way][i], words[i]);
    }
    STORE(&b->slot[way], slot);
    __atomic_store_n(&b->signature[way], signature(hash), __ATOMIC_RELEASE);
}

/* Makes 'key' belong to 'slot', whether it was there or not.  Returns 0, or
 * ENOSPC if the table is full. */
int
flow_table_set(struct flow_table *ft, const struct shim_flow_key *key,
               uint16_t slot)
{
    uint64_t hash = flow_table_hash(ft, key);
    struct flow_bucket *b, *other;
    int way;

    if (find(ft, key, hash, &b, &way)) {
        STORE(&b->slot[way], slot);
        return 0;
    }
    b = first_bucket(ft, hash);
    other = second_bucket(ft, hash);
    if (n_used(other) < n_used(b)) {
        b = other;
    }
    if (ft->n >= ft->max || n_used(b) == N_WAYS) {
        return ENOSPC;
    }
    publish(b, key, slot, hash);
    STORE(&ft->n, ft->n + 1);
    return 0;
}

/* Returns 0, or ENOENT if 'key' was not there. */
int
flow_table_delete(struct flow_table *ft, const struct shim_flow_key *key)
{
    struct flow_bucket *b;
    int way;

    if (!find(ft, key, flow_table_hash(ft, key), &b, &way)) {
        return ENOENT;
    }
    STORE(&b->signature[way], 0);
    STORE(&ft->n, ft->n - 1);
    return 0;
}

/* Copies up to 'max' flows to 'flows', in no order, and returns how many. */
uint32_t
flow_table_list(const struct flow_table *ft, struct shim_flow *flows,
                uint32_t max)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i <= ft->mask; i++) {
        const struct flow_bucket *b = &ft->buckets[i];

        for (int way = 0; way < N_WAYS && n < max; way++) {
            if (b->signature[way]) {
                memcpy(&flows[n].key, b->key[way], sizeof flows[n].key);
                flows[n].slot = b->slot[way];
                flows[n].pad = 0;
                n++;
            }
        }
    }
    return n;
}
