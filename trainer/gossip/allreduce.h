/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ALLREDUCE_H
#define ALLREDUCE_H 1

/* All-reduce: gives all members of a group the sum of their vectors.
 *
 * Around a ring each of P members sends 2 (P - 1) / P of the vector, which is
 * the minimum: each segment is added up on one way around, and the sum is
 * distributed on a second one.  Along a binary tree a sum takes only 2 log P
 * hops, which is better for short vectors.  A chunk is forwarded as
 * soon as it has arrived, so that the links are always busy.
 *
 * The order in which the terms of a value are added depends only on its index:
 * all members get the same bits, in every run.
 *
 *    ar = allreduce_create(net, n);
 *    allreduce_start(ar, &(struct allreduce_round) { ... });
 *    ...call allreduce_take() and allreduce_on_writable() from the network...
 *    if (allreduce_done(ar)) {
 *        ...'data' is the same at all members...
 *    }
 *
 * allreduce_take() refuses messages of a round that has not been started.
 *
 * The caller owns 'data', and must not use it until the round is done.  All
 * functions need the lock of 'net'. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct allreduce;
struct frame;
struct peer_net;

struct allreduce_round {
    uint64_t round;             /* Grows; the same at all members. */
    bool tree;                  /* Otherwise a ring. */
    const int *members;         /* Ranks, in the same order at all members. */
    int n_members, me;          /* members[me] is this peer. */
    float *data;
    size_t n;                   /* Floats; at most 'max_n' of the creation. */
    float scale;                /* Factor of the sum. */
};

struct allreduce *allreduce_create(struct peer_net *, size_t max_n);
void allreduce_destroy(struct allreduce *);

void allreduce_start(struct allreduce *, const struct allreduce_round *);
bool allreduce_take(struct allreduce *, int from, const struct frame *,
                    const float *body);
void allreduce_on_writable(struct allreduce *, int to);
bool allreduce_done(struct allreduce *);

#endif /* trainer/gossip/allreduce.h */
