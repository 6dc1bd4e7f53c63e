/* SPDX-License-Identifier: Apache-2.0 */

#ifndef KEY_OUTBOX_H
#define KEY_OUTBOX_H 1

/* The messages of a node to other nodes, gathered by destination.
 *
 * Items that are sent one after the other to the same node share a frame if
 * key_message_add() allows it.  The frame leaves in the next poll of the
 * mesh's thread, or when an item does not fit into it: the more there is to
 * do, the more keys are in a message.  A frame for which the link has no space
 * is copied and waits, so that sending never blocks.
 *
 *    key_outbox_init(&outbox, &values, n_nodes);
 *    outbox.net = net;
 *    key_outbox_send(&outbox, to, &item);
 *    key_outbox_wake(&outbox);                 // From a worker's thread.
 *    key_outbox_on_writable(&outbox, to);      // From the mesh's.
 *    key_outbox_uninit(&outbox);
 *
 * All functions want the lock of 'net'.  'backlog' may be read without it. */

#include <stdbool.h>
#include <stddef.h>

#include "trainer/keys/key-item.h"
#include "trainer/keys/key-message.h"
#include "trainer/keys/key-store.h"

struct key_backlog;
struct local_store;
struct peer_net;

struct key_outbox {
    struct peer_net *net;       /* Set by the owner before the first item. */
    const struct local_store *values;   /* Has the width of each key. */
    int n;                      /* Nodes. */
    size_t backlog;             /* Bytes that wait for space; atomic. */
    bool woken;                 /* The mesh's thread will poll again. */
    struct {
        struct key_message open;        /* Gathers items. */
        struct key_backlog *first, **last;      /* Wait for space. */
    } to[KEY_STORE_MAX_NODES];
};

void key_outbox_init(struct key_outbox *, const struct local_store *, int n);
void key_outbox_uninit(struct key_outbox *);

void key_outbox_send(struct key_outbox *, int to, const struct key_item *);

/* Makes the mesh's thread send what is gathered. */
void key_outbox_wake(struct key_outbox *);

/* Sends what is gathered without waiting for the thread. */
void key_outbox_flush(struct key_outbox *);

/* The link to 'to' has space.  Notifies waiting workers when the backlog has
 * become small. */
void key_outbox_on_writable(struct key_outbox *, int to);

#endif /* trainer/keys/key-outbox.h */
