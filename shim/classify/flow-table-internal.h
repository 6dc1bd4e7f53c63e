/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_FLOW_TABLE_INTERNAL_H
#define SHIM_FLOW_TABLE_INTERNAL_H 1

/* What the files of flow-table.h share: flow-table.c makes the table,
 * flow-lookup.c looks flows up, flow-change.c adds, deletes and ages them.
 *
 * Only those three include this. */

#include <stdbool.h>

#include "shim/classify/flow-table.h"

#define N_WAYS 8

/* A hash has the number of a bucket in bits 6-23, so that they need only be
 * masked to be its offset (a small table takes fewer).  All other bits are the
 * print: bits 24-63, and above them 0-5. */
#define BUCKET_SHIFT 6
#define PRINT_SHIFT 24
#define PRINT_BITS 46
#define PRINT_MASK ((UINT64_C(1) << PRINT_BITS) - 1)

/* A word: the print in bits 0-45, slot in 46-55, age in 56-63.  Without a print
 * it is free. */
#define SLOT_SHIFT 46
#define SLOT_MASK (SHIM_MAX_SLOTS - 1)
#define AGE_SHIFT 56

_Static_assert(SLOT_MASK + 1 == 1 << (AGE_SHIFT - SLOT_SHIFT), "10 bits");
_Static_assert(N_WAYS * sizeof(uint64_t) == 1 << BUCKET_SHIFT, "an offset");
_Static_assert(SHIM_MAX_FLOWS * 2 / N_WAYS <= 1 << (PRINT_SHIFT - BUCKET_SHIFT)
               && PRINT_SHIFT - BUCKET_SHIFT + PRINT_BITS == 64,
               "a bucket's number and the print are all of a hash");

struct flow_table {
    uint64_t (*lookup_bulk)(struct flow_table *, const uint64_t *hashes,
                            uint32_t n, uint16_t *slots);
    uint64_t *words;            /* Buckets of N_WAYS of them. */
    uint64_t mask;              /* Of a bucket's offset, in bytes. */
    uint64_t secret[4];         /* The last two for IPv6's addresses. */
    uint32_t n_changes;         /* Before and after a flow is set. */
    uint8_t tick;               /* The time, in steps of the time-out. */

    /* The changing thread's. */
    void *mapping;              /* 'words' begins in it, at a huge page... */
    size_t bytes;               /* ...and it has so many. */
    uint32_t *numbers;          /* Of each word: which flow it is of. */
    struct shim_flow *flows;    /* By number; one that is free has family 0,
                                 * and, in its key's 'local', the next. */
    uint32_t free;              /* The first of them, NOBODY if none... */
    uint32_t n_used;            /* ...before this number. */
    uint32_t max;               /* Flows that are allowed. */
    uint32_t n;                 /* Flows that are there. */
    uint64_t timeout;           /* Nanoseconds, 0: never. */
    uint64_t n_refused;         /* Flows, since the table was full. */
    uint64_t n_aged;            /* Flows. */
};

#define NOBODY UINT32_MAX

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

/* Never the first one.  With the print it tells the first one: whoever else is
 * found there with the same print has this flow's two buckets. */
static inline uint64_t *
second_bucket(const struct flow_table *ft, uint64_t hash)
{
    return first_bucket(ft, hash ^ (print_of(hash) | 1) << BUCKET_SHIFT);
}

/* Chooses how many flows at once are looked up. */
void flow_lookup_choose(struct flow_table *, bool portable);

#endif /* shim/classify/flow-table-internal.h */
