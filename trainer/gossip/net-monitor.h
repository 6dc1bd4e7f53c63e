/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NET_MONITOR_H
#define NET_MONITOR_H 1

/* What is known of the links between peers, and the policy that follows.
 *
 *
 * Motivation
 * ==========
 *
 * Each peer knows how long it takes to get the weights of those that it asks.
 * One of them collects that of all and makes the policy for all.  A link has
 * two ends: what one finds out counts for the other as well, so that a link
 * that has become slow is found once.
 *
 * What the host's agent foresees of a link counts until there is a
 * measurement, and again where the last one is old.  When the agent's figure
 * becomes another, what was measured before becomes another by as much: agents
 * and pulls measure different things, and what is alike must stay so.
 *
 * A policy is made again when 'every_us' are over or, at once, when a link
 * has become much faster or slower than it was.  It replaces the one before
 * only if all models come together under it (netmax-policy.h); otherwise, and
 * as long as no time is known, all are asked alike.  Times that differ little
 * from the median count as the median.
 *
 *
 * Usage
 * =====
 *
 *    net_monitor_init(&monitor, n, now_us, every_us);
 *    net_monitor_report(&monitor, i, times, compute_s, now_us);
 *    net_monitor_foresee(&monitor, i, times, now_us);    // By i's agent.
 *    if (net_monitor_due(&monitor, now_us)) {
 *        net_monitor_decide(&monitor, present, now_us, &policy);
 *        ...tell everybody...
 *    }
 *
 * Ownership: plain data of the caller; no locks.  Deciding takes some
 * milliseconds among 8 peers. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/gossip/netmax-policy.h"

struct net_monitor {
    int n;
    netmax_matrix link_s;       /* Seconds of a pull; NAN: not known. */
    netmax_matrix foreseen_s;   /* By the first one's agent; NAN: it is
                                 * silent. */
    int64_t known_us[NETMAX_MAX_PEERS][NETMAX_MAX_PEERS];
    double compute_s[NETMAX_MAX_PEERS];
    int64_t every_us, due_us;
    bool surprised;             /* A link is not what it was. */
};

void net_monitor_init(struct net_monitor *, int n, int64_t now_us,
                      int64_t every_us);

/* 'times' of peer 'i' with the others, NAN for those that it knows nothing
 * new of; and the seconds that it computes. */
void net_monitor_report(struct net_monitor *, int i, const float times[],
                        double compute_s, int64_t now_us);

/* What the agent of 'i' says of 'i' and the others, likewise. */
void net_monitor_foresee(struct net_monitor *, int i, const float times[],
                         int64_t now_us);

/* Seconds of a pull between 'i' and 'm' by all that is known, or NAN. */
double net_monitor_link(const struct net_monitor *, int i, int m,
                        int64_t now_us);

bool net_monitor_due(const struct net_monitor *, int64_t now_us);
void net_monitor_decide(struct net_monitor *, const bool present[],
                        int64_t now_us, struct netmax_policy *);

/* Whether 'now' is so different from 'before' that it matters. */
bool net_monitor_surprising(double before, double now);

#endif /* trainer/gossip/net-monitor.h */
