/* SPDX-License-Identifier: Apache-2.0 */

#ifndef KEY_ITEM_H
#define KEY_ITEM_H 1

/* What nodes send each other about one key, or about none.
 *
 * The protocols, localize.h and replica.h, take and send items; key-message.h
 * makes frames of many.  Plain data; values belong to the sender of the item
 * and are valid during the call that gets it. */

#include <stdint.h>

enum item_kind {
    /* Of localize.h. */
    ITEM_PULL,                  /* Send the values to the origin. */
    ITEM_PUSH,                  /* Add the values, answer the origin. */
    ITEM_LOCALIZE,              /* The origin asks for the key. */
    ITEM_HAND_OVER,             /* Transfer the key to the origin. */
    ITEM_TRANSFER,              /* The key and its values. */
    ITEM_PULLED,                /* Values for the origin's operation. */
    ITEM_PUSHED,                /* The origin's push was made. */
    ITEM_LANDED,                /* Never sent: an ITEM_LOCALIZE is done. */

    /* Of replica.h. */
    ITEM_READ,                  /* Send the row as of 'clock' or later. */
    ITEM_DELTA,                 /* Add the values. */
    ITEM_ROW,                   /* The row as of 'clock'; 'op' is the home's
                                 * barrier. */

    /* Those from here on have no key. */
    ITEM_FLUSH,                 /* End of the sender's flush 'op', at
                                 * 'clock'. */
    ITEM_FLUSHED,               /* The receiver's flush 'op' is applied. */
    ITEM_CLOCK,                 /* All nodes have reached 'clock', and changed
                                 * rows were sent before; 'op' is the home's
                                 * barrier. */

    /* Of key-store.c. */
    ITEM_ARRIVED,               /* The sender is at barrier 'op'. */
    ITEM_RELEASED,              /* All are at barrier 'op'. */
    ITEM_LOST,                  /* The origin has died. */
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
    const float *values;        /* Or NULL. */
};

#endif /* trainer/keys/key-item.h */
