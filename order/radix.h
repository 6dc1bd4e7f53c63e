/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RADIX_H
#define RADIX_H 1

/* Sorts stages by a number.
 *
 * The order sorts all stages for each event, and a few passes over bytes cost
 * less than comparisons.  It is stable, so that stages with the same key stay
 * as they were given, and asks for no memory, which qsort() may.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The caller's two arrays; no state. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct radix_item {
    uint64_t key;
    int stage;
};

/* Returns the key of 'x', at least 0, by which larger numbers go first. */
static inline uint64_t
radix_falling(double x)
{
    uint64_t key;

    memcpy(&key, &x, sizeof key);
    return ~key;
}

/* Sorts the 'n' 'items' by the lowest 'n_bytes' bytes of their keys, the
 * smallest first, and returns where they are then: 'items' or 'spare'. */
struct radix_item *radix_sort(struct radix_item *items,
                              struct radix_item *spare, size_t n,
                              int n_bytes);

#endif /* order/radix.h */
