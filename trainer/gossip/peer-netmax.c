/* SPDX-License-Identifier: Apache-2.0 */

/* NetMax: while a peer computes its gradient, it pulls the model of another
 * peer that the policy chooses; then it moves towards that model, and steps.
 *
 * "netmax-published" is the published method (Zhou et al., ICDE 2021), for
 * comparisons: consensus SGD steps first and then moves, by c = ar / p,
 * towards the model that it pulled meanwhile; it waits for each pull as long
 * as it takes; the moving average of its iterations' times goes to the network
 * monitor each --policy-every seconds, which then makes a policy
 * (net-monitor.h, netmax-policy.h).  If a peer dies, the others go on without
 * it, and if it was the monitor, with another one; the paper does not treat
 * that.
 *
 * "netmax" is ours.  Its differences to the published method:
 *
 * - The move comes before the step: the pulled model is from before the other
 *   peer's step, and half of the way back to it would undo half of ours.
 * - The pulled model is compared with our weights of half a step ago.  We have
 *   just stepped when we ask, and the other peer has been computing for half
 *   of its step on average; without this all peers slow each other down.
 * - A step waits for a pull only if that is about to end.  Otherwise the pull
 *   goes on while the peer steps, and no other begins; the move follows when
 *   it has ended.  The pulled model is as old as the middle of the pull, so it
 *   is compared with our weights of then.
 * - A pull that takes several times the usual time is aborted.
 * - Links that the policy avoids, and links of aborted pulls, are probed by a
 *   pull of a few weights for which the step does not wait.
 * - A change in the time of a link is reported at once.
 * - If the pulled model is far from its own, a peer moves half of the way,
 *   whatever the policy is. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/gossip/agent-links.h"
#include "trainer/gossip/net-monitor.h"
#include "trainer/gossip/peer.h"
#include "trainer/gossip/pull-times.h"
#include "trainer/net/frame.h"
#include "trainer/net/mesh.h"
#include "trainer/process/options.h"
#include "trainer/process/report.h"

#define ABORT_RATIO 3           /* Usual times until a pull is aborted. */
#define PROBE 8192              /* Floats of a probe. */
#define PROBE_EVERY_US 1000000  /* Interval of probes of an unused link. */
#define SUSPECT_US 250000       /* Longest probe of a suspect link. */
#define LAG 0.5f                /* Age of the pulled model, steps. */
#define PATIENCE 0.5            /* Longest wait for a pull, gradients. */
#define FAR 0.25                /* Part of the squared norm of the weights. */
#define CHUNK 2048              /* Floats of a message. */
#define MAX_SLOW 50             /* Largest extrapolation of an aborted pull. */
#define REPORT_EVERY_US 500000
#define DECIDE_EVERY_US 1000000
#define RARE 0.25 /* Part of an even probability: avoided. */

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
 * The lock of the peer's network guards it. */
struct policy_share {
    struct sync_peer *peer;
    double p[SYNC_MAX_PEERS]; /* Probability of a pull from each peer. */
    double ar;                /* See netmax-policy.h. */
    struct pull_times times;  /* The scheme adds measurements. */
    int64_t every_us;         /* Interval of reports. */
    int64_t report_us;        /* Time of the next report; the scheme sets 0
                               * to make the next run report. */
    uint64_t printed;         /* Hash of the avoided links printed last. */

    struct agent_links *agent; /* NULL outside of a job. */
    int monitor_rank;
    struct net_monitor monitor; /* Used if 'monitor_rank' is this peer. */
};

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

static void
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

static void
policy_share_uninit(struct policy_share *s)
{
    agent_links_destroy(s->agent);
}

static void
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

/* Takes PEER_TIMES and PEER_POLICY. */
static void
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

static void
policy_share_gone(struct policy_share *s, int i)
{
    pull_times_forget(&s->times, i);
    choose_monitor(s);
    use_uniform(s);
}

/* A pull of the first 'wanted' weights of peer 'from', which arrive in chunks
 * as they are when each is sent. */
struct pull {
    int from;                   /* -1: no pull. */
    uint64_t id;
    float *buffer;              /* NULL for a probe. */
    size_t wanted, got;         /* Floats. */
    bool done;
    int late; /* Steps made meanwhile. */
    int64_t began_us, ended_us;
    uint64_t bytes;             /* Received from 'from' before the pull. */
};

/* A pull of our weights that another peer has requested. */
struct serving {
    uint64_t id;
    size_t next, end;           /* Floats to send. */
};

