/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHARD_H
#define SHARD_H 1

/* Division of a range into shards, with lengths that differ by at most one:
 * the parameters among servers, a batch among workers. */

#include <stddef.h>
#include <stdint.h>

#define SHARD_MAX ((uint64_t) 1 << 29)          /* Parameters of a server. */
#define SHARD_MAX_TOTAL ((uint64_t) 1 << 32)    /* Of a model. */

struct shard {
    size_t first, n;
};

/* Returns shard 'i' of 'n_shards' of 0 .. total - 1. */
static inline struct shard
shard_range(size_t total, size_t i, size_t n_shards)
{
    size_t part = total / n_shards, rest = total % n_shards;
    struct shard shard = { .first = i * part + (i < rest ? i : rest),
                           .n = part + (i < rest) };

    return shard;
}

static inline size_t
shard_end(const struct shard *shard)
{
    return shard->first + shard->n;
}

/* Returns NULL, or a message if 'n_servers' cannot hold a model of
 * 'n_parameters'. */
char *shard_check(uint64_t n_parameters, uint64_t n_servers);

#endif /* trainer/schemes/shard.h */
