/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/schemes/optimiser.h"

#include <math.h>
#include <string.h>

#include "trainer/models/vector.h"

/* None has a fused multiply-add, so that results are the same on all
 * processors. */

WIDE static void
sum_step(const struct optimiser_config *c, size_t n, const float *restrict g,
         float *const state[], float *restrict w)
{
    for (size_t i = 0; i < n; i++) {
        w[i] += g[i];
    }
}

WIDE static void
sgd_step(const struct optimiser_config *c, size_t n, const float *restrict g,
         float *const state[], float *restrict w)
{
    float rate = c->rate;

    for (size_t i = 0; i < n; i++) {
        w[i] -= rate * g[i];
    }
}

WIDE static void
momentum_step(const struct optimiser_config *c, size_t n,
              const float *restrict g, float *const state[], float *restrict w)
{
    float rate = c->rate, momentum = c->momentum;
    float *restrict v = state[0];

    for (size_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + g[i];
        w[i] -= rate * v[i];
    }
}

WIDE static void
adagrad_step(const struct optimiser_config *c, size_t n,
             const float *restrict g, float *const state[], float *restrict w)
{
    float rate = c->rate, epsilon = c->epsilon;
    float *restrict sum = state[0];

    for (size_t i = 0; i < n; i++) {
        sum[i] += g[i] * g[i];
        w[i] -= rate * g[i] / (sqrtf(sum[i]) + epsilon);
    }
}

/* The corrections for having begun with zeros, 1 - decay^t, are the same
 * averages of ones: kept for each weight, they count its own steps. */
WIDE static void
adam_step(const struct optimiser_config *c, size_t n, const float *restrict g,
          float *const state[], float *restrict w)
{
    float rate = c->rate, epsilon = c->epsilon;
    float b1 = c->momentum, b2 = c->decay;
    float *restrict mean = state[0], *restrict square = state[1];
    float *restrict ones1 = state[2], *restrict ones2 = state[3];

    for (size_t i = 0; i < n; i++) {
        mean[i] = b1 * mean[i] + (1 - b1) * g[i];
        square[i] = b2 * square[i] + (1 - b2) * g[i] * g[i];
        ones1[i] = b1 * ones1[i] + (1 - b1);
        ones2[i] = b2 * ones2[i] + (1 - b2);
        w[i] -= rate * (mean[i] / ones1[i])
                / (sqrtf(square[i] / ones2[i]) + epsilon);
    }
}

static const struct optimiser_class classes[] = {
    { "sum", 0, sum_step },
    { "sgd", 0, sgd_step },
    { "momentum", 1, momentum_step },
    { "adagrad", 1, adagrad_step },
    { "adam", 4, adam_step },
};

#define N_CLASSES (sizeof classes / sizeof *classes)

const struct optimiser_class *
optimiser_find(const char *name)
{
    for (size_t i = 0; i < N_CLASSES; i++) {
        if (!strcmp(classes[i].name, name)) {
            return &classes[i];
        }
    }
    return NULL;
}

const struct optimiser_class *
optimiser_by_number(uint32_t number)
{
    return number < N_CLASSES ? &classes[number] : NULL;
}

uint32_t
optimiser_number(const struct optimiser_class *class)
{
    return class - classes;
}

struct optimiser_config
optimiser_defaults(const struct optimiser_class *class, float rate,
                   float momentum)
{
    return (struct optimiser_config) {
        .class = class, .rate = rate, .momentum = momentum,
        .decay = 0.999f, .epsilon = 1e-8f,
    };
}

/* Returns the rate at an iteration, as part of the one that was set. */
static double
part_of_rate(const struct rate_schedule *s, uint64_t iteration)
{
    double x = s->period ? (double) iteration / s->period : 0, part = 1;

    if (s->kind == RATE_STEP) {
        part = pow(s->factor, floor(x));
    } else if (s->kind == RATE_COSINE) {
        part = s->factor + (1 - s->factor) * (1 + cos(M_PI * fmin(x, 1))) / 2;
    }
    return iteration < s->warm_up ? part * (iteration + 1) / s->warm_up : part;
}

void
optimiser_step(const struct optimiser_config *config, uint64_t iteration,
               size_t n, const float *gradient, float *const state[],
               float *weights)
{
    struct optimiser_config now = *config;

    now.rate *= part_of_rate(&config->schedule, iteration);
    config->class->step(&now, n, gradient, state, weights);
}
