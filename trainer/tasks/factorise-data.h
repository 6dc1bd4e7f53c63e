/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FACTORISE_DATA_H
#define FACTORISE_DATA_H 1

/* Ratings of a factorisation, by worker and block, and steps of stochastic
 * gradient descent on them.
 *
 * Rows are clusters that are assigned to workers; columns are in blocks;
 * ratings are sorted by worker, block, row and column.
 *
 * A rating x of row vector w and column vector h has the loss (x - w.h)^2 +
 * d_w |w|^2 + d_h |h|^2, with the weight decay of each.  A step follows the
 * gradient.  It changes the vectors in place or, if they belong to a store,
 * computes the changes.
 *
 * The ratings are constant after creation, so threads may share them.  Vectors
 * must not overlap. */

#include <stddef.h>
#include <stdint.h>

#include "trainer/data/ratings.h"
#include "trainer/schemes/shard.h"
#include "trainer/tasks/clustering.h"

struct options;

/* Parameter blocking: the columns are divided at random into as many blocks as
 * there are workers.  An epoch has as many parts.  In each part every worker
 * has a different block, so no two workers touch the same parameters; over the
 * parts each worker has each block once. */
struct blocking {
    int n;                      /* Number of blocks and of workers. */
    uint64_t seed;
    uint32_t *items;            /* Items, block by block. */
    uint32_t *starts;           /* First item of each block; n + 1 elements. */
    uint32_t *block_of;         /* Block of each item. */
};

struct blocking *blocking_create(uint32_t n_items, int n, uint64_t seed);
void blocking_destroy(struct blocking *);

/* Returns the block that 'worker' has in a part. */
int blocking_block(const struct blocking *, uint64_t epoch, int part,
                   int worker);

struct factorise_data {
    struct ratings *ratings;    /* Ratings minus their mean. */
    struct clustering *rows;
    struct blocking *columns;
    size_t *starts;             /* See factorise_data_first(). */
    float *shrink_row, *shrink_column;  /* In a step on each rating. */
};

char *factorise_data_create(const struct options *, int n_workers,
                            struct factorise_data **);
void factorise_data_destroy(struct factorise_data *);

/* Returns the index of the first rating of a worker in a block; the end of the
 * last block if the block has none. */
size_t factorise_data_first(const struct factorise_data *, int worker,
                            int block);

struct factorise_step {
    size_t rank;                /* Number of floats of a vector. */
    float rate;
    float value;                /* The rating. */
    float shrink_w, shrink_h;
};

/* Returns the step for a rating, with its part of the weight decay of both
 * vectors. */
struct factorise_step factorise_data_step(const struct factorise_data *,
                                          size_t rank, double rate,
                                          const struct rating *);

/* Stores the initial vector of row 'i', or of column i - n_rows. */
void factorise_first_values(const struct options *, uint64_t i, float *values);

float factorise_data_error(size_t rank, const struct rating *,
                           const float *w, const float *h);

/* Changes 'w' and 'h'.  Returns the previous x - w.h. */
float factorise_step(const struct factorise_step *, float *w, float *h);

/* Stores the changes that factorise_step() would make. */
float factorise_delta(const struct factorise_step *, const float *w,
                      const float *h, float *dw, float *dh);

/* The bold driver increases the length of steps while the loss falls, and
 * halves it otherwise. */
struct bold_driver {
    double rate;
    double last;                /* Last loss, 0 before the first one. */
};

/* Adapts the rate after an epoch with this loss. */
void bold_driver_run(struct bold_driver *, double loss);

#endif /* trainer/tasks/factorise-data.h */
