/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SERIES_H
#define SERIES_H 1

/* Data of a predictor: the speeds of the last iterations, and the load by
 * other programs before each of them and now.
 *
 * Iterations are counted from 0.  Speeds are known before iteration 'n', loads
 * up to 'n', the next one.  Networks learn best from numbers of about 1, so
 * speeds are fractions of the highest one.
 *
 * Plain data of the caller, initially zero. */

#include <stdint.h>

#define SERIES_N 256            /* Stored iterations, a power of 2. */
#define SERIES_TRAINING 200     /* Iterations that a network learns from. */
#define SERIES_WARM 30          /* Iterations before a network is used. */

struct series {
    uint64_t n;                 /* Iterations so far. */
    double max;                 /* Highest speed so far. */
    double average;             /* Exponential moving average of the speeds. */
    double speeds[SERIES_N];
    double cpus[SERIES_N], memories[SERIES_N];
};

void series_add(struct series *, double speed, double cpu, double memory);

/* Values of iteration 'k', one of the last SERIES_N - 1; iterations before the
 * first have its values. */
float series_speed(const struct series *, int64_t k);
float series_cpu(const struct series *, int64_t k);
float series_memory(const struct series *, int64_t k);

/* Returns the speed for a network's 'output', limited to half the lowest and
 * the highest speed seen. */
double series_rescale(const struct series *, float output);

#endif /* trainer/balance/series.h */
