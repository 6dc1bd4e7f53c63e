/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/gossip/allreduce.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/gossip/peer.h"
#include "trainer/net/mesh.h"
#include "trainer/schemes/shard.h"

#define CHUNK 8192              /* Floats. */
#define MAX_OUTLETS 3           /* Parent and two children. */

struct chunk {
    size_t first;
    uint32_t n;
    uint32_t hop;
};

/* Queue of the chunks of a round that are to be sent to 'to'. */
struct outlet {
    int to;
    struct chunk *chunks;
    size_t head, tail;
};

struct allreduce {
    struct peer_net *net;
    struct allreduce_round round;
    int members[PEER_NET_MAX];
    bool active;
    size_t left;                /* Floats still to be received. */

    struct outlet outlets[MAX_OUTLETS];
    int n_outlets;
    uint8_t *n_added;           /* Tree: children added to each chunk. */
};

/* Returns the maximum number of chunks of a round in one outlet: each segment
 * of a ring may end with a short one, and is sent twice. */
static size_t
max_chunks(size_t n)
{
    return 2 * (n / CHUNK + PEER_NET_MAX + 1);
}

struct allreduce *
allreduce_create(struct peer_net *net, size_t max_n)
{
    struct allreduce *ar = allocate(1, sizeof *ar);

    ar->net = net;
    for (int i = 0; i < MAX_OUTLETS; i++) {
        ar->outlets[i].chunks = allocate(max_chunks(max_n),
                                         sizeof(struct chunk));
    }
    ar->n_added = allocate(max_n / CHUNK + 1, 1);
    return ar;
}

void
allreduce_destroy(struct allreduce *ar)
{
    if (ar) {
        for (int i = 0; i < MAX_OUTLETS; i++) {
            free(ar->outlets[i].chunks);
        }
        free(ar->n_added);
        free(ar);
    }
}

/* Sends the chunks for which the link has space. */
static void
send_chunks(struct allreduce *ar, struct outlet *outlet)
{
    while (outlet->head < outlet->tail
           && peer_net_has_space(ar->net, outlet->to, 0)) {
        const struct chunk *chunk = &outlet->chunks[outlet->head++];
        struct frame frame = {
            .peer = {
                .message = PEER_REDUCE, .round = ar->round.round,
                .first = chunk->first, .n = chunk->n, .hop = chunk->hop,
            },
        };

        peer_net_send(ar->net, outlet->to, &frame,
                      ar->round.data + chunk->first);
    }
}

static void
queue_chunk(struct allreduce *ar, struct outlet *outlet, size_t first,
            uint32_t n, uint32_t hop)
{
    outlet->chunks[outlet->tail++] = (struct chunk) { first, n, hop };
    send_chunks(ar, outlet);
}

static void
queue_range(struct allreduce *ar, struct outlet *outlet, struct shard range)
{
    for (size_t i = 0; i < range.n; i += CHUNK) {
        size_t n = range.n - i < CHUNK ? range.n - i : CHUNK;

        queue_chunk(ar, outlet, range.first + i, n, 0);
    }
}

static struct outlet *
add_outlet(struct allreduce *ar, int member)
{
    struct outlet *outlet = &ar->outlets[ar->n_outlets++];

    outlet->to = ar->members[member];
    outlet->head = outlet->tail = 0;
    return outlet;
}

/* A member first sends its own segment.  The sum of the next member's segment
 * is first complete here, so it does not arrive. */
static void
start_ring(struct allreduce *ar)
{
    const struct allreduce_round *r = &ar->round;
    struct shard own = shard_range(r->n, r->me, r->n_members);
    struct shard last = shard_range(r->n, (r->me + 1) % r->n_members,
                                    r->n_members);

    ar->left = r->n - own.n + r->n - last.n;
    queue_range(ar, add_outlet(ar, (r->me + 1) % r->n_members), own);
}

static int
n_children(const struct allreduce_round *r)
{
    int n = r->n_members - 1 - 2 * r->me;

    return n < 0 ? 0 : n < 2 ? n : 2;
}

/* The outlets are the children, then the parent. */
static void
start_tree(struct allreduce *ar)
{
    const struct allreduce_round *r = &ar->round;
    int n = n_children(r);

    memset(ar->n_added, 0, r->n / CHUNK + 1);
    ar->left = r->n * (n + (r->me > 0));
    for (int c = 0; c < n; c++) {
        add_outlet(ar, 2 * r->me + 1 + c);
    }
    if (r->me > 0) {
        struct outlet *parent = add_outlet(ar, (r->me - 1) / 2);

        if (!n) {
            queue_range(ar, parent, (struct shard) { 0, r->n });
        }
    }
}

