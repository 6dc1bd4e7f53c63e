/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_LOCALIZE_PRIVATE_H
#define PS_LOCALIZE_PRIVATE_H 1

/* What localize.c keeps of keys that are coming, for it and for the test that
 * compares states. */

#include "trainer/keys/localize.h"

/* An access that waits for its key. */
struct localize_waiter {
    struct localize_waiter *next;
    struct key_item item;       /* A push's values are a copy. */
};

struct localize_coming {
    struct localize_coming *next_free;
    struct localize_waiter *first, **last;
    int next_owner;             /* Who has called it away, or -1. */
};

#endif /* trainer/keys/localize-private.h */
