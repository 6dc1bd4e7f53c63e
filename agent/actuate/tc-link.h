/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TC_LINK_H
#define TC_LINK_H 1

/* Kernel queues of one interface.
 *
 * There is an HTB class for each level, with strict priorities apart from the
 * minimum share of each level, and u32 filters that select the class by the
 * policy's DSCP of each level, for IPv4 and IPv6.  ARP uses the control
 * level, and packets that match no filter the default level.
 *
 * The root qdisc that this module creates is recognised by its handle.  A root
 * that another program has configured is never changed.
 *
 *    error = tc_link_inspect(rs, "eth0", &plan, &state);
 *    if (!error && !tc_state_is_right(&state)) {
 *        error = tc_link_write(rs, &state);
 *    }
 *    tc_link_remove(rs, "eth0");
 *
 * The kernel's queues are configured by netlink and not by the tc program: the
 * agent starts no programs and has dropped the capabilities for it, and it has
 * to read the kernel's state back anyway.
 *
 * No state.  Calls block until the kernel replies, see route-socket.h, and
 * return 0 or a positive errno. */

#include <linux/pkt_sched.h>
#include <stdbool.h>
#include <stdint.h>

struct route_socket;

#define TC_LEVELS 8

struct tc_plan {
    uint64_t rate_bps;          /* Of the link, bits per second. */
    uint32_t min_share;         /* Of the rate, for each level: millionths. */
    bool ordered;               /* False: all traffic uses one level. */
    uint8_t dscps[TC_LEVELS];   /* DSCP of each level, or more than 63 where a
                                 * level has none. */
};

/* Configuration of an interface, compared with a plan. */
struct tc_state {
    const struct tc_plan *plan;
    int ifindex;
    int mtu;
    bool ours;                  /* This module has created the root qdisc. */
    bool others;                /* Another program has configured it. */

    /* Number of classes, queues and filters as planned, and of all filters. */
    unsigned int classes_right, queues_right, filters_right, n_filters;
};

int tc_link_inspect(struct route_socket *, const char *iface,
                    const struct tc_plan *, struct tc_state *);
bool tc_state_is_right(const struct tc_state *);

/* Changes what differs from the plan.  Returns EBUSY if another program has
 * configured the root qdisc. */
int tc_link_write(struct route_socket *, const struct tc_state *);

/* Removes the queues that this module has created, if any. */
int tc_link_remove(struct route_socket *, const char *iface);

/* HTB classes and filters of a plan.  The root is 5363:, its classes are
 * 5363:1 (the link) and 5363:10 to 5363:17 (levels), and the queues of these
 * are 5370: to 5377:. */
#define TC_ROOT (0x5363u << 16)
#define TC_LINK_CLASS (TC_ROOT | 1)
#define TC_LEVEL_CLASS(LEVEL) (TC_ROOT | (0x10 + (LEVEL)))
#define TC_LEVEL_QUEUE(LEVEL) ((0x5370u + (LEVEL)) << 16)

#define TC_CONTROL_LEVEL 0
#define TC_DEFAULT_LEVEL (TC_LEVELS - 1)
#define TC_MIN_RATE_BPS 8000    /* Lowest rate of a class. */

/* Filters: IPv4 and IPv6 for each level, and ARP. */
#define TC_N_FILTERS (2 * TC_LEVELS + 1)

struct tc_filter {
    uint16_t protocol;
    uint32_t mask, value;       /* Match on the first four bytes. */
    int level;
};

/* Stores filter 'i'.  Returns false if the plan has no DSCP for its level. */
bool tc_filter_of(const struct tc_plan *, int i, struct tc_filter *);

/* Parameters of a class. */
struct tc_class {
    uint32_t id, parent;
    uint64_t rate_bps, ceil_bps;
    uint32_t priority;
    uint64_t burst;             /* Bytes, at 'rate_bps'. */
    uint64_t ceil_burst;        /* Bytes, at 'ceil_bps'. */
};

/* Returns the class of a level, or of the link if 'level' is -1, on an
 * interface with this MTU. */
struct tc_class tc_class_of(const struct tc_plan *, int mtu, int level);

/* Returns the class in the format of HTB. */
struct tc_htb_opt tc_class_options(const struct tc_class *);

#endif /* agent/actuate/tc-link.h */
