/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/models/vector.h"

#include <math.h>

#include "trainer/models/lanes.h"

WIDE float
vector_dot(size_t n, const float *a, const float *b)
{
    lanes s0 = { 0 }, s1 = { 0 };
    float sum = 0;
    size_t i = 0;

    for (; i + 2 * N_LANES <= n; i += 2 * N_LANES) {
        s0 += *(const lanes *) (a + i) * *(const lanes *) (b + i);
        s1 += *(const lanes *) (a + i + N_LANES)
              * *(const lanes *) (b + i + N_LANES);
    }
    for (; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum + lanes_sum(s0 + s1);
}

WIDE void
vector_add(size_t n, float factor, const float *restrict x,
           float *restrict y)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += factor * x[i];
    }
}

WIDE void
vector_scale(size_t n, float factor, const float *restrict x,
             float *restrict y)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = factor * x[i];
    }
}

WIDE void
vector_adagrad(size_t n, float rate, const float *restrict sum,
               float *restrict g, float *restrict add_to_sum)
{
    for (size_t i = 0; i < n; i++) {
        add_to_sum[i] = g[i] * g[i];
        g[i] *= -rate / sqrtf(sum[i] + add_to_sum[i] + 1e-10f);
    }
}
