/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STORE_H
#define STORE_H 1

/* The values of one server of a store, by sparsely used 64-bit keys.
 *
 * An update is applied at once by the optimiser.  A read returns the updates
 * that the same worker has sent before it, and any of other workers'.
 *
 *    struct store *store = store_create(width, &optimiser);
 *    store_update_keys(store, keys, n, gradients);     // Adds missing keys.
 *    store_read_keys(store, keys, n, values);          // Missing ones are 0.
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

struct store;

/* Keys have 'width' values each. */
struct store *store_create(uint32_t width, const struct optimiser_config *);
void store_destroy(struct store *);

/* Keys strictly ascend. */
void store_update_keys(struct store *, const uint64_t keys[], size_t n,
                       const float *gradients);
void store_read_keys(const struct store *, const uint64_t keys[], size_t n,
                     float *values);

#endif /* trainer/ps/store.h */
