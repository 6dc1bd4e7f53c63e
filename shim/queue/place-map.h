/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PLACE_MAP_H
#define SHIM_PLACE_MAP_H 1

/* A set of places in an order, that finds the first one in two steps.
 *
 * 1,024 bits and a summary with a bit for each word of them that is not 0.
 * For one thread. */

#include <stdbool.h>
#include <stdint.h>

#define PLACE_MAP_SIZE 1024

struct place_map {
    uint32_t summary;           /* Bit N: words[N] is not 0. */
    uint64_t words[PLACE_MAP_SIZE / 64];
};

static inline void
place_map_add(struct place_map *map, uint32_t place)
{
    map->words[place / 64] |= UINT64_C(1) << place % 64;
    map->summary |= 1u << place / 64;
}

static inline void
place_map_remove(struct place_map *map, uint32_t place)
{
    map->words[place / 64] &= ~(UINT64_C(1) << place % 64);
    if (!map->words[place / 64]) {
        map->summary &= ~(1u << place / 64);
    }
}

static inline bool
place_map_is_empty(const struct place_map *map)
{
    return !map->summary;
}

/* Returns the least place; there must be one. */
static inline uint32_t
place_map_first(const struct place_map *map)
{
    uint32_t word = __builtin_ctz(map->summary);

    return word * 64 + __builtin_ctzll(map->words[word]);
}

/* Returns the least place after 'place', or the least of all if there is
 * none. */
static inline uint32_t
place_map_after(const struct place_map *map, uint32_t place)
{
    uint32_t word = place / 64;
    uint64_t bits = map->words[word] & ~UINT64_C(1) << place % 64;
    uint32_t later = map->summary & ~UINT32_C(1) << word;

    if (bits) {
        return word * 64 + __builtin_ctzll(bits);
    }
    if (later) {
        word = __builtin_ctz(later);
        return word * 64 + __builtin_ctzll(map->words[word]);
    }
    return place_map_first(map);
}

#endif /* shim/queue/place-map.h */
