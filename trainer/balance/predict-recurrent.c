/* SPDX-License-Identifier: Apache-2.0 */

/* Recurrent networks.  A cell is run over the last iterations, the oldest
 * first; the output is linear in its last state and in the last speed.  It
 * learns by truncated back-propagation through time.
 *
 * The cell of "rnn" is Elman's: the next state is a tanh of the input and the
 * state.  The cell of "lstm" is a long short-term memory: gates decide what
 * enters the cell, what it forgets and what leaves it. */

#include <math.h>
#include <string.h>

#include "trainer/balance/neural.h"

#define WINDOW 10               /* Iterations that a prediction looks at. */
#define H 8                     /* Width of a cell's state. */
#define INPUTS 4                /* A constant, the speed, the two loads. */
#define LSTM_GATES (4 * H)      /* Input, forget, candidate, output. */

/* Where the weights are: [INPUTS][n_gates], [H][n_gates], then those of the
 * output: [H], a constant, the last speed. */
#define OUTPUT(GATES) ((INPUTS + H) * (GATES))
#define N_WEIGHTS(GATES) (OUTPUT(GATES) + H + 2)

/* A cell after one input. */
struct step {
    float gates[LSTM_GATES];
    float cell[H], h[H];
};

struct tape {
    float x[WINDOW][INPUTS];
    struct step steps[WINDOW];
};

_Static_assert(sizeof(struct tape) <= NEURAL_TAPE * sizeof(float),
               "the tape is too short");

struct recurrent_cell {
    int n_gates;
    int forget; /* First of the gates with an initial constant
                 * of 1, so that the cell remembers; 0:
                 * none. */

    /* Turns the sums of the inputs in 'gates' into the state.  'before' is
     * NULL for the first step. */
    void (*forward)(const struct step *before, struct step *);

    /* Turns the derivatives by the state and the cell after a step into those
     * by the sums of the inputs, 'd', and by the cell before it. */
    void (*backward)(const struct step *, const struct step *before,
                     const float d_h[H], float d_cell[H], float *d);
};

static void
rnn_forward(const struct step *before, struct step *step)
{
    for (int j = 0; j < H; j++) {
        step->h[j] = tanhf(step->gates[j]);
    }
}

static void
rnn_backward(const struct step *step, const struct step *before,
             const float d_h[H], float d_cell[H], float *d)
{
    for (int j = 0; j < H; j++) {
        d[j] = d_h[j] * (1 - step->h[j] * step->h[j]);
    }
}

static const struct recurrent_cell rnn_cell = {
    .n_gates = H, .forward = rnn_forward, .backward = rnn_backward,
};

static float
sigmoid(float x)
{
    return 0.5f + 0.5f * tanhf(0.5f * x);
}

