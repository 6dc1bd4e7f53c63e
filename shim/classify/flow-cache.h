/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_FLOW_CACHE_H
#define SHIM_FLOW_CACHE_H 1

/* The flow cache: 5-tuple -> job slot, for received packets.
 *
 * A packet from the host has the slot of its job in its tag, a received packet
 * does not.  So forwarding threads store the slot of each flow that passes,
 * and find it for received packets.  The size is fixed: a full bucket forgets
 * one of its flows, which is learned again with its next packet, or does not
 * learn the new one.  Which is decided by the share of each slot
 * (base/shares.h): a job that opens many connections takes none of a job with
 * few.  Flows of no job, as which unknown ones count anyway, take only what
 * jobs leave.
 *
 * A flow is identified by a keyed hash of 64 bits and takes one 64-bit word,
 * which is written atomically: threads need no locks, and nothing has to be
 * reclaimed.  Some bits of the hash select a bucket of eight words, one cache
 * line, so that a lookup costs one memory access; a bulk lookup prefetches all
 * buckets.  In the word, the slot replaces bits of the hash that the bucket
 * implies, and a whole bucket is compared at once.
 *
 * An unknown flow is taken for a known one with probability 2^-46: 49 bits are
 * compared, with eight words.  Such a flow cannot be chosen without the
 * secrets.
 *
 * The hash is one 64 by 64 bit multiplication for each 16 bytes, and another
 * one, or flows with sequential addresses would share few buckets.  It works
 * on every processor, and collisions depend on the secrets, unlike those of a
 * CRC.
 *
 *    struct flow_cache *fc = flow_cache_create(seed);
 *
 *    hasher = flow_cache_hasher(fc);             (for a burst)
 *    for (...) {
 *        hashes[i] = flow_hash(&hasher, &id);
 *        flow_prefetch(&hasher, hashes[i]);
 *    }
 *
 *    new = flow_cache_unlearned(fc, hashes, slots, n);   (from the host)
 *    for (; new; new &= new - 1) {
 *        i = __builtin_ctzll(new);
 *        flow_cache_learn(fc, hashes[i], slots[i], n_learned++);
 *    }
 *
 *    flow_cache_lookup(fc, hashes, n, slots);            (received)
 *
 *    flow_cache_forget(fc, slot);        (its job has ended)
 *
 * 'pad' of a key and the unused part of its addresses must be 0.  Any number
 * of threads may learn and look up.  All memory is allocated at creation. */

#include <stdint.h>

#include "wire/shim-protocol.h"

#define FLOW_CACHE_MAX_BULK 64
#define FLOW_CACHE_WAYS 8        /* Words of a bucket. */
#define FLOW_CACHE_BUCKETS 32768 /* All are one huge page. */

struct flow_cache;

/* A flow as the hash function gets it: see flow_id_init(), flow_cache_id(). */
struct flow_id {
    uint64_t rest;      /* Protocol, then both ports. */
    uint64_t addresses; /* IPv4: local, then remote, in network byte
                         * order; IPv6: a hash of both. */
} __attribute__((aligned(16)));

/* Returns the id of an IPv4 flow; 'ports' is the local, then the remote port
 * in network byte order. */
static inline struct flow_id
flow_id_init(uint64_t addresses, uint32_t ports, uint8_t protocol)
{
    return (struct flow_id){ (uint64_t) ports << 8 | protocol, addresses };
}

/* The part of the cache for hashing and prefetching, copied for a burst. */
struct flow_hasher {
    uint64_t secrets[2];
    const uint8_t *buckets; /* Each one a cache line. */
};

/* Bits of a hash that are the offset of its bucket in bytes. */
#define FLOW_CACHE_OFFSET \
    ((FLOW_CACHE_BUCKETS - UINT64_C(1)) * FLOW_CACHE_WAYS * sizeof(uint64_t))

static inline uint64_t
flow_multiply(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128) a * b;

    return (uint64_t) product ^ (uint64_t) (product >> 64);
}

static inline uint64_t
flow_hash(const struct flow_hasher *h, const struct flow_id *id)
{
    uint64_t first =
        flow_multiply(id->addresses ^ h->secrets[0], id->rest ^ h->secrets[1]);

    return flow_multiply(first, h->secrets[1]);
}

static inline void
flow_prefetch(const struct flow_hasher *h, uint64_t hash)
{
    __builtin_prefetch(h->buckets + (hash & FLOW_CACHE_OFFSET));
}

struct flow_cache *flow_cache_create(uint64_t seed);
void flow_cache_use_portable(struct flow_cache *);
void flow_cache_destroy(struct flow_cache *);

struct flow_hasher flow_cache_hasher(const struct flow_cache *);
struct flow_id flow_cache_id(const struct flow_cache *,
                             const struct shim_flow_key *);
uint64_t flow_cache_hash(const struct flow_cache *,
                         const struct shim_flow_key *);
void flow_cache_lookup(const struct flow_cache *, const uint64_t *hashes,
                       uint32_t n, uint16_t *slots);
uint64_t flow_cache_unlearned(const struct flow_cache *,
                              const uint64_t *hashes, const uint16_t *slots,
                              uint32_t n);
void flow_cache_learn(struct flow_cache *, uint64_t hash, uint16_t slot,
                      uint32_t chance);
void flow_cache_forget(struct flow_cache *, uint16_t slot);

/* Returns the number of flows of the slot's job beyond its share: those that
 * it has, and those that were not learned or forgotten. */
uint64_t flow_cache_refused(const struct flow_cache *, uint16_t slot);

#endif /* shim/classify/flow-cache.h */
