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

/* Where the square of pack 'i' of the output begins in the input. */
template<int pack>
static __device__ size_t
first_of_square(const struct pooling &p, size_t i)
{
    int n_packs = p.n_channels / pack;
    struct pixel square = pixel_at(over(i, n_packs), p.height / p.size,
                                   p.width / p.size);

    return index_of(square.image, square.row * p.size, square.column * p.size,
                    p.height, p.width)
           * p.n_channels + rest(i, n_packs) * pack;
}

/* Stores the largest elements of the square, and the number of the first of
 * them. */
template<int pack>
static __device__ void
largest_of_square(const struct pooling &p, const float *first, float *largest,
                  int *at)
{
    read_pack<pack>(first, largest);
    UNROLL
    for (int c = 0; c < pack; c++) {
        at[c] = 0;
    }
    for (int j = 1; j < p.size * p.size; j++) {
        float x[pack];

        read_pack<pack>(first + ((size_t) (j / p.size) * p.width + j % p.size)
                                * p.n_channels, x);
        UNROLL
        for (int c = 0; c < pack; c++) {
            if (x[c] > largest[c]) {
                largest[c] = x[c];
                at[c] = j;
            }
        }
    }
}

template<int pack>
static __global__ void
max_pool_kernel(size_t n_packs, struct pooling p, const float *x, float *y)
{
    FOR_EACH_ELEMENT (i, n_packs) {
        float largest[pack];
        int at[pack];

        largest_of_square<pack>(p, x + first_of_square<pack>(p, i), largest,
                                at);
        write_pack<pack>(y + i * pack, largest);
    }
}

