/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FACTORISE_DATA_H
#define FACTORISE_DATA_H 1

/* Which ratings each worker of a factorisation trains on, and when.
 *
 * Rows are clusters, dealt to workers; columns are in blocks; ratings are in
 * the order of worker, block, row and column.  With a store of keys or by
 * blocks sent to and fro (factorise-manual.c) the same steps are made.
 *
 * Not changed once made, so threads may share it. */

#include <stddef.h>
#include <stdint.h>

#include "trainer/schemes/shard.h"
#include "trainer/tasks/blocking.h"
#include "trainer/tasks/clustering.h"
#include "trainer/tasks/factorise-step.h"
#include "trainer/data/ratings.h"

struct options;

struct factorise_data {
    struct ratings *ratings;    /* Less their mean. */
    struct clustering *rows;
    struct blocking *columns;
    size_t *starts;             /* See factorise_data_first(). */
    float *shrink_row, *shrink_column;  /* In a step on each rating. */
};

char *factorise_data_create(const struct options *, int n_workers,
                            struct factorise_data **);
void factorise_data_destroy(struct factorise_data *);

/* The first of a worker's ratings in a block, which may be one behind the
 * last. */
size_t factorise_data_first(const struct factorise_data *, int worker,
                            int block);

/* A step on a rating, of which each is to shrink its vectors by its part. */
struct factorise_step factorise_data_step(const struct factorise_data *,
                                          size_t rank, double rate,
                                          const struct rating *);

/* First values of row 'i', or of column i - n_rows. */
void factorise_first_values(const struct options *, uint64_t i,
                            float *values);

float factorise_data_error(size_t rank, const struct rating *,
                           const float *w, const float *h);

#endif /* trainer/tasks/factorise-data.h */
