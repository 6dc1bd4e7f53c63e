/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLASSIFY_ONE_H
#define CLASSIFY_ONE_H 1

/* Classifies one packet, for tests. */

#include "shim/classify/classify.h"

static inline void
classify_from_host(struct classifier *c, const uint8_t *frame, size_t length,
                   uint16_t tag, bool leased, struct verdict *v)
{
    struct packet packet = { (uint8_t *) frame, length };

    classify_burst_from_host(c, &packet, &tag, 1, leased, v);
}

static inline uint16_t
classify_to_host(struct classifier *c, const uint8_t *frame, size_t length)
{
    struct packet packet = { (uint8_t *) frame, length };
    uint16_t slot;

    classify_burst_to_host(c, &packet, 1, &slot);
    return slot;
}

#endif /* tests/unit/shim/classify-one.h */
