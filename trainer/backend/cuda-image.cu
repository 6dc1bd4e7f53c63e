/* SPDX-License-Identifier: Apache-2.0 */

/* Kernels of images and of batch normalisation. */

#include "trainer/backend/cuda-kernels.h"

#include "trainer/backend/cuda-launch.h"
#include "trainer/backend/geometry.h"

/* A pixel of a batch of images. */
struct pixel {
    size_t image;
    int row, column;
};

static __device__ struct pixel
pixel_at(size_t i, int height, int width)
{
    size_t left = over(i, width);
    struct pixel pixel;

    pixel.image = over(left, height);
    pixel.row = rest(left, height);
    pixel.column = rest(i, width);
    return pixel;
}

/* Returns the index of a pixel in images of other dimensions. */
static __device__ size_t
index_of(size_t image, int row, int column, int height, int width)
{
    return (image * height + row) * width + column;
}

/* Convolution. */

/* One thread an element of the neighbourhoods. */
static __global__ void
im2col_kernel(size_t n_elements, struct convolution c, int out_height,
              int out_width, const float *x, float *columns)
{
    FOR_EACH_ELEMENT (i, n_elements) {
        size_t left = over(i, c.n_in), right = over(left, c.kernel);
        struct pixel p = pixel_at(over(right, c.kernel), out_height,
                                  out_width);
        int row = p.row * c.stride - c.pad + rest(right, c.kernel);
        int column = p.column * c.stride - c.pad + rest(left, c.kernel);
        size_t from = index_of(p.image, row, column, c.height, c.width);

        columns[i] = row >= 0 && row < c.height && column >= 0
                     && column < c.width ? x[from * c.n_in + rest(i, c.n_in)]
                                         : 0;
    }
}

void
cuda_im2col(struct backend *b, const struct convolution *c, int n,
            const float *d_x, float *d_columns)
{
    size_t n_elements = n * convolution_columns(c);

    LAUNCH_EACH(b, "im2col", im2col_kernel, n_elements, *c,
                convolution_height(c), convolution_width(c), d_x, d_columns);
}

/* One thread an element of the images, which looks for its copies. */
static __global__ void
col2im_kernel(size_t n_elements, struct convolution c, int out_height,
              int out_width, const float *columns, int add, float *x)
{
    FOR_EACH_ELEMENT (i, n_elements) {
        int channel = rest(i, c.n_in);
        struct pixel p = pixel_at(over(i, c.n_in), c.height, c.width);
        float sum = 0;

        for (int ky = 0; ky < c.kernel; ky++) {
            int oy = p.row + c.pad - ky;

            if (oy < 0 || oy % c.stride || oy / c.stride >= out_height) {
                continue;
            }
            for (int kx = 0; kx < c.kernel; kx++) {
                int ox = p.column + c.pad - kx;
                size_t from;

                if (ox < 0 || ox % c.stride || ox / c.stride >= out_width) {
                    continue;
                }
                from = index_of(p.image, oy / c.stride, ox / c.stride,
                                out_height, out_width);
                sum += columns[((from * c.kernel + ky) * c.kernel + kx)
                               * c.n_in + channel];
            }
        }
        x[i] = add ? x[i] + sum : sum;
    }
}

void
cuda_col2im(struct backend *b, const struct convolution *c, int n,
            const float *d_columns, bool add, float *d_x)
{
    size_t n_elements = (size_t) n * c->height * c->width * c->n_in;

    LAUNCH_EACH(b, "col2im", col2im_kernel, n_elements, *c,
                convolution_height(c), convolution_width(c), d_columns, add,
                d_x);
}

/* Pooling. */

