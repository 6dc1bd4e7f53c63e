/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/balance/series.h"

#include <math.h>

#define ALPHA 0.3               /* Weight of the last speed in 'average'. */

void
series_add(struct series *s, double speed, double cpu, double memory)
{
    if (!s->n) {
        s->cpus[0] = cpu;
        s->memories[0] = memory;
        s->average = speed;
    }
    s->speeds[s->n % SERIES_N] = speed;
    s->max = fmax(s->max, speed);
    s->average += ALPHA * (speed - s->average);
    s->n++;
    s->cpus[s->n % SERIES_N] = cpu;
    s->memories[s->n % SERIES_N] = memory;
}

static float
at(const double *values, int64_t k)
{
    return values[k > 0 ? k % SERIES_N : 0];
}

float
series_speed(const struct series *s, int64_t k)
{
    return at(s->speeds, k) / s->max;
}

float
series_cpu(const struct series *s, int64_t k)
{
    return at(s->cpus, k);
}

float
series_memory(const struct series *s, int64_t k)
{
    return at(s->memories, k);
}

double
series_rescale(const struct series *s, float output)
{
    uint64_t n = s->n < SERIES_N ? s->n : SERIES_N;
    double low = s->max;

    for (uint64_t i = 0; i < n; i++) {
        low = fmin(low, s->speeds[i]);
    }
    return isfinite(output) ? fmin(s->max, fmax(low / 2, output * s->max))
                            : s->average;
}
