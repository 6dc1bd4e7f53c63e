/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_FLOW_TABLE_H
#define SHIM_FLOW_TABLE_H 1

/* The flow table: 5-tuple -> job slot, and whether the flow is control.
 *
 * Forwarding threads look up every packet while the control thread adds and
 * deletes flows.  A lookup must never wait for a change, because the kernel
 * may preempt the control thread in the middle of one.  So there are no locks
 * and no sequence numbers to spin on.
 *
 * A flow is identified by a keyed hash of 64 bits and takes one 64-bit word,
 * which is written atomically, so that nothing has to be reclaimed.  The hash
 * selects a bucket, and the word has the rest of the hash, the job's slot, a
 * bit for flows of its control class, and the flow's age.  A bucket is eight
 * words, one cache line, and nearly every flow is in the first of its two
 * buckets, so that a lookup costs one memory access; a million flows are 16
 * MB.  A bulk lookup prefetches all
 * buckets. When both buckets are full, another flow moves to its second
 * bucket: the table can be filled to its maximum, which is at most half of its
 * words.
 *
 * An unknown flow is taken for a known one with probability 2^-43: the bucket
 * and 46 bits are compared, a word may be in either of its buckets, and a
 * table has at most four flows for each bucket.  At a million new flows a
 * second that is once in a hundred days, and such a flow cannot be chosen
 * without the secrets.  Two known flows are never confused: the control thread
 * has their keys and refuses the second one.
 *
 * The hash is one 64 by 64 bit multiplication for each 16 bytes.  It is as
 * fast as the CRC instruction, works on every processor, and collisions depend
 * on the secrets, unlike those of a CRC.  DPDK's rte_hash was slower: in a
 * forwarder with 1024 frames it cost 47 cycles a packet where buckets of whole
 * keys cost 25; with 1 M flows it did 30 M lookups a second where these did 46
 * M, in twice the memory.
 *
 *    struct flow_table *ft = flow_table_create(16384, seed);
 *    error = flow_table_set(ft, &key, slot);
 *
 *    slot = flow_table_lookup(ft, &key);         (forwarding threads)
 *
 *    hasher = flow_table_hasher(ft);             (for a burst)
 *    for (...) {
 *        hashes[i] = flow_hash(&hasher, &id);
 *        flow_prefetch(&hasher, hashes[i]);
 *    }
 *    unknown = flow_table_lookup_bulk(ft, hashes, n, slots);
 *
 *    n = flow_table_age(ft, now);                (the control thread)
 *
 * 'pad' of a key and the unused part of its addresses must be 0.
 *
 * With a timeout, flow_table_age() deletes flows that were neither set nor
 * looked up for that long, or up to 1/16 longer.  The agent is not notified:
 * the next packet of such a flow is a miss, and the agent sets the flow again.
 *
 * One thread changes, lists and ages; any number may look up.  All memory is
 * allocated at creation; the kernel provides pages as flows are added.
 *
 * A table may instead be a cache that forwarding threads fill with the slots
 * of the packets that pass:
 *
 *    new = flow_table_unlearned(ft, hashes, slots, n);
 *    for (; new; new &= new - 1) {
 *        i = __builtin_ctzll(new);
 *        flow_table_learn(ft, hashes[i], slots[i], n_learned++);
 *    }
 *
 * Any number of threads may do so.  Nothing else changes such a table, which
 * has neither keys nor ages: a full bucket loses one of its flows, and a flow
 * with packets is learned again with the next one.
 *
 * A freed word can be reused at once.  A flow that moves is written to its
 * second bucket before it is removed from the first, with release order, and
 * lookups read the buckets in that order, so it is always found.
 *
 * A lookup writes the age, unless the word has changed meanwhile. */

#include <stdint.h>

#include "wire/shim-protocol.h"

#define FLOW_TABLE_MAX_BULK 64

/* Added to the slot of a flow in its job's control class. */
#define FLOW_CONTROL SHIM_MAX_SLOTS

struct flow_table;

/* A flow as the hash function gets it: see flow_id_init(), flow_table_id(). */
struct flow_id {
    uint64_t rest;              /* Protocol, then both ports. */
    uint64_t addresses;         /* IPv4: local, then remote, in network byte
                                 * order; IPv6: a hash of both. */
} __attribute__((aligned(16)));

/* Returns the id of an IPv4 flow; 'ports' is the local, then the remote port
 * in network byte order. */
static inline struct flow_id
flow_id_init(uint64_t addresses, uint32_t ports, uint8_t protocol)
{
    return (struct flow_id) { (uint64_t) ports << 8 | protocol, addresses };
}

/* The part of the table for hashing and prefetching, copied for a burst. */
struct flow_hasher {
    uint64_t secrets[2];
    const uint8_t *buckets;     /* Each one a cache line. */
    uint64_t mask;              /* Bits of a hash with the bucket's offset. */
};

static inline uint64_t
flow_multiply(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128) a * b;

    return (uint64_t) product ^ (uint64_t) (product >> 64);
}

static inline uint64_t
flow_hash(const struct flow_hasher *h, const struct flow_id *id)
{
    return flow_multiply(id->addresses ^ h->secrets[0],
                         id->rest ^ h->secrets[1]);
}

static inline void
flow_prefetch(const struct flow_hasher *h, uint64_t hash)
{
    __builtin_prefetch(h->buckets + (hash & h->mask));
}

struct flow_table *flow_table_create(uint32_t max_flows, uint64_t seed);
void flow_table_use_portable(struct flow_table *);
void flow_table_destroy(struct flow_table *);

/* Threads that look up. */
struct flow_hasher flow_table_hasher(const struct flow_table *);
struct flow_id flow_table_id(const struct flow_table *,
                             const struct shim_flow_key *);
uint64_t flow_table_hash(const struct flow_table *,
                         const struct shim_flow_key *);
int flow_table_lookup(struct flow_table *, const struct shim_flow_key *);
uint64_t flow_table_lookup_bulk(struct flow_table *, const uint64_t *hashes,
                                uint32_t n, uint16_t *slots);
uint64_t flow_table_unlearned(const struct flow_table *,
                              const uint64_t *hashes, const uint16_t *slots,
                              uint32_t n);
void flow_table_learn(struct flow_table *, uint64_t hash, uint16_t slot,
                      uint32_t chance);

/* Any thread.  flow_table_changes() changes whenever a flow is added or gets
 * another slot; it wraps around. */
uint32_t flow_table_changes(const struct flow_table *);
uint32_t flow_table_count(const struct flow_table *);
uint32_t flow_table_max(const struct flow_table *);

/* The changing thread. */
int flow_table_set(struct flow_table *, const struct shim_flow_key *,
                   uint16_t slot);

static inline int
flow_table_set_flow(struct flow_table *ft, const struct shim_flow *flow)
{
    return flow_table_set(ft, &flow->key,
                          flow->slot | (flow->control ? FLOW_CONTROL : 0));
}

int flow_table_delete(struct flow_table *, const struct shim_flow_key *);
uint32_t flow_table_list(const struct flow_table *, uint64_t *cursor,
                         struct shim_flow *, uint32_t max);
void flow_table_set_timeout(struct flow_table *, uint64_t ns, uint64_t now);
uint32_t flow_table_age(struct flow_table *, uint64_t now);
void flow_table_stats(const struct flow_table *, struct shim_stats *);

#endif /* shim/classify/flow-table.h */
