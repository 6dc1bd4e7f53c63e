/* SPDX-License-Identifier: Apache-2.0 */

/* The reference backend: OpenBLAS, host memory.
 *
 * All but the products is on one core: most of the time of a net is in the
 * products, for which OpenBLAS uses its threads. */

#include "trainer/backend/backend.h"

#include <cblas.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define ALIGNMENT 64            /* Size of a cache line and of the widest
                                 * vector. */

struct cpu {
    struct backend up;
    double loss_sum;            /* See losses(). */
    int n_correct;
};

static struct cpu *
cpu_cast(struct backend *b)
{
    return (struct cpu *) b;
}

static int
cpu_open(int index, int n_threads, struct backend **backendp)
{
    struct cpu *cpu;

    if (index) {
        return ENODEV;
    }
    cpu = allocate(1, sizeof *cpu);
    cpu->up.class = &backend_cpu;
    openblas_set_num_threads(n_threads);
    *backendp = &cpu->up;
    return 0;
}

static void
cpu_close(struct backend *b)
{
    free(b);
}

/* Large memory of calloc() is not written before it is used.  The address of
 * the block is in front of the buffer. */
static void *
cpu_alloc(struct backend *b, size_t bytes)
{
    uintptr_t block = (uintptr_t) calloc(1, bytes + 2 * ALIGNMENT);
    void **buffer = (void **) ((block + 2 * ALIGNMENT - 1) / ALIGNMENT
                               * ALIGNMENT);

    if (!block) {
        return NULL;
    }
    buffer[-1] = (void *) block;
    return buffer;
}

static void
cpu_free(struct backend *b, void *buffer)
{
    free(((void **) buffer)[-1]);
}

