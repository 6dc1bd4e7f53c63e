/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SERIES_H
#define SERIES_H 1

/* What a predictor remembers of its worker: the last iterations' speeds, and
 * what others used before each of them and use now.
 *
 * Iterations count from 0.  Speeds are known of those before 'n', uses of
 * those up to 'n', the one to come.  Networks learn best from numbers of about
 * 1, so speeds are given as parts of the highest one.
 *
 * Plain data of the caller, zeroed at first. */

#include <stdint.h>

#define SERIES_N 256            /* Iterations kept: a power of 2. */
#define SERIES_TRAINING 200     /* Of these a network learns from the last. */
#define SERIES_WARM 30          /* Iterations before it is believed. */

struct series {
    uint64_t n;                 /* Iterations so far. */
    double max;                 /* Highest speed so far. */
    double average;             /* Exponential moving, of the speeds. */
    double speeds[SERIES_N];
    double cpus[SERIES_N], memories[SERIES_N];
};

void series_add(struct series *, double speed, double cpu, double memory);

/* Of iteration 'k', one of the last SERIES_N - 1; iterations before the first
 * are as the first. */
float series_speed(const struct series *, int64_t k);
float series_cpu(const struct series *, int64_t k);
float series_memory(const struct series *, int64_t k);

/* The speed for a network's 'output'.  A network that has gone astray is
 * held to what has been: half the lowest to the highest speed it knows. */
double series_rescale(const struct series *, float output);

#endif /* trainer/balance/series.h */
