/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CONGESTION_H
#define SHIM_CONGESTION_H 1

/* Congestion control in the path of bursts.
 *
 *
 * Motivation
 * ==========
 *
 * shim/cc/ knows bytes, flows and rates, but no packet buffers, so that tests
 * and fuzzers need no DPDK.  This gives it the frames of a burst, follows
 * where it moved their beginnings, gives its rates to the egress's queues, and
 * makes packets of its messages.
 *
 *
 * Usage
 * =====
 *
 *    c = congestion_create(&config, egress);
 *    congestion_from_host(c, frames, packets, verdicts, n, now);
 *    n = congestion_from_uplink(c, frames, packets, slots, n, now);
 *    congestion_poll(c, now);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The egress stays the caller's.  One thread, that of the egress, but for the
 * last two functions, which are the control thread's. */

#include <stddef.h>
#include <stdint.h>

struct cc_config;
struct congestion;
struct egress;
struct packet;
struct rte_mbuf;
struct shim_congestion;
struct shim_stats;
struct verdict;

/* The members of the configuration that are about the egress are filled in
 * here.  Returns NULL without memory. */
struct congestion *congestion_create(const struct cc_config *,
                                     struct egress *);
void congestion_destroy(struct congestion *);

/* 'packets' say where the frames' bytes are, before and after. */
void congestion_from_host(struct congestion *, struct rte_mbuf **frames,
                          struct packet *packets, struct verdict *,
                          uint32_t n, uint64_t now);

/* Frees the frames that were meant for us.  Returns how many are left, first
 * in all three arrays. */
uint32_t congestion_from_uplink(struct congestion *, struct rte_mbuf **frames,
                                struct packet *packets, uint16_t *slots,
                                uint32_t n, uint64_t now);
void congestion_poll(struct congestion *, uint64_t now);

/* See cc_save() and cc_restore(). */
size_t congestion_save(const struct congestion *, void *body);
void congestion_restore(struct congestion *, const void *body, uint64_t now);

void congestion_set_law(struct congestion *, const struct shim_congestion *);
void congestion_stats(const struct congestion *, struct shim_stats *);

#endif /* shim/loop/congestion.h */