/* Writes all elements of each square. */
template<int pack>
static __global__ void
max_pool_gradient_kernel(size_t n_packs, struct pooling p, const float *x,
                         const float *dy, float *dx)
{
    FOR_EACH_ELEMENT (i, n_packs) {
        size_t first = first_of_square<pack>(p, i);
        float largest[pack], slope[pack];
        int at[pack];

        largest_of_square<pack>(p, x + first, largest, at);
        read_pack<pack>(dy + i * pack, slope);
        for (int j = 0; j < p.size * p.size; j++) {
            float d[pack];

            UNROLL
            for (int c = 0; c < pack; c++) {
                d[c] = j != at[c] || (p.relu && largest[c] <= 0) ? 0
                                                                 : slope[c];
            }
            write_pack<pack>(dx + first
                             + ((size_t) (j / p.size) * p.width + j % p.size)
                               * p.n_channels, d);
        }
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

    if (p->n_channels % 4 == 0 && is_aligned(d_x) && is_aligned(d_y)) {
        LAUNCH_EACH(b, "max_pool", max_pool_kernel<4>, n_elements / 4, *p,
                    d_x, d_y);
    } else {
        LAUNCH_EACH(b, "max_pool", max_pool_kernel<1>, n_elements, *p, d_x,
                    d_y);
    }
}

void
cuda_max_pool_gradient(struct backend *b, const struct pooling *p, int n,
                       const float *d_x, const float *d_dy, float *d_dx)
{
    size_t size = (size_t) n * p->height * p->width * p->n_channels;
    size_t n_elements = pooled_size(p, n);

    if (p->height % p->size || p->width % p->size) {
        cuda_check(b, "max_pool_gradient",
                   cudaMemsetAsync(d_dx, 0, size * sizeof *d_dx,
                                   cuda_stream(b)));
    }
    if (p->n_channels % 4 == 0 && is_aligned(d_x) && is_aligned(d_dy)
        && is_aligned(d_dx)) {
        LAUNCH_EACH(b, "max_pool_gradient", max_pool_gradient_kernel<4>,
                    n_elements / 4, *p, d_x, d_dy, d_dx);
    } else {
        LAUNCH_EACH(b, "max_pool_gradient", max_pool_gradient_kernel<1>,
                    n_elements, *p, d_x, d_dy, d_dx);
    }
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
    static const int n_vectors = 1;
    const float *x;

    template<int pack>
    __device__ void
    read(size_t at, float (*packs)[pack]) const
    {
        read_pack<pack>(x + at, packs[0]);
    }

    template<int pack>
    __device__ void
    add(const float (*packs)[pack], double *sums) const
    {
        UNROLL
        for (int j = 0; j < pack; j++) {
            double value = packs[0][j];

            sums[j] += value;
            sums[pack + j] += value * value;
        }
    }
};

struct norm_map {
    static const int n_vectors = 1, n_factors = 3;
    const float *x, *scale, *shift;
    bool relu;
    float *to;

    template<int pack>
    __device__ void
    read(size_t at, float (*packs)[pack]) const
    {
        read_pack<pack>(x + at, packs[0]);
    }

    __device__ void
    set(int column, float mean, float factor, float *factors) const
    {
        factors[0] = mean;
        factors[1] = factor * scale[column];
        factors[2] = shift[column];
    }

    template<int pack>
    __device__ void
    apply(const float (*factors)[n_factors], const float (*packs)[pack],
          float *y) const
    {
        UNROLL
        for (int j = 0; j < pack; j++) {
            y[j] = (packs[0][j] - factors[j][0]) * factors[j][1]
                   + factors[j][2];
            y[j] = relu && y[j] < 0 ? 0 : y[j];
        }
    }
};

/* Sums of squares are exact enough in double: a mean of 1000 deviations loses
 * 6 of 16 digits of the variance. */
struct norm_batch : norm_map {
    float *stats;
    int m, n;

    __device__ void
    begin(int column, double sum, double square, bool first,
          float *factors) const
    {
        double mean = sum / m, var = square / m - mean * mean;
        float *at = stats + column, factor;

        var = var > 0 ? var : 0;
        factor = 1 / sqrtf(var + BACKEND_NORM_EPSILON);
        set(column, mean, factor, factors);
        if (first) {
            double unbiased = m > 1 ? var * m / (m - 1) : var;

            at[0] = mean;
            at[n] = factor;
            at[2 * (size_t) n] += BACKEND_NORM_RATE
                                  * (mean - at[2 * (size_t) n]);
            at[3 * (size_t) n] += BACKEND_NORM_RATE
                                  * (unbiased - at[3 * (size_t) n]);
        }
    }
};

struct norm_running : norm_map {
    const float *mean, *var;

    __device__ void
    begin(int column, double, double, bool, float *factors) const
    {
        set(column, mean[column],
            1 / sqrtf(var[column] + BACKEND_NORM_EPSILON), factors);
    }
};

void
cuda_norm(struct backend *b, int m, int n, const float *d_x,
          const float *d_scale, const float *d_shift, bool relu,
          float *d_stats, float *d_y)
{
    struct moment value = { d_x };
    struct norm_batch map = {
        { d_x, d_scale, d_shift, relu, d_y }, d_stats, m, n,
    };
    bool aligned = is_aligned(d_x) && is_aligned(d_y);

    if (m && n) {
        sum_columns(b, "norm", m, n, aligned, value, NULL);
        map_columns(b, "norm", m, n, aligned, true, map);
    }
}

void
cuda_norm_fixed(struct backend *b, int m, int n, const float *d_x,
                const float *d_scale, const float *d_shift, bool relu,
                const float *d_stats, float *d_y)
{
    struct norm_running map = {
        { d_x, d_scale, d_shift, relu, d_y },
        d_stats + 2 * (size_t) n, d_stats + 3 * (size_t) n,
    };

    if (m && n) {
        map_columns(b, "norm_fixed", m, n,
                    is_aligned(d_x) && is_aligned(d_y), false, map);
    }
}

struct norm_input {
    static const int n_vectors = 3;
    const float *x, *y, *dy;    /* 'y' is NULL if nothing was cut. */

    template<int pack>
    __device__ void
    read(size_t at, float (*packs)[pack]) const
    {
        read_pack<pack>(x + at, packs[0]);
        read_pack<pack>(dy + at, packs[1]);
        UNROLL
        for (int j = 0; j < pack; j++) {
            packs[2][j] = 1;
        }
        if (y) {
            read_pack<pack>(y + at, packs[2]);
        }
    }

    template<int pack>
    static __device__ float
    slope(const float (*packs)[pack], int j)
    {
        return packs[2][j] > 0 ? packs[1][j] : 0;
    }
};

/* The product with the normalised value follows from both sums. */
struct norm_slope : norm_input {
    template<int pack>
    __device__ void
    add(const float (*packs)[pack], double *sums) const
    {
        UNROLL
        for (int j = 0; j < pack; j++) {
            double d = slope<pack>(packs, j);

            sums[j] += d;
            sums[pack + j] += d * packs[0][j];
        }
    }
};

struct norm_gradient_map : norm_input {
    static const int n_factors = 4;
    const float *stats, *scale;
    int m, n;
    float *dscale, *dshift, *to;

    __device__ void
    begin(int column, double sum, double product, bool first,
          float *factors) const
    {
        float mean = stats[column], factor = stats[n + column];
        double total = factor * (product - mean * sum);

        factors[0] = mean;
        factors[1] = scale[column] * factor;
        factors[2] = factor * total / m;
        factors[3] = sum / m;
        if (first) {
            dscale[column] = total;
            dshift[column] = sum;
        }
    }

    template<int pack>
    __device__ void
    apply(const float (*factors)[n_factors], const float (*packs)[pack],
          float *dx) const
    {
        UNROLL
        for (int j = 0; j < pack; j++) {
            dx[j] = factors[j][1]
                    * (slope<pack>(packs, j) - factors[j][3]
                       - (packs[0][j] - factors[j][0]) * factors[j][2]);
        }
    }
};

void
cuda_norm_gradient(struct backend *b, int m, int n, const float *d_x,
                   const float *d_y, const float *d_scale, bool relu,
                   const float *d_stats, float *d_dy, float *d_dx,
                   float *d_dscale, float *d_dshift)
{
    struct norm_input input = { d_x, relu ? d_y : NULL, d_dy };
    struct norm_slope value = { input };
    struct norm_gradient_map map = { input, d_stats,  d_scale,  m,
                                     n,     d_dscale, d_dshift, d_dx };
    bool aligned = is_aligned(d_x) && is_aligned(d_y) && is_aligned(d_dy)
                   && is_aligned(d_dx);

    if (m && n) {
        sum_columns(b, "norm_gradient", m, n, aligned, value, NULL);
        map_columns(b, "norm_gradient", m, n, aligned, true, map);
    }
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

/* Where the shortcut has the dimensions of the block. */
static __global__ void
join_same_kernel(size_t n_packs, const float *x, float *y)
{
    FOR_EACH_ELEMENT (i, n_packs) {
        float a[4], z[4];

        read_pack<4>(x + i * 4, a);
        read_pack<4>(y + i * 4, z);
        UNROLL
        for (int j = 0; j < 4; j++) {
            z[j] += a[j];
            z[j] = z[j] > 0 ? z[j] : 0;
        }
        write_pack<4>(y + i * 4, z);
    }
}

void
cuda_join(struct backend *b, const struct shortcut *s, int n,
          const float *d_x, float *d_y)
{
    size_t n_elements = (size_t) n * (s->height / s->stride)
                        * (s->width / s->stride) * s->n_out;

    if (s->stride == 1 && s->n_in == s->n_out && n_elements % 4 == 0
        && is_aligned(d_x) && is_aligned(d_y)) {
        LAUNCH_EACH(b, "join", join_same_kernel, n_elements / 4, d_x, d_y);
        return;
    }
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
