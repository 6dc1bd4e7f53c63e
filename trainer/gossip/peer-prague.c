/* SPDX-License-Identifier: Apache-2.0 */

/* Prague (Luo et al., 2020): after its own step a peer takes the mean with a
 * random group.
 *
 * Rank 0 draws the groups.  A peer that is ready asks for one, unless it is
 * already in a group that another peer asked for.  All members get their
 * groups in the order in which these were drawn, so groups that share a member
 * follow each other and cannot deadlock. */

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/process/options.h"
#include "trainer/gossip/allreduce.h"
#include "trainer/gossip/peer.h"

#define MAX_QUEUE (2 * PEER_NET_MAX)

struct group {
    uint64_t id;
    int n, members[PEER_NET_MAX];
};

struct peer_scheme {
    struct sync_peer *peer;
    struct allreduce *ar;
    struct group queue[MAX_QUEUE];      /* Groups with this peer. */
    uint64_t n_queued, n_finished;      /* Groups with this peer so far. */

    /* Rank 0 only. */
    uint64_t n_drawn;           /* Groups so far. */
    uint64_t n_given[PEER_NET_MAX];     /* Groups of each peer so far. */
};

static struct peer_scheme *
prague_create(struct sync_peer *peer)
{
    struct peer_scheme *s = allocate(1, sizeof *s);

    s->peer = peer;
    s->ar = allreduce_create(peer->net, peer->n_parameters);
    return s;
}

static void
prague_destroy(struct peer_scheme *s)
{
    allreduce_destroy(s->ar);
    free(s);
}

static bool
enqueue(struct peer_scheme *s, uint64_t id, const float *ranks, uint32_t n)
{
    struct group *group = &s->queue[s->n_queued % MAX_QUEUE];

    if (s->n_queued - s->n_finished >= MAX_QUEUE) {
        return false;
    }
    group->id = id;
    group->n = n;
    for (uint32_t i = 0; i < n; i++) {
        group->members[i] = ranks[i];
    }
    s->n_queued++;
    peer_net_notify(s->peer->net);
    return true;
}

/* Draws a group with 'from', and sends it to its members. */
static void
draw_group(struct peer_scheme *s, int from)
{
    struct sync_peer *peer = s->peer;
    float ranks[PEER_NET_MAX];
    int others[PEER_NET_MAX], n_others = 0, n = 1;

    for (int i = 0; i < peer->n; i++) {
        if (i != from && !peer->done[i]) {
            others[n_others++] = i;
        }
    }
    ranks[0] = from;
    while (n < peer->o->group && n_others) {
        int k = seeded_below(&peer->random, n_others);

        ranks[n++] = others[k];
        others[k] = others[--n_others];
    }
    s->n_drawn++;
    for (int i = 0; i < n; i++) {
        int member = ranks[i];

        s->n_given[member]++;
        if (member == peer->rank) {
            enqueue(s, s->n_drawn, ranks, n);
        } else {
            sync_peer_send_floats(peer, member, PEER_GROUP, s->n_drawn, ranks,
                                  n);
        }
    }
}

/* Rank 0: 'from' has finished 'n_finished' groups and asks for one. */
static void
take_request(struct peer_scheme *s, int from, uint64_t n_finished)
{
    if (s->n_given[from] <= n_finished) {
        draw_group(s, from);
    }
}

static int
index_of(const struct group *group, int rank)
{
    int i = 0;

    while (i < group->n && group->members[i] != rank) {
        i++;
    }
    return i;
}

/* Waits for the next group, and takes the mean with it. */
static enum loop_result
reduce_next(struct peer_scheme *s)
{
    struct sync_peer *peer = s->peer;
    enum loop_result result = LOOP_OK;
    struct group *group;

    while (s->n_queued == s->n_finished && result == LOOP_OK) {
        result = sync_peer_wait(peer, INT64_MAX);
    }
    if (result != LOOP_OK) {
        return result;
    }
    group = &s->queue[s->n_finished % MAX_QUEUE];
    allreduce_start(s->ar, &(struct allreduce_round) {
        .round = group->id, .members = group->members,
        .n_members = group->n, .me = index_of(group, peer->rank),
        .data = peer->x, .n = peer->n_parameters, .scale = 1.0f / group->n,
    });
    while (!allreduce_done(s->ar) && result == LOOP_OK) {
        result = sync_peer_wait(peer, INT64_MAX);
    }
    s->n_finished++;
    return result;
}

static enum loop_result
prague_finish(struct peer_scheme *s)
{
    struct sync_peer *peer = s->peer;

    sync_peer_step(peer, peer->gradient);
    if (s->n_queued == s->n_finished) {
        if (peer->rank) {
            sync_peer_send(peer, 0, &(struct frame_peer) {
                .message = PEER_WANT_GROUP, .round = s->n_finished,
            });
        } else {
            take_request(s, 0, s->n_finished);
        }
    }
    return reduce_next(s);
}

/* A group may have been drawn before rank 0 knew that this peer is done. */
static enum loop_result
prague_idle(struct peer_scheme *s)
{
    return s->n_queued == s->n_finished ? LOOP_OK : reduce_next(s);
}

static bool
is_group(const struct sync_peer *peer, int from, const struct frame *frame,
         const float *ranks)
{
    bool member = false;

    for (uint32_t i = 0; i < frame->peer.n && i < PEER_NET_MAX; i++) {
        if (!(ranks[i] >= 0 && ranks[i] < peer->n)) {
            return false;
        }
        member = member || ranks[i] == peer->rank;
    }
    return !from && member && frame->peer.n <= PEER_NET_MAX;
}

static bool
prague_take(struct peer_scheme *s, int from, const struct frame *frame,
            const float *body)
{
    switch (frame->peer.message) {
    case PEER_REDUCE:
        return allreduce_take(s->ar, from, frame, body);
    case PEER_GROUP:
        return !is_group(s->peer, from, frame, body)
               || enqueue(s, frame->peer.round, body, frame->peer.n);
    case PEER_WANT_GROUP:
        if (!s->peer->rank) {
            take_request(s, from, frame->peer.round);
        }
        break;
    }
    return true;
}

static void
prague_on_writable(struct peer_scheme *s, int to)
{
    allreduce_on_writable(s->ar, to);
}

const struct peer_scheme_class peer_prague = {
    .name = "prague", .create = prague_create, .destroy = prague_destroy,
    .finish = prague_finish, .idle = prague_idle, .take = prague_take,
    .on_writable = prague_on_writable,
};
