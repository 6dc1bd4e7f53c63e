/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_KEYS_H
#define PS_KEYS_H 1

/* Sorted keys as they are on the wire.
 *
 *
 * Motivation
 * ==========
 *
 * A push of sparse values is mostly keys: 8 bytes each, with 4 of value.  Keys
 * are sorted and often near each other, so that what is between two of them
 * fits into fewer bytes.  All the keys of a frame take the same number, which
 * needs no branch for each key; if 8 are needed the keys go as they are, out
 * of the caller's memory.
 *
 *
 * Usage
 * =====
 *
 *    size = keys_choose(keys, n);              // KEYS_UNSORTED: an error.
 *    length = keys_length(n, size);
 *    keys_encode(keys, n, size, bytes);        // And keys[0] in the header.
 *
 *    ok = keys_decode(first, bytes, n, size, keys);
 *
 * Ownership: plain functions. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEYS_UNSORTED (-1)

/* The least of 0, 1, 2, 4 and 8 bytes a key that do, or KEYS_UNSORTED if the
 * keys do not strictly ascend. */
int keys_choose(const uint64_t keys[], size_t n);

/* What 'n' keys but the first take, a multiple of 4. */
static inline size_t
keys_length(size_t n, int size)
{
    return n ? ((n - 1) * size + 3) & ~(size_t) 3 : 0;
}

/* Writes keys_length() bytes. */
void keys_encode(const uint64_t keys[], size_t n, int size, uint8_t *to);

/* False if the keys do not ascend, which only a hostile peer sends. */
bool keys_decode(uint64_t first, const uint8_t *from, size_t n, int size,
                 uint64_t keys[]);

#endif /* trainer/net/keys.h */