struct peer_scheme {
    struct sync_peer *peer;
    bool published;
    int64_t began_us;           /* Begin of the iteration. */
    float *pulled;
    float *before;              /* Our weights before the last step. */
    struct pull pull, probe;
    struct serving pulls[PEER_NET_MAX], probes[PEER_NET_MAX];
    struct policy_share share;
};

static struct peer_scheme *
netmax_create(struct sync_peer *peer)
{
    struct peer_scheme *s = allocate(1, sizeof *s);

    s->peer = peer;
    s->pulled = allocate(peer->n_parameters, sizeof *s->pulled);
    s->before = allocate(peer->n_parameters, sizeof *s->before);
    memcpy(s->before, peer->x, peer->n_parameters * sizeof *s->before);
    s->pull.from = s->probe.from = -1;
    s->probe.id = UINT64_MAX / 2;       /* Pulls have smaller ones. */
    s->published = peer->class == &peer_netmax_published;
    policy_share_init(&s->share, peer, s->published);
    return s;
}

static void
netmax_destroy(struct peer_scheme *s)
{
    policy_share_uninit(&s->share);
    free(s->pulled);
    free(s->before);
    free(s);
}

static void
start_pull(struct peer_scheme *s, struct pull *pull, int from, size_t wanted,
           float *buffer)
{
    pull->from = from;
    pull->id++;
    pull->buffer = buffer;
    pull->wanted = wanted;
    pull->got = 0;
    pull->done = false;
    pull->late = 0;
    pull->began_us = clock_monotonic_us();
    pull->bytes = peer_net_received_from(s->peer->net, from);
    sync_peer_send(s->peer, from, &(struct frame_peer) {
        .message = PEER_PULL, .wanted = wanted, .pull = pull->id,
    });
}

static void
abort_pull(struct peer_scheme *s, struct pull *pull)
{
    sync_peer_send(s->peer, pull->from, &(struct frame_peer) {
        .message = PEER_ABORT_PULL, .pull = pull->id,
    });
    pull->ended_us = clock_monotonic_us();
}

static void
take_pulled(struct peer_scheme *s, struct pull *pull, int from,
            const struct frame *frame, const float *body)
{
    if (from != pull->from || frame->peer.pull != pull->id || pull->done
        || frame->peer.first != pull->got
        || frame->peer.n > pull->wanted - pull->got) {
        return;
    }
    if (pull->buffer) {
        memcpy(pull->buffer + pull->got, body, frame->peer.n * sizeof *body);
    }
    pull->got += frame->peer.n;
    if (pull->got == pull->wanted) {
        pull->done = true;
        pull->ended_us = clock_monotonic_us();
        peer_net_notify(s->peer->net);
    }
}

/* Returns the seconds that 'pull' would take for all weights.  An aborted one
 * is extrapolated from the bytes that arrived. */
static double
pull_seconds(const struct peer_scheme *s, const struct pull *pull)
{
    const struct sync_peer *peer = s->peer;
    double least = (double) peer->n_parameters / MAX_SLOW;
    double part, seconds = (pull->ended_us - pull->began_us) * 1e-6;
    uint64_t bytes = peer_net_received_from(peer->net, pull->from)
                     - pull->bytes;

    if (pull->done) {
        part = pull->wanted;
    } else {
        part = (double) bytes / sizeof(float);
        part = part > least ? part : least;
        part = part < pull->wanted ? part : pull->wanted;
    }
    return seconds * (part < peer->n_parameters ? peer->n_parameters / part
                                                : 1);
}

static void
serve_chunk(struct peer_scheme *s, struct serving *serving, int to)
{
    struct sync_peer *peer = s->peer;
    size_t left = serving->end - serving->next;
    struct frame frame = {
        .peer = {
            .message = PEER_PULLED, .first = serving->next,
            .n = left < CHUNK ? left : CHUNK, .pull = serving->id,
        },
    };

    if (left && peer_net_has_space(peer->net, to, CHUNK)) {
        peer_net_send_copy(peer->net, to, &frame, peer->x + serving->next);
        serving->next += frame.peer.n;
    }
}

