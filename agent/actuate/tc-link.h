/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TC_LINK_H
#define TC_LINK_H 1

/* The kernel's queues of one interface.
 *
 *
 * Motivation
 * ==========
 *
 * An HTB class a level, with strict priorities but for the share that each
 * keeps, and u32 filters that choose the class by the first three bits of the
 * DSCP, IPv4 and IPv6: by these the levels of a policy differ, so that nothing
 * here depends on the policy.  ARP goes with the control level, and what no
 * filter chooses with the default one.
 *
 * Ours is known by the number of its root.  Another's root, if it is not the
 * one that the kernel gives to each interface, is never touched.
 *
 *
 * Usage
 * =====
 *
 *    error = tc_link_look(rs, "eth0", &plan, &seen);
 *    if (!error && !tc_seen_is_right(&seen, &plan)) {
 *        error = tc_link_write(rs, &seen, &plan);
 *    }
 *    tc_link_remove(rs, "eth0");
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state beside the kernel's.  Calls wait for the kernel, see
 * route-socket.h, and return 0 or a positive errno. */

#include <stdbool.h>
#include <stdint.h>

struct route_socket;

#define TC_LEVELS 8

struct tc_plan {
    uint64_t rate_bps;          /* Of the link, bits per second. */
    uint32_t guard;             /* Of that, for each level: millionths. */
    bool ordered;               /* Otherwise all traffic is of one level. */
};

/* What there is. */
struct tc_seen {
    int ifindex;
    int mtu;
    bool ours;                  /* The root is, */
    bool others;                /* or somebody's. */
    bool link_right;            /* The class of the whole link. */
    unsigned int levels_right;  /* Bit for each level's class, */
    unsigned int queues;        /* and for each that has its queue. */
    unsigned int filters_right; /* Bit for each filter that should be there. */
    unsigned int n_filters;     /* Filters in all. */
};

int tc_link_look(struct route_socket *, const char *iface,
                 const struct tc_plan *, struct tc_seen *);
bool tc_seen_is_right(const struct tc_seen *, const struct tc_plan *);

/* Writes what is not right of what tc_link_look() has seen, EBUSY if the root
 * is another's. */
int tc_link_write(struct route_socket *, const struct tc_seen *,
                  const struct tc_plan *);

/* Gives the interface back, if the root is ours. */
int tc_link_remove(struct route_socket *, const char *iface);

#endif /* agent/actuate/tc-link.h */
