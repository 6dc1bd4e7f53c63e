/* SPDX-License-Identifier: Apache-2.0 */

/* Kernels of images and of batch normalisation. */

#include "trainer/backend/cuda-kernels.h"

#include "trainer/backend/cuda-columns.h"
#include "trainer/backend/cuda-launch.h"
#include "trainer/backend/geometry.h"

/* Convolution. */

/* One thread an element of the neighbourhoods. */
static __global__ void
im2col_kernel(size_t n_elements, struct convolution c, int out_height,
              int out_width, const float *x, float *columns)
{
    FOR_EACH_ELEMENT (i, n_elements) {
        size_t left = over(i, c.n_in);
        int channel = rest(i, c.n_in);
        int kx = rest(left, c.kernel), ky, ox, oy, row, column;

        left = over(left, c.kernel);
        ky = rest(left, c.kernel);
        left = over(left, c.kernel);
        ox = rest(left, out_width);
        left = over(left, out_width);
        oy = rest(left, out_height);
        left = over(left, out_height);          /* The image. */
        row = oy * c.stride - c.pad + ky;
        column = ox * c.stride - c.pad + kx;
        columns[i] = row >= 0 && row < c.height && column >= 0
                     && column < c.width
                     ? x[((left * c.height + row) * c.width + column) * c.n_in
                         + channel]
                     : 0;
    }
}

cudaError_t
cuda_kernels_im2col(cudaStream_t stream, const struct convolution *c, int n,
                    const float *d_x, float *d_columns)
{
    size_t n_elements = n * convolution_columns(c);

    if (!n_elements) {
        return cudaSuccess;
    }
    return LAUNCH(im2col_kernel, n_blocks(n_elements), BLOCK, stream,
                  n_elements, *c, convolution_height(c), convolution_width(c),
                  d_x, d_columns);
}

/* One thread an element of the images, which looks for its copies. */
static __global__ void
col2im_kernel(size_t n_elements, struct convolution c, int out_height,
              int out_width, const float *columns, int add, float *x)
{
    FOR_EACH_ELEMENT (i, n_elements) {
        int channel = rest(i, c.n_in);
        size_t left = over(i, c.n_in);
        int column = rest(left, c.width), row;
        float sum = 0;

        left = over(left, c.width);
        row = rest(left, c.height);
        left = over(left, c.height);            /* The image. */
        for (int ky = 0; ky < c.kernel; ky++) {
            int oy = row + c.pad - ky;

            if (oy < 0 || oy % c.stride || oy / c.stride >= out_height) {
                continue;
            }
            for (int kx = 0; kx < c.kernel; kx++) {
                int ox = column + c.pad - kx;
                size_t pixel;

                if (ox < 0 || ox % c.stride || ox / c.stride >= out_width) {
                    continue;
                }
                pixel = (left * out_height + oy / c.stride) * out_width
                        + ox / c.stride;
                sum += columns[((pixel * c.kernel + ky) * c.kernel + kx)
                               * c.n_in + channel];
            }
        }
        x[i] = add ? x[i] + sum : sum;
    }
}

cudaError_t
cuda_kernels_col2im(cudaStream_t stream, const struct convolution *c, int n,
                    const float *d_columns, int add, float *d_x)
{
    size_t n_elements = (size_t) n * c->height * c->width * c->n_in;

    if (!n_elements) {
        return cudaSuccess;
    }
    return LAUNCH(col2im_kernel, n_blocks(n_elements), BLOCK, stream,
                  n_elements, *c, convolution_height(c), convolution_width(c),
                  d_columns, add, d_x);
}

/* Pooling. */

/* Where the first of the largest of output 'i' is in the input. */
static __device__ size_t
largest_of_square(const struct pooling &p, size_t i, const float *x)
{
    int rows = p.height / p.size, columns = p.width / p.size;
    int channel = rest(i, p.n_channels), row, column;
    size_t left = over(i, p.n_channels), first, best;

    column = rest(left, columns);
    left = over(left, columns);
    row = rest(left, rows);
    left = over(left, rows);                    /* The image. */
    first = ((left * p.height + row * p.size) * p.width + column * p.size)
            * p.n_channels + channel;
    best = first;
    for (int j = 0; j < p.size; j++) {
        for (int k = 0; k < p.size; k++) {
            size_t at = first + ((size_t) j * p.width + k) * p.n_channels;

            best = x[at] > x[best] ? at : best;
        }
    }
    return best;
}

