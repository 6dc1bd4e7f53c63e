/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ACTUATE_KERNEL_H
#define ACTUATE_KERNEL_H 1

/* Applies the order by a program of the kernel, without a shim.
 *
 * The program at the uplink knows the slot of each packet (identity.h).  This
 * module writes the rows that it reads: DSCP, which switches order by, and
 * priority, the class of HTB that tc.h makes where the operator asks for it.
 * What the kernel does not give: ranks within a level, grants, and a share for
 * control packets.
 *
 * The end of the lease is written too, so that a dead agent's order ends;
 * slots and counters go on, and the next agent finds the names of the jobs in
 * the rows.
 *
 *    actuator = kernel_actuator_create(identity, rate_bps, true, &events,
 *                                      aux);
 *
 * Counters are read from memory that the kernel shares.  'identity' must
 * outlive it. */

#include <stdbool.h>
#include <stdint.h>

struct actuator;
struct actuator_events;
struct identity;

/* 'has_classes': the uplinks have the classes of tc.h.  Without them, the
 * priority of packets is left alone. */
struct actuator *kernel_actuator_create(struct identity *, uint64_t rate_bps,
                                        bool has_classes,
                                        const struct actuator_events *,
                                        void *aux);

#endif /* agent/actuate/bpf/kernel.h */
