/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CONGESTION_H
#define SHIM_CONGESTION_H 1

/* Connects congestion control (shim/cc/) to the pipeline.
 *
 * shim/cc/ knows bytes, flows and rates, but no packet buffers, so that tests
 * and fuzzers need no DPDK.  This module passes it the frames of a burst,
 * moves the start of frames as it requests, applies its rates to the queues of
 * the egress, and sends its messages as packets.
 *
 *    c = congestion_create(&config, egress);
 *    congestion_from_host(c, frames, packets, verdicts, n, now);
 *    n = congestion_from_uplink(c, frames, packets, slots, n, now);
 *    cc_poll(congestion_cc(c), now);
 *
 * The egress stays the caller's.  One thread, that of the egress. */

#include <stdint.h>

struct cc;
struct cc_config;
struct congestion;
struct egress;
struct packet;
struct rte_mbuf;
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

/* For cc_poll() and others. */
struct cc *congestion_cc(struct congestion *);

#endif /* shim/loop/congestion.h */
