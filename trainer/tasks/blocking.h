/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BLOCKING_H
#define BLOCKING_H 1

/* Parameter blocking: parameters that all workers need, one after the other.
 *
 *
 * Motivation
 * ==========
 *
 * Where each sample has a row and a column, and rows are at home with workers,
 * columns are divided into as many blocks as there are workers, by chance so
 * that blocks are alike.  An epoch has as many parts; in each, every worker
 * has another block, and in all of them it has each once.  Within a part no
 * two workers touch the same parameters.
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
 * Not changed once made, so threads may share it. */

#include <stdint.h>

struct blocking {
    int n;                      /* Blocks, and workers. */
    uint64_t seed;
    uint32_t n_items;
    uint32_t *items;            /* Those of a block after the other. */
    uint32_t *starts;           /* Of each block; n + 1. */
    uint32_t *block_of;         /* Each item's. */
};

struct blocking *blocking_create(uint32_t n_items, int n, uint64_t seed);
void blocking_destroy(struct blocking *);

int blocking_block(const struct blocking *, uint64_t epoch, int part,
                   int worker);

/* Who has 'block' in a part. */
int blocking_worker(const struct blocking *, uint64_t epoch, int part,
                    int block);

#endif /* trainer/tasks/blocking.h */
