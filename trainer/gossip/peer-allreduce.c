/* SPDX-License-Identifier: Apache-2.0 */

/* All step by the mean of all gradients. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/process/options.h"
#include "trainer/process/report.h"
#include "trainer/gossip/allreduce.h"
#include "trainer/gossip/peer.h"

#define PATIENT_US 1000000      /* Nothing happens by itself meanwhile. */

struct peer_scheme {
    struct sync_peer *peer;
    struct allreduce *ar;
    float *sum;                 /* The gradient, and the loss behind it. */
    int members[PEER_NET_MAX];
    bool tree;
};

static struct peer_scheme *
create(struct sync_peer *peer)
{
    struct peer_scheme *s = allocate(1, sizeof *s);

    s->peer = peer;
    s->ar = allreduce_create(peer->net, peer->n_parameters + 1);
    s->sum = allocate(peer->n_parameters + 1, sizeof *s->sum);
    s->tree = peer->class == &peer_allreduce_tree;
    for (int i = 0; i < peer->n; i++) {
        s->members[i] = i;
    }
    return s;
}

static void
destroy(struct peer_scheme *s)
{
    allreduce_destroy(s->ar);
    free(s->sum);
    free(s);
}

static enum loop_result
finish(struct peer_scheme *s)
{
    struct sync_peer *peer = s->peer;
    size_t n = peer->n_parameters;
    enum loop_result result = LOOP_OK;

    for (size_t i = 0; i < n; i++) {
        s->sum[i] = peer->n_samples ? peer->gradient[i] * peer->n_samples : 0;
    }
    s->sum[n] = peer->loss;
    allreduce_start(s->ar, &(struct allreduce_round) {
        .round = peer->iteration, .tree = s->tree, .members = s->members,
        .n_members = peer->n, .me = peer->rank, .data = s->sum, .n = n + 1,
        .scale = 1.0f / peer->o->batch,
    });
    while (!allreduce_done(s->ar)) {
        result = sync_peer_wait(peer, clock_monotonic_us() + PATIENT_US);
        if (result != LOOP_OK) {
            return result;
        }
    }
    peer->loss = s->sum[n] * peer->n_samples;
    sync_peer_step(peer, s->sum);
    return result;
}

static bool
take(struct peer_scheme *s, int from, const struct frame *frame,
     const float *body)
{
    return frame->peer.message != PEER_REDUCE
           || allreduce_take(s->ar, from, frame, body);
}

static void
room(struct peer_scheme *s, int to)
{
    allreduce_room(s->ar, to);
}

const struct peer_scheme_class peer_allreduce = {
    .name = "allreduce", .create = create, .destroy = destroy,
    .finish = finish, .take = take, .room = room,
};

const struct peer_scheme_class peer_allreduce_tree = {
    .name = "allreduce-tree", .create = create, .destroy = destroy,
    .finish = finish, .take = take, .room = room,
};
