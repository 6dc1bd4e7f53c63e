/* SPDX-License-Identifier: Apache-2.0 */

#ifndef VECTOR_H
#define VECTOR_H 1

/* Loops over short vectors of floats.
 *
 * Tasks with a key store spend their time in sums of products of some hundred
 * floats.  A compiler may not reorder a sum, so these functions use vectors
 * explicitly.  The order of a sum is the same on every processor, and so is
 * its result.
 *
 * Pure functions.  Vectors of one call do not overlap. */

#include <stddef.h>

/* A function with WIDE is compiled for two instruction sets; the one that the
 * processor has is called.  ThreadSanitizer cannot watch the function that
 * chooses it, which runs while the program is loaded. */
#if defined __x86_64__ && !defined __clang__ && !defined __SANITIZE_THREAD__
#define WIDE __attribute__((__target_clones__("avx2", "default")))
#else
#define WIDE
#endif

float vector_dot(size_t n, const float *a, const float *b);

/* y += factor * x. */
void vector_add(size_t n, float factor, const float *x, float *y);

/* y = factor * x. */
void vector_scale(size_t n, float factor, const float *x, float *y);

/* AdaGrad: replaces a gradient 'g' by the change of the vector, and stores the
 * change of its sum of squares. */
void vector_adagrad(size_t n, float rate, const float *sum, float *g,
                    float *add_to_sum);

#endif /* trainer/models/vector.h */
