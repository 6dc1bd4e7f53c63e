/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CUDA_KERNELS_H
#define CUDA_KERNELS_H 1

/* The kernels of the CUDA backend.
 *
 *
 * Motivation
 * ==========
 *
 * Kernels are C++ for nvcc and the rest of the backend is C; this header is
 * valid in both.  A function implements the member of struct backend_class of
 * the same name.
 *
 * No kernel uses atomics, and the order of each sum depends on sizes only, so
 * that two runs on a device are equal to the bit.
 *
 *
 * Usage
 * =====
 *
 *    cudaError_t error = cuda_kernels_count(stream, d_counter);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * All vectors are device memory of the caller.  Functions queue work on
 * 'stream' and return the error of the launch. */

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct convolution;
struct pooling;
struct shortcut;

/* Number of partial sums of a loss; each is over every
 * CUDA_KERNELS_N_PARTIALS-th row. */
#define CUDA_KERNELS_N_PARTIALS 512

struct cuda_partial {
    double loss;
    int64_t n_correct;
};

cudaError_t cuda_kernels_bias(cudaStream_t, int m, int n, const float *d_bias,
                              int relu, float *d_y);
cudaError_t cuda_kernels_relu_gradient(cudaStream_t, size_t n,
                                       const float *d_y, float *d_dy);
/* 'd_work' is memory for CUDA_KERNELS_WORK doubles. */
#define CUDA_KERNELS_WORK (2 * 65536)
cudaError_t cuda_kernels_column_sums(cudaStream_t, int m, int n,
                                     const float *d_y, double *d_work,
                                     float *d_sums);

/* The caller adds the CUDA_KERNELS_N_PARTIALS 'd_partials'. */
cudaError_t cuda_kernels_cross_entropy(cudaStream_t, int m, int n,
                                       const float *d_y,
                                       const int32_t *d_labels, float *d_dy,
                                       struct cuda_partial *d_partials);
cudaError_t cuda_kernels_margin_loss(cudaStream_t, int m, int hinge,
                                     const float *d_y,
                                     const int32_t *d_labels, float *d_dy,
                                     struct cuda_partial *d_partials);
cudaError_t cuda_kernels_accumulate(cudaStream_t, size_t n, float scale,
                                    const float *d_x, float *d_sum);
cudaError_t cuda_kernels_sgd(cudaStream_t, size_t n, float rate,
                             float momentum, const float *d_g, float *d_v,
                             float *d_w);
cudaError_t cuda_kernels_gather(cudaStream_t, int m, const uint32_t *d_starts,
                                const uint32_t *d_at, const float *d_values,
                                const float *d_x, float *d_y);

/* Adds 1 to the counter. */
cudaError_t cuda_kernels_count(cudaStream_t, uint32_t *d_counter);

/* Images. */

cudaError_t cuda_kernels_im2col(cudaStream_t, const struct convolution *,
                                int n, const float *d_x, float *d_columns);
cudaError_t cuda_kernels_col2im(cudaStream_t, const struct convolution *,
                                int n, const float *d_columns, int add,
                                float *d_x);
cudaError_t cuda_kernels_max_pool(cudaStream_t, const struct pooling *, int n,
                                  const float *d_x, float *d_y);

/* Writes only the elements that are not 0. */
cudaError_t cuda_kernels_max_pool_gradient(cudaStream_t,
                                           const struct pooling *, int n,
                                           const float *d_x,
                                           const float *d_dy, float *d_dx);
cudaError_t cuda_kernels_mean_pool(cudaStream_t, int n, int n_pixels,
                                   int n_channels, const float *d_x,
                                   float *d_y);
cudaError_t cuda_kernels_mean_pool_gradient(cudaStream_t, int n, int n_pixels,
                                            int n_channels, const float *d_dy,
                                            float *d_dx);
cudaError_t cuda_kernels_norm(cudaStream_t, int m, int n, const float *d_x,
                              const float *d_scale, const float *d_shift,
                              int relu, double *d_work, float *d_stats,
                              float *d_y);
cudaError_t cuda_kernels_norm_fixed(cudaStream_t, int m, int n,
                                    const float *d_x, const float *d_scale,
                                    const float *d_shift, int relu,
                                    const float *d_stats, float *d_y);
cudaError_t cuda_kernels_norm_gradient(cudaStream_t, int m, int n,
                                       const float *d_x, const float *d_y,
                                       const float *d_scale, int relu,
                                       const float *d_stats, double *d_work,
                                       const float *d_dy, float *d_dx,
                                       float *d_dscale, float *d_dshift);
cudaError_t cuda_kernels_join(cudaStream_t, const struct shortcut *, int n,
                              const float *d_x, float *d_y);
cudaError_t cuda_kernels_join_gradient(cudaStream_t, const struct shortcut *,
                                       int n, const float *d_dy, float *d_dx);

#ifdef __cplusplus
}
#endif

#endif /* trainer/backend/cuda-kernels.h */
