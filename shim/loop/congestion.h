/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CONGESTION_H
#define SHIM_CONGESTION_H 1

/* Connects congestion control (shim/cc/) to the pipeline.
 *
 *
 * Motivation
 * ==========
 *
 * shim/cc/ knows bytes, flows and rates, but no packet buffers, so that tests
 * and fuzzers need no DPDK.  This module passes it the frames of a burst,
 * moves the start of frames as it requests, applies its rates to the queues of
 * the egress, and sends its messages as packets.
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
 * The egress stays the caller's.  One thread, that of the egress, except for
 * the last two functions, which are for the control thread. */

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

/* Sets the callbacks of the configuration.  Returns NULL without memory. */
struct congestion *congestion_create(const struct cc_config *,
                                     struct egress *);
void congestion_destroy(struct congestion *);

/* 'packets' have the bytes of 'frames', and are updated. */
void congestion_from_host(struct congestion *, struct rte_mbuf **frames,
                          struct packet *packets, struct verdict *,
                          uint32_t n, uint64_t now);

/* Removes and frees messages of congestion control.  Returns how many frames
 * are left in all three arrays. */
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
