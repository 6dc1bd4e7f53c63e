/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NET_MONITOR_H
#define NET_MONITOR_H 1

/* Times of all links between peers, and the policy for them.
 *
 * Each peer measures its pulls.  One peer collects the measurements of all and
 * makes the policy for all.  A measurement counts for both directions of its
 * link, so that a slow link is found once.
 *
 * The estimate of a host's agent counts until there is a measurement, and
 * again when the last one is old.  When an estimate changes, the measurement
 * changes by the same factor: agents and pulls measure different quantities,
 * and only changes are comparable.
 *
 * A policy is made again after 'every_us' or, at once, when a link has become
 * much faster or slower.  It is used only if all models converge under it
 * (netmax-policy.h); otherwise, and while no time is known, all peers are
 * pulled from with the same probability.  Times near the median count as the
 * median.
 *
 * As 'published', for comparisons, it has less to do: the time of an iteration
 * counts for its direction only, a policy is made after 'every_us' and at no
 * other time, without agents, and by netmax_policy_published().  A link that
 * has not been measured counts as the mean of the others, which the public
 * text leaves open.
 *
 *    net_monitor_init(&monitor, n, now_us, every_us);
 *    monitor.published = ...;
 *    net_monitor_report(&monitor, i, times, compute_s, now_us);
 *    net_monitor_estimate(&monitor, i, times, now_us);   // By i's agent.
 *    if (net_monitor_due(&monitor, now_us)) {
 *        net_monitor_decide(&monitor, present, now_us, &policy);
 *        ...send it to all...
 *    }
 *
 * Ownership: plain data of the caller; no locks.  Deciding takes some
 * milliseconds for 32 peers, and 10 to 50 ms for 128. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/gossip/netmax-policy.h"

struct net_monitor {
    int n;
    bool published;             /* Set by the owner. */
    netmax_matrix link_s;       /* Seconds of a pull; NAN: not measured. */
    netmax_matrix estimate_s;   /* By the agent of the first index; NAN: no
                                 * estimate. */
    int64_t measured_us[SYNC_MAX_PEERS][SYNC_MAX_PEERS];
    double compute_s[SYNC_MAX_PEERS]; /* Seconds of a gradient. */
    int64_t every_us, due_us;   /* Interval, and time of the next policy. */
    bool changed;               /* A link differs from the last policy's. */
};

void net_monitor_init(struct net_monitor *, int n, int64_t now_us,
                      int64_t every_us);

/* Takes the pull times of peer 'i', NAN for links without a new measurement,
 * and the seconds of its last gradient. */
void net_monitor_report(struct net_monitor *, int i, const float times[],
                        double compute_s, int64_t now_us);

/* Takes the estimates of the agent of 'i', NAN for links without one. */
void net_monitor_estimate(struct net_monitor *, int i, const float times[],
                          int64_t now_us);

/* Returns the seconds of a pull between 'i' and 'm', or NAN. */
double net_monitor_link(const struct net_monitor *, int i, int m,
                        int64_t now_us);

bool net_monitor_due(const struct net_monitor *, int64_t now_us);
void net_monitor_decide(struct net_monitor *, const bool present[],
                        int64_t now_us, struct netmax_policy *);

/* Returns true if 'now' is at least twice or at most half of 'before'. */
bool net_monitor_differs(double before, double now);

#endif /* trainer/gossip/net-monitor.h */
