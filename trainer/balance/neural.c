/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/balance/neural.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define KEEP_MEAN 0.9f          /* Adam's betas, as everywhere. */
#define KEEP_SQUARE 0.999f
#define MAX_ERROR 0.3f          /* Of speeds that are at most 1: one hiccup
                                 * must not undo what was learned. */
#define RECENT 0.1f             /* Weight of the last error. */
#define WORSE                                           \
    1.5f /* Ratio of errors at which the network is not \
          * used. */

void
neural_init(struct predictor *up, uint64_t seed)
{
    const struct neural_class *class = up->class->network;
    struct neural *net = (struct neural *) up;
    size_t n = class->n_weights;

    net->mean_power = net->square_power = 1;
    net->weights = allocate(4 * n, sizeof *net->weights);
    net->gradient = net->weights + n;
    net->mean = net->weights + 2 * n;
    net->square = net->weights + 3 * n;
    seeded_init(&net->random, seed, 0);
    class->init(class, net->weights, &net->random);
}

void
neural_uninit(struct predictor *up)
{
    free(((struct neural *) up)->weights);
}

void
neural_step(struct neural *net)
{
    const struct neural_class *class = net->up.class->network;
    float rate;

    net->mean_power *= KEEP_MEAN;
    net->square_power *= KEEP_SQUARE;
    rate = class->rate * sqrtf(1 - net->square_power) / (1 - net->mean_power);
    for (size_t i = 0; i < class->n_weights; i++) {
        float g = net->gradient[i];

        net->mean[i] += (1 - KEEP_MEAN) * (g - net->mean[i]);
        net->square[i] += (1 - KEEP_SQUARE) * (g * g - net->square[i]);
        net->weights[i] -= rate * net->mean[i]
                           / (sqrtf(net->square[i]) + 1e-8f);
    }
    memset(net->gradient, 0, class->n_weights * sizeof *net->gradient);
}

/* Returns the number of iterations that a step learns from. */
static int
batch_of(const struct neural *net)
{
    int n = net->up.class->network->n_batch / (net->up.thrift + 1);

    return n ? n : 1;
}

/* Adds the gradient for iteration 'k', one of the past. */
static void
learn(struct neural *net, int64_t k)
{
    const struct neural_class *class = net->up.class->network;
    const struct series *s = &net->up.series;
    float tape[NEURAL_TAPE];
    float e = class->run(class, net->weights, s, k, tape) - series_speed(s, k);

    e = fmaxf(-MAX_ERROR, fminf(MAX_ERROR, e)) / batch_of(net);
    class->back(class, net->weights, tape, e, net->gradient);
}

/* Follows the errors of what was predicted for the last iteration. */
static void
measure_errors(struct neural *net)
{
    const struct neural_class *class = net->up.class->network;
    const struct series *s = &net->up.series;
    int64_t k = s->n - 1;
    float is = series_speed(s, k), tape[NEURAL_TAPE];
    float output = class->run(class, net->weights, s, k, tape);

    net->error += RECENT * (fabsf(output - is) - net->error);
    net->expected_error +=
        RECENT * (fabsf(series_expected(s, k) - is) - net->expected_error);
}

void
neural_update(struct predictor *up)
{
    const struct neural_class *class = up->class->network;
    struct neural *net = (struct neural *) up;
    uint64_t n = up->series.n;
    uint64_t kept = n < SERIES_TRAINING ? n : SERIES_TRAINING;
    int n_batch = batch_of(net);

    measure_errors(net);
    for (int step = 0; step < class->n_steps; step++) {
        learn(net, n - 1);
        for (int i = 1; i < n_batch; i++) {
            learn(net, n - 1 - seeded_below(&net->random, kept));
        }
        neural_step(net);
    }
}

double
neural_predict(struct predictor *up)
{
    const struct neural_class *class = up->class->network;
    const struct neural *net = (const struct neural *) up;
    const struct series *s = &up->series;
    float tape[NEURAL_TAPE];

    if (class->corrects && net->error > WORSE * net->expected_error) {
        return series_rescale(s, series_expected(s, s->n));
    }
    return series_rescale(s, class->run(class, net->weights, s, s->n, tape));
}
