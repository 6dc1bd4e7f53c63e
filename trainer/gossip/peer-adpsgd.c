/* SPDX-License-Identifier: Apache-2.0 */

/* AD-PSGD (Lian et al., 2018): while a peer computes its gradient, it and a
 * random other peer both get the mean of their models.
 *
 * A mean is atomic: a peer takes part in one at a time, and to prevent a
 * deadlock half of the peers only ask and the others only reply.  So a slow
 * link to one asker delays the other askers too.
 *
 * The peer that is asked replies to each chunk at once with half of the
 * difference, and subtracts that from its own weights.  What one peer gives
 * the other one receives, so the sum of all models stays the same, and links
 * carry both directions at the same time. */

#include <stdlib.h>

#include "base/memory.h"
#include "trainer/gossip/peer.h"

#define CHUNK 2048              /* Floats. */

struct peer_scheme {
    struct sync_peer *peer;
    int with;                   /* The peer that we asked; -1: none. */
    size_t next, got;           /* Floats sent, and replies received. */
    int busy;                   /* The peer that we reply to; -1: none. */
    float reply[CHUNK];
};

static struct peer_scheme *
adpsgd_create(struct sync_peer *peer)
{
    struct peer_scheme *s = allocate(1, sizeof *s);

    s->peer = peer;
    s->with = s->busy = -1;
    return s;
}

static void
adpsgd_destroy(struct peer_scheme *s)
{
    free(s);
}

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

    if (left && peer_net_has_space(peer->net, s->with, frame.peer.n)) {
        peer_net_send_copy(peer->net, s->with, &frame, peer->x + s->next);
        s->next += frame.peer.n;
    }
}

static bool
only_replies(int rank)
{
    return rank % 2;
}

/* Returns a random peer that we may ask, or -1. */
static int
choose_peer(struct peer_scheme *s)
{
    struct sync_peer *peer = s->peer;
    int there[PEER_NET_MAX], n = 0;

    for (int i = 0; i < peer->n && !only_replies(peer->rank); i++) {
        if (only_replies(i) && peer_net_present(peer->net, i)) {
            there[n++] = i;
        }
    }
    return n ? there[seeded_below(&peer->random, n)] : -1;
}

static void
adpsgd_begin(struct peer_scheme *s)
{
    s->with = choose_peer(s);
    s->next = s->got = 0;
    if (s->with >= 0) {
        send_chunk(s);
    }
}

static enum loop_result
adpsgd_finish(struct peer_scheme *s)
{
    struct sync_peer *peer = s->peer;

    while (s->with >= 0 && s->got < peer->n_parameters) {
        enum loop_result result = sync_peer_wait(peer, INT64_MAX);

        if (result != LOOP_OK) {
            return result;
        }
    }
    s->with = -1;
    sync_peer_step(peer, peer->gradient);
    return LOOP_OK;
}

static void
end_replies(struct peer_scheme *s)
{
    s->busy = -1;
    peer_net_retry(s->peer->net);
}

/* Sends 'from' half of the difference. */
static bool
send_reply(struct peer_scheme *s, int from, const struct frame *frame,
           const float *theirs)
{
    struct sync_peer *peer = s->peer;
    struct frame header = {
        .peer = {
            .message = PEER_MIXED, .first = frame->peer.first,
            .n = frame->peer.n,
        },
    };
    float *ours = peer->x + frame->peer.first;

    if (!peer_net_has_space(peer->net, from, frame->peer.n)
        || (s->busy >= 0 && s->busy != from)) {
        return false;
    }
    s->busy = from;
    for (uint32_t i = 0; i < frame->peer.n; i++) {
        s->reply[i] = (ours[i] - theirs[i]) / 2;
        ours[i] -= s->reply[i];
    }
    peer_net_send_copy(peer->net, from, &header, s->reply);
    if (frame->peer.first + frame->peer.n == peer->n_parameters) {
        end_replies(s);
    }
    return true;
}

static bool
adpsgd_take(struct peer_scheme *s, int from, const struct frame *frame,
            const float *body)
{
    struct sync_peer *peer = s->peer;

    if (frame->peer.first > peer->n_parameters || frame->peer.n > CHUNK
        || frame->peer.n > peer->n_parameters - frame->peer.first) {
        return true;
    }
    if (frame->peer.message == PEER_MIX) {
        return send_reply(s, from, frame, body);
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
adpsgd_on_writable(struct peer_scheme *s, int to)
{
    if (to == s->with) {
        send_chunk(s);
    }
}

static void
adpsgd_gone(struct peer_scheme *s, int i)
{
    if (i == s->with) {
        s->with = -1;
    }
    if (i == s->busy) {
        end_replies(s);
    }
}

const struct peer_scheme_class peer_adpsgd = { .name = "adpsgd",
                                               .survives = true,
                                               .create = adpsgd_create,
                                               .destroy = adpsgd_destroy,
                                               .begin = adpsgd_begin,
                                               .finish = adpsgd_finish,
                                               .take = adpsgd_take,
                                               .on_writable =
                                                   adpsgd_on_writable,
                                               .gone = adpsgd_gone };
