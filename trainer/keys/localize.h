/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOCALIZE_H
#define LOCALIZE_H 1

/* The protocol by which keys move among nodes, and accesses find them: one
 * node's part.
 *
 * Each key has a home, a node that never changes and knows the owner, which
 * has the only copy of the values.  An access of a key that is not here goes
 * to the home, which forwards it to the owner, which answers the node that
 * asked.  Moving keys takes three messages, however many keys they contain:
 *
 *    requester  LOCALIZE   home       from now on the requester is the owner
 *                                     for the home
 *    home       HAND_OVER  old owner  which serves accesses until this arrives
 *    old owner  TRANSFER   requester
 *
 * or fewer if the home is one of the other two.  From its LOCALIZE on the
 * requester queues accesses of the key, by its own workers and from the home,
 * and executes them in order when the values arrive.  If the key is localized
 * elsewhere meanwhile, which can happen once, it is handed over after that.
 *
 * All messages about a key from one node to another stay in order.  The
 * operations of a worker on a key follow the same path as its HAND_OVER, so
 * none is overtaken, lost or made twice.
 *
 * Without 'moves' and 'shared' this is a classic parameter server.  With
 * 'moves' alone keys move, but a node also accesses those that are here by
 * messages, to itself: what moving keys are worth without shared memory.  Such
 * a message may find that its key has left meanwhile, and then follows it by
 * way of the home; until it has, later accesses of the key take the same way,
 * so that they stay behind it.
 *
 *    localize_init(&l, &config, &local_store);
 *    localize_access(&l, &item);               // ITEM_PULL, ITEM_PUSH, or
 *                                              // ITEM_LOCALIZE of this node.
 *    ok = localize_take(&l, from, &item);      // A message.
 *
 * Both call send() and answer() of the class.  All functions require the
 * caller's one lock; values in items are copied if they are kept.
 *
 * The unit test localize-explorer tries all interleavings. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/keys/key-message.h"

struct local_store;

struct localize_class {
    void (*send)(void *aux, int to, const struct key_item *);

    /* An operation of this node is done for a key: ITEM_PULLED, ITEM_PUSHED or
     * ITEM_LANDED. */
    void (*answer)(void *aux, const struct key_item *);
};

struct localize_config {
    int rank, n;
    bool moves;                 /* ITEM_LOCALIZE has an effect. */
    bool shared;                /* Workers access local keys in memory, not by
                                 * messages to their own node. */
    const struct localize_class *class;
    void *aux;
};

/* An access that waits for its key. */
struct localize_waiter {
    struct localize_waiter *next;
    struct key_item item;       /* A push's values are a copy. */
};

/* A key that this node has asked for and that has not arrived. */
struct localize_coming {
    struct localize_coming *next_free;
    struct localize_waiter *first, **last;
    int next_owner;             /* Node that has localized it since, or -1. */
};

struct localize {
    struct localize_config config;
    struct local_store *store;
    uint8_t *where;                     /* Per key of this home: its owner. */
    struct localize_coming **coming;    /* Per key; NULL: not requested. */
    struct localize_coming *free_coming;
    struct localize_waiter *free_waiters;
    uint32_t *round;            /* Per key: accesses on their way from this
                                 * node to itself.  NULL unless the
                                 * configuration is 'moves' without
                                 * 'shared'. */
    uint64_t n_landed;          /* Keys that have arrived here. */
};

/* The node that is the home of 'key'. */
static inline int
localize_home(uint64_t key, int n)
{
    uint64_t x = (key + 1) * 0x9e3779b97f4a7c15;

    x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
    return ((x >> 32) * n) >> 32;
}

static inline bool
localize_may_be_here(const struct localize *l, uint64_t key)
{
    return l->config.moves
           || localize_home(key, l->config.n) == l->config.rank;
}

/* Creates all keys of this home, with values 0. */
void localize_init(struct localize *, const struct localize_config *,
                   struct local_store *);
void localize_uninit(struct localize *);

void localize_access(struct localize *, const struct key_item *);

/* If 'item', which was just read from the message, is a push of a key that is
 * here, executes it and those that follow, passes over them, and returns true.
 * Otherwise 'item' is one for localize_take(). */
bool localize_take_pushes(struct localize *, struct key_message *,
                          const struct key_item *);

/* Returns false for a message that node 'from' must not send. */
bool localize_take(struct localize *, int from, const struct key_item *);

#endif /* trainer/keys/localize.h */
