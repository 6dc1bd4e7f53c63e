/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BLOCKING_H
#define BLOCKING_H 1

/* Parameter blocking: parameters that all workers need, one after the other.
 *
 *
 * Motivation
 * ==========
 *
 * If each sample has a row and a column and each row belongs to one worker,
 * the columns are divided at random into as many blocks as there are workers.
 * An epoch has as many parts.  In each part every worker has a different
 * block, so no two workers touch the same parameters; over the parts each
 * worker has each block once.
 *
 *
 * Usage
 * =====
 *
 *    b = blocking_create(n_columns, n_workers, seed);
 *    for (part = 0; part < n_workers; part++) {
 *        block = blocking_block(b, epoch, part, worker);
 *        ...localize the columns b->items[b->starts[block]] up to
 *           b->items[b->starts[block + 1]], train, barrier...
 *    }
 *    blocking_destroy(b);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Constant after creation, so threads may share it. */

#include <stdint.h>

struct blocking {
    int n;                      /* Number of blocks and of workers. */
    uint64_t seed;
    uint32_t *items;            /* Items, block by block. */
    uint32_t *starts;           /* First item of each block; n + 1 elements. */
    uint32_t *block_of;         /* Block of each item. */
};

struct blocking *blocking_create(uint32_t n_items, int n, uint64_t seed);
void blocking_destroy(struct blocking *);

int blocking_block(const struct blocking *, uint64_t epoch, int part,
                   int worker);

/* Returns the worker that has 'block' in a part. */
int blocking_worker(const struct blocking *, uint64_t epoch, int part,
                    int block);

#endif /* trainer/tasks/blocking.h */
