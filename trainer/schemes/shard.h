/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHARD_H
#define SHARD_H 1

/* Division of a range into shards, with lengths that differ by at most one:
 * the parameters among servers, a batch among workers. */

#include <stddef.h>

struct shard {
    size_t first, n;
};

/* Returns shard 'i' of 'n_shards' of 0 .. total - 1. */
static inline struct shard
shard_range(size_t total, size_t i, size_t n_shards)
{
    size_t part = total / n_shards, rest = total % n_shards;
    struct shard shard = {
        .first = i * part + (i < rest ? i : rest),
        .n = part + (i < rest),
    };

    return shard;
}

static inline size_t
shard_end(const struct shard *shard)
{
    return shard->first + shard->n;
}

#endif /* trainer/schemes/shard.h */