static void
cpu_copy(struct backend *b, void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static void *
cpu_map(struct backend *b, void *buffer)
{
    return buffer;
}

static void
cpu_gemm(struct backend *b, bool t_a, bool t_b, int m, int n, int k,
         const float *x, const float *y, float beta, float *z)
{
    if (m && n && k) {
        cblas_sgemm(CblasRowMajor, t_a ? CblasTrans : CblasNoTrans,
                    t_b ? CblasTrans : CblasNoTrans, m, n, k, 1,
                    x, t_a ? m : k, y, t_b ? k : n, beta, z, n);
    }
}

static void
cpu_bias(struct backend *b, int m, int n, const float *bias, bool relu,
         float *y)
{
    for (int i = 0; i < m; i++, y += n) {
        for (int j = 0; j < n; j++) {
            float sum = y[j] + bias[j];

            y[j] = relu && sum < 0 ? 0 : sum;
        }
    }
}

static void
cpu_relu_gradient(struct backend *b, size_t n, const float *y, float *dy)
{
    for (size_t i = 0; i < n; i++) {
        dy[i] = y[i] > 0 ? dy[i] : 0;
    }
}

static void
cpu_column_sums(struct backend *b, int m, int n, const float *y, float *sums)
{
    memset(sums, 0, n * sizeof *sums);
    for (int i = 0; i < m; i++, y += n) {
        for (int j = 0; j < n; j++) {
            sums[j] += y[j];
        }
    }
}

/* Returns the cross entropy of one row; see struct backend_class. */
static double
row_cross_entropy(int n, const float *y, int label, float scale, float *dy,
                  bool *correct)
{
    double sum = 0;
    int best = 0;

    for (int j = 1; j < n; j++) {
        best = y[j] > y[best] ? j : best;
    }
    for (int j = 0; j < n; j++) {
        sum += exp(y[j] - y[best]);
    }
    if (dy) {
        for (int j = 0; j < n; j++) {
            dy[j] = scale * (exp(y[j] - y[best]) / sum - (j == label));
        }
    }
    *correct = best == label;
    return log(sum) + y[best] - y[label];
}

static void
cpu_cross_entropy(struct backend *b, int m, int n, const float *y,
                  const int32_t *labels, float *dy)
{
    struct cpu *cpu = cpu_cast(b);

    cpu->loss_sum = cpu->n_correct = 0;
    for (int i = 0; i < m; i++) {
        size_t row = (size_t) i * n;
        bool correct;

        cpu->loss_sum += row_cross_entropy(n, y + row, labels[i], 1.0f / m,
                                           dy ? dy + row : NULL, &correct);
        cpu->n_correct += correct;
    }
}

static void
cpu_margin_loss(struct backend *b, int m, bool hinge, const float *y,
                const int32_t *labels, float *dy)
{
    struct cpu *cpu = cpu_cast(b);

    cpu->loss_sum = cpu->n_correct = 0;
    for (int i = 0; i < m; i++) {
        double sign = labels[i] ? 1 : -1, margin = sign * y[i], slope;

        if (hinge) {
            cpu->loss_sum += margin < 1 ? 1 - margin : 0;
            slope = margin < 1;
        } else {
            cpu->loss_sum += log1p(exp(-fabs(margin))) + fmax(-margin, 0);
            slope = 1 / (1 + exp(margin));
        }
        if (dy) {
            dy[i] = -sign * slope / m;
        }
        cpu->n_correct += (y[i] > 0) == labels[i];
    }
}

static void
cpu_losses(struct backend *b, double *loss_sum, int *n_correct)
{
    *loss_sum = cpu_cast(b)->loss_sum;
    *n_correct = cpu_cast(b)->n_correct;
}

static void
cpu_gather(struct backend *b, int m, const uint32_t *starts,
           const uint32_t *at, const float *values, const float *x, float *y)
{
    for (int i = 0; i < m; i++) {
        double sum = 0;

        for (uint32_t e = starts[i]; e < starts[i + 1]; e++) {
            sum += (double) values[e] * x[at[e]];
        }
        y[i] = sum;
    }
}

static void
cpu_accumulate(struct backend *b, size_t n, float scale, const float *x,
               float *sum)
{
    for (size_t i = 0; i < n; i++) {
        sum[i] += scale * x[i];
    }
}

static void
cpu_sgd(struct backend *b, size_t n, float rate, float momentum,
        const float *g, float *v, float *w)
{
    for (size_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + g[i];
        w[i] -= rate * v[i];
    }
}

/* Convolution. */

/* Stores a row of im2col(): the pixels under the kernel at output pixel (oy,
 * ox). */
static void
copy_under_kernel(const struct convolution *c, int oy, int ox,
                  const float *x, float *row)
{
    int left = ox * c->stride - c->pad;
    int first = left < 0 ? -left : 0;
    int last = c->width - left < c->kernel ? c->width - left : c->kernel;
    size_t length = (size_t) c->kernel * c->n_in;

    for (int ky = 0; ky < c->kernel; ky++, row += length) {
        int y = oy * c->stride - c->pad + ky;

        if (y < 0 || y >= c->height || last <= first) {
            memset(row, 0, length * sizeof *row);
            continue;
        }
        memset(row, 0, (size_t) first * c->n_in * sizeof *row);
        memcpy(row + (size_t) first * c->n_in,
               x + ((size_t) y * c->width + left + first) * c->n_in,
               (size_t) (last - first) * c->n_in * sizeof *row);
        memset(row + (size_t) last * c->n_in, 0,
               (size_t) (c->kernel - last) * c->n_in * sizeof *row);
    }
}

/* Adds a row to the pixels that it was copied from. */
static void
add_under_kernel(const struct convolution *c, int oy, int ox,
                 const float *row, float *x)
{
    int left = ox * c->stride - c->pad;
    int first = left < 0 ? -left : 0;
    int last = c->width - left < c->kernel ? c->width - left : c->kernel;
    size_t length = (size_t) c->kernel * c->n_in;

    for (int ky = 0; ky < c->kernel; ky++, row += length) {
        int y = oy * c->stride - c->pad + ky;

        if (y >= 0 && y < c->height) {
            float *to = x + ((size_t) y * c->width) * c->n_in;

            for (int i = first * c->n_in; i < last * c->n_in; i++) {
                to[left * c->n_in + i] += row[i];
            }
        }
    }
}

static void
cpu_im2col(struct backend *b, const struct convolution *c, int n,
           const float *x, float *columns)
{
    int height = convolution_height(c), width = convolution_width(c);
    size_t length = (size_t) c->kernel * c->kernel * c->n_in;

    for (int i = 0; i < n; i++) {
        for (int p = 0; p < height * width; p++) {
            copy_under_kernel(c, p / width, p % width, x, columns);
            columns += length;
        }
        x += (size_t) c->height * c->width * c->n_in;
    }
}

static void
cpu_col2im(struct backend *b, const struct convolution *c, int n,
           const float *columns, bool add, float *x)
{
    int height = convolution_height(c), width = convolution_width(c);
    size_t length = (size_t) c->kernel * c->kernel * c->n_in;
    size_t size = (size_t) c->height * c->width * c->n_in;

    for (int i = 0; i < n; i++, x += size) {
        if (!add) {
            memset(x, 0, size * sizeof *x);
        }
        for (int p = 0; p < height * width; p++) {
            add_under_kernel(c, p / width, p % width, columns, x);
            columns += length;
        }
    }
}

/* Pooling. */

/* Returns the first maximum of the square at 'x'. */
static size_t
largest_of_square(const struct pooling *p, const float *x)
{
    size_t best = 0;

    for (int i = 0; i < p->size; i++) {
        for (int j = 0; j < p->size; j++) {
            size_t at = ((size_t) i * p->width + j) * p->n_channels;

            best = x[at] > x[best] ? at : best;
        }
    }
    return best;
}

/* Returns the index of the square 's' of an image. */
static size_t
square_at(const struct pooling *p, int s)
{
    int per_row = p->width / p->size;

    return ((size_t) (s / per_row) * p->width + s % per_row)
           * p->size * p->n_channels;
}

static void
cpu_max_pool(struct backend *b, const struct pooling *p, int n,
             const float *x, float *y)
{
    int n_squares = (p->height / p->size) * (p->width / p->size);

    for (int i = 0; i < n; i++) {
        for (int s = 0; s < n_squares; s++) {
            const float *square = x + square_at(p, s);

            for (int j = 0; j < p->n_channels; j++) {
                *y++ = square[j + largest_of_square(p, square + j)];
            }
        }
        x += (size_t) p->height * p->width * p->n_channels;
    }
}

static void
cpu_max_pool_gradient(struct backend *b, const struct pooling *p, int n,
                      const float *x, const float *dy, float *dx)
{
    int n_squares = (p->height / p->size) * (p->width / p->size);
    size_t size = (size_t) p->height * p->width * p->n_channels;

    memset(dx, 0, n * size * sizeof *dx);
    for (int i = 0; i < n; i++, x += size, dx += size) {
        for (int s = 0; s < n_squares; s++) {
            size_t at = square_at(p, s);

            for (int j = 0; j < p->n_channels; j++) {
                size_t best = at + j + largest_of_square(p, x + at + j);

                dx[best] = p->relu && x[best] <= 0 ? 0 : *dy;
                dy++;
            }
        }
    }
}

static void
cpu_mean_pool(struct backend *b, int n, int n_pixels, int n_channels,
              const float *x, float *y)
{
    float share = 1.0f / n_pixels;

    for (int i = 0; i < n; i++, y += n_channels) {
        memset(y, 0, n_channels * sizeof *y);
        for (int p = 0; p < n_pixels; p++) {
            for (int j = 0; j < n_channels; j++) {
                y[j] += *x++;
            }
        }
        for (int j = 0; j < n_channels; j++) {
            y[j] *= share;
        }
    }
}

static void
cpu_mean_pool_gradient(struct backend *b, int n, int n_pixels,
                       int n_channels, const float *dy, float *dx)
{
    float share = 1.0f / n_pixels;

    for (int i = 0; i < n; i++, dy += n_channels) {
        for (int p = 0; p < n_pixels; p++) {
            for (int j = 0; j < n_channels; j++) {
                *dx++ = share * dy[j];
            }
        }
    }
}

/* Residual blocks. */

static void
cpu_join(struct backend *b, const struct shortcut *s, int n, const float *x,
         float *y)
{
    int skip = (s->n_out - s->n_in) / 2;

    for (int i = 0; i < n * s->height; i += s->stride) {
        const float *row = x + (size_t) i * s->width * s->n_in;

        for (int j = 0; j < s->width; j += s->stride, y += s->n_out) {
            for (int k = 0; k < s->n_in; k++) {
                y[skip + k] += row[(size_t) j * s->n_in + k];
            }
            for (int k = 0; k < s->n_out; k++) {
                y[k] = y[k] > 0 ? y[k] : 0;
            }
        }
    }
}

static void
cpu_join_gradient(struct backend *b, const struct shortcut *s, int n,
                  const float *dy, float *dx)
{
    int skip = (s->n_out - s->n_in) / 2;

    memset(dx, 0, (size_t) n * s->height * s->width * s->n_in * sizeof *dx);
    for (int i = 0; i < n * s->height; i += s->stride) {
        float *row = dx + (size_t) i * s->width * s->n_in;

        for (int j = 0; j < s->width; j += s->stride, dy += s->n_out) {
            memcpy(row + (size_t) j * s->n_in, dy + skip,
                   s->n_in * sizeof *dy);
        }
    }
}

/* Batch normalisation.  Sums are computed in double, for several columns at a
 * time. */

#define COLUMNS 64

static int
min(int a, int b)
{
    return a < b ? a : b;
}

/* Computes mean and variance of 'k' columns from 'x' on. */
static void
moments(int m, int n, int k, const float *x, double mean[], double var[])
{
    for (int j = 0; j < k; j++) {
        mean[j] = var[j] = 0;
    }
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < k; j++) {
            mean[j] += x[(size_t) i * n + j];
        }
    }
    for (int j = 0; j < k; j++) {
        mean[j] /= m;
    }
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < k; j++) {
            double off = x[(size_t) i * n + j] - mean[j];

            var[j] += off * off;
        }
    }
    for (int j = 0; j < k; j++) {
        var[j] /= m;
    }
}

