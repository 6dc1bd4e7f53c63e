/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RATINGS_H
#define RATINGS_H 1

/* What is known of a matrix to be factorised: who gave what how many stars.
 *
 *
 * Motivation
 * ==========
 *
 * All nodes of a job read or make the same ratings, in the same order, and
 * each trains on its part.  One in twenty, the same everywhere, is held out to
 * judge by.
 *
 *
 * Usage
 * =====
 *
 *    error = ratings_open("generated", ...) or ratings_open("ml/ratings.dat")
 *    for (i = 0; i < r->n_train; i++) { r->all[i] ... }
 *    ratings_destroy(r);
 *
 * A file has a line for each rating: row, column, value and perhaps a time,
 * between "::" (MovieLens 1M and 10M), commas (MovieLens 20M on, whose first
 * line has names) or tabs (MovieLens 100k).  Rows and columns have any numbers
 * below 2^32; they are numbered anew from 0 on, in ascending order.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data, not changed once made. */

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
    size_t n_train;             /* The first ones; all others are held out. */
    size_t max_n;               /* There is memory for so many. */
    struct rating *all;
};

struct ratings_config {
    uint32_t n_rows, n_columns; /* Of a generated matrix. */
    size_t n;                   /* Likewise; of a file at most so many. */
    size_t n_held;              /* At most so many are kept to judge by. */
    uint64_t seed;
};

/* 'source' is "generated", or a file.  Returns NULL or a message. */
char *ratings_open(const char *source, const struct ratings_config *,
                   struct ratings **);
void ratings_destroy(struct ratings *);

/* Adds what 'stream' has, with its own numbers of rows and columns, until
 * there are 'max_n' ratings.  'name' is that of messages. */
char *ratings_read(const char *name, FILE *stream, size_t max_n,
                   struct ratings *);

#endif /* trainer/data/ratings.h */