static __global__ void
max_pool_kernel(size_t n_elements, struct pooling p, const float *x, float *y)
{
    FOR_EACH_ELEMENT (i, n_elements) {
        y[i] = x[largest_of_square(p, i, x)];
    }
}

static __global__ void
max_pool_gradient_kernel(size_t n_elements, struct pooling p, const float *x,
                         const float *dy, float *dx)
{
    FOR_EACH_ELEMENT (i, n_elements) {
        dx[largest_of_square(p, i, x)] = dy[i];
    }
}

static size_t
pooled_size(const struct pooling *p, int n)
{
    return (size_t) n * (p->height / p->size) * (p->width / p->size)
           * p->n_channels;
}

cudaError_t
cuda_kernels_max_pool(cudaStream_t stream, const struct pooling *p, int n,
                      const float *d_x, float *d_y)
{
    size_t n_elements = pooled_size(p, n);

    if (!n_elements) {
        return cudaSuccess;
    }
    return LAUNCH(max_pool_kernel, n_blocks(n_elements), BLOCK, stream,
                  n_elements, *p, d_x, d_y);
}

cudaError_t
cuda_kernels_max_pool_gradient(cudaStream_t stream, const struct pooling *p,
                               int n, const float *d_x, const float *d_dy,
                               float *d_dx)
{
    size_t n_elements = pooled_size(p, n);

    if (!n_elements) {
        return cudaSuccess;
    }
    return LAUNCH(max_pool_gradient_kernel, n_blocks(n_elements), BLOCK,
                  stream, n_elements, *p, d_x, d_dy, d_dx);
}

static __global__ void
mean_pool_kernel(size_t n_elements, int n_pixels, int n_channels,
                 const float *x, float *y)
{
    FOR_EACH_ELEMENT (i, n_elements) {
        const float *first = x + over(i, n_channels) * n_pixels * n_channels
                             + rest(i, n_channels);
        float sum = 0;

        for (int j = 0; j < n_pixels; j++) {
            sum += first[(size_t) j * n_channels];
        }
        y[i] = sum / n_pixels;
    }
}

static __global__ void
mean_pool_gradient_kernel(size_t n_elements, int n_pixels, int n_channels,
                          const float *dy, float *dx)
{
    FOR_EACH_ELEMENT (i, n_elements) {
        size_t image = over(over(i, n_channels), n_pixels);

        dx[i] = dy[image * n_channels + rest(i, n_channels)] / n_pixels;
    }
}

cudaError_t
cuda_kernels_mean_pool(cudaStream_t stream, int n, int n_pixels,
                       int n_channels, const float *d_x, float *d_y)
{
    size_t n_elements = (size_t) n * n_channels;

    if (!n_elements) {
        return cudaSuccess;
    }
    return LAUNCH(mean_pool_kernel, n_blocks(n_elements), BLOCK, stream,
                  n_elements, n_pixels, n_channels, d_x, d_y);
}

cudaError_t
cuda_kernels_mean_pool_gradient(cudaStream_t stream, int n, int n_pixels,
                                int n_channels, const float *d_dy,
                                float *d_dx)
{
    size_t n_elements = (size_t) n * n_pixels * n_channels;

    if (!n_elements) {
        return cudaSuccess;
    }
    return LAUNCH(mean_pool_gradient_kernel, n_blocks(n_elements), BLOCK,
                  stream, n_elements, n_pixels, n_channels, d_dy, d_dx);
}

/* Batch normalisation. */

struct moment {
    const float *x;
    int n;

    __device__ void
    operator()(int i, int column, double *sum, double *square) const
    {
        double value = x[(size_t) i * n + column];

        *sum += value;
        *square += value * value;
    }
};

/* Sums of squares are exact enough in double: a mean of 1000 deviations loses
 * 6 of 16 digits of the variance. */