static void
take_request(struct peer_scheme *s, struct serving *serving, int from,
             const struct frame *frame)
{
    struct sync_peer *peer = s->peer;

    if (frame->peer.message == PEER_ABORT_PULL) {
        serving->end = serving->next;
        return;
    }
    serving->id = frame->peer.pull;
    serving->next = 0;
    serving->end = frame->peer.wanted < peer->n_parameters
                   ? frame->peer.wanted : peer->n_parameters;
    if (!peer_net_busy(peer->net, from)) {
        serve_chunk(s, serving, from);
    }
}

static void
add_measurement(struct peer_scheme *s, const struct pull *pull, bool reliable)
{
    if (pull_times_add(&s->share.times, pull->from, pull_seconds(s, pull),
                       reliable, clock_monotonic_us())) {
        s->share.report_us = 0;
    }
}

/* Ends the probe that is done or late, or probes the link that was measured
 * longest ago. */
static void
run_probe(struct peer_scheme *s, int64_t now)
{
    struct sync_peer *peer = s->peer;
    struct pull *probe = &s->probe;
    int64_t longest_ago = 0;
    int oldest = -1;

    if (probe->from >= 0) {
        bool suspect = s->share.times.links[probe->from].suspect;
        bool late = now - probe->began_us > (suspect ? SUSPECT_US
                                                     : PROBE_EVERY_US);

        if (probe->done || late) {
            if (!probe->done) {
                abort_pull(s, probe);
            }
            add_measurement(s, probe, true);
            probe->from = -1;
        }
        return;
    }
    for (int i = 0; i < peer->n; i++) {
        int64_t measured_us = s->share.times.links[i].measured_us;

        if (peer_net_present(peer->net, i) && i != s->pull.from
            && now - measured_us > PROBE_EVERY_US
            && (oldest < 0 || measured_us < longest_ago)) {
            oldest = i;
            longest_ago = measured_us;
        }
    }
    if (oldest >= 0) {
        start_pull(s, probe, oldest,
                   PROBE < peer->n_parameters ? PROBE : peer->n_parameters,
                   NULL);
    }
}

/* Draws a peer by the policy, without suspect links.  Returns our own rank, or
 * -1, for no pull. */
static int
choose_peer(struct peer_scheme *s)
{
    int n = s->peer->n;
    double sum = 0, x;

    for (int i = 0; i < n; i++) {
        sum += s->share.times.links[i].suspect ? 0 : s->share.p[i];
    }
    x = sum * seeded_uniform(&s->peer->random);
    for (int i = 0; i < n; i++) {
        x -= s->share.times.links[i].suspect ? 0 : s->share.p[i];
        if (x < 0) {
            return i;
        }
    }
    return -1;
}

static void
netmax_begin(struct peer_scheme *s)
{
    struct sync_peer *peer = s->peer;
    int64_t now = clock_monotonic_us();
    int from;

    s->began_us = now;
    policy_share_run(&s->share, now);
    if (!s->published) {
        run_probe(s, now);
    }
    if (s->pull.from >= 0) {
        return; /* It is late. */
    }
    from = choose_peer(s);
    if (from >= 0 && from != peer->rank && from != s->probe.from
        && peer_net_present(peer->net, from)) {
        start_pull(s, &s->pull, from, peer->n_parameters, s->pulled);
    }
}

/* Moves by 'c' towards the pulled weights, compared with ours 'lag' steps
 * ago. */
static void
move(struct peer_scheme *s, float c, float lag)
{
    struct sync_peer *peer = s->peer;

    for (size_t i = 0; i < peer->n_parameters; i++) {
        float ours = peer->x[i] + lag * (s->before[i] - peer->x[i]);

        peer->x[i] -= c * (ours - s->pulled[i]);
    }
}

/* Moves towards the weights that were pulled from 'from'. */
static enum loop_result
mix(struct peer_scheme *s, int from)
{
    struct sync_peer *peer = s->peer;
    double apart = 0, size = 0;
    double p = s->share.p[from];
    float c = p > 0 ? fmin(s->share.ar / p, 0.5) : 0;

    for (size_t i = 0; i < peer->n_parameters; i++) {
        float d = peer->x[i] - s->pulled[i];

        apart += d * d;
        size += s->pulled[i] * s->pulled[i];
    }
    if (!isfinite(apart)) {
        peer->error = message("weights of peer %d or %d are not finite",
                              from, peer->rank);
        return LOOP_FAILED;
    }
    if (s->published) {
        move(s, c, 0);
    } else {
        move(s, apart > FAR * size ? 0.5f : c, LAG + s->pull.late * 0.5f);
    }
    return LOOP_OK;
}