/* Where the first of the largest of output 'i' is in the input. */
static __device__ size_t
largest_of_square(const struct pooling &p, size_t i, const float *x)
{
    struct pixel square = pixel_at(over(i, p.n_channels), p.height / p.size,
                                   p.width / p.size);
    size_t first = index_of(square.image, square.row * p.size,
                            square.column * p.size, p.height, p.width)
                   * p.n_channels + rest(i, p.n_channels);
    size_t best = first;

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

void
cuda_max_pool(struct backend *b, const struct pooling *p, int n,
              const float *d_x, float *d_y)
{
    size_t n_elements = pooled_size(p, n);

    LAUNCH_EACH(b, "max_pool", max_pool_kernel, n_elements, *p, d_x, d_y);
}

void
cuda_max_pool_gradient(struct backend *b, const struct pooling *p, int n,
                       const float *d_x, const float *d_dy, float *d_dx)
{
    size_t size = (size_t) n * p->height * p->width * p->n_channels;
    size_t n_elements = pooled_size(p, n);

    cuda_check(b, "max_pool_gradient",
               cudaMemsetAsync(d_dx, 0, size * sizeof *d_dx, cuda_stream(b)));
    LAUNCH_EACH(b, "max_pool_gradient", max_pool_gradient_kernel, n_elements,
                *p, d_x, d_dy, d_dx);
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

void
cuda_mean_pool(struct backend *b, int n, int n_pixels, int n_channels,
               const float *d_x, float *d_y)
{
    size_t n_elements = (size_t) n * n_channels;

    LAUNCH_EACH(b, "mean_pool", mean_pool_kernel, n_elements, n_pixels,
                n_channels, d_x, d_y);
}

void
cuda_mean_pool_gradient(struct backend *b, int n, int n_pixels,
                        int n_channels, const float *d_dy, float *d_dx)
{
    size_t n_elements = (size_t) n * n_pixels * n_channels;

    LAUNCH_EACH(b, "mean_pool_gradient", mean_pool_gradient_kernel,
                n_elements, n_pixels, n_channels, d_dy, d_dx);
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

void
cuda_norm(struct backend *b, int m, int n, const float *d_x,
          const float *d_scale, const float *d_shift, bool relu,
          float *d_stats, float *d_y)
{
    double *d_sums = cuda_work(b), *d_squares = d_sums + CUDA_KERNELS_WORK / 2;
    size_t n_elements = (size_t) m * n;
    struct moment value = { d_x, n };
    int n_chunks;

    if (!n_elements) {
        return;
    }
    n_chunks = sum_columns(b, "norm", m, n, value, d_squares);
    LAUNCH_COLUMNS(b, "norm", norm_end, n, m, n, n_chunks, d_sums, d_squares,
                   d_stats);
    LAUNCH_EACH(b, "norm", norm_apply, n_elements, n, d_x, d_stats,
                d_stats + n, 0, d_scale, d_shift, relu, d_y);
}

void
cuda_norm_fixed(struct backend *b, int m, int n, const float *d_x,
                const float *d_scale, const float *d_shift, bool relu,
                const float *d_stats, float *d_y)
{
    size_t n_elements = (size_t) m * n;

    LAUNCH_EACH(b, "norm_fixed", norm_apply, n_elements, n, d_x,
                d_stats + 2 * (size_t) n, d_stats + 3 * (size_t) n, 1,
                d_scale, d_shift, relu, d_y);
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

void
cuda_norm_gradient(struct backend *b, int m, int n, const float *d_x,
                   const float *d_y, const float *d_scale, bool relu,
                   const float *d_stats, float *d_dy, float *d_dx,
                   float *d_dscale, float *d_dshift)
{
    double *d_sums = cuda_work(b);
    double *d_products = d_sums + CUDA_KERNELS_WORK / 2;
    size_t n_elements = (size_t) m * n;
    struct norm_slope slope = { d_x, relu ? d_y : NULL, d_dy, d_stats, n };
    int n_chunks;

    if (!n_elements) {
        return;
    }
    n_chunks = sum_columns(b, "norm_gradient", m, n, slope, d_products);
    LAUNCH_COLUMNS(b, "norm_gradient", norm_gradient_end, n, n_chunks, d_sums,
                   d_products, d_dscale, d_dshift);
    LAUNCH_EACH(b, "norm_gradient", norm_gradient_apply, n_elements, m, slope,
                d_scale, d_dscale, d_dshift, d_dx);
}

/* Residual blocks. */

static __global__ void
join_kernel(size_t n_elements, struct shortcut s, const float *x, float *y)
{
    int skip = (s.n_out - s.n_in) / 2;

    FOR_EACH_ELEMENT (i, n_elements) {
        int channel = (int) rest(i, s.n_out) - skip;
        struct pixel p = pixel_at(over(i, s.n_out), s.height / s.stride,
                                  s.width / s.stride);
        size_t from = index_of(p.image, p.row * s.stride, p.column * s.stride,
                               s.height, s.width);
        float z = y[i];

        if (channel >= 0 && channel < s.n_in) {
            z += x[from * s.n_in + channel];
        }
        y[i] = z > 0 ? z : 0;
    }
}

static __global__ void
join_gradient_kernel(size_t n_elements, struct shortcut s, const float *dy,
                     float *dx)
{
    int skip = (s.n_out - s.n_in) / 2;

    FOR_EACH_ELEMENT (i, n_elements) {
        struct pixel p = pixel_at(over(i, s.n_in), s.height, s.width);
        size_t from = index_of(p.image, p.row / s.stride, p.column / s.stride,
                               s.height / s.stride, s.width / s.stride);

        dx[i] = p.row % s.stride || p.column % s.stride
                ? 0 : dy[from * s.n_out + skip + rest(i, s.n_in)];
    }
}

void
cuda_join(struct backend *b, const struct shortcut *s, int n,
          const float *d_x, float *d_y)
{
    size_t n_elements = (size_t) n * (s->height / s->stride)
                        * (s->width / s->stride) * s->n_out;

    LAUNCH_EACH(b, "join", join_kernel, n_elements, *s, d_x, d_y);
}

void
cuda_join_gradient(struct backend *b, const struct shortcut *s, int n,
                   const float *d_dy, float *d_dx)
{
    size_t n_elements = (size_t) n * s->height * s->width * s->n_in;

    LAUNCH_EACH(b, "join_gradient", join_gradient_kernel, n_elements, *s,
                d_dy, d_dx);
}
