/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/balance/apportion.h"

#include <math.h>

/* Returns part 'i', within its bounds, if a weight of 1 is worth 'scale'. */
static double
bounded(const double *weights, const uint32_t *max, double scale, int i)
{
    return fmax(1, fmin(max[i], scale * weights[i]));
}

/* Stores fractional parts within the bounds in 'quotas', with the sum 'total'
 * except for rounding.  The sum grows with the scale, which is found by
 * bisection. */
static void
find_quotas(int n, uint32_t total, const double *weights,
            const uint32_t *max, double *quotas)
{
    double low = 0, high = 0;

    for (int i = 0; i < n; i++) {
        high = fmax(high, fmin(max[i], total) / weights[i]);
    }
    for (int step = 0; step < 100; step++) {
        double scale = (low + high) / 2, sum = 0;

        if (scale <= low || scale >= high) {
            break;
        }
        for (int i = 0; i < n; i++) {
            sum += bounded(weights, max, scale, i);
        }
        if (sum < total) {
            low = scale;
        } else {
            high = scale;
        }
    }
    for (int i = 0; i < n; i++) {
        quotas[i] = bounded(weights, max, high, i);
    }
}

void
apportion(int n, uint32_t total, const double *weights,
          const uint32_t *max, double *scratch, uint32_t *parts)
{
    double *remainders = scratch;
    uint32_t sum = 0;

    find_quotas(n, total, weights, max, remainders);
    for (int i = 0; i < n; i++) {
        parts[i] = remainders[i] + 1e-9;        /* Rounds 6.999... up to 7. */
        remainders[i] -= parts[i];
        sum += parts[i];
    }
    while (sum != total) {
        int up = sum < total, best = -1;

        for (int i = 0; i < n; i++) {
            if ((up ? parts[i] < max[i] : parts[i] > 1)
                && (best < 0
                    || (up ? remainders[i] > remainders[best]
                           : remainders[i] < remainders[best]))) {
                best = i;
            }
        }
        parts[best] += up ? 1 : -1;
        remainders[best] -= up ? 1 : -1;
        sum += up ? 1 : -1;
    }
}
