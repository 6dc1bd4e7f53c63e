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
 * A flow of IPv4 takes 16 bytes: a word with ports, protocol, slot and age,
 * and a word with both addresses.  Four of them are a bucket, which is one
 * cache line, and nearly every flow is in the first of its two buckets, so
 * that a lookup costs one access to memory.  A bulk lookup asks for all its
 * lines before it looks at the first.  IPv6 has a table of its own, with four
 * address words a flow.  When both buckets are full, a flow moves to its
 * second bucket to make room: the table can be filled to its maximum, which is
 * half of its entries.  (Close to it a flow may be refused until the threads
 * that look up have paused, see below.)
 *
 * DPDK's rte_hash was slower: in a forwarder with 1024 frames it cost 47
 * cycles a packet where buckets of the key itself cost 25, and with 1 M flows
 * it looked 30 M flows up a second where they did 46 M, in twice the memory.
 * The hash is one 64 by 64 bit multiplication per 16 bytes with secret
 * operands: as fast as the CRC instruction, on every processor, and unlike a
 * CRC, whose collisions do not depend on its seed, not for others to collide.
 *
 *
 * Usage
 * =====
 *
 *    struct flow_table *ft = flow_table_create(16384, seed);
 *    error = flow_table_set(ft, &key, slot);
 *
 *    reader = flow_table_join(ft);               (a forwarding thread)
 *    slot = flow_table_lookup(ft, &key);
 *    flow_table_pause(ft, reader);               (between two bursts)
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
 * One thread changes, lists and ages; any number that joined may look up.  All
 * memory is allocated at creation.
 *
 * Why a lookup is right: a flow is published by writing its address words
 * first and the word with its protocol, which is not 0, last, and withdrawn by
 * writing 0 there, with release order; a lookup reads that word first, with
 * acquire order.  So it can only go wrong if the addresses change after it has
 * read the word.  They do not: a withdrawn entry keeps them until every thread
 * that joined has said, by flow_table_pause(), that it is between two lookups,
 * after the entry was withdrawn.  (This is quiescent-state reclamation: the
 * threads have a time between two bursts anyway, so it costs them one load and
 * one store a burst.)  A thread that sleeps long only delays that the entry is
 * used again.  Slot and protocol are in the same word, so the slot is the
 * flow's.  A flow that moves is published in its second bucket before it is
 * withdrawn from the first, the order in which lookups read them, so it is
 * always found.
 *
 * A lookup writes the age, a byte of its own in the word: at worst it makes an
 * entry that was withdrawn meanwhile look younger. */

#include <stdint.h>

#include "shim/control/protocol.h"

#define FLOW_TABLE_MAX_READERS 32
#define FLOW_TABLE_MAX_BULK 64

struct flow_table;

/* The key of an IPv4 flow, as the table compares it: see flow_id_init(). */
struct flow_id {
    uint64_t rest;              /* Protocol, then both ports. */
    uint64_t addresses;         /* Local, then remote, as in memory. */
} __attribute__((aligned(16)));

/* 'ports' is the local and the remote one as in memory. */
static inline struct flow_id
flow_id_init(uint64_t addresses, uint32_t ports, uint8_t protocol)
{
    return (struct flow_id) { (uint64_t) ports << 8 | protocol, addresses };
}

struct flow_table *flow_table_create(uint32_t max_flows, uint64_t seed);
void flow_table_use_portable(struct flow_table *);
void flow_table_destroy(struct flow_table *);

/* Threads that look up. */
int flow_table_join(struct flow_table *);
void flow_table_leave(struct flow_table *, int reader);
void flow_table_pause(struct flow_table *, int reader);
uint64_t flow_table_hash(const struct flow_table *,
                         const struct shim_flow_key *);
int flow_table_lookup(struct flow_table *, const struct shim_flow_key *);
uint64_t flow_table_lookup_bulk(struct flow_table *, const struct flow_id *,
                                uint32_t n, uint16_t *slots);

/* Any thread. */
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

#endif /* shim/pipeline/flow-table.h */
