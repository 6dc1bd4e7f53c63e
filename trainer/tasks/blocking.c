/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/tasks/blocking.h"

#include <stdlib.h>

#include "base/memory.h"
#include "trainer/schemes/shard.h"
#include "trainer/data/seeded.h"

struct blocking *
blocking_create(uint32_t n_items, int n, uint64_t seed)
{
    struct blocking *b = allocate(1, sizeof *b);

    b->n = n;
    b->seed = seed;
    b->items = allocate(n_items, sizeof *b->items);
    b->starts = allocate(n + 1, sizeof *b->starts);
    b->block_of = allocate(n_items, sizeof *b->block_of);
    for (uint32_t i = 0; i < n_items; i++) {
        b->items[i] = seeded_permute(seed, i, n_items);
    }
    for (int block = 0; block < n; block++) {
        struct shard shard = shard_range(n_items, block, n);

        b->starts[block] = shard.first;
        for (size_t i = shard.first; i < shard_end(&shard); i++) {
            b->block_of[b->items[i]] = block;
        }
    }
    b->starts[n] = n_items;
    return b;
}

void
blocking_destroy(struct blocking *b)
{
    if (b) {
        free(b->items);
        free(b->starts);
        free(b->block_of);
        free(b);
    }
}

/* Returns the distance between worker and block in a part; each distance
 * occurs once per epoch. */
static int
distance(const struct blocking *b, uint64_t epoch, int part)
{
    return seeded_permute(b->seed + epoch, part, b->n);
}

int
blocking_block(const struct blocking *b, uint64_t epoch, int part, int worker)
{
    return (worker + distance(b, epoch, part)) % b->n;
}

int
blocking_worker(const struct blocking *b, uint64_t epoch, int part, int block)
{
    return (block + b->n - distance(b, epoch, part)) % b->n;
}
