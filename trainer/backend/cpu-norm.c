/* SPDX-License-Identifier: Apache-2.0 */

/* Batch normalisation.  Sums are computed in double, for several columns at a
 * time. */

#include "trainer/backend/cpu-image.h"

#include <math.h>

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

void
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

void
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

void
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
