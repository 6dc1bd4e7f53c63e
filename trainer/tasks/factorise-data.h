/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FACTORISE_DATA_H
#define FACTORISE_DATA_H 1

/* Ratings of a factorisation, by worker and block.
 *
 * Rows are clusters that are assigned to workers; columns are in blocks;
 * ratings are sorted by worker, block, row and column.  The steps are the same
 * with a key store and with blocks that are sent around (factorise-manual.c).
 *
 * Constant after creation, so threads may share it. */

#include <stddef.h>
#include <stdint.h>

#include "trainer/schemes/shard.h"
#include "trainer/tasks/blocking.h"
#include "trainer/tasks/clustering.h"
#include "trainer/tasks/factorise-step.h"
#include "trainer/data/ratings.h"

struct options;

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

/* Returns the step for a rating, with its part of the weight decay of both
 * vectors. */
struct factorise_step factorise_data_step(const struct factorise_data *,
                                          size_t rank, double rate,
                                          const struct rating *);

/* Stores the initial vector of row 'i', or of column i - n_rows. */
void factorise_first_values(const struct options *, uint64_t i,
                            float *values);

float factorise_data_error(size_t rank, const struct rating *,
                           const float *w, const float *h);

#endif /* trainer/tasks/factorise-data.h */
