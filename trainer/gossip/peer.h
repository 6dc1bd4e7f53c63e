/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PEER_H
#define PEER_H 1

/* Training without a server: peers that each have a model.
 *
 *
 * Motivation
 * ==========
 *
 * All peers begin with the same weights, take their shares of the same
 * sequence of samples, and step by gradients.  Schemes differ in how the
 * models are kept together:
 *
 *    allreduce       all step by the mean of all gradients, summed up around
 *    allreduce-tree  a ring or along a tree: the models stay the same bit for
 *                    bit
 *    adpsgd          a step on one's own, and the mean of one's model and a
 *                    random other's for both, while the gradient is computed
 *    adpsgd-atomic   likewise, as published: one mean at a time
 *    prague          a step on one's own, then the mean of a random group
 *    netmax          a step on one's own, then a bit towards the model of
 *                    another, chosen by the times of links
 *
 * A scheme is a struct peer_scheme_class.  Its functions run with the lock of
 * peer-net.h; begin() and finish(), around the computing of a gradient, by the
 * thread that computes, and may wait; take(), room() and gone() by that of the
 * network, and may not.
 *
 * The end of a peer: a scheme either goes on without it ('survives'), or ends,
 * as failed if the peer died.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Members of struct sync_peer are read and written with the lock, but for
 * those that say otherwise. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/data/seeded.h"
#include "trainer/loop/loop.h"
#include "trainer/net/mesh.h"
#include "trainer/schemes/optimiser.h"

struct control;
struct options;
struct peer_scheme;

/* Kinds of FRAME_PEER: its 'message'.  Its 'n' values are the sender's. */
enum peer_kind {
    PEER_DONE,                  /* I have reached my target. */
    PEER_REDUCE,                /* See allreduce.h. */
    PEER_MIX,                   /* My weights from 'first' on, for a mean. */
    PEER_MIXED,                 /* What to add to yours from there on. */
    PEER_PULL,                  /* Send me the first 'wanted' weights. */
    PEER_GIVE_UP,               /* No more of them. */
    PEER_PULLED,                /* From 'first' on, for 'pull'. */
    PEER_TIMES,                 /* Seconds of pulls from each peer, NaN if
                                 * there is no news, of computing in one's own
                                 * place; then those that one's agent
                                 * foresees. */
    PEER_POLICY,                /* Probabilities of each peer, and 'ar'. */
    PEER_WANT_GROUP,            /* After my 'round'th group. */
    PEER_GROUP,                 /* Group 'round' of ranks. */
};

struct sync_peer {
    const struct options *o;    /* Without the lock. */
    struct control *control;    /* Likewise, by the thread that computes. */
    struct peer_net *net;
    int rank, n;

    size_t n_parameters;
    float *x;                   /* This peer's weights. */
    float *gradient;            /* The thread's that computes. */
    uint32_t n_samples;         /* Of the gradient's mean, */
    double loss;                /* and the sum of their losses. */
    double compute_s;           /* What it took to compute it. */
    uint64_t iteration;
    struct seeded random;

    bool done[PEER_NET_MAX];    /* Those who have reached their targets. */
    bool ended;
    char *error;

    const struct peer_scheme_class *class;
    struct peer_scheme *scheme;

    struct optimiser_config optimiser;
    float *state[OPTIMISER_MAX_STATES];
};

struct peer_scheme_class {
    const char *name;
    bool survives;
    struct peer_scheme *(*create)(struct sync_peer *);
    void (*destroy)(struct peer_scheme *);

    void (*begin)(struct peer_scheme *);        /* Optional. */
    enum loop_result (*finish)(struct peer_scheme *);

    /* Optional: what others still need of who has reached its target. */
    enum loop_result (*idle)(struct peer_scheme *);

    /* Those of struct peer_net_class; 'gone' is optional. */
    bool (*take)(struct peer_scheme *, int from, const struct frame *,
                 const float *body);
    void (*room)(struct peer_scheme *, int to);
    void (*gone)(struct peer_scheme *, int i);
};

extern const struct peer_scheme_class peer_allreduce;
extern const struct peer_scheme_class peer_allreduce_tree;
extern const struct peer_scheme_class peer_adpsgd;
extern const struct peer_scheme_class peer_adpsgd_atomic;
extern const struct peer_scheme_class peer_prague;
extern const struct peer_scheme_class peer_netmax;

/* The training loop's exchange with other peers (loop/loop.h). */
extern const struct exchange_class exchange_peers;

/* For schemes.  A step of the optimiser by 'gradient'. */
void sync_peer_step(struct sync_peer *, const float *gradient);

/* Waits for a change, at most until 'until_us', and not long.  LOOP_OK unless
 * there is nothing to wait for any more. */
enum loop_result sync_peer_wait(struct sync_peer *, int64_t until_us);

/* A random one of the others that are there, or -1. */
int sync_peer_choose(struct sync_peer *);

/* Sends a message without a body, or with one of 'n' floats that is copied. */
void sync_peer_say(struct sync_peer *, int to, const struct frame_peer *);
void sync_peer_tell(struct sync_peer *, int to, enum peer_kind,
                    uint64_t round, const float *floats, uint32_t n);

#endif /* trainer/gossip/peer.h */
