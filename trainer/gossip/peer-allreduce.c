/* SPDX-License-Identifier: Apache-2.0 */

/* All-reduce: all peers step by the mean of all gradients. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/gossip/allreduce.h"
#include "trainer/gossip/peer.h"
#include "trainer/process/options.h"

struct peer_scheme {
    struct sync_peer *peer;
    struct allreduce *ar;
    float *sum;                 /* Sum of the gradients, then the loss. */
    int members[PEER_NET_MAX];
};

static struct peer_scheme *
mean_create(struct sync_peer *peer)
{
    struct peer_scheme *s = allocate(1, sizeof *s);

    s->peer = peer;
    s->ar = allreduce_create(peer->net, peer->n_parameters + 1);
    s->sum = allocate(peer->n_parameters + 1, sizeof *s->sum);
    for (int i = 0; i < peer->n; i++) {
        s->members[i] = i;
    }
    return s;
}

static void
mean_destroy(struct peer_scheme *s)
{
    allreduce_destroy(s->ar);
    free(s->sum);
    free(s);
}

static enum loop_result
mean_finish(struct peer_scheme *s)
{
    struct sync_peer *peer = s->peer;
    size_t n = peer->n_parameters;
    enum loop_result result = LOOP_OK;

    for (size_t i = 0; i < n; i++) {
        s->sum[i] = peer->n_samples ? peer->gradient[i] * peer->n_samples : 0;
    }
    s->sum[n] = peer->loss;
    allreduce_start(s->ar, &(struct allreduce_round) {
        .round = peer->iteration,
        .tree = peer->class == &peer_allreduce_tree, .members = s->members,
        .n_members = peer->n, .me = peer->rank, .data = s->sum, .n = n + 1,
        .scale = 1.0f / peer->o->batch,
    });
    while (!allreduce_done(s->ar)) {
        result = sync_peer_wait(peer, INT64_MAX);
        if (result != LOOP_OK) {
            return result;
        }
    }
    peer->loss = s->sum[n] * peer->n_samples;
    sync_peer_step(peer, s->sum);
    return result;
}

static bool
mean_take(struct peer_scheme *s, int from, const struct frame *frame,
          const float *body)
{
    return frame->peer.message != PEER_REDUCE
           || allreduce_take(s->ar, from, frame, body);
}

static void
mean_on_writable(struct peer_scheme *s, int to)
{
    allreduce_on_writable(s->ar, to);
}

const struct peer_scheme_class peer_allreduce = {
    .name = "allreduce", .create = mean_create, .destroy = mean_destroy,
    .finish = mean_finish, .take = mean_take,
    .on_writable = mean_on_writable,
};

const struct peer_scheme_class peer_allreduce_tree = {
    .name = "allreduce-tree", .create = mean_create, .destroy = mean_destroy,
    .finish = mean_finish, .take = mean_take,
    .on_writable = mean_on_writable,
};
