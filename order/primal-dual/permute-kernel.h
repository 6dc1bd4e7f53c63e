/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PERMUTE_KERNEL_H
#define PERMUTE_KERNEL_H 1

/* Inner loops of the permutation over the stages on one port.
 *
 * permute() spends nearly all its time in two passes over a port's stages: one
 * searches for the lowest price, the other charges all stages.  Both apply the
 * same few operations to every stage, so vector instructions process four
 * stages at a time.
 *
 * All kernels compute each stage's numbers by the same unfused operations, and
 * a minimum does not depend on the order of its operands.  Their results are
 * therefore the same to the last bit.
 *
 * No state except the choice by permute_use_portable(). */

#include <stddef.h>

/* Relative difference below which two numbers count as equal, so that rounding
 * errors do not decide between them. */
#define PERMUTE_TIE 1e-12

/* Lists, and all arrays that kernels write to, are padded to a multiple of
 * this number of elements. */
#define PERMUTE_LANES 8

/* Stages on one port. */
struct permute_list {
    int *stage;
    double *inverse;            /* Weight / seconds: price of a second if
                                 * nothing has been paid. */
    double *share;              /* 1 / inverse: share of the stage's weight
                                 * that a price of 1 charges. */
    size_t n;                   /* A multiple of PERMUTE_LANES. */
};

struct permute_kernel {
    /* Stores the price of each stage of the list in 'price': its element of
     * 'remaining', times 'inverse'.  Returns the lowest, INFINITY for none.
     * Stores the number of placed stages, which have INFINITY remaining, in
     * '*n_placed'. */
    double (*price)(const struct permute_list *, const double *remaining,
                    double *price, size_t *n_placed);

    /* Stores the indexes of the elements of 'price' that are at most 'limit'
     * in 'match' and returns their number. */
    size_t (*match)(const double *price, size_t n, double limit, int *match);

    /* Subtracts 'price' times 'share' from 'remaining' of each stage of the
     * list. */
    void (*charge)(const struct permute_list *, double price,
                   double *remaining);

    /* Returns the largest of the 'n' elements of 'load', at least 0. */
    double (*most)(const double *load, size_t n);

    /* Stores the indexes of the elements of 'load' that are at least 'line' in
     * 'hot' and returns their number. */
    size_t (*at_least)(const double *load, size_t n, double line, int *hot);
};

/* Returns the fastest kernel that the processor supports. */
const struct permute_kernel *permute_kernel(void);

#endif /* order/primal-dual/permute-kernel.h */