static __global__ void
norm_end(int m, int n, int n_chunks, const double *sums, const double *squares,
         float *stats)
{
    double mean = column_total(n_chunks, sums) / m;
    double var = column_total(n_chunks, squares) / m - mean * mean;
    float *at = stats + blockIdx.x;

    if (!threadIdx.x) {
        double unbiased;

        var = var > 0 ? var : 0;
        unbiased = m > 1 ? var * m / (m - 1) : var;
        at[0] = mean;
        at[n] = 1 / sqrt(var + BACKEND_NORM_EPSILON);
        at[2 * (size_t) n] += BACKEND_NORM_RATE
                              * (mean - at[2 * (size_t) n]);
        at[3 * (size_t) n] += BACKEND_NORM_RATE
                              * (unbiased - at[3 * (size_t) n]);
    }
}

/* 'is_var': 'factor' has variances. */
static __global__ void
norm_apply(size_t n_elements, int n, const float *x, const float *mean,
           const float *factor, int is_var, const float *scale,
           const float *shift, int relu, float *y)
{
    FOR_EACH_ELEMENT (i, n_elements) {
        int column = rest(i, n);
        float f = is_var ? 1 / sqrtf(factor[column] + BACKEND_NORM_EPSILON)
                         : factor[column];
        float z = (x[i] - mean[column]) * f * scale[column] + shift[column];

        y[i] = relu && z < 0 ? 0 : z;
    }
}

cudaError_t
cuda_kernels_norm(cudaStream_t stream, int m, int n, const float *d_x,
                  const float *d_scale, const float *d_shift, int relu,
                  double *d_work, float *d_stats, float *d_y)
{
    double *d_squares = d_work + CUDA_KERNELS_WORK / 2;
    size_t n_elements = (size_t) m * n;
    struct column_plan plan;
    struct moment value = { d_x, n };
    cudaError_t error;

    if (!n_elements) {
        return cudaSuccess;
    }
    plan = column_plan(m, n, CUDA_KERNELS_WORK / 2);
    error = LAUNCH_MEETING(column_chunks<moment>, plan.grid, plan.block,
                           stream, m, n, plan.length, value, d_work,
                           d_squares);
    if (error == cudaSuccess) {
        error = LAUNCH_MEETING(norm_end, n, COLUMN_BLOCK, stream, m, n,
                               plan.n_chunks, d_work, d_squares, d_stats);
    }
    if (error == cudaSuccess) {
        error = LAUNCH(norm_apply, n_blocks(n_elements), BLOCK, stream,
                       n_elements, n, d_x, d_stats, d_stats + n, 0, d_scale,
                       d_shift, relu, d_y);
    }
    return error;
}

cudaError_t
cuda_kernels_norm_fixed(cudaStream_t stream, int m, int n, const float *d_x,
                        const float *d_scale, const float *d_shift, int relu,
                        const float *d_stats, float *d_y)
{
    size_t n_elements = (size_t) m * n;

    if (!n_elements) {
        return cudaSuccess;
    }
    return LAUNCH(norm_apply, n_blocks(n_elements), BLOCK, stream, n_elements,
                  n, d_x, d_stats + 2 * (size_t) n, d_stats + 3 * (size_t) n,
                  1, d_scale, d_shift, relu, d_y);
}

struct norm_slope {
    const float *x, *y, *dy;    /* 'y' is NULL if nothing was cut. */
    const float *stats;
    int n;

    __device__ void
    operator()(int i, int column, double *sum, double *product) const
    {
        size_t at = (size_t) i * n + column;
        float d = y && y[at] <= 0 ? 0 : dy[at];

        *sum += d;
        *product += (double) d * ((x[at] - stats[column])
                                  * stats[n + column]);
    }
};

static __global__ void
norm_gradient_end(int n_chunks, const double *sums, const double *products,
                  float *dscale, float *dshift)
{
    double sum = column_total(n_chunks, sums);
    double product = column_total(n_chunks, products);

    if (!threadIdx.x) {
        dshift[blockIdx.x] = sum;
        dscale[blockIdx.x] = product;
    }
}

