/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_KEY_MESSAGE_H
#define PS_KEY_MESSAGE_H 1

/* What nodes say about many keys in one frame.
 *
 *
 * Motivation
 * ==========
 *
 * The protocols of nodes (localize.h, replica.h) handle one key at a time.  Here
 * the items of one kind, origin, operation and clock become one
 * FRAME_KEY_ITEMS.  Its payload has for each key 8 bytes of the key, then 4 of
 * the offset if the kind is ITEM_PULL, ITEM_PULLED or ITEM_READ, then its
 * values if the kind has some.  A kind without a key has no payload.
 *
 *
 * Usage
 * =====
 *
 *    key_message_begin(&m, buffer);
 *    while (key_message_add(&m, &item, width)) {...}
 *    ...send m.frame with the body m.body...
 *
 *    key_message_open(&m, &frame, body);
 *    while (key_message_next(&m, &store, n_nodes, &item)) {...}
 *    ...m.wrong...
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A message points to the body, which is the caller's, and so do the values
 * of items.  Plain functions. */

#include <stdbool.h>
#include <stdint.h>

#include "trainer/net/frame.h"
#include "trainer/keys/key-item.h"

struct local_store;

struct key_message {
    struct frame frame;
    uint8_t *body;
    const uint8_t *at, *end;    /* Of one that is read. */
    bool wrong;
};

/* An empty one, whose body may grow to FRAME_MAX_UPDATE bytes. */
void key_message_begin(struct key_message *, uint8_t *body);

/* False if 'item' does not fit, or needs a message of its own.  'width' is the
 * number of its values. */
bool key_message_add(struct key_message *, const struct key_item *,
                     uint32_t width);

void key_message_open(struct key_message *, const struct frame *,
                      const void *body);

/* False at the end, and when what follows is wrong. */
bool key_message_next(struct key_message *, const struct local_store *,
                      int n_nodes, struct key_item *);

#endif /* trainer/keys/key-message.h */
