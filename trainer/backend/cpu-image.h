/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CPU_IMAGE_H
#define CPU_IMAGE_H 1

/* The CPU backend's operations on images and on columns.
 *
 * They implement the members of struct backend_class of the same name on one
 * core: most of the time of a net is in the products, for which OpenBLAS uses
 * its threads. */

#include "trainer/backend/backend.h"

void cpu_im2col(struct backend *, const struct convolution *, int n,
                const float *x, float *columns);
void cpu_col2im(struct backend *, const struct convolution *, int n,
                const float *columns, bool add, float *x);
void cpu_max_pool(struct backend *, const struct pooling *, int n,
                  const float *x, float *y);
void cpu_max_pool_gradient(struct backend *, const struct pooling *, int n,
                           const float *x, const float *dy, float *dx);
void cpu_mean_pool(struct backend *, int n, int n_pixels, int n_channels,
                   const float *x, float *y);
void cpu_mean_pool_gradient(struct backend *, int n, int n_pixels,
                            int n_channels, const float *dy, float *dx);
void cpu_join(struct backend *, const struct shortcut *, int n,
              const float *x, float *y);
void cpu_join_gradient(struct backend *, const struct shortcut *, int n,
                       const float *dy, float *dx);
void cpu_norm(struct backend *, int m, int n, const float *x,
              const float *scale, const float *shift, bool relu, float *stats,
              float *y);
void cpu_norm_fixed(struct backend *, int m, int n, const float *x,
                    const float *scale, const float *shift, bool relu,
                    const float *stats, float *y);
void cpu_norm_gradient(struct backend *, int m, int n, const float *x,
                       const float *y, const float *scale, bool relu,
                       const float *stats, float *dy, float *dx,
                       float *dscale, float *dshift);

#endif /* trainer/backend/cpu-image.h */
