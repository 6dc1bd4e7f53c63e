/* SPDX-License-Identifier: Apache-2.0 */

/* While its gradient is computed, a peer gets the model of another one that
 * the policy chooses, moves towards it, and steps.
 *
 * As NetMax, with six things of our own.  The move comes before the step and
 * not after it: what was pulled is from before the other one's step, and half
 * of the way back to it would undo half of ours.  It is compared with our
 * weights of half a step ago: we have just stepped when we ask, who answers
 * has been computing for half of its step on average, and without this all
 * hold each other back.  A pull that takes several times what pulls usually
 * take is given up, and the step goes on without it.  Links that the policy
 * leaves out, or of which a pull was given up, are looked at by a pull of a
 * few weights that nobody waits for.  A link that turns out to be another than
 * it was is reported at once.  And a peer whose model is far from what it
 * pulls goes half of the way, whatever the policy says. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/process/report.h"
#include "trainer/gossip/peer-pull.h"
#include "trainer/gossip/peer.h"
#include "trainer/gossip/policy-share.h"

#define PATIENCE 3              /* Usual times until a pull is given up. */
#define PROBE 8192              /* Floats. */
#define PROBE_EVERY_US 1000000  /* For links that are not used. */
#define DOUBT_US 250000         /* Then what came of a probe must do. */
#define LAG 0.5f                /* Steps that what is pulled is older. */
#define FAR 0.25                /* Of the square of the weights' norm. */

struct peer_scheme {
    struct sync_peer *peer;
    float *pulled;
    float *before;              /* Our weights before the last step. */
    struct pull pull, probe;
    struct pull_serving serving[PEER_NET_MAX], probed[PEER_NET_MAX];
    struct policy_share share;
};

static struct peer_scheme *
create(struct sync_peer *peer)
{
    struct peer_scheme *s = allocate(1, sizeof *s);

    s->peer = peer;
    s->pulled = allocate(peer->n_parameters, sizeof *s->pulled);
    s->before = allocate(peer->n_parameters, sizeof *s->before);
    memcpy(s->before, peer->x, peer->n_parameters * sizeof *s->before);
    s->pull.with = s->probe.with = -1;
    s->probe.id = UINT64_MAX / 2;       /* Other numbers than pulls'. */
    policy_share_init(&s->share, peer);
    return s;
}

static void
destroy(struct peer_scheme *s)
{
    policy_share_uninit(&s->share);
    free(s->pulled);
    free(s->before);
    free(s);
}

/* Takes in how long 'pull' of all weights takes. */
static void
learn(struct peer_scheme *s, const struct pull *pull, bool certain)
{
    if (link_times_take(&s->share.times, pull->with, pull_seconds(pull),
                        certain, clock_monotonic_us())) {
        policy_share_hurry(&s->share);
    }
}

/* Looks at a link of which nothing was heard for long. */
static void
probe(struct peer_scheme *s, int64_t now)
{
    struct sync_peer *peer = s->peer;
    struct pull *pull = &s->probe;
    int64_t longest_ago = 0;
    int oldest = -1;

    if (pull->with >= 0) {
        bool doubtful = s->share.times.links[pull->with].doubtful;
        bool late = now - pull->began_us > (doubtful ? DOUBT_US
                                                     : PROBE_EVERY_US);

        if (pull->done || late) {
            if (!pull->done) {
                pull_give_up(pull);
            }
            learn(s, pull, true);
            pull->with = -1;
        }
        return;
    }
    for (int i = 0; i < peer->n; i++) {
        int64_t known_us = s->share.times.links[i].known_us;

        if (peer_net_present(peer->net, i) && i != s->pull.with
            && now - known_us > PROBE_EVERY_US
            && (oldest < 0 || known_us < longest_ago)) {
            oldest = i;
            longest_ago = known_us;
        }
    }
    if (oldest >= 0) {
        pull_start(pull, peer, oldest,
                   PROBE < peer->n_parameters ? PROBE : peer->n_parameters,
                   NULL);
    }
}

/* By the policy, of those whose links are not in doubt.  Returns our own rank,
 * or -1, if nobody is to be asked. */
