/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TC_LINK_H
#define TC_LINK_H 1

/* Kernel queues of one interface.
 *
 *
 * Motivation
 * ==========
 *
 * There is an HTB class for each level, with strict priorities apart from the
 * minimum share of each level, and u32 filters that select the class by the
 * first three bits of the DSCP, for IPv4 and IPv6.  ARP uses the control
 * level, and packets that match no filter the default level.
 *
 * The root qdisc that this module creates is recognised by its handle.  A root
 * that another program has configured is never changed.
 *
 *
 * Usage
 * =====
 *
 *    error = tc_link_inspect(rs, "eth0", &plan, &state);
 *    if (!error && !tc_state_is_right(&state, &plan)) {
 *        error = tc_link_write(rs, &state, &plan);
 *    }
 *    tc_link_remove(rs, "eth0");
 *
 *
 * Decisions
 * =========
 *
 * The kernel's queues are configured by netlink and not by the tc program: the
 * agent starts no programs and has dropped the capabilities for it, and it has
 * to read the kernel's state back anyway.  Classes match the first three bits
 * of the DSCP, in which all levels differ, so nothing here depends on a
 * policy.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state.  Calls block until the kernel replies, see route-socket.h, and
 * return 0 or a positive errno. */

#include <stdbool.h>
#include <stdint.h>

struct route_socket;

#define TC_LEVELS 8

struct tc_plan {
    uint64_t rate_bps;          /* Of the link, bits per second. */
    uint32_t min_share;         /* Of the rate, for each level: millionths. */
    bool ordered;               /* False: all traffic uses one level. */
};

/* Configuration of an interface, compared with a plan. */
struct tc_state {
    int ifindex;
    int mtu;
    bool ours;                  /* This module has created the root qdisc. */
    bool others;                /* Another program has configured it. */
    bool link_right;            /* The class of the link is as planned. */
    unsigned int levels_right;  /* Bit for each level's class as planned. */
    unsigned int queues;        /* Bit for each level that has its queue. */
    unsigned int filters_right; /* Bit for each filter as planned. */
    unsigned int n_filters;     /* Number of all filters. */
};

int tc_link_inspect(struct route_socket *, const char *iface,
                 const struct tc_plan *, struct tc_state *);
bool tc_state_is_right(const struct tc_state *, const struct tc_plan *);

/* Changes what differs from the plan.  Returns EBUSY if another program has
 * configured the root qdisc. */
int tc_link_write(struct route_socket *, const struct tc_state *,
                  const struct tc_plan *);

/* Removes the queues that this module has created, if any. */
int tc_link_remove(struct route_socket *, const char *iface);

#endif /* agent/actuate/tc-link.h */
