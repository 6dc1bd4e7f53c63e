/* SPDX-License-Identifier: Apache-2.0 */

/* Prague (Luo et al., 2020): after its own step a peer takes the mean with a
 * group.
 *
 * Rank 0 draws the groups (group-generator.h).  A peer asks for one in each
 * iteration.  All members get their groups in the order in which these were
 * drawn, so groups that share a member follow each other and cannot deadlock.
 * A group's mean begins when all members have stepped, and the death of a peer
 * is the end of all. */

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/gossip/allreduce.h"
#include "trainer/gossip/group-generator.h"
#include "trainer/gossip/peer.h"
#include "trainer/process/options.h"

#define MAX_QUEUE (2 * PEER_NET_MAX)

struct group {
    uint64_t id;
    int n, members[PEER_NET_MAX];
    bool more;                  /* Another one belongs to the same request. */
};

/* A group that rank 0 has drawn and could not send yet. */
struct unsent {
    struct unsent *next;
    struct frame frame;
    float ranks[];
};

struct peer_scheme {
    struct sync_peer *peer;
    struct allreduce *ar;
    struct group queue[MAX_QUEUE];      /* Groups with this peer. */
    uint64_t n_queued, n_finished;      /* Groups with this peer so far. */
    uint64_t n_slots;           /* Requests that were served so far, and
                                 * finished. */

    /* Rank 0 only. */
    uint64_t n_drawn;                           /* Groups so far. */
    struct unsent *unsent[PEER_NET_MAX];        /* To each peer, in order. */
    struct group_generator generator;
};

/* Peers with the same host in --peers are on one machine: its number is the
 * first rank there. */
static void
find_machines(const struct sync_peer *peer, int machine_of[])
{
    for (int i = 0; i < peer->n; i++) {
        const char *name = sync_peer_name(peer, i);
        size_t length = strrchr(name, ':') - name + 1;

        machine_of[i] = 0;
        while (strncmp(sync_peer_name(peer, machine_of[i]), name, length)) {
            machine_of[i]++;
        }
    }
}

static struct peer_scheme *
prague_create(struct sync_peer *peer)
{
    struct peer_scheme *s = allocate(1, sizeof *s);
    int machine_of[PEER_NET_MAX];

    s->peer = peer;
    s->ar = allreduce_create(peer->net, peer->n_parameters);
    find_machines(peer, machine_of);
    group_generator_init(&s->generator, peer->n, machine_of, peer->o->group,
                         GROUP_GENERATOR_THRESHOLD);
    return s;
}

static void
drop_first(struct peer_scheme *s, int member)
{
    struct unsent *unsent = s->unsent[member];

    s->unsent[member] = unsent->next;
    free(unsent);
}

static void
prague_destroy(struct peer_scheme *s)
{
    for (int i = 0; i < PEER_NET_MAX; i++) {
        while (s->unsent[i]) {
            drop_first(s, i);
        }
    }
    allreduce_destroy(s->ar);
    free(s);
}

static bool
enqueue(struct peer_scheme *s, uint64_t id, const float *ranks, uint32_t n,
        bool more)
{
    struct group *group = &s->queue[s->n_queued % MAX_QUEUE];

    if (s->n_queued - s->n_finished >= MAX_QUEUE) {
        return false;
    }
    group->id = id;
    group->n = n;
    group->more = more;
    for (uint32_t i = 0; i < n; i++) {
        group->members[i] = ranks[i];
    }
    s->n_queued++;
    peer_net_notify(s->peer->net);
    return true;
}

/* All members of a group wait for each other: no group may be dropped because
 * the queue to one of them is full. */
static void
add_unsent(struct peer_scheme *s, int member, const struct frame_peer *message,
           const float *ranks)
{
    struct unsent **end = &s->unsent[member];
    size_t size = message->n * sizeof *ranks;
    struct unsent *unsent = allocate(1, sizeof *unsent + size);

    while (*end) {
        end = &(*end)->next;
    }
    unsent->frame.peer = *message;
    memcpy(unsent->ranks, ranks, size);
    *end = unsent;
}

