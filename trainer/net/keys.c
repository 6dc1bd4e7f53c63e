/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/keys.h"

#include <string.h>

int
keys_choose(const uint64_t keys[], size_t n)
{
    uint64_t bits = 0;
    bool wrong = false;

    for (size_t i = 1; i < n; i++) {
        wrong |= keys[i] <= keys[i - 1];
        bits |= keys[i] - keys[i - 1] - 1;
    }
    return wrong ? KEYS_UNSORTED
           : !bits ? 0
           : bits <= UINT8_MAX ? 1
           : bits <= UINT16_MAX ? 2
           : bits <= UINT32_MAX ? 4 : 8;
}

/* The distance less 1 is sent, since distances are at least 1. */
#define ENCODE(TYPE)                                            \
    for (size_t i = 1; i < n; i++) {                            \
        TYPE gap = keys[i] - keys[i - 1] - 1;                   \
                                                                \
        memcpy(to + (i - 1) * sizeof gap, &gap, sizeof gap);    \
    }                                                           \
    break

void
keys_encode(const uint64_t keys[], size_t n, int size, uint8_t *to)
{
    size_t used = n ? (n - 1) * size : 0;

    switch (size) {
    case 1:
        ENCODE(uint8_t);
    case 2:
        ENCODE(uint16_t);
    case 4:
        ENCODE(uint32_t);
    case 8:
        memcpy(to, keys + 1, used);
        break;
    }
    if (used & 3) {
        memset(to + used, 0, 4 - (used & 3));
    }
}

/* A sum that overflows would be less than the first key. */
#define DECODE(TYPE)                                            \
    for (size_t i = 1; i < n; i++) {                            \
        TYPE gap;                                               \
                                                                \
        memcpy(&gap, from + (i - 1) * sizeof gap, sizeof gap);  \
        key += (uint64_t) gap + 1;                              \
        keys[i] = key;                                          \
    }                                                           \
    return keys[n - 1] >= first && keys[n - 1] - first >= n - 1

bool
keys_decode(uint64_t first, const uint8_t *from, size_t n, int size,
            uint64_t keys[])
{
    uint64_t key = first;

    if (!n) {
        return true;
    }
    keys[0] = first;
    switch (size) {
    case 0:
        for (size_t i = 1; i < n; i++) {
            keys[i] = first + i;
        }
        return keys[n - 1] >= first;
    case 1:
        DECODE(uint8_t);
    case 2:
        DECODE(uint16_t);
    case 4:
        DECODE(uint32_t);
    case 8:
        memcpy(keys + 1, from, (n - 1) * sizeof *keys);
        return keys_choose(keys, n) != KEYS_UNSORTED;
    }
    return false;
}
