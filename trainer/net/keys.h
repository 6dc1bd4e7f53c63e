/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRAINER_KEYS_H
#define TRAINER_KEYS_H 1

/* Ascending keys, and their coding on the wire.
 *
 * Keys of a push are often near each other.  After the first key, which is in
 * the frame's body, each key is sent as its distance from the one before, less
 * 1, in 0, 1, 2 or 4 bytes, the same for all keys of a frame.  If 8 bytes are
 * needed the keys are sent as they are, from the caller's memory.
 *
 *    size = keys_choose(keys, n);              // KEYS_UNSORTED: an error.
 *    length = keys_length(n, size);
 *    keys_encode(keys, n, size, bytes);
 *
 *    ok = keys_decode(first, bytes, n, size, keys);
 *
 * Pure functions. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEYS_UNSORTED (-1)

/* Returns the least number of bytes per key, or KEYS_UNSORTED if the keys do
 * not strictly ascend. */
int keys_choose(const uint64_t keys[], size_t n);

/* Bytes of 'n' keys without the first, a multiple of 4. */
static inline size_t
keys_length(size_t n, int size)
{
    return n ? ((n - 1) * size + 3) & ~(size_t) 3 : 0;
}

/* Writes keys_length() bytes. */
void keys_encode(const uint64_t keys[], size_t n, int size, uint8_t *to);

/* Returns false if the keys do not ascend. */
bool keys_decode(uint64_t first, const uint8_t *from, size_t n, int size,
                 uint64_t keys[]);

/* Returns the first of keys[i ... n - 1] that is not less than 'key'.  It is
 * probably near, so the search begins with small steps. */
static inline size_t
keys_find(const uint64_t keys[], size_t i, size_t n, uint64_t key)
{
    size_t step = 1, low = i;

    if (i >= n || keys[i] >= key) {
        return i;
    }
    while (i + step < n && keys[i + step] < key) {
        low = i + step;
        step *= 2;
    }
    n = i + step < n ? i + step : n;
    while (n - low > 1) {
        size_t middle = low + (n - low) / 2;

        if (keys[middle] < key) {
            low = middle;
        } else {
            n = middle;
        }
    }
    return n;
}

#endif /* trainer/net/keys.h */
