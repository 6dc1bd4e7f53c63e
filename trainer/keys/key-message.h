/* SPDX-License-Identifier: Apache-2.0 */

#ifndef KEY_MESSAGE_H
#define KEY_MESSAGE_H 1

/* What nodes send each other: items, frames with the items of many keys, and
 * the frames that wait to be sent.
 *
 * The protocols of nodes, localize.h and replica.h, take and send items, which
 * are about one key, or about none.  Here the items of one kind, origin,
 * operation and clock become one FRAME_KEY_ITEMS.  Its payload has a record
 * for each key, all of one length: 4 bytes of the key, then 4 of the offset if
 * the kind is ITEM_PULL, ITEM_PULLED or ITEM_READ, then its values if the kind
 * has some.  An ITEM_PUSHED has no key but a number of keys, in one record for
 * all.  Other kinds without a key have no payload.
 *
 *    key_message_begin(&m, buffer);
 *    while (key_message_add(&m, &item, width)) {...}
 *    ...send m.frame with the payload m.body...
 *
 *    key_message_open(&m, &frame, body);
 *    while (key_message_next(&m, &store, n_nodes, &item)) {...}
 *    ...m.wrong...
 *
 * The outbox gathers items by destination.  Items that are sent one after the
 * other to the same node share a frame if key_message_add() allows it.  The
 * frame leaves when an item does not fit into it, when a worker that has
 * nothing else on its way calls key_outbox_flush(), or else in the next poll
 * of the mesh's thread: the more there is to do, the more keys are in a
 * message.  A frame for which the link has no space is copied and waits, so
 * that sending never blocks.
 *
 *    key_outbox_init(&outbox, &values, n_nodes);
 *    outbox.net = net;
 *    key_outbox_send(&outbox, to, &item);
 *    key_outbox_wake(&outbox);                 // From a worker's thread.
 *    key_outbox_on_writable(&outbox, to);      // From the mesh's.
 *    key_outbox_uninit(&outbox);
 *
 * Values belong to the sender of an item and are valid during the call that
 * gets it.  A message and the values of its items point into the payload,
 * which is the caller's.  The functions of messages are pure; all of an outbox
 * want the lock of 'net', but 'backlog' may be read without it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "trainer/keys/key-store.h"
#include "trainer/keys/local-store.h"
#include "trainer/net/frame.h"

struct key_backlog;
struct peer_net;

enum item_kind {
    /* Of localize.h. */
    ITEM_PULL,      /* Send the values to the origin. */
    ITEM_PUSH,      /* Add the values, answer the origin. */
    ITEM_LOCALIZE,  /* The origin asks for the key. */
    ITEM_HAND_OVER, /* Transfer the key to the origin. */
    ITEM_TRANSFER,  /* The key and its values. */
    ITEM_PULLED,    /* Values for the origin's operation. */
    ITEM_PUSHED,    /* The origin's push was made, for 'n_keys'
                     * keys. */
    ITEM_LANDED,    /* Never sent: an ITEM_LOCALIZE is done. */

    /* Of replica.h. */
    ITEM_READ,  /* Send the row as of 'clock' or later. */
    ITEM_DELTA, /* Add the values. */
    ITEM_ROW,   /* The row as of 'clock'; 'op' is the home's
                 * barrier. */

    /* Those from here on have no key. */
    ITEM_FLUSH,   /* End of the sender's flush 'op', at
                   * 'clock'. */
    ITEM_FLUSHED, /* The receiver's flush 'op' is applied. */
    ITEM_CLOCK,   /* All nodes have reached 'clock', and changed
                   * rows were sent before; 'op' is the home's
                   * barrier. */

    /* Of key-store.c. */
    ITEM_ARRIVED,  /* The sender is at barrier 'op'. */
    ITEM_RELEASED, /* All are at barrier 'op'. */
    ITEM_LOST,     /* The origin has died. */
    ITEM_N_KINDS
};