static void
send_groups(struct peer_scheme *s, int member)
{
    struct peer_net *net = s->peer->net;
    struct unsent *first;

    while ((first = s->unsent[member])
           && peer_net_has_space(net, member, first->frame.peer.n)) {
        peer_net_send_copy(net, member, &first->frame, first->ranks);
        drop_first(s, member);
        peer_net_notify(net);
    }
}

/* Sends a group to its members. */
static void
give_group(void *s_, const int members[], int n, const bool more[])
{
    struct peer_scheme *s = s_;
    float ranks[PEER_NET_MAX];

    s->n_drawn++;
    for (int i = 0; i < n; i++) {
        ranks[i] = members[i];
    }
    for (int i = 0; i < n; i++) {
        if (members[i] == s->peer->rank) {
            enqueue(s, s->n_drawn, ranks, n, more[i]);
        } else {
            add_unsent(s, members[i],
                       &(struct frame_peer){ .message = PEER_GROUP,
                                             .round = s->n_drawn,
                                             .n = n,
                                             .hop = more[i] },
                       ranks);
            send_groups(s, members[i]);
        }
    }
}

/* Rank 0: 'from' has finished 'n_finished' requests, and has another one. */
static void
take_request(struct peer_scheme *s, int from, uint64_t n_finished)
{
    group_generator_request(&s->generator, from, n_finished, s->peer->done,
                            &s->peer->random, give_group, s);
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

/* Whether the next group is here, and rank 0 has sent it to all members: its
 * part of the sum must not arrive before the group. */
static bool
next_is_known(const struct peer_scheme *s)
{
    const struct group *group = &s->queue[s->n_finished % MAX_QUEUE];

    if (s->n_queued == s->n_finished) {
        return false;
    }
    for (int i = 0; i < group->n; i++) {
        const struct unsent *first = s->unsent[group->members[i]];

        if (first && first->frame.peer.round <= group->id) {
            return false;
        }
    }
    return true;
}

/* Waits for the next group, and takes the mean with it. */
static enum loop_result
reduce_next(struct peer_scheme *s)
{
    struct sync_peer *peer = s->peer;
    enum loop_result result = LOOP_OK;
    struct group *group;

    while (!next_is_known(s) && result == LOOP_OK) {
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
    s->n_slots += !group->more;
    s->n_finished++;
    return result;
}

/* Takes the means that belong to one request. */
static enum loop_result
reduce_slot(struct peer_scheme *s)
{
    uint64_t before = s->n_slots;
    enum loop_result result = LOOP_OK;

    while (s->n_slots == before && result == LOOP_OK) {
        result = reduce_next(s);
    }
    return result;
}

static enum loop_result
prague_finish(struct peer_scheme *s)
{
    struct sync_peer *peer = s->peer;
    enum loop_result result = LOOP_OK;

    sync_peer_step(peer, peer->gradient);
    if (peer->rank) {
        result = sync_peer_send_waiting(
            peer, 0,
            &(struct frame_peer){ .message = PEER_WANT_GROUP,
                                  .round = s->n_slots });
    } else {
        take_request(s, 0, s->n_slots);
    }
    return result == LOOP_OK ? reduce_slot(s) : result;
}

/* A group may have been drawn before rank 0 knew that this peer is done. */
static enum loop_result
prague_idle(struct peer_scheme *s)
{
    return s->n_queued == s->n_finished ? LOOP_OK : reduce_slot(s);
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
               || enqueue(s, frame->peer.round, body, frame->peer.n,
                          frame->peer.hop);
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
    send_groups(s, to);
    allreduce_on_writable(s->ar, to);
}

const struct peer_scheme_class peer_prague = {
    .name = "prague",
    .create = prague_create,
    .destroy = prague_destroy,
    .finish = prague_finish,
    .idle = prague_idle,
    .take = prague_take,
    .on_writable = prague_on_writable,
};
