/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/gossip/policy-share.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "trainer/process/report.h"
#include "trainer/gossip/agent-links.h"
#include "trainer/gossip/peer.h"

#define REPORT_EVERY_US 500000
#define DECIDE_EVERY_US 1000000
#define RARE 0.25               /* Of an even part: a link is avoided. */

/* Whoever is the first that is there is the monitor. */
static void
choose_monitor(struct policy_share *s)
{
    struct sync_peer *peer = s->peer;
    int rank = 0;

    while (rank != peer->rank && !peer_net_present(peer->net, rank)) {
        rank++;
    }
    s->monitor_rank = rank;
}

static void
present(const struct policy_share *s, bool is[])
{
    for (int i = 0; i < s->peer->n; i++) {
        is[i] = i == s->peer->rank || peer_net_present(s->peer->net, i);
    }
}

static void
use_uniform(struct policy_share *s)
{
    struct netmax_policy policy;
    bool is[PEER_NET_MAX];

    present(s, is);
    netmax_policy_uniform(s->peer->n, is, &policy);
    memcpy(s->p, policy.p[s->peer->rank], s->peer->n * sizeof *s->p);
    s->ar = policy.ar;
}

/* What a pull of all weights takes by what the agent knows of each link. */
static void
foresee(struct policy_share *s, float times[])
{
    struct sync_peer *peer = s->peer;
    double bits = peer->n_parameters * sizeof(float) * 8.0;

    for (int i = 0; i < peer->n; i++) {
        char address[64];

        times[i] = NAN;
        if (s->agent && peer_net_present(peer->net, i)) {
            peer_net_address(peer->net, i, address, sizeof address);
            times[i] = bits / agent_links_bps(s->agent, address);
        }
    }
}

static void
take_times(struct policy_share *s, int from, const float *times)
{
    int64_t now = clock_monotonic_us();

    net_monitor_foresee(&s->monitor, from, times + s->peer->n, now);
    net_monitor_report(&s->monitor, from, times, times[from], now);
}

/* Tells the monitor what has been measured and is foreseen. */
static void
report(struct policy_share *s)
{
    struct sync_peer *peer = s->peer;
    float times[2 * PEER_NET_MAX];

    link_times_news(&s->times, times);
    times[peer->rank] = peer->compute_s;
    foresee(s, times + peer->n);
    if (s->monitor_rank == peer->rank) {
        take_times(s, peer->rank, times);
    } else {
        sync_peer_tell(peer, s->monitor_rank, PEER_TIMES, 0, times,
                       2 * peer->n);
    }
}

static void
use_policy(struct policy_share *s, const struct netmax_policy *policy)
{
    struct sync_peer *peer = s->peer;

    for (int i = 0; i < peer->n; i++) {
        float row[PEER_NET_MAX + 1];

        for (int m = 0; m < peer->n; m++) {
            row[m] = policy->p[i][m];
        }
        row[peer->n] = policy->ar;
        if (i == peer->rank) {
            memcpy(s->p, policy->p[i], peer->n * sizeof *s->p);
            s->ar = policy->ar;
        } else {
            sync_peer_tell(peer, i, PEER_POLICY, 0, row, peer->n + 1);
        }
    }
}

/* Says which links are avoided, whenever it is others than before. */
static void
say_policy(struct policy_share *s, const struct netmax_policy *policy,
           const bool is[])
{
    int n = s->peer->n, count = 0, pairs[PEER_NET_MAX * PEER_NET_MAX][2];
    uint64_t hash = 0;

    for (int i = 0; i < n; i++) {
        for (int m = 0; m < i; m++) {
            if (is[i] && is[m]
                && policy->p[i][m] + policy->p[m][i] < RARE * 2 / n) {
                pairs[count][0] = m;
                pairs[count++][1] = i;
                hash = hash * 1000003 + i * PEER_NET_MAX + m;
            }
        }
    }
    if (hash != s->said) {
        s->said = hash;
        report_policy(policy->lambda2, pairs, count);
    }
}

static void
decide(struct policy_share *s, int64_t now)
{
    struct netmax_policy policy;
    bool is[PEER_NET_MAX];

    present(s, is);
    net_monitor_decide(&s->monitor, is, now, &policy);
    use_policy(s, &policy);
    say_policy(s, &policy, is);
}

void
policy_share_init(struct policy_share *s, struct sync_peer *peer)
{
    int64_t now = clock_monotonic_us();

    s->peer = peer;
    s->report_us = now + REPORT_EVERY_US;
    s->said = 0;
    link_times_init(&s->times, peer->n, now);
    net_monitor_init(&s->monitor, peer->n, now, DECIDE_EVERY_US);
    s->agent = agent_links_create();
    choose_monitor(s);
    use_uniform(s);
}

void
policy_share_uninit(struct policy_share *s)
{
    agent_links_destroy(s->agent);
}

void
policy_share_run(struct policy_share *s, int64_t now)
{
    if (now >= s->report_us) {
        s->report_us = now + REPORT_EVERY_US;
        report(s);
    }
    if (s->monitor_rank == s->peer->rank
        && net_monitor_due(&s->monitor, now)) {
        decide(s, now);
    }
}

void
policy_share_hurry(struct policy_share *s)
{
    s->report_us = 0;
}

static void
take_policy(struct policy_share *s, int from, const struct frame *frame,
            const float *body)
{
    if (from == s->monitor_rank && frame->peer.n == s->peer->n + 1) {
        for (int i = 0; i < s->peer->n; i++) {
            s->p[i] = body[i];
        }
        s->ar = body[s->peer->n];
    }
}

void
policy_share_take(struct policy_share *s, int from, const struct frame *frame,
                  const float *body)
{
    if (frame->peer.message == PEER_POLICY) {
        take_policy(s, from, frame, body);
    } else if (frame->peer.n == 2 * s->peer->n) {
        take_times(s, from, body);
    }
}

void
policy_share_gone(struct policy_share *s, int i)
{
    link_times_forget(&s->times, i);
    choose_monitor(s);
    use_uniform(s);
}
