/* SPDX-License-Identifier: Apache-2.0 */

/* Long short-term memory: gates decide what enters the cell, what it forgets
 * and what leaves it. */

#include <math.h>
#include <string.h>

#include "trainer/balance/predictor.h"
#include "trainer/balance/recurrent.h"
#include "trainer/data/seeded.h"

#define WINDOW RECURRENT_WINDOW
#define H RECURRENT_HIDDEN
#define INPUTS RECURRENT_INPUTS
#define GATES (4 * H)           /* Input, forget, candidate, output. */

/* Where the weights are. */
#define FROM_INPUT 0            /* [INPUTS][GATES] */
#define FROM_STATE (INPUTS * GATES)     /* [H][GATES] */
#define N_WEIGHTS (FROM_STATE + H * GATES)

/* What the tape has for each input. */
struct lstm_step {
    float gates[GATES];
    float cell[H], h[H];        /* After it. */
};

static void
lstm_init(float *w, struct seeded *rs)
{
    for (size_t i = 0; i < N_WEIGHTS; i++) {
        w[i] = seeded_normal(rs) / sqrt(i < FROM_STATE ? INPUTS : 2 * H);
    }
    for (int j = 0; j < H; j++) {
        w[FROM_INPUT + H + j] = 1;      /* Remembers at first. */
    }
}

static float
sigmoid(float x)
{
    return 0.5f + 0.5f * tanhf(0.5f * x);
}

static void
lstm_step(const float *w, const float x[INPUTS],
          const struct lstm_step *before, struct lstm_step *step)
{
    float *z = step->gates;

    for (int j = 0; j < GATES; j++) {
        z[j] = 0;
    }
    for (int i = 0; i < INPUTS; i++) {
        for (int j = 0; j < GATES; j++) {
            z[j] += w[FROM_INPUT + i * GATES + j] * x[i];
        }
    }
    for (int i = 0; before && i < H; i++) {
        for (int j = 0; j < GATES; j++) {
            z[j] += w[FROM_STATE + i * GATES + j] * before->h[i];
        }
    }
    for (int j = 0; j < H; j++) {
        z[j] = sigmoid(z[j]);
        z[H + j] = sigmoid(z[H + j]);
        z[2 * H + j] = tanhf(z[2 * H + j]);
        z[3 * H + j] = sigmoid(z[3 * H + j]);
        step->cell[j] = z[j] * z[2 * H + j]
                        + (before ? z[H + j] * before->cell[j] : 0);
        step->h[j] = z[3 * H + j] * tanhf(step->cell[j]);
    }
}

static void
lstm_forward(const float *w, const float x[WINDOW][INPUTS], float *h,
             float *tape)
{
    struct lstm_step *steps = (struct lstm_step *) tape;

    _Static_assert(WINDOW * sizeof *steps <= RECURRENT_TAPE * sizeof *tape,
                   "the tape is too short");
    for (int t = 0; t < WINDOW; t++) {
        lstm_step(w, x[t], t ? &steps[t - 1] : NULL, &steps[t]);
    }
    memcpy(h, steps[WINDOW - 1].h, H * sizeof *h);
}

/* Turns the derivatives by a step's state and cell into those by its gates'
 * inputs, 'd', and by the cell before it. */
static void
gates_backward(const struct lstm_step *step, const struct lstm_step *before,
               const float d_h[H], float d_cell[H], float d[GATES])
{
    const float *z = step->gates;

    for (int j = 0; j < H; j++) {
        float in = z[j], forget = z[H + j];
        float candidate = z[2 * H + j], out = z[3 * H + j];
        float squashed = tanhf(step->cell[j]);

        d_cell[j] += d_h[j] * out * (1 - squashed * squashed);
        d[j] = d_cell[j] * candidate * in * (1 - in);
        d[H + j] = d_cell[j] * (before ? before->cell[j] : 0)
                   * forget * (1 - forget);
        d[2 * H + j] = d_cell[j] * in * (1 - candidate * candidate);
        d[3 * H + j] = d_h[j] * squashed * out * (1 - out);
        d_cell[j] *= forget;
    }
}

static void
lstm_backward(const float *w, const float x[WINDOW][INPUTS],
              const float *tape, float *d_h, float *g)
{
    const struct lstm_step *steps = (const struct lstm_step *) tape;
    float d_cell[H] = { 0 };

    for (int t = WINDOW - 1; t >= 0; t--) {
        const struct lstm_step *before = t ? &steps[t - 1] : NULL;
        float d[GATES];

        gates_backward(&steps[t], before, d_h, d_cell, d);
        for (int i = 0; i < INPUTS; i++) {
            for (int j = 0; j < GATES; j++) {
                g[FROM_INPUT + i * GATES + j] += d[j] * x[t][i];
            }
        }
        for (int i = 0; before && i < H; i++) {
            d_h[i] = 0;
            for (int j = 0; j < GATES; j++) {
                g[FROM_STATE + i * GATES + j] += d[j] * before->h[i];
                d_h[i] += d[j] * w[FROM_STATE + i * GATES + j];
            }
        }
    }
}

const struct recurrent_cell recurrent_lstm = {
    .n_weights = N_WEIGHTS,
    .init = lstm_init,
    .forward = lstm_forward,
    .backward = lstm_backward,
};

static struct predictor *
lstm_create(uint64_t seed)
{
    return recurrent_create(&recurrent_lstm, 0, seed);
}

static struct predictor *
lstm_x_create(uint64_t seed)
{
    return recurrent_create(&recurrent_lstm, 1, seed);
}

const struct predictor_class predictor_lstm = {
    .name = "lstm",
    .create = lstm_create,
    .destroy = recurrent_destroy,
    .update = recurrent_update,
    .predict = recurrent_predict,
};

const struct predictor_class predictor_lstm_x = {
    .name = "lstm-x",
    .create = lstm_x_create,
    .destroy = recurrent_destroy,
    .update = recurrent_update,
    .predict = recurrent_predict,
};
