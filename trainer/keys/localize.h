/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_LOCALIZE_H
#define PS_LOCALIZE_H 1

/* How keys move among nodes, and how accesses find them: one node's part.
 *
 *
 * Motivation
 * ==========
 *
 * Each key has a home, a node that never changes and knows the owner, who has
 * the values; there is no other copy.  An access of a key that is not here
 * goes to the home, which passes it on to the owner, who answers the one that
 * asked.  To move a key takes three messages, however many keys are in each:
 *
 *    requester  LOCALIZE   home       which takes the requester for the owner
 *                                     from now on
 *    home       HAND_OVER  old owner  which serves until this comes
 *    old owner  TRANSFER   requester
 *
 * and fewer if the home is one of the two others.  From its LOCALIZE on the
 * requester holds the key to be coming: accesses by its own workers, and those
 * that the home already sends, wait in their order and are made when the
 * values land.  If the key is called away meanwhile, which can be once, it
 * goes on after that.
 *
 * All messages about a key that one node sends to another stay in order.
 * That is all it takes: the operations of a worker on a key follow the same
 * path as the key's HAND_OVER, so none overtakes another one, none is lost and
 * none made twice.  With 'caches' an access goes straight to the node
 * that had the key last; if it has gone, it is passed on to the home.  Such an
 * access can be overtaken by a later one, on another path.
 *
 * With neither 'moves' nor 'shared' this is a classic parameter server.
 *
 *
 * Usage
 * =====
 *
 *    localize_init(&l, &config, &local_store);
 *    localize_access(&l, &item);               // ITEM_PULL, ITEM_PUSH, or
 *                                              // ITEM_LOCALIZE of our own.
 *    ok = localize_take(&l, from, &item);      // A message.
 *
 * Both call send() and answer() of the class.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * All functions are for the caller's one lock; values in items are copied if
 * they are kept. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/keys/key-item.h"

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
    bool shared;                /* Workers reach what is here in memory; else
                                 * by messages to this node itself. */
    bool caches;                /* Accesses go where keys were last. */
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
    int next_owner;             /* Who has called it away, or -1. */
};

struct localize {
    struct localize_config config;
    struct local_store *store;
    uint8_t *where;             /* Of a key whose home is here the owner; else
                                 * a guess, or LOCALIZE_UNKNOWN. */
    struct localize_coming **coming;    /* Of keys that are on their way. */
    struct localize_coming *free_coming;
    struct localize_waiter *free_waiters;
    uint64_t n_landed;
};

#define LOCALIZE_UNKNOWN UINT8_MAX

/* The node that is the home of 'key'. */
int localize_home(uint64_t key, int n);

/* Creates all keys whose home is here, with values 0. */
void localize_init(struct localize *, const struct localize_config *,
                   struct local_store *);
void localize_uninit(struct localize *);

void localize_access(struct localize *, const struct key_item *);

/* Returns false for what the node 'from' cannot have meant. */
bool localize_take(struct localize *, int from, const struct key_item *);

#endif /* trainer/keys/localize.h */
