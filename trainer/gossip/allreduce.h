/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ALLREDUCE_H
#define ALLREDUCE_H 1

/* The sum of a vector of each member of a group, for all of them.
 *
 *
 * Motivation
 * ==========
 *
 * Around a ring each member sends 2 (P - 1) / P of the vector, the least there
 * is: segment after segment is added up on its way once around, and goes
 * around once more.  Along a binary tree a sum has only 2 log P hops, which is
 * better for short vectors.  Either goes in chunks, each of which moves on as
 * soon as it is there, so that the links are busy all the time.
 *
 * The order in which a value's terms are added depends on nothing but its
 * place: all members get the same bits, and get them again in another run.
 *
 * Messages have the round as 'iteration', the place as 'first' and the number
 * of hops so far as 'sequence'.
 *
 *
 * Usage
 * =====
 *
 *    ar = allreduce_create(net, n);
 *    allreduce_start(ar, &(struct allreduce_round) { ... });
 *    ...allreduce_take() and allreduce_room() when messages come and go...
 *    if (allreduce_done(ar)) {
 *        ...'data' is the same at all...
 *
 * Messages of a round that has not been started are not taken.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * 'data' is the caller's, who must not touch it until the round is done.  With
 * the lock of 'net'. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct allreduce;
struct frame;
struct peer_net;

struct allreduce_round {
    uint64_t round;             /* Grows; the same at all members. */
    bool tree;
    const int *members;         /* Ranks, in the same order at all. */
    int n_members, me;          /* members[me] is this peer. */
    float *data;
    size_t n;                   /* At most that of allreduce_create(). */
    float scale;                /* Of the sum. */
};

struct allreduce *allreduce_create(struct peer_net *, size_t max_n);
void allreduce_destroy(struct allreduce *);

void allreduce_start(struct allreduce *, const struct allreduce_round *);
bool allreduce_take(struct allreduce *, int from, const struct frame *,
                    const float *body);
void allreduce_room(struct allreduce *, int to);
bool allreduce_done(struct allreduce *);

#endif /* trainer/gossip/allreduce.h */
