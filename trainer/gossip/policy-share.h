/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POLICY_SHARE_H
#define POLICY_SHARE_H 1

/* How peers come to have one policy.
 *
 *
 * Motivation
 * ==========
 *
 * Each peer measures its links and has an agent that may foresee them; one of
 * them, the first that is there, is the monitor and decides for all.  This is
 * what goes between: times to the monitor each half second, or at once if a
 * link has changed, and probabilities back.
 *
 *
 * Usage
 * =====
 *
 *    policy_share_init(&share, peer);
 *    policy_share_run(&share, now_us);           // Often.
 *    ...share.p, share.ar; link_times_...(&share.times, ...)...
 *    policy_share_take(&share, from, &frame, body);
 *    policy_share_gone(&share, i);
 *    policy_share_uninit(&share);
 *
 * Ownership: plain data of a scheme, under the lock of its peer's network. */

#include "trainer/gossip/link-times.h"
#include "trainer/gossip/net-monitor.h"
#include "trainer/net/mesh.h"

struct agent_links;
struct frame;
struct sync_peer;

struct policy_share {
    struct sync_peer *peer;
    double p[PEER_NET_MAX];     /* Of asking each peer. */
    double ar;
    struct link_times times;    /* Written by the scheme as well. */
    int64_t report_us;          /* When the next report is due. */
    uint64_t said;              /* Hash of the links that were said to be
                                 * avoided. */

    struct agent_links *agent;  /* NULL: there is none to ask. */
    int monitor_rank;
    struct net_monitor monitor; /* Used where that is this peer. */
};

void policy_share_init(struct policy_share *, struct sync_peer *);
void policy_share_uninit(struct policy_share *);

void policy_share_run(struct policy_share *, int64_t now_us);

/* A link is another than it was: the next run reports it. */
void policy_share_hurry(struct policy_share *);

/* PEER_TIMES and PEER_POLICY. */
void policy_share_take(struct policy_share *, int from, const struct frame *,
                       const float *body);
void policy_share_gone(struct policy_share *, int i);

#endif /* trainer/gossip/policy-share.h */
