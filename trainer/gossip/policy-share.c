/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/gossip/policy-share.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "trainer/gossip/agent-links.h"
#include "trainer/gossip/peer.h"
#include "trainer/process/options.h"
#include "trainer/process/report.h"

#define REPORT_EVERY_US 500000
#define DECIDE_EVERY_US 1000000
#define RARE 0.25               /* Part of an even probability: avoided. */

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
find_present(const struct policy_share *s, bool is[])
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

    find_present(s, is);
    netmax_policy_uniform(s->peer->n, is, &policy);
    memcpy(s->p, policy.p[s->peer->rank], s->peer->n * sizeof *s->p);
    s->ar = policy.ar;
}

/* Stores the seconds of a pull of all weights, as the agent estimates each
 * link. */
static void
estimate_times(struct policy_share *s, float times[])
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

    net_monitor_estimate(&s->monitor, from, times + s->peer->n, now);
    net_monitor_report(&s->monitor, from, times, times[from], now);
}

/* Sends measurements and estimates to the monitor. */
static void
send_report(struct policy_share *s)
{
    struct sync_peer *peer = s->peer;
    float times[2 * PEER_NET_MAX];

    pull_times_report(&s->times, times);
    times[peer->rank] = peer->compute_s;
    estimate_times(s, times + peer->n);
    if (s->monitor_rank == peer->rank) {
        take_times(s, peer->rank, times);
    } else {
        sync_peer_send_floats(peer, s->monitor_rank, PEER_TIMES, 0, times,
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
            sync_peer_send_floats(peer, i, PEER_POLICY, 0, row, peer->n + 1);
        }
    }
}

/* Prints the links that the policy avoids, if they have changed. */
static void
print_policy(struct policy_share *s, const struct netmax_policy *policy,
             const bool is[])
{
    int n = s->peer->n, count = 0, pairs[SYNC_MAX_PEERS * SYNC_MAX_PEERS][2];
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
    if (hash != s->printed) {
        s->printed = hash;
        report_policy(policy->lambda2, pairs, count);
    }
}

static void
make_policy(struct policy_share *s, int64_t now)
{
    struct netmax_policy policy;
    bool is[PEER_NET_MAX];

    find_present(s, is);
    net_monitor_decide(&s->monitor, is, now, &policy);
    use_policy(s, &policy);
    print_policy(s, &policy, is);
}

void
policy_share_init(struct policy_share *s, struct sync_peer *peer,
                  bool published)
{
    int64_t now = clock_monotonic_us();
    int64_t published_us = peer->o->policy_every * 1e6;

    s->peer = peer;
    s->every_us = published ? published_us : REPORT_EVERY_US;
    s->report_us = now + s->every_us;
    pull_times_init(&s->times, peer->n, now);
    net_monitor_init(&s->monitor, peer->n, now,
                     published ? published_us : DECIDE_EVERY_US);
    s->monitor.published = published;
    s->agent = published ? NULL : agent_links_create();
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
        s->report_us = now + s->every_us;
        send_report(s);
    }
    if (s->monitor_rank == s->peer->rank
        && net_monitor_due(&s->monitor, now)) {
        make_policy(s, now);
    }
}

void
policy_share_take(struct policy_share *s, int from, const struct frame *frame,
                  const float *body)
{
    int n = s->peer->n;

    if (frame->peer.message == PEER_TIMES && frame->peer.n == 2 * n) {
        take_times(s, from, body);
    } else if (frame->peer.message == PEER_POLICY && frame->peer.n == n + 1
               && from == s->monitor_rank) {
        for (int i = 0; i < n; i++) {
            s->p[i] = body[i];
        }
        s->ar = body[n];
    }
}

void
policy_share_gone(struct policy_share *s, int i)
{
    pull_times_forget(&s->times, i);
    choose_monitor(s);
    use_uniform(s);
}
