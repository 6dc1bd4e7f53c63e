/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/balance/apportion.h"

#include <math.h>

/* What part 'i' is if a weight of 1 is worth 'scale'. */
static double
bounded(const double *weights, const uint32_t *max, double scale, int i)
{
    return fmax(1, fmin(max[i], scale * weights[i]));
}

/* Fills 'quotas', fractions within the bounds whose sum is 'total' but for
 * rounding.  That sum grows with the scale, which halving of an interval finds
 * however many bounds are hit. */
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
        parts[i] = remainders[i] + 1e-9;        /* 7 is not to be 6.999. */
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
