/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PEER_H
#define PEER_H 1

/* Training without a server: peers that each have a model.
 *
 * All peers begin with the same weights, take their shares of the same
 * sequence of samples, and step by gradients.  Schemes differ in how they keep
 * the models together:
 *
 *    allreduce       all step by the mean of all gradients, added up around a
 *    allreduce-tree  ring or along a tree: models stay the same bit for bit
 *    adpsgd          while the gradient is computed, a peer and a random other
 *                    one both get the mean of their models; then it steps
 *    prague          a step, then the mean of a group of peers that are ready
 *    netmax          a move towards the model of a peer that is chosen by the
 *                    times of links, then a step
 *    netmax-published
 *                    likewise, as published
 *
 * A scheme is a struct peer_scheme_class.  Its functions are called with the
 * lock of the network (net/mesh.h).  The thread that computes calls begin()
 * and finish(), which may wait, before and after it computes a gradient; the
 * thread of the network calls take(), on_writable() and gone(), which may not.
 *
 * If a peer ends, a scheme either continues without it ('survives'), or ends:
 * with an error if the peer died.
 *
 * The lock protects the members of struct sync_peer, except where they say
 * otherwise. */

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

/* Kinds of FRAME_PEER, in its 'message'.  The body is 'n' floats. */
enum peer_kind {
    PEER_DONE,       /* The sender has reached its target. */
    PEER_REDUCE,     /* See allreduce.h. */
    PEER_MIX,        /* adpsgd: weights from 'first' on. */
    PEER_MIXED,      /* adpsgd: reply, to be added from 'first'
                      * on. */
    PEER_PULL,       /* Requests the first 'wanted' weights. */
    PEER_ABORT_PULL, /* Aborts that. */
    PEER_PULLED,     /* Weights from 'first' on, for 'pull'. */
    PEER_TIMES,      /* Seconds of pulls from each peer, NaN if
                      * not measured since the last message, and of
                      * a gradient at the sender's rank; then the
                      * estimates of the sender's agent. */
    PEER_POLICY,     /* Probability of each peer, and 'ar'. */
    PEER_WANT_GROUP, /* prague: 'round' requests are finished. */
    PEER_GROUP,      /* prague: ranks of group 'round'; 'hop' is 1
                      * if another belongs to the same request. */
    PEER_RESUMED,    /* The sender has another target. */
};

struct sync_peer {
    const struct options *o;    /* Without the lock. */
    struct control *control;    /* Only for the thread that computes. */
    struct peer_net *net;
    int rank, n;

    size_t n_parameters;
    float *x;                   /* This peer's weights. */
    float *gradient;            /* Only for the thread that computes. */
    uint32_t n_samples;         /* Samples of 'gradient', which is a mean. */
    double loss;                /* Sum of their losses. */
    double compute_s;           /* Time to compute the last gradient. */
    uint64_t iteration;
    struct seeded random;

    bool done[PEER_NET_MAX];    /* Peers that have reached their targets. */
    bool ended;                 /* A peer has ended that the scheme needs. */
    char *error;                /* Message if training has failed. */

    const struct peer_scheme_class *class;
    struct peer_scheme *scheme;

    struct optimiser_config optimiser;
    float *state[OPTIMISER_MAX_STATES];
};

struct peer_scheme_class {
    const char *name;
    bool survives;              /* Continues after a peer's death. */
    struct peer_scheme *(*create)(struct sync_peer *);
    void (*destroy)(struct peer_scheme *);

    void (*begin)(struct peer_scheme *);        /* Optional. */
    enum loop_result (*finish)(struct peer_scheme *);

    /* Optional: called while this peer is paused; does what others need. */
    enum loop_result (*idle)(struct peer_scheme *);

    /* As in struct peer_net_class; 'gone' is optional. */
    bool (*take)(struct peer_scheme *, int from, const struct frame *,
                 const float *body);
    void (*on_writable)(struct peer_scheme *, int to);
    void (*gone)(struct peer_scheme *, int i);
};

extern const struct peer_scheme_class peer_allreduce;
extern const struct peer_scheme_class peer_allreduce_tree;
extern const struct peer_scheme_class peer_adpsgd;
extern const struct peer_scheme_class peer_prague;
extern const struct peer_scheme_class peer_netmax;
extern const struct peer_scheme_class peer_netmax_published;

/* The training loop's exchange with other peers (loop/loop.h). */
extern const struct exchange_class exchange_peers;

/* For schemes.  Returns HOST:PORT of a rank. */
const char *sync_peer_name(const struct sync_peer *, int rank);

/* Steps by 'gradient'. */
void sync_peer_step(struct sync_peer *, const float *gradient);

/* Waits for a notification, at most until 'until_us' and at most 100 ms.
 * Returns LOOP_OK if training is to continue. */
enum loop_result sync_peer_wait(struct sync_peer *, int64_t until_us);

/* Sends a message without a body that others wait for, as soon as the queue to
 * 'to' has space.  Returns LOOP_OK if training is to continue. */
enum loop_result sync_peer_send_waiting(struct sync_peer *, int to,
                                        const struct frame_peer *);

/* Sends a message without a body, or with a copy of 'n' floats.  It is dropped
 * if the queue to 'to' has no space. */
void sync_peer_send(struct sync_peer *, int to, const struct frame_peer *);
void sync_peer_send_floats(struct sync_peer *, int to, enum peer_kind,
                           uint64_t round, const float *, uint32_t n);

#endif /* trainer/gossip/peer.h */
