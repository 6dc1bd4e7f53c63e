/* SPDX-License-Identifier: Apache-2.0 */

/* Operations by kernels, and the table of the backend. */

#include "trainer/backend/cuda.h"

#include <math.h>

static void
cuda_bias(struct backend *b, int m, int n, const float *d_bias, bool relu,
          float *d_y)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "bias",
               cuda_kernels_bias(cuda->stream, m, n, d_bias, relu, d_y));
}

static void
cuda_relu_gradient(struct backend *b, size_t n, const float *d_y, float *d_dy)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "relu_gradient",
               cuda_kernels_relu_gradient(cuda->stream, n, d_y, d_dy));
}

static void
cuda_column_sums(struct backend *b, int m, int n, const float *d_y,
                 float *d_sums)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "column_sums",
               cuda_kernels_column_sums(cuda->stream, m, n, d_y, cuda->d_work,
                                        d_sums));
}

/* Copies the partial sums of a loss to the memory that losses() reads. */
static void
post_partials(struct cuda *cuda)
{
    cuda_check(cuda, "loss",
               cudaMemcpyAsync((void *) cuda->mailbox->partials,
                               cuda->d_partials,
                               sizeof cuda->mailbox->partials,
                               cudaMemcpyDeviceToHost, cuda->stream));
}

static void
cuda_cross_entropy(struct backend *b, int m, int n, const float *d_y,
                   const int32_t *d_labels, float *d_dy)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "cross_entropy",
               cuda_kernels_cross_entropy(cuda->stream, m, n, d_y, d_labels,
                                          d_dy, cuda->d_partials));
    post_partials(cuda);
}

static void
cuda_margin_loss(struct backend *b, int m, bool hinge, const float *d_y,
                 const int32_t *d_labels, float *d_dy)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "margin_loss",
               cuda_kernels_margin_loss(cuda->stream, m, hinge, d_y, d_labels,
                                        d_dy, cuda->d_partials));
    post_partials(cuda);
}

static void
cuda_losses(struct backend *b, double *loss_sum, int *n_correct)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_sync(b);
    *loss_sum = cuda->failure[0] ? NAN : 0;
    *n_correct = 0;
    for (int i = 0; i < CUDA_KERNELS_N_PARTIALS; i++) {
        *loss_sum += cuda->mailbox->partials[i].loss;
        *n_correct += cuda->mailbox->partials[i].n_correct;
    }
}

static void
cuda_im2col(struct backend *b, const struct convolution *c, int n,
            const float *d_x, float *d_columns)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "im2col",
               cuda_kernels_im2col(cuda->stream, c, n, d_x, d_columns));
}

static void
cuda_col2im(struct backend *b, const struct convolution *c, int n,
            const float *d_columns, bool add, float *d_x)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "col2im",
               cuda_kernels_col2im(cuda->stream, c, n, d_columns, add, d_x));
}

static void
cuda_max_pool(struct backend *b, const struct pooling *p, int n,
              const float *d_x, float *d_y)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "max_pool",
               cuda_kernels_max_pool(cuda->stream, p, n, d_x, d_y));
}

static void
cuda_max_pool_gradient(struct backend *b, const struct pooling *p, int n,
                       const float *d_x, const float *d_dy, float *d_dx)
{
    struct cuda *cuda = cuda_cast(b);
    size_t size = (size_t) n * p->height * p->width * p->n_channels;

    cuda_check(cuda, "max_pool_gradient",
               cudaMemsetAsync(d_dx, 0, size * sizeof *d_dx, cuda->stream));
    cuda_check(cuda, "max_pool_gradient",
               cuda_kernels_max_pool_gradient(cuda->stream, p, n, d_x, d_dy,
                                              d_dx));
}

static void
cuda_mean_pool(struct backend *b, int n, int n_pixels, int n_channels,
               const float *d_x, float *d_y)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "mean_pool",
               cuda_kernels_mean_pool(cuda->stream, n, n_pixels, n_channels,
                                      d_x, d_y));
}

static void
cuda_mean_pool_gradient(struct backend *b, int n, int n_pixels,
                        int n_channels, const float *d_dy, float *d_dx)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "mean_pool_gradient",
               cuda_kernels_mean_pool_gradient(cuda->stream, n, n_pixels,
                                               n_channels, d_dy, d_dx));
}

