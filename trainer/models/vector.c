/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/models/vector.h"

#include <math.h>

/* Vectors of eight floats, from any address, for sums in a fixed order. */
#define N_LANES 8

typedef float lanes __attribute__((__vector_size__(4 * N_LANES),
                                   __aligned__(4), __may_alias__));

/* A macro, because compilers pass vector arguments in different ways. */
#define lanes_sum(S)                                    \
    ((((S)[0] + (S)[4]) + ((S)[2] + (S)[6]))            \
     + (((S)[1] + (S)[5]) + ((S)[3] + (S)[7])))

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
vector_add(size_t n, float factor, const float *restrict x, float *restrict y)
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
