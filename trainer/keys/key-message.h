/* SPDX-License-Identifier: Apache-2.0 */

#ifndef KEY_MESSAGE_H
#define KEY_MESSAGE_H 1

/* Frames with the items of many keys.
 *
 * The protocols of nodes (localize.h, replica.h) handle one key at a time.
 * Here the items of one kind, origin, operation and clock become one
 * FRAME_KEY_ITEMS.  Its payload has for each key 8 bytes of the key, then 4 of
 * the offset if the kind is ITEM_PULL, ITEM_PULLED or ITEM_READ, then its
 * values if the kind has some.  A kind without a key has no payload.
 *
 *    key_message_begin(&m, buffer);
 *    while (key_message_add(&m, &item, width)) {...}
 *    ...send m.frame with the payload m.body...
 *
 *    key_message_open(&m, &frame, body);
 *    while (key_message_next(&m, &store, n_nodes, &item)) {...}
 *    ...m.wrong...
 *
 * A message and the values of its items point into the payload, which is the
 * caller's.  Pure functions. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/net/frame.h"
#include "trainer/keys/key-item.h"

struct local_store;

struct key_message {
    struct frame frame;         /* A FRAME_KEY_ITEMS. */
    uint8_t *body;
    const uint8_t *at, *end;    /* Rest of a message that is read. */
    bool wrong;                 /* The message is not allowed. */
};

/* Begins a message in 'body', of FRAME_MAX_UPDATE bytes. */
void key_message_begin(struct key_message *, uint8_t *body);

/* Returns false if 'item', with 'width' values, needs another message. */
bool key_message_add(struct key_message *, const struct key_item *,
                     uint32_t width);

void key_message_open(struct key_message *, const struct frame *,
                      const void *body);

/* Returns false at the end, and if the rest is wrong. */
bool key_message_next(struct key_message *, const struct local_store *,
                      int n_nodes, struct key_item *);

#endif /* trainer/keys/key-message.h */
