/* SPDX-License-Identifier: Apache-2.0 */

/* Elman's network: the next state is a tanh of the input and the state. */

#include <math.h>
#include <string.h>

#include "trainer/balance/predictor.h"
#include "trainer/balance/recurrent.h"
#include "trainer/data/seeded.h"

#define WINDOW RECURRENT_WINDOW
#define H RECURRENT_HIDDEN
#define INPUTS RECURRENT_INPUTS

/* Where the weights are. */
#define FROM_INPUT 0            /* [INPUTS][H] */
#define FROM_STATE (INPUTS * H) /* [H][H] */
#define N_WEIGHTS (FROM_STATE + H * H)

/* The tape has the states, after each input. */

static void
rnn_init(float *w, struct seeded *rs)
{
    for (size_t i = 0; i < N_WEIGHTS; i++) {
        w[i] = seeded_normal(rs) / sqrt(i < FROM_STATE ? INPUTS : 2 * H);
    }
}

static void
rnn_forward(const float *w, const float x[WINDOW][INPUTS], float *h,
            float *tape)
{
    const float *before = NULL;

    for (int t = 0; t < WINDOW; t++) {
        float *state = tape + t * H;

        for (int j = 0; j < H; j++) {
            state[j] = 0;
        }
        for (int i = 0; i < INPUTS; i++) {
            for (int j = 0; j < H; j++) {
                state[j] += w[FROM_INPUT + i * H + j] * x[t][i];
            }
        }
        for (int i = 0; before && i < H; i++) {
            for (int j = 0; j < H; j++) {
                state[j] += w[FROM_STATE + i * H + j] * before[i];
            }
        }
        for (int j = 0; j < H; j++) {
            state[j] = tanhf(state[j]);
        }
        before = state;
    }
    memcpy(h, before, H * sizeof *h);
}

static void
rnn_backward(const float *w, const float x[WINDOW][INPUTS],
             const float *tape, float *d_h, float *g)
{
    for (int t = WINDOW - 1; t >= 0; t--) {
        const float *state = tape + t * H;
        const float *before = state - H;
        float d[H];

        for (int j = 0; j < H; j++) {
            d[j] = d_h[j] * (1 - state[j] * state[j]);
        }
        for (int i = 0; i < INPUTS; i++) {
            for (int j = 0; j < H; j++) {
                g[FROM_INPUT + i * H + j] += d[j] * x[t][i];
            }
        }
        for (int i = 0; t && i < H; i++) {
            d_h[i] = 0;
            for (int j = 0; j < H; j++) {
                g[FROM_STATE + i * H + j] += d[j] * before[i];
                d_h[i] += d[j] * w[FROM_STATE + i * H + j];
            }
        }
    }
}

const struct recurrent_cell recurrent_rnn = {
    .n_weights = N_WEIGHTS,
    .init = rnn_init,
    .forward = rnn_forward,
    .backward = rnn_backward,
};

static struct predictor *
rnn_create(uint64_t seed)
{
    return recurrent_create(&recurrent_rnn, 0, seed);
}

const struct predictor_class predictor_rnn = {
    .name = "rnn",
    .create = rnn_create,
    .destroy = recurrent_destroy,
    .update = recurrent_update,
    .predict = recurrent_predict,
};