void
allreduce_start(struct allreduce *ar, const struct allreduce_round *round)
{
    ar->round = *round;
    memcpy(ar->members, round->members,
           round->n_members * sizeof *ar->members);
    ar->n_outlets = 0;
    ar->left = 0;
    ar->active = true;
    if (round->n_members > 1) {
        if (round->tree) {
            start_tree(ar);
        } else {
            start_ring(ar);
        }
    } else {
        for (size_t i = 0; i < round->n; i++) {
            round->data[i] *= round->scale;
        }
    }
    peer_net_retry(ar->net);
}

static void
add(float *to, const float *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        to[i] += from[i];
    }
}

static void
scale(float *to, float factor, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        to[i] *= factor;
    }
}

static bool
take_ring(struct allreduce *ar, const struct frame *frame, const float *body)
{
    const struct allreduce_round *r = &ar->round;
    uint32_t p = r->n_members, hop = frame->peer.hop;
    float *data = r->data + frame->peer.first;

    if (hop < p - 1) {
        add(data, body, frame->peer.n);
        if (hop == p - 2) {
            scale(data, r->scale, frame->peer.n);
        }
    } else {
        memcpy(data, body, frame->peer.n * sizeof *data);
    }
    if (hop < 2 * p - 3) {
        queue_chunk(ar, &ar->outlets[0], frame->peer.first, frame->peer.n,
                    hop + 1);
    }
    return true;
}

static void
send_down(struct allreduce *ar, const struct frame *frame, int n)
{
    for (int c = 0; c < n; c++) {
        queue_chunk(ar, &ar->outlets[c], frame->peer.first, frame->peer.n, 0);
    }
}

static bool
take_tree(struct allreduce *ar, int from, const struct frame *frame,
          const float *body)
{
    const struct allreduce_round *r = &ar->round;
    uint8_t *n_added = &ar->n_added[frame->peer.first / CHUNK];
    float *data = r->data + frame->peer.first;
    int n = n_children(r);

    if (r->me > 0 && from == ar->outlets[n].to) {
        memcpy(data, body, frame->peer.n * sizeof *data);
        send_down(ar, frame, n);
        return true;
    }
    if (from != ar->outlets[*n_added].to) {
        return false;           /* The other child is first. */
    }
    add(data, body, frame->peer.n);
    if (++*n_added == n && r->me > 0) {
        queue_chunk(ar, &ar->outlets[n], frame->peer.first, frame->peer.n, 0);
    } else if (*n_added == n) {
        scale(data, r->scale, frame->peer.n);
        send_down(ar, frame, n);
    }
    peer_net_retry(ar->net);
    return true;
}

/* Returns true if 'from' may send 'frame' in this round. */
static bool
is_expected(const struct allreduce *ar, int from, const struct frame *frame)
{
    const struct allreduce_round *r = &ar->round;
    size_t chunk = frame->peer.first / CHUNK;
    bool known = false;

    if (frame->peer.first > r->n || frame->peer.n > r->n - frame->peer.first
        || frame->peer.n > ar->left) {
        return false;
    }
    if (!r->tree) {
        return frame->peer.hop <= 2 * (uint64_t) r->n_members - 3
               && from == ar->members[(r->me + r->n_members - 1)
                                      % r->n_members];
    }
    for (int i = 0; i < ar->n_outlets; i++) {
        known = known || from == ar->outlets[i].to;
    }
    return known && (from == ar->members[(r->me - 1) / 2]
                     || ar->n_added[chunk] < n_children(r));
}

bool
allreduce_take(struct allreduce *ar, int from, const struct frame *frame,
               const float *body)
{
    bool taken = true;

    if (frame->peer.round != ar->round.round || !ar->active) {
        return frame->peer.round < ar->round.round;
    }
    if (ar->left && is_expected(ar, from, frame)) {
        taken = ar->round.tree ? take_tree(ar, from, frame, body)
                               : take_ring(ar, frame, body);
        ar->left -= taken ? frame->peer.n : 0;
        if (!ar->left) {
            peer_net_notify(ar->net);
        }
    }
    return taken;
}

void
allreduce_on_writable(struct allreduce *ar, int to)
{
    for (int i = 0; ar->active && i < ar->n_outlets; i++) {
        if (ar->outlets[i].to == to) {
            send_chunks(ar, &ar->outlets[i]);
            if (!ar->left) {
                peer_net_notify(ar->net);
            }
        }
    }
}

bool
allreduce_done(struct allreduce *ar)
{
    if (ar->left) {
        return false;
    }
    for (int i = 0; i < ar->n_outlets; i++) {
        const struct outlet *outlet = &ar->outlets[i];

        if (outlet->head < outlet->tail
            || peer_net_busy(ar->net, outlet->to)) {
            return false;
        }
    }
    ar->active = false;
    return true;
}
