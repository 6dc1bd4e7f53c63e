/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_FLOW_TABLE_INTERNAL_H
#define SHIM_FLOW_TABLE_INTERNAL_H 1

/* What the files of flow-table.h share: flow-table.c makes the table and knows
 * its readers, flow-lookup.c looks flows up, flow-change.c adds, deletes and
 * ages them.
 *
 * Only those three include this. */

#include <stdbool.h>

#include "shim/pipeline/flow-table.h"

#define N_WAYS 4

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

uint64_t flow_hash_v6(const struct flow_table *, const uint64_t *addresses,
                      uint64_t rest);

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

static inline uint64_t *
entry_of(const uint64_t *bucket, uint8_t n_addresses, int way)
{
    return (uint64_t *) bucket + way * (1 + n_addresses);
}

/* The key, ready to be compared. */
void flow_probe_init(struct flow_table *, const struct shim_flow_key *,
                     struct probe *);

/* Chooses how many flows at once are looked up. */
void flow_lookup_choose(struct flow_table *, bool portable);

#endif /* shim/pipeline/flow-table-internal.h */
