/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PERMUTE_KERNEL_H
#define PERMUTE_KERNEL_H 1

/* The inner loops of the permutation: over the stages on one port.
 *
 *
 * Motivation
 * ==========
 *
 * Nearly all the time of permute() goes into two passes over a port's stages,
 * one that looks for the lowest price and one that charges all of them.  Both
 * are the same few operations on every stage, so that vector instructions can
 * do four at a time.
 *
 * Each stage's numbers come out of the same operations in every kernel, none
 * of them fused, and a minimum does not depend on the order in which it is
 * taken.  So all kernels have the same results, to the last bit.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state but permute_use_portable()'s choice. */

#include <stddef.h>

/* Relative difference below which two numbers are the same number, computed
 * twice: what decides between them must not be the last bit. */
#define PERMUTE_TIE 1e-12

/* Lists are filled up to a multiple of so many elements, and so are all arrays
 * that kernels write to. */
#define PERMUTE_LANES 8

/* Stages on one port. */
struct permute_list {
    int *stage;
    double *inverse;            /* Weight / seconds: price of a second here if
                                 * nothing has been paid. */
    double *share;              /* 1 / inverse: share of the stage's weight
                                 * that a price of 1 takes. */
    size_t n;                   /* A multiple of PERMUTE_LANES. */
};

struct permute_kernel {
    /* Stores the price of each stage in 'list' in 'price' and returns the
     * lowest, INFINITY for none: the share of its weight that 'left' says it
     * has left, times 'inverse'.  Stores in '*n_placed' how many stages are
     * placed, which is to have INFINITY left. */
    double (*price)(const struct permute_list *, const double *left,
                    double *price, size_t *n_placed);

    /* Stores which of the 'n' elements of 'price' are at most 'limit' in
     * 'match' and returns how many. */
    size_t (*match)(const double *price, size_t n, double limit, int *match);

    /* Takes 'price' times 'share' from what all in 'list' have left. */
    void (*charge)(const struct permute_list *, double price, double *left);

    /* Returns the largest of the 'n' elements of 'load', 0 if none is more. */
    double (*most)(const double *load, size_t n);

    /* Stores which of the 'n' elements of 'load' are at least 'line' in
     * 'hot' and returns how many. */
    size_t (*at_least)(const double *load, size_t n, double line, int *hot);
};

/* The fastest kernel that this processor can run. */
const struct permute_kernel *permute_kernel(void);

#endif /* order/permute-kernel.h */
