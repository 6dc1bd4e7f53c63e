/* SPDX-License-Identifier: Apache-2.0 */

/* NARX, a nonlinear autoregressive network with exogenous inputs, in its
 * series-parallel form: a layer of sigmoid units over the last speeds as they
 * were measured, the uses of CPU and memory as they were and as they are now,
 * and the speed to expect; then a linear output of these units and of the
 * inputs themselves, because most of what there is to learn is linear.
 *
 * Speed is a product with the part of the processor that others leave, which a
 * network of sums learns slowly.  So the product is an input, and the output
 * at first: the network learns what is wrong with it. */

#include <math.h>

#include "trainer/balance/neural.h"

#define N_LAGS 3
#define EXPECTED (3 * N_LAGS)
#define N_INPUTS (EXPECTED + 2) /* And a constant. */
#define N_HIDDEN 8              /* 5 are slower and less exact. */

/* Where the weights are in their vector. */
#define HIDDEN 0                /* [N_INPUTS][N_HIDDEN] */
#define OUTPUT (N_INPUTS * N_HIDDEN)    /* [N_HIDDEN] */
#define DIRECT (OUTPUT + N_HIDDEN)      /* [N_INPUTS] */
#define N_WEIGHTS (DIRECT + N_INPUTS)

struct tape {
    float x[N_INPUTS], h[N_HIDDEN];
};

/* A sigmoid like tanh(), without a call. */
static inline float
sigmoid(float x)
{
    x = x > 3 ? 3 : x < -3 ? -3 : x;
    return x * (27 + x * x) / (27 + 9 * x * x);
}

static void
narx_init(const struct neural_class *class, float *w, struct seeded *random)
{
    float sd = 1 / sqrtf(N_INPUTS);

    for (int i = 0; i < N_INPUTS * N_HIDDEN; i++) {
        w[HIDDEN + i] = sd * seeded_normal(random);
    }
    w[DIRECT + EXPECTED] = 1;
}

static float
narx_run(const struct neural_class *class, const float *w,
         const struct series *s, int64_t k, float *tape_)
{
    struct tape *tape = (struct tape *) tape_;
    float *x = tape->x, *h = tape->h, y = 0;

    for (int i = 0; i < N_LAGS; i++) {
        x[i] = series_speed(s, k - 1 - i);
        x[N_LAGS + i] = series_cpu(s, k - i);
        x[2 * N_LAGS + i] = series_memory(s, k - i);
    }
    x[EXPECTED] = series_expected(s, k);
    x[N_INPUTS - 1] = 1;
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
        h[j] = sigmoid(h[j]);
        y += w[OUTPUT + j] * h[j];
    }
    return y;
}

static void
narx_back(const struct neural_class *class, const float *w,
          const float *tape_, float e, float *g)
{
    const struct tape *tape = (const struct tape *) tape_;
    const float *x = tape->x, *h = tape->h;
    float back[N_HIDDEN];

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

static const struct neural_class narx = { .n_weights = N_WEIGHTS,
                                          .rate = 0.0005f,
                                          .n_steps = 4,
                                          .n_batch = 32,
                                          .corrects = true,
                                          .init = narx_init,
                                          .run = narx_run,
                                          .back = narx_back };

const struct predictor_class predictor_narx = { .name = "narx",
                                                .size = sizeof(struct neural),
                                                .warm = 1,
                                                .init = neural_init,
                                                .uninit = neural_uninit,
                                                .update = neural_update,
                                                .predict = neural_predict,
                                                .network = &narx };
