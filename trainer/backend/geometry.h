/* SPDX-License-Identifier: Apache-2.0 */

#ifndef GEOMETRY_H
#define GEOMETRY_H 1

/* Forms of the operations on images, in C and in CUDA's C++; see backend.h.
 * Plain data of the caller. */

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Convolution of images of height by width pixels and 'n_in' channels.  The
 * weights are a matrix of 'n_out' rows and, in the order of an image, kernel
 * by kernel by 'n_in' columns. */
struct convolution {
    int height, width, n_in;
    int n_out;
    int kernel, stride;
    int pad;                    /* Zeros on each side. */
    float *d_columns;           /* For the backend to work with: at least */
    size_t max_columns;         /* convolution_columns() elements. */
};

int convolution_height(const struct convolution *);     /* Of the output. */
int convolution_width(const struct convolution *);

/* Elements of one sample's rows of neighbourhoods; see im2col(). */
size_t convolution_columns(const struct convolution *);

/* Squares of 'size' by 'size' pixels, one beside the other; what is left over
 * at the right and below belongs to none. */
struct pooling {
    int height, width, n_channels;
    int size;
    bool relu;                  /* The input is the output of a ReLU;
                                 * max_pool_gradient() computes the gradient
                                 * of the ReLU, too. */
};

/* The way around a residual block.  Every 'stride'th pixel of the input, and
 * its channels in the middle of the output's, 0 beside them. */
struct shortcut {
    int height, width, n_in;    /* Of the input. */
    int n_out;                  /* At least 'n_in'. */
    int stride;                 /* Divides height and width. */
};

/* Batch normalisation: added to variances, and how fast running statistics
 * follow. */
#define BACKEND_NORM_EPSILON 1e-5f
#define BACKEND_NORM_RATE 0.1f

#ifdef __cplusplus
}
#endif

#endif /* trainer/backend/geometry.h */
