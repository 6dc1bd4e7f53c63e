/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/balance/recurrent.h"

#include <math.h>
#include <stdlib.h>

#include "trainer/balance/neural.h"
#include "trainer/balance/predictor.h"
#include "trainer/balance/series.h"
#include "base/memory.h"
#include "trainer/data/seeded.h"

#define WINDOW RECURRENT_WINDOW
#define HIDDEN RECURRENT_HIDDEN
#define INPUTS RECURRENT_INPUTS
#define RATE 0.005f
#define N_STEPS 2               /* Of Adam, an iteration; */
#define N_STEP 16               /* windows of each. */

struct recurrent {
    struct predictor up;
    const struct recurrent_cell *cell;
    int uses;                   /* Does the cell see them? */
    struct series series;
    struct neural net;          /* The cell's weights, then those of the */
    size_t output;              /* output: here, HIDDEN and a constant, and */
    size_t direct;              /* here, that of the last speed. */
    struct seeded chance;
};

struct predictor *
recurrent_create(const struct recurrent_cell *cell, int uses, uint64_t seed)
{
    struct recurrent *r = allocate(1, sizeof *r);

    r->cell = cell;
    r->uses = uses;
    r->output = cell->n_weights;
    r->direct = r->output + HIDDEN + 1;
    seeded_init(&r->chance, seed, 0);
    neural_init(&r->net, r->direct + 1, RATE);
    cell->init(r->net.weights, &r->chance);
    r->net.weights[r->direct] = 1;
    return &r->up;
}

void
recurrent_destroy(struct predictor *up)
{
    struct recurrent *r = (struct recurrent *) up;

    neural_uninit(&r->net);
    free(r);
}

/* What is known before iteration 'k'. */
static void
fill(const struct recurrent *r, int64_t k, float x[WINDOW][INPUTS])
{
    for (int i = 0; i < WINDOW; i++) {
        int64_t j = k - WINDOW + i;

        x[i][0] = 1;
        x[i][1] = series_speed(&r->series, j);
        x[i][2] = r->uses ? series_cpu(&r->series, j + 1) : 0;
        x[i][3] = r->uses ? series_memory(&r->series, j + 1) : 0;
    }
}

static float
forward(const struct recurrent *r, const float x[WINDOW][INPUTS],
        float h[HIDDEN], float *tape)
{
    const float *w = r->net.weights;
    float y = w[r->output + HIDDEN] + w[r->direct] * x[WINDOW - 1][1];

    r->cell->forward(w, x, h, tape);
    for (int j = 0; j < HIDDEN; j++) {
        y += w[r->output + j] * h[j];
    }
    return y;
}

/* Adds the gradient for iteration 'k', one of the past. */
static void
learn(struct recurrent *r, int64_t k)
{
    float x[WINDOW][INPUTS], h[HIDDEN], d_h[HIDDEN], tape[RECURRENT_TAPE];
    const float *w = r->net.weights;
    float *g = r->net.gradient;
    float e;

    fill(r, k, x);
    e = forward(r, x, h, tape) - series_speed(&r->series, k);
    e = neural_bounded(e) / N_STEP;
    g[r->output + HIDDEN] += e;
    g[r->direct] += e * x[WINDOW - 1][1];
    for (int j = 0; j < HIDDEN; j++) {
        g[r->output + j] += e * h[j];
        d_h[j] = e * w[r->output + j];
    }
    r->cell->backward(w, x, tape, d_h, g);
}

void
recurrent_update(struct predictor *up, double speed, double cpu,
                 double memory)
{
    struct recurrent *r = (struct recurrent *) up;
    uint64_t n, kept;

    series_add(&r->series, speed, cpu, memory);
    n = r->series.n;
    kept = n < SERIES_TRAINING ? n : SERIES_TRAINING;
    for (int step = 0; step < N_STEPS; step++) {
        learn(r, n - 1);
        for (int i = 1; i < N_STEP; i++) {
            learn(r, n - 1 - seeded_below(&r->chance, kept));
        }
        neural_step(&r->net);
    }
}

double
recurrent_predict(struct predictor *up)
{
    struct recurrent *r = (struct recurrent *) up;
    float x[WINDOW][INPUTS], h[HIDDEN], tape[RECURRENT_TAPE];

    if (r->series.n < SERIES_WARM) {
        return r->series.average;
    }
    fill(r, r->series.n, x);
    return series_rescale(&r->series, forward(r, x, h, tape));
}
