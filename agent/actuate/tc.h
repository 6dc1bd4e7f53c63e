/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TC_H
#define TC_H 1

/* Actuator for the kernel's queues of interfaces.
 *
 *
 * Motivation
 * ==========
 *
 * A shim orders what its host sends.  A host without a shim, or a Linux
 * machine that forwards traffic of others, uses the kernel's queues, by level
 * instead of by rank, as a switch does.  Packets are marked elsewhere: by a
 * shim, or by the job itself.
 *
 * Once a second the configuration of each interface is compared with the plan
 * and corrected.  While no order is in force, all traffic uses one level.  An
 * agent that crashes leaves the queues in place for the next one; an agent
 * that ends removes them.
 *
 *
 * Usage
 * =====
 *
 *    error = tc_iface_parse("eth0:25Gbit", &iface);
 *    actuator = tc_actuator_create(ifaces, n);
 *
 * The value of the actuator in the agent's status is an array of {"iface",
 * "rate_bps", "state" ("in sync", "failed"), "reason"}.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * See actuator.h.  run() blocks until the kernel replies. */

#include <net/if.h>
#include <stddef.h>
#include <stdint.h>

struct actuator;

/* An interface and the rate of its link, bit/s. */
struct tc_iface {
    char name[IFNAMSIZ];
    uint64_t rate_bps;
};

/* Parses "IFACE:RATE".  Returns NULL, or a message that the caller frees. */
char *tc_iface_parse(const char *text, struct tc_iface *);

/* Manages the queues of 'n' interfaces, which may be 0. */
struct actuator *tc_actuator_create(const struct tc_iface *, size_t n);

#endif /* agent/actuate/tc.h */
