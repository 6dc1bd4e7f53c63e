/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SPARSE_H
#define SPARSE_H 1

/* Values of sparsely used 64-bit keys.
 *
 * Pushes are sorted batches, often of the same keys.  A hash table would miss
 * the cache for every key; here sorted leaves of a thousand keys let a batch
 * walk through memory in order, and runs of equal keys are compared and
 * updated together.
 *
 *    struct sparse *sparse = sparse_create(width, &optimiser);
 *    sparse_update(sparse, keys, n, gradients);        // Adds missing keys.
 *    sparse_read(sparse, keys, n, values);             // Missing ones are 0.
 *    sparse_destroy(sparse);
 *
 * Owns its memory, which grows with the number of keys.  One thread. */

#include <stddef.h>
#include <stdint.h>

#include "trainer/schemes/optimiser.h"

struct sparse;

/* 'width' values for each key. */
struct sparse *sparse_create(uint32_t width, const struct optimiser_config *);
void sparse_destroy(struct sparse *);

/* Keys strictly ascend. */
void sparse_update(struct sparse *, const uint64_t keys[], size_t n,
                   const float *gradients);
void sparse_read(const struct sparse *, const uint64_t keys[], size_t n,
                 float *values);
size_t sparse_n_keys(const struct sparse *);

#endif /* trainer/ps/sparse.h */
