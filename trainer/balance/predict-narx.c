/* SPDX-License-Identifier: Apache-2.0 */

/* NARX, a nonlinear autoregressive network with exogenous inputs, in its
 * series-parallel form: a layer of tanh units over the last speeds as they
 * were measured, and the uses of CPU and memory as they were and as they are
 * now; then a linear output of these units and of the inputs themselves,
 * because most of what there is to learn is linear. */

#include <math.h>
#include <stdlib.h>

#include "trainer/balance/neural.h"
#include "trainer/balance/predictor.h"
#include "trainer/balance/series.h"
#include "base/memory.h"
#include "trainer/data/seeded.h"

#define N_LAGS 3
#define N_INPUTS (3 * N_LAGS + 1)       /* And a constant. */
#define N_HIDDEN 8
#define RATE 0.002f
#define N_STEPS 4               /* Of Adam, an iteration; */
#define N_STEP 32               /* samples of each. */

/* Where the weights are in their vector. */
#define HIDDEN 0                /* [N_INPUTS][N_HIDDEN] */
#define OUTPUT (N_INPUTS * N_HIDDEN)    /* [N_HIDDEN] */
#define DIRECT (OUTPUT + N_HIDDEN)      /* [N_INPUTS] */
#define N_WEIGHTS (DIRECT + N_INPUTS)

struct narx {
    struct predictor up;
    struct series series;
    struct neural net;
    struct seeded chance;
};

static struct predictor *
narx_create(uint64_t seed)
{
    struct narx *narx = allocate(1, sizeof *narx);

    seeded_init(&narx->chance, seed, 0);
    neural_init(&narx->net, N_WEIGHTS, RATE);
    neural_randomise(&narx->net, HIDDEN, N_INPUTS * N_HIDDEN,
                     1 / sqrtf(N_INPUTS), &narx->chance);
    for (int i = 0; i < N_LAGS; i++) {
        narx->net.weights[DIRECT + i] = 1.0f / N_LAGS;
    }
    return &narx->up;
}

static void
narx_destroy(struct predictor *up)
{
    struct narx *narx = (struct narx *) up;

    neural_uninit(&narx->net);
    free(narx);
}

/* What is known before iteration 'k'. */
static void
fill(const struct series *s, int64_t k, float x[N_INPUTS])
{
    for (int i = 0; i < N_LAGS; i++) {
        x[i] = series_speed(s, k - 1 - i);
        x[N_LAGS + i] = series_cpu(s, k - i);
        x[2 * N_LAGS + i] = series_memory(s, k - i);
    }
    x[N_INPUTS - 1] = 1;
}

static float
forward(const float *w, const float x[N_INPUTS], float h[N_HIDDEN])
{
    float y = 0;

    for (int j = 0; j < N_HIDDEN; j++) {
        h[j] = 0;
    }
    for (int i = 0; i < N_INPUTS; i++) {
        y += w[DIRECT + i] * x[i];
        for (int j = 0; j < N_HIDDEN; j++) {
            h[j] += w[HIDDEN + i * N_HIDDEN + j] * x[i];
        }
    }
    for (int j = 0; j < N_HIDDEN; j++) {
        h[j] = tanhf(h[j]);
        y += w[OUTPUT + j] * h[j];
    }
    return y;
}

/* Adds the gradient for iteration 'k', one of the past. */
static void
learn(struct narx *narx, int64_t k)
{
    const float *w = narx->net.weights;
    float *g = narx->net.gradient;
    float x[N_INPUTS], h[N_HIDDEN], back[N_HIDDEN], e;

    fill(&narx->series, k, x);
    e = forward(w, x, h) - series_speed(&narx->series, k);
    e = neural_bounded(e) / N_STEP;
    for (int j = 0; j < N_HIDDEN; j++) {
        g[OUTPUT + j] += e * h[j];
        back[j] = e * w[OUTPUT + j] * (1 - h[j] * h[j]);
    }
    for (int i = 0; i < N_INPUTS; i++) {
        g[DIRECT + i] += e * x[i];
        for (int j = 0; j < N_HIDDEN; j++) {
            g[HIDDEN + i * N_HIDDEN + j] += back[j] * x[i];
        }
    }
}

/* Learns from the last iteration and from others that it remembers. */
static void
narx_update(struct predictor *up, double speed, double cpu, double memory)
{
    struct narx *narx = (struct narx *) up;
    uint64_t n, kept;

    series_add(&narx->series, speed, cpu, memory);
    n = narx->series.n;
    kept = n < SERIES_TRAINING ? n : SERIES_TRAINING;
    for (int step = 0; step < N_STEPS; step++) {
        learn(narx, n - 1);
        for (int i = 1; i < N_STEP; i++) {
            learn(narx, n - 1 - seeded_below(&narx->chance, kept));
        }
        neural_step(&narx->net);
    }
}

static double
narx_predict(struct predictor *up)
{
    struct narx *narx = (struct narx *) up;
    const struct series *s = &narx->series;
    float x[N_INPUTS], h[N_HIDDEN];

    if (s->n < SERIES_WARM) {
        return s->average;
    }
    fill(s, s->n, x);
    return series_rescale(s, forward(narx->net.weights, x, h));
}

const struct predictor_class predictor_narx = {
    .name = "narx",
    .create = narx_create,
    .destroy = narx_destroy,
    .update = narx_update,
    .predict = narx_predict,
};