static void
apply(int m, int n, const float *x, const float *mean, const float *factor,
      const float *scale, const float *shift, bool relu, float *y)
{
    for (int i = 0; i < m; i++, x += n, y += n) {
        for (int j = 0; j < n; j++) {
            float z = (x[j] - mean[j]) * factor[j] * scale[j] + shift[j];

            y[j] = relu && z < 0 ? 0 : z;
        }
    }
}

static void
cpu_norm(struct backend *b, int m, int n, const float *x, const float *scale,
         const float *shift, bool relu, float *stats, float *y)
{
    const float rate = BACKEND_NORM_RATE;

    for (int first = 0; first < n; first += COLUMNS) {
        int k = min(n - first, COLUMNS);
        double mean[COLUMNS], var[COLUMNS];

        moments(m, n, k, x + first, mean, var);
        for (int j = 0; j < k; j++) {
            float *at = stats + first + j;
            double unbiased = m > 1 ? var[j] * m / (m - 1) : var[j];

            at[0] = mean[j];
            at[n] = 1 / sqrt(var[j] + BACKEND_NORM_EPSILON);
            at[2 * (size_t) n] += rate * (mean[j] - at[2 * (size_t) n]);
            at[3 * (size_t) n] += rate * (unbiased - at[3 * (size_t) n]);
        }
    }
    apply(m, n, x, stats, stats + n, scale, shift, relu, y);
}

