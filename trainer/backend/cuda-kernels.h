/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CUDA_KERNELS_H
#define CUDA_KERNELS_H 1

/* The kernels of the CUDA backend.
 *
 * Kernels are C++ for nvcc and the rest of the backend is C; this header is
 * valid in both.  A function implements the member of struct backend_class of
 * the same name.
 *
 * The order of each sum depends on sizes only, so that two runs on a device
 * are equal to the bit.  There are no atomic operations.
 *
 *    cuda_count(b, d_counter);
 *
 * All vectors are device memory of the caller.  Functions queue work on
 * cuda_stream() and pass the error of the launch to cuda_check(). */

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct backend;
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

/* What kernels use of the backend (cuda.c). */

cudaStream_t cuda_stream(struct backend *);

/* Returns memory for CUDA_KERNELS_WORK doubles. */
#define CUDA_KERNELS_WORK (2 * 65536)
double *cuda_work(struct backend *);

/* May convolutions use TF32? */
bool cuda_has_tf32(struct backend *);

/* Returns memory for the partial sums of a loss, and copies them to the memory
 * that losses() reads. */
struct cuda_partial *cuda_partials(struct backend *);
void cuda_post_partials(struct backend *);

/* Keeps the first failure.  A kernel's own fault shows at a later call. */
void cuda_check(struct backend *, const char *what, cudaError_t);

/* Vectors and losses (cuda-kernels.cu). */

void cuda_bias(struct backend *, int m, int n, const float *d_bias, bool relu,
               float *d_y);
void cuda_relu_gradient(struct backend *, size_t n, const float *d_y,
                        float *d_dy);
void cuda_column_sums(struct backend *, int m, int n, const float *d_y,
                      float *d_sums);
void cuda_cross_entropy(struct backend *, int m, int n, const float *d_y,
                        const int32_t *d_labels, float *d_dy);
void cuda_margin_loss(struct backend *, int m, bool hinge, const float *d_y,
                      const int32_t *d_labels, float *d_dy);
void cuda_accumulate(struct backend *, size_t n, float scale,
                     const float *d_x, float *d_sum);
void cuda_sgd(struct backend *, size_t n, float rate, float momentum,
              const float *d_g, float *d_v, float *d_w);
void cuda_gather(struct backend *, int m, const uint32_t *d_starts,
                 const uint32_t *d_at, const float *d_values,
                 const float *d_x, float *d_y);

/* Convolutions (cuda-convolve.cu). */

bool cuda_convolve(struct backend *, const struct convolution *, int n,
                   const float *d_x, const float *d_w, float *d_y);
bool cuda_convolve_weights(struct backend *, const struct convolution *, int n,
                           const float *d_x, const float *d_dy, float *d_dw);
bool cuda_convolve_input(struct backend *, const struct convolution *, int n,
                         const float *d_dy, const float *d_w, bool add,
                         float *d_dx);

/* The same by cuDNN (cuda-dnn.c). */

bool cuda_dnn_convolve(struct backend *, const struct convolution *, int n,
                       const float *d_x, const float *d_w, float *d_y);
bool cuda_dnn_convolve_weights(struct backend *, const struct convolution *,
                               int n, const float *d_x, const float *d_dy,
                               float *d_dw);
bool cuda_dnn_convolve_input(struct backend *, const struct convolution *,
                             int n, const float *d_dy, const float *d_w,
                             bool add, float *d_dx);

/* Adds 1 to the counter. */
void cuda_count(struct backend *, uint32_t *d_counter);

/* Images (cuda-image.cu). */

void cuda_im2col(struct backend *, const struct convolution *, int n,
                 const float *d_x, float *d_columns);
void cuda_col2im(struct backend *, const struct convolution *, int n,
                 const float *d_columns, bool add, float *d_x);
void cuda_max_pool(struct backend *, const struct pooling *, int n,
                   const float *d_x, float *d_y);
void cuda_max_pool_gradient(struct backend *, const struct pooling *, int n,
                            const float *d_x, const float *d_dy, float *d_dx);
void cuda_mean_pool(struct backend *, int n, int n_pixels, int n_channels,
                    const float *d_x, float *d_y);
void cuda_mean_pool_gradient(struct backend *, int n, int n_pixels,
                             int n_channels, const float *d_dy, float *d_dx);
void cuda_norm(struct backend *, int m, int n, const float *d_x,
               const float *d_scale, const float *d_shift, bool relu,
               float *d_stats, float *d_y);
void cuda_norm_fixed(struct backend *, int m, int n, const float *d_x,
                     const float *d_scale, const float *d_shift, bool relu,
                     const float *d_stats, float *d_y);
void cuda_norm_gradient(struct backend *, int m, int n, const float *d_x,
                        const float *d_y, const float *d_scale, bool relu,
                        const float *d_stats, float *d_dy, float *d_dx,
                        float *d_dscale, float *d_dshift);
void cuda_join(struct backend *, const struct shortcut *, int n,
               const float *d_x, float *d_y);
void cuda_join_gradient(struct backend *, const struct shortcut *, int n,
                        const float *d_dy, float *d_dx);

#ifdef __cplusplus
}
#endif

#endif /* trainer/backend/cuda-kernels.h */
