/* SPDX-License-Identifier: Apache-2.0 */

/* While its gradient is computed, a peer and another chosen at random both get
 * the mean of their models.
 *
 * As AD-PSGD (Lian et al., 2018), on any graph: the one that is asked answers
 * with half of the difference, at once and chunk by chunk, and subtracts it
 * from its own weights.  What one gives the other gets, whatever else happens
 * to either meanwhile, so the sum of all models stays what it was, nobody
 * locks anybody, and links carry both directions at the same time.
 *
 * As published, a mean is atomic: who takes part in one is in no other until
 * it is done, and so that nobody waits in a circle, half of the peers only ask
 * and the others only answer.  That is "adpsgd-atomic", for comparisons: who
 * wants an answerer that is held up by a slow link waits for that link. */

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/process/report.h"
#include "trainer/gossip/peer.h"

#define CHUNK 2048              /* Floats. */
#define PATIENT_US 1000000      /* Nothing happens by itself meanwhile. */

struct peer_scheme {
    struct sync_peer *peer;
    int with;                   /* Whom we asked; -1: nobody. */
    size_t next, got;           /* Floats sent and answered. */
    bool atomic;
    int busy;                   /* Who gets our answers, if 'atomic'; -1:
                                 * nobody. */
    float answer[CHUNK];
};

static struct peer_scheme *
create(struct sync_peer *peer)
{
    struct peer_scheme *s = allocate(1, sizeof *s);

    s->peer = peer;
    s->with = s->busy = -1;
    return s;
}

static struct peer_scheme *
create_atomic(struct sync_peer *peer)
{
    struct peer_scheme *s = create(peer);

    s->atomic = true;
    return s;
}

static void
destroy(struct peer_scheme *s)
{
    free(s);
}

/* Sends the next chunk of our weights. */
static void
send_chunk(struct peer_scheme *s)
{
    struct sync_peer *peer = s->peer;
    size_t left = peer->n_parameters - s->next;
    struct frame frame = {
        .peer = {
            .message = PEER_MIX, .first = s->next,
            .n = left < CHUNK ? left : CHUNK,
        },
    };

    if (left && peer_net_has_room(peer->net, s->with, frame.peer.n)) {
        peer_net_send_copy(peer->net, s->with, &frame, peer->x + s->next);
        s->next += frame.peer.n;
    }
}

static bool
only_answers(int rank)
{
    return rank % 2;
}

/* A random one of those whom we may ask, or -1. */
static int
choose(struct peer_scheme *s)
{
    struct sync_peer *peer = s->peer;
    int there[PEER_NET_MAX], n = 0;

    if (!s->atomic) {
        return sync_peer_choose(peer);
    }
    for (int i = 0; i < peer->n && !only_answers(peer->rank); i++) {
        if (only_answers(i) && peer_net_present(peer->net, i)) {
            there[n++] = i;
        }
    }
    return n ? there[seeded_below(&peer->random, n)] : -1;
}

static void
begin(struct peer_scheme *s)
{
    s->with = choose(s);
    s->next = s->got = 0;
    if (s->with >= 0) {
        send_chunk(s);
    }
}

static enum loop_result
finish(struct peer_scheme *s)
{
    struct sync_peer *peer = s->peer;

    while (s->with >= 0 && s->got < peer->n_parameters) {
        enum loop_result result
            = sync_peer_wait(peer, clock_monotonic_us() + PATIENT_US);

        if (result != LOOP_OK) {
            return result;
        }
    }
    s->with = -1;
    sync_peer_step(peer, peer->gradient);
    return LOOP_OK;
}

static void
set_free(struct peer_scheme *s)
{
    s->busy = -1;
    if (s->atomic) {
        peer_net_retry(s->peer->net);
    }
}

/* Gives 'from' half of what we differ by. */
static bool
answer(struct peer_scheme *s, int from, const struct frame *frame,
       const float *theirs)
{
    struct sync_peer *peer = s->peer;
    struct frame reply = {
        .peer = {
            .message = PEER_MIXED, .first = frame->peer.first,
            .n = frame->peer.n,
        },
    };
    float *ours = peer->x + frame->peer.first;

    if (!peer_net_has_room(peer->net, from, frame->peer.n)
        || (s->atomic && s->busy >= 0 && s->busy != from)) {
        return false;
    }
    s->busy = from;
    for (uint32_t i = 0; i < frame->peer.n; i++) {
        s->answer[i] = (ours[i] - theirs[i]) / 2;
        ours[i] -= s->answer[i];
    }
    peer_net_send_copy(peer->net, from, &reply, s->answer);
    if (frame->peer.first + frame->peer.n == peer->n_parameters) {
        set_free(s);
    }
    return true;
}

static bool
take(struct peer_scheme *s, int from, const struct frame *frame,
     const float *body)
{
    struct sync_peer *peer = s->peer;

    if (frame->peer.first > peer->n_parameters || frame->peer.n > CHUNK
        || frame->peer.n > peer->n_parameters - frame->peer.first) {
        return true;
    }
    if (frame->peer.message == PEER_MIX) {
        return answer(s, from, frame, body);
    }
    if (frame->peer.message == PEER_MIXED) {
        for (uint32_t i = 0; i < frame->peer.n; i++) {
            peer->x[frame->peer.first + i] += body[i];
        }
        s->got += from == s->with ? frame->peer.n : 0;
        if (s->got >= peer->n_parameters) {
            peer_net_notify(peer->net);
        }
    }
    return true;
}

static void
room(struct peer_scheme *s, int to)
{
    if (to == s->with) {
        send_chunk(s);
    }
}

static void
gone(struct peer_scheme *s, int i)
{
    if (i == s->with) {
        s->with = -1;
    }
    if (i == s->busy) {
        set_free(s);
    }
}

const struct peer_scheme_class peer_adpsgd = {
    .name = "adpsgd", .survives = true, .create = create, .destroy = destroy,
    .begin = begin, .finish = finish, .take = take, .room = room,
    .gone = gone,
};

const struct peer_scheme_class peer_adpsgd_atomic = {
    .name = "adpsgd-atomic", .survives = true, .create = create_atomic,
    .destroy = destroy, .begin = begin, .finish = finish, .take = take,
    .room = room, .gone = gone,
};
