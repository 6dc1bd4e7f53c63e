/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_EGRESS_H
#define SHIM_EGRESS_H 1

/* From a classified frame to the uplink: who goes first, and when.
 *
 *
 * Motivation
 * ==========
 *
 * The uplink is paced to its capacity, so that frames wait here, where their
 * job's place in the order decides, and not in the network, where it does
 * not.
 *
 *
 * Usage
 * =====
 *
 *    egress_push(e, frame, &verdict);
 *    ...
 *    egress_send(e, now);
 *    ...nothing to do until egress_until_due(e, now)...
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Frames that are pushed belong to the egress, port and slots stay the
 * caller's.  One thread pushes and sends; the control thread sets and reads.
 * Nothing is allocated after the start. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/control/protocol.h"

struct egress;
struct job_slots;
struct port;
struct rte_mbuf;
struct verdict;

struct egress_config {
    struct port *uplink;
    struct job_slots *slots;
    uint64_t rate_bps;          /* Of the uplink. */
    uint32_t mtu;
};

uint32_t egress_pool_packets(uint64_t rate_bps, uint32_t mtu);

struct egress *egress_create(const struct egress_config *);
void egress_destroy(struct egress *);

/* The forwarding thread. */
void egress_push_burst(struct egress *, struct rte_mbuf **,
                       const struct verdict *, uint32_t n);
void egress_push(struct egress *, struct rte_mbuf *, const struct verdict *);
bool egress_send(struct egress *, uint64_t now);
uint64_t egress_until_due(const struct egress *, uint64_t now);

/* The control thread. */
void egress_set_rate(struct egress *, uint64_t bps);
uint64_t egress_rate(const struct egress *);
void egress_set_guard(struct egress *, uint32_t share);

/* Fills in what was counted here of 'stats'. */
void egress_stats(const struct egress *, struct shim_stats *);

#endif /* shim/pipeline/egress.h */
