/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/balance/neural.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/data/seeded.h"

#define KEEP_MEAN 0.9f          /* Adam's betas, as everywhere. */
#define KEEP_SQUARE 0.999f
#define MAX_ERROR 0.3f          /* Of speeds that are at most 1. */

void
neural_init(struct neural *net, size_t n, float rate)
{
    float *vectors = allocate(4 * n, sizeof *vectors);

    *net = (struct neural) {
        .n = n, .rate = rate, .mean_power = 1, .square_power = 1,
        .weights = vectors, .gradient = vectors + n,
        .mean = vectors + 2 * n, .square = vectors + 3 * n,
    };
}

void
neural_uninit(struct neural *net)
{
    free(net->weights);
}

void
neural_randomise(struct neural *net, size_t first, size_t n, float sd,
                 struct seeded *rs)
{
    for (size_t i = first; i < first + n; i++) {
        net->weights[i] = sd * seeded_normal(rs);
    }
}

void
neural_step(struct neural *net)
{
    float rate;

    net->mean_power *= KEEP_MEAN;
    net->square_power *= KEEP_SQUARE;
    rate = net->rate * sqrtf(1 - net->square_power) / (1 - net->mean_power);
    for (size_t i = 0; i < net->n; i++) {
        float g = net->gradient[i];

        net->mean[i] += (1 - KEEP_MEAN) * (g - net->mean[i]);
        net->square[i] += (1 - KEEP_SQUARE) * (g * g - net->square[i]);
        net->weights[i] -= rate * net->mean[i]
                           / (sqrtf(net->square[i]) + 1e-8f);
    }
    memset(net->gradient, 0, net->n * sizeof *net->gradient);
}

float
neural_bounded(float error)
{
    return fmaxf(-MAX_ERROR, fminf(MAX_ERROR, error));
}
