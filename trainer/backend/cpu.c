/* SPDX-License-Identifier: Apache-2.0 */

/* The reference backend: OpenBLAS, host memory. */

#include "trainer/backend/cpu-image.h"

#include <cblas.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    cpu = calloc(1, sizeof *cpu);
    if (!cpu) {
        return ENOMEM;
    }
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

static void *
cpu_alloc(struct backend *b, size_t bytes)
{
    void *buffer;

    if (posix_memalign(&buffer, ALIGNMENT, bytes ? bytes : 1)) {
        return NULL;
    }
    memset(buffer, 0, bytes);
    return buffer;
}

static void
cpu_free(struct backend *b, void *buffer)
{
    free(buffer);
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