static void
lstm_forward(const struct step *before, struct step *step)
{
    float *z = step->gates;

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
lstm_backward(const struct step *step, const struct step *before,
              const float d_h[H], float d_cell[H], float *d)
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

static const struct recurrent_cell lstm_cell = {
    .n_gates = LSTM_GATES, .forget = H,
    .forward = lstm_forward, .backward = lstm_backward,
};

static void
recurrent_init(const struct neural_class *class, float *w,
               struct seeded *random)
{
    const struct recurrent_cell *cell = class->cell;
    int n = cell->n_gates;

    for (int i = 0; i < (INPUTS + H) * n; i++) {
        w[i] = seeded_normal(random) / sqrt(i < INPUTS * n ? INPUTS : 2 * H);
    }
    for (int j = 0; cell->forget && j < H; j++) {
        w[cell->forget + j] = 1;
    }
    w[OUTPUT(n) + H + 1] = 1;
}

/* Stores what is known before iteration 'k'. */
static void
fill(const struct series *s, int64_t k, bool loads, float x[WINDOW][INPUTS])
{
    for (int i = 0; i < WINDOW; i++) {
        int64_t j = k - WINDOW + i;

        x[i][0] = 1;
        x[i][1] = series_speed(s, j);
        x[i][2] = loads ? series_cpu(s, j + 1) : 0;
        x[i][3] = loads ? series_memory(s, j + 1) : 0;
    }
}

/* Stores the sums of the weighted inputs of a step in its gates. */
static void
add_inputs(const float *w, int n, const float x[INPUTS],
           const struct step *before, struct step *step)
{
    float *z = step->gates;

    memset(z, 0, n * sizeof *z);
    for (int i = 0; i < INPUTS; i++) {
        for (int j = 0; j < n; j++) {
            z[j] += w[i * n + j] * x[i];
        }
    }
    w += INPUTS * n;
    for (int i = 0; before && i < H; i++) {
        for (int j = 0; j < n; j++) {
            z[j] += w[i * n + j] * before->h[i];
        }
    }
}

static float
recurrent_run(const struct neural_class *class, const float *w,
              const struct series *s, int64_t k, float *tape_)
{
    struct tape *tape = (struct tape *) tape_;
    int n = class->cell->n_gates;
    const float *output = w + OUTPUT(n);
    const struct step *before = NULL;
    float y;

    fill(s, k, class->loads, tape->x);
    for (int t = 0; t < WINDOW; t++) {
        add_inputs(w, n, tape->x[t], before, &tape->steps[t]);
        class->cell->forward(before, &tape->steps[t]);
        before = &tape->steps[t];
    }
    y = output[H] + output[H + 1] * tape->x[WINDOW - 1][1];
    for (int j = 0; j < H; j++) {
        y += output[j] * before->h[j];
    }
    return y;
}

/* Adds to the gradient of the weights for 'd', and replaces 'd_h' by the
 * derivatives by the state before the step. */
static void
inputs_backward(const float *w, int n, const float x[INPUTS],
                const struct step *before, const float *d, float d_h[H],
                float *g)
{
    for (int i = 0; i < INPUTS; i++) {
        for (int j = 0; j < n; j++) {
            g[i * n + j] += d[j] * x[i];
        }
    }
    w += INPUTS * n;
    g += INPUTS * n;
    for (int i = 0; before && i < H; i++) {
        d_h[i] = 0;
        for (int j = 0; j < n; j++) {
            g[i * n + j] += d[j] * before->h[i];
            d_h[i] += d[j] * w[i * n + j];
        }
    }
}

static void
recurrent_back(const struct neural_class *class, const float *w,
               const float *tape_, float e, float *g)
{
    const struct tape *tape = (const struct tape *) tape_;
    int n = class->cell->n_gates, output = OUTPUT(n);
    float d_h[H], d_cell[H] = { 0 }, d[LSTM_GATES];

    g[output + H] += e;
    g[output + H + 1] += e * tape->x[WINDOW - 1][1];
    for (int j = 0; j < H; j++) {
        g[output + j] += e * tape->steps[WINDOW - 1].h[j];
        d_h[j] = e * w[output + j];
    }
    for (int t = WINDOW - 1; t >= 0; t--) {
        const struct step *before = t ? &tape->steps[t - 1] : NULL;

        class->cell->backward(&tape->steps[t], before, d_h, d_cell, d);
        inputs_backward(w, n, tape->x[t], before, d, d_h, g);
    }
}

#define RECURRENT(CELL, GATES, LOADS)                                   \
    .network = &(const struct neural_class) {                           \
        .n_weights = N_WEIGHTS(GATES), .rate = 0.005f, .n_steps = 2,    \
        .n_batch = 16, .cell = CELL, .loads = LOADS,                    \
        .init = recurrent_init, .run = recurrent_run,                   \
        .back = recurrent_back,                                         \
    },                                                                  \
    .size = sizeof(struct neural), .warm = SERIES_WARM,                 \
    .init = neural_init, .uninit = neural_uninit,                       \
    .update = neural_update, .predict = neural_predict

const struct predictor_class predictor_rnn = {
    .name = "rnn", RECURRENT(&rnn_cell, H, false),
};

const struct predictor_class predictor_lstm = {
    .name = "lstm", RECURRENT(&lstm_cell, LSTM_GATES, false),
};

const struct predictor_class predictor_lstm_x = {
    .name = "lstm-x", RECURRENT(&lstm_cell, LSTM_GATES, true),
};
