/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_SPARSE_H
#define PS_SPARSE_H 1

/* Values of 64-bit keys, of which only few are in use.
 *
 *
 * Motivation
 * ==========
 *
 * Pushes come in sorted batches, often of the same keys again.  A hash table
 * would miss the cache for every key; here keys are kept sorted in leaves of
 * some thousand, so that a batch walks through memory in order and runs of
 * equal keys are compared and updated many at a time.
 *
 *
 * Usage
 * =====
 *
 *    struct sparse *sparse = sparse_create(width, &optimiser);
 *    sparse_update(sparse, keys, n, gradients);        // Adds missing keys.
 *    sparse_read(sparse, keys, n, values);             // Missing ones are 0.
 *    sparse_destroy(sparse);
 *
 * A checkpoint goes over the leaves:
 *
 *    for (i = 0; i < sparse_n_leaves(sparse); i++) {
 *        n = sparse_leaf(sparse, i, &keys, &values);
 *    }
 *    ...
 *    sparse_append(sparse, keys, n, values);           // Ascending.
 *
 *
 * Ownership and thread-safety
 * ===========================
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

/* Leaf 'i' has as many keys as this returns.  '*vectorsp' points to
 * 1 + n_states vectors, the weights first, each with that many times 'width'
 * values. */
size_t sparse_n_leaves(const struct sparse *);
size_t sparse_leaf(const struct sparse *, size_t i, const uint64_t **keysp,
                   float *const **vectorsp);

/* Adds 'n' keys, at most SPARSE_LEAF, behind all others, with vectors as
 * above. */
#define SPARSE_LEAF 1024
void sparse_append(struct sparse *, const uint64_t keys[], size_t n,
                   float *const vectors[]);

#endif /* trainer/ps/sparse.h */
