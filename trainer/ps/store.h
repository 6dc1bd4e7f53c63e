/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STORE_H
#define STORE_H 1

/* The values of one server of a store: its range of the dense vector, and its
 * sparsely used 64-bit keys.
 *
 * An update is applied at once by the optimiser.  A read returns the updates
 * that the same worker has sent before it, and any of other workers'.
 *
 *    struct store *store = store_create(shard, width, &optimiser);
 *    store_update(store, first, n, gradients);
 *    values = store_values(store, first);
 *    sparse_update(store->sparse, keys, n, gradients); // Adds missing keys.
 *    sparse_read(store->sparse, keys, n, values);      // Missing ones are 0.
 *    store_destroy(store);
 *
 * Pushes of keys are sorted batches, often of the same keys.  A hash table
 * would miss the cache for every key; here sorted leaves of a thousand keys
 * let a batch walk through memory in order, and runs of equal keys are
 * compared and updated together.
 *
 * Owns its memory, which grows with the number of keys.  One thread. */

#include <stddef.h>
#include <stdint.h>

#include "trainer/schemes/optimiser.h"
#include "trainer/schemes/shard.h"

struct sparse;

struct store {
    struct optimiser_config optimiser;
    struct shard shard;         /* Of the dense vector; may be empty. */
    uint32_t width;             /* Values of a key. */
    float *vectors[1 + OPTIMISER_MAX_STATES];   /* Dense: the weights, then the
                                                 * optimiser's states. */
    struct sparse *sparse;
};

struct store *store_create(struct shard, uint32_t width,
                           const struct optimiser_config *);
void store_destroy(struct store *);

/* Parameters 'first' to 'first + n - 1' are in the shard. */
void store_update(struct store *, uint64_t first, size_t n,
                  const float *gradients);
float *store_values(const struct store *, uint64_t first);

/* Keys with 'width' values each. */
struct sparse *sparse_create(uint32_t width, const struct optimiser_config *);
void sparse_destroy(struct sparse *);

/* Keys strictly ascend. */
void sparse_update(struct sparse *, const uint64_t keys[], size_t n,
                   const float *gradients);
void sparse_read(const struct sparse *, const uint64_t keys[], size_t n,
                 float *values);

#endif /* trainer/ps/store.h */
