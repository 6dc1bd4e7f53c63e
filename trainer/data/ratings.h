/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RATINGS_H
#define RATINGS_H 1

/* Ratings: the known elements of a matrix to be factorised.
 *
 * All nodes of a job read or generate the same ratings, in the same order, and
 * each trains on its part.  One in twenty, the same on all nodes, is for
 * validation.
 *
 *    error = ratings_open("ml/ratings.dat", &config, &r);
 *    for (i = 0; i < r->n_train; i++) { r->all[i] ... }
 *    ratings_destroy(r);
 *
 * A file has a line for each rating: row, column, value and optionally a time,
 * separated by "::" (MovieLens 1M and 10M), commas (MovieLens 20M and later,
 * with names in the first line) or tabs (MovieLens 100k).  Rows and columns
 * have arbitrary numbers below 2^32; they are renumbered from 0 on in this
 * order.
 *
 * Plain data, constant after creation. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct rating {
    uint32_t row, column;
    float value;
};

struct ratings {
    uint32_t n_rows, n_columns;
    size_t n;
    size_t n_train;             /* Training ratings come first; all others
                                 * are for validation. */
    size_t max_n;               /* Allocated size. */
    struct rating *all;
};

struct ratings_config {
    uint32_t n_rows, n_columns; /* Dimensions of a generated matrix. */
    size_t n;                   /* Number of generated ratings; file:
                                 * maximum. */
    size_t n_held;              /* Largest number of ratings for validation. */
    uint64_t seed;
};

/* Opens 'source', "generated" or a file.  Returns NULL or a message. */
char *ratings_open(const char *source, const struct ratings_config *,
                   struct ratings **);
void ratings_destroy(struct ratings *);

/* Adds ratings from 'stream', with the row and column numbers of the file, up
 * to 'max_n' ratings in all.  'name' is the name for messages. */
char *ratings_read(const char *name, FILE *stream, size_t max_n,
                   struct ratings *);

#endif /* trainer/data/ratings.h */
