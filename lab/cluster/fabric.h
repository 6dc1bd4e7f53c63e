/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_FABRIC_H
#define LAB_FABRIC_H 1

/* The hosts' namespaces and links, and the switch between them.
 *
 *
 * Motivation
 * ==========
 *
 *    host h0              node n0               fabric
 *    eth0 ---- veth ---- host  shim  uplink ---- veth ---- p0 -+
 *                                                              +- bridge br0
 *    eth0 ---- veth ---- host  shim  uplink ---- veth ---- p1 -+
 *
 * Two shims in one namespace would interfere, so each has a node namespace of
 * its own.  The fabric has its own namespace because a namespace can have only
 * one userspace datapath.  A data plane reads raw frames, so all offloads that
 * leave a checksum or a segment unfinished are disabled.
 *
 *
 * Usage
 * =====
 *
 *    error = fabric_create(plan);          // Namespaces, links, rates.
 *    error = daemons_switch(daemons);      // Unless the fabric is a bridge.
 *    error = fabric_join(plan);            // The ports into the bridge.
 *    fabric_destroy(plan);
 *
 * fabric_destroy() also removes the leftovers of an earlier lab of this
 * name. */

#include <stddef.h>
#include <stdint.h>

#include "lab/cluster/plan.h"

char *fabric_create(const struct plan *);
char *fabric_join(const struct plan *);
void fabric_destroy(const struct plan *);

/* Interface counters of the fabric's ports. */
struct fabric_counters {
    uint64_t up_bytes;          /* From the host into the fabric. */
    uint64_t down_bytes;        /* From the fabric to the host. */
};

/* Opens the counters for fabric_counters_read().  Returns a file descriptor or
 * a negative errno value. */
int fabric_counters_open(const struct plan *);

/* Fills 'counters' (plan->n_hosts elements); returns 0 or an errno value. */
int fabric_counters_read(const struct plan *, int fd,
                         struct fabric_counters *counters);

/* Stores the bytes sent by all ports of the fabric, by level. */
char *fabric_level_bytes(const struct plan *, uint64_t bytes[8]);

#endif /* lab/cluster/fabric.h */