static int
choose(struct peer_scheme *s)
{
    int n = s->peer->n;
    double sum = 0, x;

    for (int i = 0; i < n; i++) {
        sum += s->share.times.links[i].doubtful ? 0 : s->share.p[i];
    }
    x = sum * seeded_uniform(&s->peer->random);
    for (int i = 0; i < n; i++) {
        x -= s->share.times.links[i].doubtful ? 0 : s->share.p[i];
        if (x < 0) {
            return i;
        }
    }
    return -1;
}

static void
begin(struct peer_scheme *s)
{
    struct sync_peer *peer = s->peer;
    int64_t now = clock_monotonic_us();
    int with;

    policy_share_run(&s->share, now);
    probe(s, now);
    with = choose(s);
    s->pull.with = -1;
    if (with >= 0 && with != peer->rank && with != s->probe.with
        && peer_net_present(peer->net, with)) {
        pull_start(&s->pull, peer, with, peer->n_parameters, s->pulled);
    }
}

/* Moves towards what was pulled from 'with'. */
static enum loop_result
mix(struct peer_scheme *s, int with)
{
    struct sync_peer *peer = s->peer;
    double apart = 0, size = 0;
    double p = s->share.p[with];
    float c = p > 0 ? fmin(s->share.ar / p, 0.5) : 0;

    for (size_t i = 0; i < peer->n_parameters; i++) {
        float d = peer->x[i] - s->pulled[i];

        apart += d * d;
        size += s->pulled[i] * s->pulled[i];
    }
    if (!isfinite(apart)) {
        peer->error = message("weights of peer %d or %d are not finite",
                              with, peer->rank);
        return LOOP_FAILED;
    }
    c = apart > FAR * size ? 0.5f : c;
    for (size_t i = 0; i < peer->n_parameters; i++) {
        float ours = peer->x[i] + LAG * (s->before[i] - peer->x[i]);

        peer->x[i] -= c * (ours - s->pulled[i]);
    }
    return LOOP_OK;
}

static enum loop_result
finish(struct peer_scheme *s)
{
    struct sync_peer *peer = s->peer;
    struct pull *pull = &s->pull;
    double usual = link_times_usual(&s->share.times);
    double most = usual > peer->compute_s ? usual : peer->compute_s;
    int64_t limit = usual > 0 ? pull->began_us + PATIENCE * most * 1e6
                              : INT64_MAX;
    enum loop_result result;

    while (pull->with >= 0 && !pull->done && clock_monotonic_us() < limit) {
        result = sync_peer_wait(peer, limit);
        if (result != LOOP_OK) {
            return result;
        }
    }
    result = LOOP_OK;
    if (pull->with >= 0) {
        if (pull->done) {
            learn(s, pull, false);
            result = mix(s, pull->with);
        } else {
            pull_give_up(pull);
            link_times_doubt(&s->share.times, pull->with);
        }
    }
    memcpy(s->before, peer->x, peer->n_parameters * sizeof *s->before);
    sync_peer_step(peer, peer->gradient);
    return result;
}

static bool
take(struct peer_scheme *s, int from, const struct frame *frame,
     const float *body)
{
    bool is_probe = frame->peer.pull > UINT64_MAX / 2;

    switch (frame->peer.message) {
    case PEER_PULL:
    case PEER_GIVE_UP:
        pull_serve(is_probe ? &s->probed[from] : &s->serving[from], s->peer,
                   from, frame);
        break;
    case PEER_PULLED:
        pull_take(is_probe ? &s->probe : &s->pull, from, frame, body);
        break;
    case PEER_TIMES:
    case PEER_POLICY:
        policy_share_take(&s->share, from, frame, body);
        break;
    }
    return true;
}

static void
room(struct peer_scheme *s, int to)
{
    pull_room(&s->serving[to], s->peer, to);
    pull_room(&s->probed[to], s->peer, to);
}

static void
gone(struct peer_scheme *s, int i)
{
    s->pull.with = s->pull.with == i ? -1 : s->pull.with;
    s->probe.with = s->probe.with == i ? -1 : s->probe.with;
    s->serving[i].end = s->serving[i].next = 0;
    s->probed[i].end = s->probed[i].next = 0;
    policy_share_gone(&s->share, i);
}

const struct peer_scheme_class peer_netmax = {
    .name = "netmax", .survives = true, .create = create, .destroy = destroy,
    .begin = begin, .finish = finish, .take = take, .room = room,
    .gone = gone,
};
