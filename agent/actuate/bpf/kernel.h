/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ACTUATE_KERNEL_H
#define ACTUATE_KERNEL_H 1

/* Applies the order by a program of the kernel, without a shim.
 *
 * The program at the uplink knows the slot of each packet (identity.h).  This
 * module writes the rows that it reads, with the DSCP by which switches order,
 * and for each uplink the priority that puts a packet into the queue of its
 * level, where there are such queues (uplink-queues.h).  It makes none: tc.h
 * does, where the operator asks for that.  What the kernel does not give:
 * ranks within a level, grants, and a share for control packets.
 *
 * The end of the lease is written too, so that a dead agent's order ends;
 * slots and counters go on, and the next agent finds the names of the jobs in
 * the rows.
 *
 *    actuator = kernel_actuator_create(identity, &config, &events, aux);
 *
 * Counters are read from memory that the kernel shares.  'identity' and what
 * 'config' points to must outlive it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct actuator;
struct actuator_events;
struct identity;

struct kernel_config {
    char *const *uplinks;
    size_t n_uplinks;
    uint64_t rate_bps; /* Of all uplinks, 0 if unknown. */
};

struct actuator *kernel_actuator_create(struct identity *,
                                        const struct kernel_config *,
                                        const struct actuator_events *,
                                        void *aux);

#endif /* agent/actuate/bpf/kernel.h */