static void
cuda_norm(struct backend *b, int m, int n, const float *d_x,
          const float *d_scale, const float *d_shift, bool relu,
          float *d_stats, float *d_y)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "norm",
               cuda_kernels_norm(cuda->stream, m, n, d_x, d_scale, d_shift,
                                 relu, cuda->d_work, d_stats, d_y));
}

static void
cuda_norm_fixed(struct backend *b, int m, int n, const float *d_x,
                const float *d_scale, const float *d_shift, bool relu,
                const float *d_stats, float *d_y)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "norm_fixed",
               cuda_kernels_norm_fixed(cuda->stream, m, n, d_x, d_scale,
                                       d_shift, relu, d_stats, d_y));
}

static void
cuda_norm_gradient(struct backend *b, int m, int n, const float *d_x,
                   const float *d_y, const float *d_scale, bool relu,
                   const float *d_stats, float *d_dy, float *d_dx,
                   float *d_dscale, float *d_dshift)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "norm_gradient",
               cuda_kernels_norm_gradient(cuda->stream, m, n, d_x, d_y,
                                          d_scale, relu, d_stats, cuda->d_work,
                                          d_dy, d_dx, d_dscale, d_dshift));
}

static void
cuda_join(struct backend *b, const struct shortcut *s, int n,
          const float *d_x, float *d_y)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "join",
               cuda_kernels_join(cuda->stream, s, n, d_x, d_y));
}

static void
cuda_join_gradient(struct backend *b, const struct shortcut *s, int n,
                   const float *d_dy, float *d_dx)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "join_gradient",
               cuda_kernels_join_gradient(cuda->stream, s, n, d_dy, d_dx));
}

static void
cuda_gather(struct backend *b, int m, const uint32_t *d_starts,
            const uint32_t *d_at, const float *d_values, const float *d_x,
            float *d_y)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "gather",
               cuda_kernels_gather(cuda->stream, m, d_starts, d_at, d_values,
                                   d_x, d_y));
}

static void
cuda_accumulate(struct backend *b, size_t n, float scale, const float *d_x,
                float *d_sum)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "accumulate",
               cuda_kernels_accumulate(cuda->stream, n, scale, d_x, d_sum));
}

static void
cuda_sgd(struct backend *b, size_t n, float rate, float momentum,
         const float *d_g, float *d_v, float *d_w)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(cuda, "sgd",
               cuda_kernels_sgd(cuda->stream, n, rate, momentum, d_g, d_v,
                                d_w));
}

const struct backend_class backend_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .upload = cuda_upload,
    .download = cuda_download,
    .gemm = cuda_gemm,
    .bias = cuda_bias,
    .relu_gradient = cuda_relu_gradient,
    .column_sums = cuda_column_sums,
    .cross_entropy = cuda_cross_entropy,
    .margin_loss = cuda_margin_loss,
    .losses = cuda_losses,
    .im2col = cuda_im2col,
    .col2im = cuda_col2im,
    .convolve = cuda_convolve,
    .convolve_weights = cuda_convolve_weights,
    .convolve_input = cuda_convolve_input,
    .max_pool = cuda_max_pool,
    .max_pool_gradient = cuda_max_pool_gradient,
    .mean_pool = cuda_mean_pool,
    .mean_pool_gradient = cuda_mean_pool_gradient,
    .norm = cuda_norm,
    .norm_fixed = cuda_norm_fixed,
    .norm_gradient = cuda_norm_gradient,
    .join = cuda_join,
    .join_gradient = cuda_join_gradient,
    .gather = cuda_gather,
    .accumulate = cuda_accumulate,
    .sgd = cuda_sgd,
    .sync = cuda_sync,
    .alloc_host = cuda_alloc_host,
    .free_host = cuda_free_host,
    .step = cuda_step,
    .send = cuda_send,
    .leave = cuda_leave,
    .await = cuda_await,
    .record = cuda_record,
    .record_end = cuda_record_end,
    .replay = cuda_replay,
    .recording_free = cuda_recording_free,
    .set_tf32 = cuda_set_tf32,
    .failure = cuda_failure,
};
