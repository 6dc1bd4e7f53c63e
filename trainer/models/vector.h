/* SPDX-License-Identifier: Apache-2.0 */

#ifndef VECTOR_H
#define VECTOR_H 1

/* Loops over short vectors of floats.
 *
 *
 * Motivation
 * ==========
 *
 * The tasks whose parameters are keys of a store spend their time in sums of
 * products of some hundred floats.  A compiler may not reorder a sum, so the
 * lanes are written out; and the order is the same whatever the processor has,
 * so results are, too.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Pure functions.  Vectors of one call do not overlap. */

#include <stddef.h>

float vector_dot(size_t n, const float *a, const float *b);

/* y += factor * x. */
void vector_add(size_t n, float factor, const float *x, float *y);

/* y = factor * x. */
void vector_scale(size_t n, float factor, const float *x, float *y);

/* AdaGrad: makes of a gradient 'g' what to add to the vector, in its place,
 * and what to add to its sum of squares. */
void vector_adagrad(size_t n, float rate, const float *sum, float *g,
                    float *add_to_sum);

#endif /* trainer/models/vector.h */
