/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_FLOW_TABLE_H
#define SHIM_FLOW_TABLE_H 1

/* 5-tuple -> job slot.
 *
 *
 * Motivation
 * ==========
 *
 * Forwarding threads look up every packet while the control thread adds and
 * deletes flows.  They must never wait for it, since the kernel may take it
 * off its CPU in the middle of a change, so there are no locks and no sequence
 * numbers to spin on.
 *
 * A flow is known by a hash of 64 bits with secret operands, and takes one
 * word: a bucket's number is one part of the hash, and the word has the other,
 * with the job's slot and the flow's age.  Eight words are a bucket, which is
 * one cache line, and nearly every flow is in the first of its two buckets, so
 * that a lookup costs one access to memory; a million flows are 16 MB.  Who
 * looks up many asks for all their lines before.  When both buckets are full,
 * a flow moves to its second bucket to make room: the table can be filled to
 * its maximum, which is at most half of its words.
 *
 * What that means for who is known: of new flows, one in 2^43 is taken for
 * another and has its place in the order until it ends.  (A bucket's number
 * and 46 bits are compared, a word is found from either of its buckets, and a
 * table has at most four flows for each bucket.) At a million new flows a
 * second, all the time, that is once in a hundred days; nobody who does not
 * know the secrets can choose such a flow.  No two flows that were set are
 * mixed up: the changing thread has their keys, and refuses the second.
 *
 * The hash is one 64 by 64 bit multiplication per 16 bytes: as fast as the CRC
 * instruction, on every processor, and unlike a CRC, whose collisions do not
 * depend on its seed, not for others to collide.  DPDK's rte_hash was slower:
 * in a forwarder with 1024 frames it cost 47 cycles a packet where buckets of
 * whole keys cost 25, and with 1 M flows it looked 30 M flows up a second
 * where they did 46 M, in twice the memory.
 *
 *
 * Usage
 * =====
 *
 *    struct flow_table *ft = flow_table_create(16384, seed);
 *    error = flow_table_set(ft, &key, slot);
 *
 *    slot = flow_table_lookup(ft, &key);         (forwarding threads)
 *
 *    hasher = flow_table_hasher(ft);             (the same for a burst)
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
 *
 * Ageing
 * ======
 *
 * With a time-out, flow_table_age() deletes flows that were neither set nor
 * looked up for that long, at most 1/16 of it longer.  Nobody is told: when
 * such a flow has a packet after all, it is a miss like that of a new one, and
 * the agent sets it again.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * One thread changes, lists and ages; any number may look up.  All memory is
 * allocated at creation, and used as flows come.
 *
 * A lookup is right since all that it reads of a flow is one word, which is
 * written at once.  So nothing is reclaimed either: a word that is free may be
 * another flow's at once.  A flow that moves is written to its second bucket
 * before it is taken out of the first, with release order, and lookups read
 * them in that order, so it is always found.
 *
 * A lookup writes the age, a byte of its own in the word: at worst it makes
 * another flow look younger, or leaves an age in a word that is free. */

#include <stdint.h>

#include "wire/shim-protocol.h"

#define FLOW_TABLE_MAX_BULK 64

struct flow_table;

/* A flow as the table hashes it: see flow_id_init() and flow_table_id(). */
struct flow_id {
    uint64_t rest;              /* Protocol, then both ports. */
    uint64_t addresses;         /* Of IPv4: local, then remote, as in
                                 * memory. */
} __attribute__((aligned(16)));

/* Of a flow of IPv4; 'ports' is the local and the remote one as in memory. */
static inline struct flow_id
flow_id_init(uint64_t addresses, uint32_t ports, uint8_t protocol)
{
    return (struct flow_id) { (uint64_t) ports << 8 | protocol, addresses };
}

/* What turns flows into hashes, and knows their lines: a copy to have at hand
 * for a burst. */
struct flow_hasher {
    uint64_t secrets[2];
    const uint8_t *buckets;     /* Each one a line of memory... */
    uint64_t mask;              /* ...at an offset of these bits of a hash. */
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

/* Asks for the line in which the lookup of 'hash' will begin. */
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

/* Any thread.  flow_table_changes() has changed when a lookup finds a flow, or
 * another slot for one, that it did not find before; it runs over. */
uint32_t flow_table_changes(const struct flow_table *);
uint32_t flow_table_count(const struct flow_table *);
uint32_t flow_table_max(const struct flow_table *);

/* The changing thread. */
int flow_table_set(struct flow_table *, const struct shim_flow_key *,
                   uint16_t slot);
int flow_table_delete(struct flow_table *, const struct shim_flow_key *);
uint32_t flow_table_list(const struct flow_table *, uint64_t *cursor,
                         struct shim_flow *, uint32_t max);
void flow_table_set_timeout(struct flow_table *, uint64_t ns, uint64_t now);
uint32_t flow_table_age(struct flow_table *, uint64_t now);
uint64_t flow_table_n_refused(const struct flow_table *);
uint64_t flow_table_n_aged(const struct flow_table *);

#endif /* shim/classify/flow-table.h */