struct key_item {
    enum item_kind kind;
    int origin;                 /* Rank of the node that began the
                                 * operation. */
    uint64_t op;                /* Number at the origin, or as above. */
    uint64_t clock;             /* Of replica.h. */
    uint64_t key;
    uint32_t offset;            /* Where the values go in the operation's. */
    uint32_t n_keys;            /* ITEM_PUSHED. */
    const float *values;        /* Or NULL. */
};

struct key_message {
    struct frame frame;         /* A FRAME_KEY_ITEMS. */
    uint32_t *body;
    const uint32_t *at, *end;   /* Rest of a message that is read; NULL: all
                                 * was read. */
    bool wrong;                 /* The message is not allowed. */
};

/* Begins a message in 'body', of FRAME_MAX_UPDATE bytes. */
void key_message_begin(struct key_message *, void *body);

static inline bool
key_item_has_key(enum item_kind kind)
{
    return kind < ITEM_FLUSH && kind != ITEM_PUSHED;
}

static inline bool
key_item_has_offset(enum item_kind kind)
{
    return kind == ITEM_PULL || kind == ITEM_PULLED || kind == ITEM_READ;
}

static inline bool
key_item_has_values(enum item_kind kind)
{
    return kind == ITEM_PUSH || kind == ITEM_TRANSFER || kind == ITEM_PULLED
           || kind == ITEM_DELTA || kind == ITEM_ROW;
}

/* Words of a record of 'width' values. */
static inline uint32_t
key_record_length(enum item_kind kind, uint32_t width)
{
    return key_item_has_key(kind)
               ? 1 + key_item_has_offset(kind)
                     + (key_item_has_values(kind) ? width : 0)
               : kind == ITEM_PUSHED;
}

/* Adds the record of 'item', which has a key and 'width' values.  Returns
 * false if the message is about something else, or full. */
static inline bool
key_message_append(struct key_message *m, const struct key_item *item,
                   uint32_t width)
{
    uint32_t n = m->frame.items.n + key_record_length(item->kind, width);
    uint32_t *to = m->body + m->frame.items.n;

    if (m->frame.items.op != item->op || m->frame.items.kind != item->kind
        || m->frame.items.origin != (uint32_t) item->origin
        || m->frame.items.clock != item->clock
        || n * sizeof *to > FRAME_MAX_UPDATE) {
        return false;
    }
    m->frame.items.n = n;
    *to++ = item->key;
    if (key_item_has_offset(item->kind)) {
        *to++ = item->offset;
    }
    if (key_item_has_values(item->kind) && width == 1) {
        memcpy(to, item->values, sizeof *to);
    } else if (key_item_has_values(item->kind)) {
        memcpy(to, item->values, width * sizeof *to);
    }
    return true;
}

/* Returns false if 'item', with 'width' values, needs another message. */
bool key_message_add(struct key_message *, const struct key_item *,
                     uint32_t width);

void key_message_open(struct key_message *, const struct frame *,
                      const void *body);

/* Returns false at the end, and if the rest is wrong. */
bool key_message_next(struct key_message *, const struct local_store *,
                      int n_nodes, struct key_item *);

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

/* Does the same for an item with a key, many of which are of one kind. */
static inline void
key_outbox_append(struct key_outbox *out, int to, const struct key_item *item)
{
    uint32_t width = local_store_width(out->values, item->key);

    if (!key_message_append(&out->to[to].open, item, width)) {
        key_outbox_send(out, to, item);
    }
}

/* Makes the mesh's thread send what is gathered. */
void key_outbox_wake(struct key_outbox *);

/* Sends what is gathered without waiting for the thread. */
void key_outbox_flush(struct key_outbox *);

/* The link to 'to' has space.  Notifies waiting workers when the backlog has
 * become small. */
void key_outbox_on_writable(struct key_outbox *, int to);

#endif /* trainer/keys/key-message.h */