static __global__ void
norm_gradient_apply(size_t n_elements, int m, struct norm_slope s,
                    const float *scale, const float *dscale,
                    const float *dshift, float *dx)
{
    FOR_EACH_ELEMENT (i, n_elements) {
        int column = rest(i, s.n);
        float factor = s.stats[s.n + column];
        float off = (s.x[i] - s.stats[column]) * factor;
        float d = s.y && s.y[i] <= 0 ? 0 : s.dy[i];

        dx[i] = scale[column] * factor
                * (d - (dshift[column] + off * dscale[column]) / m);
    }
}

cudaError_t
cuda_kernels_norm_gradient(cudaStream_t stream, int m, int n,
                           const float *d_x, const float *d_y,
                           const float *d_scale, int relu,
                           const float *d_stats, double *d_work,
                           const float *d_dy, float *d_dx, float *d_dscale,
                           float *d_dshift)
{
    double *d_products = d_work + CUDA_KERNELS_WORK / 2;
    size_t n_elements = (size_t) m * n;
    struct column_plan plan;
    struct norm_slope slope = { d_x, relu ? d_y : NULL, d_dy, d_stats, n };
    cudaError_t error;

    if (!n_elements) {
        return cudaSuccess;
    }
    plan = column_plan(m, n, CUDA_KERNELS_WORK / 2);
    error = LAUNCH_MEETING(column_chunks<norm_slope>, plan.grid, plan.block,
                           stream, m, n, plan.length, slope, d_work,
                           d_products);
    if (error == cudaSuccess) {
        error = LAUNCH_MEETING(norm_gradient_end, n, COLUMN_BLOCK, stream,
                               plan.n_chunks, d_work, d_products, d_dscale,
                               d_dshift);
    }
    if (error == cudaSuccess) {
        error = LAUNCH(norm_gradient_apply, n_blocks(n_elements), BLOCK,
                       stream, n_elements, m, slope, d_scale, d_dscale,
                       d_dshift, d_dx);
    }
    return error;
}

/* Residual blocks. */

static __global__ void
join_kernel(size_t n_elements, struct shortcut s, const float *x, float *y)
{
    int width = s.width / s.stride, height = s.height / s.stride;
    int skip = (s.n_out - s.n_in) / 2;

    FOR_EACH_ELEMENT (i, n_elements) {
        int channel = (int) rest(i, s.n_out) - skip;
        size_t left = over(i, s.n_out);
        int column = rest(left, width) * s.stride, row;
        float z = y[i];

        left = over(left, width);
        row = rest(left, height) * s.stride;
        left = over(left, height);              /* The image. */
        if (channel >= 0 && channel < s.n_in) {
            z += x[((left * s.height + row) * s.width + column) * s.n_in
                   + channel];
        }
        y[i] = z > 0 ? z : 0;
    }
}

static __global__ void
join_gradient_kernel(size_t n_elements, struct shortcut s, const float *dy,
                     float *dx)
{
    int width = s.width / s.stride, height = s.height / s.stride;
    int skip = (s.n_out - s.n_in) / 2;

    FOR_EACH_ELEMENT (i, n_elements) {
        int channel = rest(i, s.n_in);
        size_t left = over(i, s.n_in);
        int column = rest(left, s.width), row;

        left = over(left, s.width);
        row = rest(left, s.height);
        left = over(left, s.height);            /* The image. */
        dx[i] = row % s.stride || column % s.stride
                ? 0
                : dy[((left * height + row / s.stride) * width
                      + column / s.stride) * s.n_out + skip + channel];
    }
}

cudaError_t
cuda_kernels_join(cudaStream_t stream, const struct shortcut *s, int n,
                  const float *d_x, float *d_y)
{
    size_t n_elements = (size_t) n * (s->height / s->stride)
                        * (s->width / s->stride) * s->n_out;

    if (!n_elements) {
        return cudaSuccess;
    }
    return LAUNCH(join_kernel, n_blocks(n_elements), BLOCK, stream,
                  n_elements, *s, d_x, d_y);
}

cudaError_t
cuda_kernels_join_gradient(cudaStream_t stream, const struct shortcut *s,
                           int n, const float *d_dy, float *d_dx)
{
    size_t n_elements = (size_t) n * s->height * s->width * s->n_in;

    if (!n_elements) {
        return cudaSuccess;
    }
    return LAUNCH(join_gradient_kernel, n_blocks(n_elements), BLOCK, stream,
                  n_elements, *s, d_dy, d_dx);
}
