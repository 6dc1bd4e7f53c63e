/* SPDX-License-Identifier: Apache-2.0 */

#include "order/radix.h"

#include <stdbool.h>

static unsigned int
digit(const struct radix_item *item, int byte)
{
    return item->key >> 8 * byte & 255;
}

/* Sorts 'from' by 'byte' into 'to'.  Returns false, and does nothing, if all
 * have the same. */
static bool
sort_by_byte(const struct radix_item *from, struct radix_item *to, size_t n,
             int byte)
{
    size_t next[256] = { 0 };
    size_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        next[digit(&from[i], byte)]++;
    }
    if (next[digit(&from[0], byte)] == n) {
        return false;
    }
    for (int d = 0; d < 256; d++) {
        size_t count = next[d];

        next[d] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++) {
        to[next[digit(&from[i], byte)]++] = from[i];
    }
    return true;
}

struct radix_item *
radix_sort(struct radix_item *items, struct radix_item *spare, size_t n,
           int n_bytes)
{
    for (int byte = 0; n && byte < n_bytes; byte++) {
        if (sort_by_byte(items, spare, n, byte)) {
            struct radix_item *tmp = items;

            items = spare;
            spare = tmp;
        }
    }
    return items;
}