static enum loop_result
finish_as_published(struct peer_scheme *s)
{
    struct sync_peer *peer = s->peer;
    struct pull *pull = &s->pull;
    enum loop_result result = LOOP_OK;

    while (pull->from >= 0 && !pull->done && result == LOOP_OK) {
        result = sync_peer_wait(peer, INT64_MAX);
    }
    if (result != LOOP_OK) {
        return result;
    }
    sync_peer_step(peer, peer->gradient);
    if (pull->from >= 0) {
        pull_times_average(&s->share.times, pull->from,
                           (clock_monotonic_us() - s->began_us) * 1e-6);
        result = mix(s, pull->from);
        pull->from = -1;
    }
    return result;
}

/* Returns until when a step waits for 'pull', and stores when the pull takes
 * too long.  Without a measurement both are never. */
static int64_t
patience(const struct peer_scheme *s, const struct pull *pull, int64_t *limit)
{
    double usual = pull_times_median(&s->share.times);
    double compute_s = s->peer->compute_s;
    double expected =
        pull->from >= 0 ? s->share.times.links[pull->from].median_s : 0;
    int64_t now = clock_monotonic_us(), end, most;

    if (!usual) {
        *limit = INT64_MAX;
        return INT64_MAX;
    }
    *limit = pull->began_us + ABORT_RATIO * 1e6 * fmax(usual, compute_s);
    end = pull->began_us + (expected > 0 ? expected : usual) * 1e6;
    most = now + PATIENCE * 1e6 * compute_s;
    return end > most ? now : most;
}

static enum loop_result
netmax_finish(struct peer_scheme *s)
{
    struct sync_peer *peer = s->peer;
    struct pull *pull = &s->pull;
    enum loop_result result = LOOP_OK;
    int64_t limit, until;

    if (s->published) {
        return finish_as_published(s);
    }
    until = patience(s, pull, &limit);
    while (pull->from >= 0 && !pull->done && clock_monotonic_us() < until) {
        result = sync_peer_wait(peer, until);
        if (result != LOOP_OK) {
            return result;
        }
    }
    if (pull->from >= 0 && pull->done) {
        add_measurement(s, pull, false);
        result = mix(s, pull->from);
        pull->from = -1;
    } else if (pull->from >= 0 && clock_monotonic_us() >= limit) {
        abort_pull(s, pull);
        pull_times_suspect(&s->share.times, pull->from);
        pull->from = -1;
    }
    pull->late++;
    memcpy(s->before, peer->x, peer->n_parameters * sizeof *s->before);
    sync_peer_step(peer, peer->gradient);
    return result;
}

static bool
netmax_take(struct peer_scheme *s, int from, const struct frame *frame,
            const float *body)
{
    bool is_probe = frame->peer.pull > UINT64_MAX / 2;

    switch (frame->peer.message) {
    case PEER_PULL:
    case PEER_ABORT_PULL:
        take_request(s, is_probe ? &s->probes[from] : &s->pulls[from], from,
                     frame);
        break;
    case PEER_PULLED:
        take_pulled(s, is_probe ? &s->probe : &s->pull, from, frame, body);
        break;
    case PEER_TIMES:
    case PEER_POLICY:
        policy_share_take(&s->share, from, frame, body);
        break;
    }
    return true;
}

static void
netmax_on_writable(struct peer_scheme *s, int to)
{
    serve_chunk(s, &s->pulls[to], to);
    serve_chunk(s, &s->probes[to], to);
}

static void
netmax_gone(struct peer_scheme *s, int i)
{
    s->pull.from = s->pull.from == i ? -1 : s->pull.from;
    s->probe.from = s->probe.from == i ? -1 : s->probe.from;
    s->pulls[i].end = s->pulls[i].next = 0;
    s->probes[i].end = s->probes[i].next = 0;
    policy_share_gone(&s->share, i);
}

const struct peer_scheme_class peer_netmax = {
    .name = "netmax", .survives = true,
    .create = netmax_create, .destroy = netmax_destroy,
    .begin = netmax_begin, .finish = netmax_finish, .take = netmax_take,
    .on_writable = netmax_on_writable, .gone = netmax_gone,
};

const struct peer_scheme_class peer_netmax_published = {
    .name = "netmax-published", .survives = true,
    .create = netmax_create, .destroy = netmax_destroy,
    .begin = netmax_begin, .finish = netmax_finish, .take = netmax_take,
    .on_writable = netmax_on_writable, .gone = netmax_gone,
};
