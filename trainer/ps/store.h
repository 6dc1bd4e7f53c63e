/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_STORE_H
#define PS_STORE_H 1

/* What one server keeps for workers that push and pull as they like: its
 * range of a dense vector, and the values of its sparse keys.
 *
 * An update takes effect at once, through the optimiser.  A read sees each
 * value before or after an update of another worker, and all of one's own
 * updates that were sent before it.
 *
 *    struct store *store = store_create(&config);
 *    store_update(store, first, n, gradients);
 *    values = store_values(store, first);
 *    sparse_update(store->sparse, ...);
 *    store_destroy(store);
 *
 * Owns its memory.  One thread. */

#include <stddef.h>
#include <stdint.h>

#include "trainer/schemes/optimiser.h"
#include "trainer/schemes/shard.h"

struct sparse;

struct store {
    struct optimiser_config optimiser;
    struct shard shard;         /* Of the dense vector; may be empty. */
    uint32_t width;             /* Values of a key. */
    float *vectors[1 + OPTIMISER_MAX_STATES];   /* Dense; weights first. */
    struct sparse *sparse;
};

struct store *store_create(struct shard, uint32_t width,
                           const struct optimiser_config *);
void store_destroy(struct store *);

/* 'first' ... 'first + n - 1' are in the shard. */
void store_update(struct store *, uint64_t first, size_t n,
                  const float *gradients);
float *store_values(const struct store *, uint64_t first);

#endif /* trainer/ps/store.h */