static void
cpu_norm_fixed(struct backend *b, int m, int n, const float *x,
               const float *scale, const float *shift, bool relu,
               const float *stats, float *y)
{
    for (int first = 0; first < n; first += COLUMNS) {
        int k = min(n - first, COLUMNS);
        float factor[COLUMNS];

        for (int j = 0; j < k; j++) {
            factor[j] = 1 / sqrtf(stats[3 * (size_t) n + first + j]
                                  + BACKEND_NORM_EPSILON);
        }
        for (int i = 0; i < m; i++) {
            size_t at = (size_t) i * n + first;

            apply(1, k, x + at, stats + 2 * (size_t) n + first, factor,
                  scale + first, shift + first, relu, y + at);
        }
    }
}

/* Computes the sums over the rows of the gradient, and of the gradient times
 * the normalised value, of 'k' columns. */
static void
gradient_sums(int m, int n, int k, const float *x, const float *mean,
              const float *factor, const float *dy, double sum[],
              double product[])
{
    for (int j = 0; j < k; j++) {
        sum[j] = product[j] = 0;
    }
    for (int i = 0; i < m; i++, x += n, dy += n) {
        for (int j = 0; j < k; j++) {
            sum[j] += dy[j];
            product[j] += (double) dy[j] * ((x[j] - mean[j]) * factor[j]);
        }
    }
}

static void
cpu_norm_gradient(struct backend *b, int m, int n, const float *x,
                  const float *y, const float *scale, bool relu,
                  const float *stats, float *dy, float *dx, float *dscale,
                  float *dshift)
{
    if (relu) {
        b->class->relu_gradient(b, (size_t) m * n, y, dy);
    }
    for (int first = 0; first < n; first += COLUMNS) {
        int k = min(n - first, COLUMNS);
        const float *mean = stats + first, *factor = stats + n + first;
        double sum[COLUMNS], product[COLUMNS];

        gradient_sums(m, n, k, x + first, mean, factor, dy + first, sum,
                      product);
        for (int i = 0; i < m; i++) {
            size_t row = (size_t) i * n + first;
            const float *at = x + row;

            for (int j = 0; j < k; j++) {
                float off = (at[j] - mean[j]) * factor[j];

                dx[row + j] = scale[first + j] * factor[j]
                              * (dy[row + j]
                                 - (sum[j] + off * product[j]) / m);
            }
        }
        for (int j = 0; j < k; j++) {
            dshift[first + j] = sum[j];
            dscale[first + j] = product[j];
        }
    }
}

const struct backend_class backend_cpu = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_copy,
    .download = cpu_copy,
    .map = cpu_map,
    .gemm = cpu_gemm,
    .bias = cpu_bias,
    .relu_gradient = cpu_relu_gradient,
    .column_sums = cpu_column_sums,
    .cross_entropy = cpu_cross_entropy,
    .margin_loss = cpu_margin_loss,
    .losses = cpu_losses,
    .im2col = cpu_im2col,
    .col2im = cpu_col2im,
    .max_pool = cpu_max_pool,
    .max_pool_gradient = cpu_max_pool_gradient,
    .mean_pool = cpu_mean_pool,
    .mean_pool_gradient = cpu_mean_pool_gradient,
    .norm = cpu_norm,
    .norm_fixed = cpu_norm_fixed,
    .norm_gradient = cpu_norm_gradient,
    .join = cpu_join,
    .join_gradient = cpu_join_gradient,
    .gather = cpu_gather,
    .accumulate = cpu_accumulate,
    .sgd = cpu_sgd,
};
