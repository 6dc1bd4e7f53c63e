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
 * Two shims in one namespace disturb each other, so each has a node of its
 * own; the fabric's is separate because there can be only one userspace
 * datapath in a namespace.  Frames cross a data plane that reads them raw, so
 * every offload that would leave a checksum or a segment unfinished is off.
 *
 *
 * Usage
 * =====
 *
 *    error = fabric_create(plan);          // Namespaces, links, rates.
 *    ...start Open vSwitch by fabric_switch_programs()...
 *    error = fabric_join(plan);            // The ports into the bridge.
 *    fabric_destroy(plan);
 *
 * fabric_destroy() also removes what an earlier lab of the same name left. */

#include <stddef.h>
#include <stdint.h>

#include "lab/cluster/plan.h"

char *fabric_create(const struct plan *);
char *fabric_join(const struct plan *);
void fabric_destroy(const struct plan *);

/* Interface counters of the fabric's ports, read without entering it. */
struct fabric_counters {
    uint64_t up_bytes;          /* From the host into the fabric. */
    uint64_t down_bytes;        /* From the fabric to the host. */
};

/* Opens what fabric_counters_read() reads: a file descriptor or a negative
 * errno value. */
int fabric_counters_open(const struct plan *);

/* Fills 'counters' (plan->n_hosts elements); returns 0 or an errno value. */
int fabric_counters_read(const struct plan *, int fd,
                         struct fabric_counters *counters);

/* Bytes that left the fabric's ports by level, all ports together. */
char *fabric_level_bytes(const struct plan *, uint64_t bytes[8]);

#endif /* lab/cluster/fabric.h */
