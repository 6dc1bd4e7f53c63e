/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TC_H
#define TC_H 1

/* Keeps the kernel's queues of interfaces as the order requires.
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
 *    error = tc_iface_parse("eth0:25Gbit", &iface);
 *    tc = tc_create(ifaces, n);
 *    tc_set(tc, time_msec() + 10000, share, dscps);
 *    tc_run(tc);
 *    tc_wait(tc);
 *
 * Arguments are copied.  Main thread only.  tc_run() blocks until the kernel
 * replies. */

#include <net/if.h>
#include <stddef.h>
#include <stdint.h>

struct json;
struct tc;

/* An interface and the rate of its link, bit/s. */
struct tc_iface {
    char name[IFNAMSIZ];
    uint64_t rate_bps;
    int error; /* Of the last check, by tc.c. */
};

/* Parses "IFACE:RATE".  Returns NULL, or a message that the caller frees. */
char *tc_iface_parse(const char *text, struct tc_iface *);

/* Manages the queues of 'n' interfaces, which may be 0. */
struct tc *tc_create(const struct tc_iface *, size_t n);
void tc_destroy(struct tc *);

void tc_run(struct tc *);
void tc_wait(const struct tc *);

/* Sets the end of the lease and the minimum share, as in struct
 * actuator_wanted, and the DSCP of each level; a value above 63 is of no
 * level. */
void tc_set(struct tc *, long long until, uint32_t min_share,
            const uint8_t dscps[8]);

/* Returns an array of {"iface", "rate_bps", "state" ("in sync", "failed"),
 * "reason"}. */
struct json *tc_to_json(const struct tc *);

#endif /* agent/actuate/tc.h */
