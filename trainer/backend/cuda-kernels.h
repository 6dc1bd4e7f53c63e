/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CUDA_KERNELS_H
#define CUDA_KERNELS_H 1

/* The element-wise operations of the CUDA backend.
 *
 *
 * Motivation
 * ==========
 *
 * Kernels are C++ to nvcc, and all else of the backend is C: this header is
 * what both understand.  An operation here does what the member of struct
 * backend_class of the same name says.
 *
 * No kernel uses atomics, and what adds up numbers adds them in an order that
 * depends on the sizes only, so that two runs on a device agree to the bit.
 *
 *
 * Usage
 * =====
 *
 *    cudaError_t error = cuda_kernels_sgd(stream, n, rate, momentum, d_g, d_v,
 *                                         d_w);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * All vectors are device memory of the caller.  Calls only queue work on
 * 'stream'; they return what is wrong with the launch. */

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Summands of a cross entropy: each is the sum of every
 * CUDA_KERNELS_N_PARTIALS'th row. */
#define CUDA_KERNELS_N_PARTIALS 512

struct cuda_partial {
    double loss;
    int64_t n_correct;
};

cudaError_t cuda_kernels_bias(cudaStream_t, int m, int n, const float *d_bias,
                              int relu, float *d_y);
cudaError_t cuda_kernels_relu_gradient(cudaStream_t, size_t n,
                                       const float *d_y, float *d_dy);
cudaError_t cuda_kernels_column_sums(cudaStream_t, int m, int n,
                                     const float *d_y, float *d_sums);

/* The caller adds up the CUDA_KERNELS_N_PARTIALS 'd_partials'. */
cudaError_t cuda_kernels_cross_entropy(cudaStream_t, int m, int n,
                                       const float *d_y,
                                       const int32_t *d_labels, float *d_dy,
                                       struct cuda_partial *d_partials);
cudaError_t cuda_kernels_accumulate(cudaStream_t, size_t n, float scale,
                                    const float *d_x, float *d_sum);
cudaError_t cuda_kernels_sgd(cudaStream_t, size_t n, float rate,
                             float momentum, const float *d_g, float *d_v,
                             float *d_w);

#ifdef __cplusplus
}
#endif

#endif /* trainer/backend/cuda-kernels.h */
