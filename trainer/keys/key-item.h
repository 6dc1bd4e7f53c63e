/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_KEY_ITEM_H
#define PS_KEY_ITEM_H 1

/* What nodes say to each other about one key, or about none.
 *
 * The protocols, localize.h and replica.h, take and send items; key-message.h
 * makes frames of many.  Plain data; values belong to whoever made the item
 * and are there as long as the call that gets it. */

#include <stdint.h>

enum item_kind {
    /* Of localize.h. */
    ITEM_PULL,                  /* Answer the origin. */
    ITEM_PUSH,                  /* Likewise, after adding the values. */
    ITEM_LOCALIZE,              /* The origin wants to have the key. */
    ITEM_HAND_OVER,             /* Send it to the origin. */
    ITEM_TRANSFER,              /* Here it is. */
    ITEM_PULLED,                /* Values, for the origin's operation. */
    ITEM_PUSHED,                /* It was made. */
    ITEM_LANDED,                /* Never sent: a ITEM_LOCALIZE is done. */

    /* Of replica.h. */
    ITEM_READ,                  /* Send the row as of 'clock' or later. */
    ITEM_DELTA,                 /* Add the values. */
    ITEM_ROW,                   /* The row as of 'clock', with your flushes
                                 * up to 'op'. */

    /* Those from here on have no key. */
    ITEM_FLUSH,                 /* That was my flush 'op'; I am at 'clock'. */
    ITEM_FLUSHED,               /* Your flush 'op' is made. */
    ITEM_CLOCK,                 /* All nodes are at 'clock' or later, and
                                 * rows that you read were sent. */

    /* Of key-store.c. */
    ITEM_ARRIVED,               /* At barrier 'op'. */
    ITEM_RELEASED,              /* All are at barrier 'op'. */

    /* Of key-net.c. */
    ITEM_LOST,                  /* The origin has died. */
    ITEM_N_KINDS
};

struct key_item {
    enum item_kind kind;
    int origin;                 /* Whose operation or wish it is. */
    uint64_t op;                /* Of the origin, or as above. */
    uint64_t clock;             /* Of replica.h. */
    uint64_t key;
    uint32_t offset;            /* Where its values go in the operation's. */
    const float *values;        /* Or NULL. */
};

#endif /* trainer/keys/key-item.h */
