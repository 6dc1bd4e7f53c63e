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
 * There is an HTB class for each level, with strict priorities apart from the
 * minimum share of each level, and u32 filters that select the class by the
 * policy's DSCP of each level, for IPv4 and IPv6.  ARP uses the control
 * level, and packets that match no filter the default level.  The root qdisc
 * that this module creates is recognised by its handle.  A root that another
 * program has configured is never changed.
 *
 * The kernel's queues are configured by netlink and not by the tc program: the
 * agent starts no programs and has dropped the capabilities for it, and it has
 * to read the kernel's state back anyway.
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

#include <linux/pkt_sched.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/shim-protocol.h"

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
            const uint8_t dscps[SHIM_N_LEVELS]);

/* Returns an array of {"iface", "rate_bps", "state" ("in sync", "failed"),
 * "reason"}. */
struct json *tc_to_json(const struct tc *);

/* What an interface gets, for tests. */

struct tc_plan {
    uint64_t rate_bps;  /* Of the link, bits per second. */
    uint32_t min_share; /* Of the rate, for each level: millionths. */
    bool ordered;       /* False: all traffic uses one level. */
    uint8_t dscps[SHIM_N_LEVELS]; /* DSCP of each level, or more than 63 where
                                   * a level has none. */
};

/* HTB classes and filters of a plan.  The root is 5363:, its classes are
 * 5363:1 (the link) and 5363:10 to 5363:17 (levels), and the queues of these
 * are 5370: to 5377:. */
#define TC_ROOT (0x5363u << 16)
#define TC_LINK_CLASS (TC_ROOT | 1)
#define TC_LEVEL_CLASS(LEVEL) (TC_ROOT | (0x10 + (LEVEL)))
#define TC_LEVEL_QUEUE(LEVEL) ((0x5370u + (LEVEL)) << 16)

#define TC_MIN_RATE_BPS 8000 /* Lowest rate of a class. */

/* Filters: IPv4 and IPv6 for each level, and ARP. */
#define TC_N_FILTERS (2 * SHIM_N_LEVELS + 1)

struct tc_filter {
    uint16_t protocol;
    uint32_t mask, value; /* Match on the first four bytes. */
    int level;
};

/* Stores filter 'i'.  Returns false if the plan has no DSCP for its level. */
bool tc_filter_of(const struct tc_plan *, int i, struct tc_filter *);

/* Parameters of a class. */
struct tc_class {
    uint32_t id, parent;
    uint64_t rate_bps, ceil_bps;
    uint32_t priority;
    uint64_t burst;      /* Bytes, at 'rate_bps'. */
    uint64_t ceil_burst; /* Bytes, at 'ceil_bps'. */
};

/* Returns the class of a level, or of the link if 'level' is -1, on an
 * interface with this MTU. */
struct tc_class tc_class_of(const struct tc_plan *, int mtu, int level);

/* Returns the class in the format of HTB. */
struct tc_htb_opt tc_class_options(const struct tc_class *);

#endif /* agent/actuate/tc.h */
