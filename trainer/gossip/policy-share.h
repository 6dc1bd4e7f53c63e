/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POLICY_SHARE_H
#define POLICY_SHARE_H 1

/* Distributes one policy to all peers of netmax.
 *
 * Each peer measures its links, and has an agent that may estimate them.  The
 * present peer with the lowest rank is the monitor (net-monitor.h): the others
 * send it their times each half second, or at once if a link has changed, and
 * it replies with their probabilities.
 *
 * As 'published', for comparisons, reports and policies have the interval
 * --policy-every, and agents are not asked.
 *
 *    policy_share_init(&share, peer, published);
 *    policy_share_run(&share, now_us);           // Before each step.
 *    ...share.p, share.ar; pull_times_add(&share.times, ...)...
 *    policy_share_take(&share, from, &frame, body);
 *    policy_share_gone(&share, i);
 *    policy_share_uninit(&share);
 *
 * Ownership: plain data of a scheme, under the lock of its peer's network. */

#include "trainer/gossip/net-monitor.h"
#include "trainer/gossip/pull-times.h"
#include "trainer/net/mesh.h"

struct agent_links;
struct frame;
struct sync_peer;

struct policy_share {
    struct sync_peer *peer;
    double p[SYNC_MAX_PEERS];   /* Probability of a pull from each peer. */
    double ar;                  /* See netmax-policy.h. */
    struct pull_times times;    /* The scheme adds measurements. */
    int64_t every_us;           /* Interval of reports. */
    int64_t report_us;          /* Time of the next report; the scheme sets 0
                                 * to make the next run report. */
    uint64_t printed;           /* Hash of the avoided links printed last. */

    struct agent_links *agent;  /* NULL outside of a job. */
    int monitor_rank;
    struct net_monitor monitor; /* Used if 'monitor_rank' is this peer. */
};

void policy_share_init(struct policy_share *, struct sync_peer *,
                       bool published);
void policy_share_uninit(struct policy_share *);

void policy_share_run(struct policy_share *, int64_t now_us);

/* Takes PEER_TIMES and PEER_POLICY. */
void policy_share_take(struct policy_share *, int from, const struct frame *,
                       const float *body);
void policy_share_gone(struct policy_share *, int i);

#endif /* trainer/gossip/policy-share.h */
