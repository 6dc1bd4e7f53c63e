/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NEURAL_H
#define NEURAL_H 1

/* Common part of the predictors that are small networks.
 *
 * A network has a vector of weights that Adam moves.  After each iteration it
 * learns from that one and from random ones that the series remembers.  A
 * class of networks defines the output and its derivatives; what the second
 * needs of the first is on a tape. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/balance/predictor.h"
#include "trainer/data/seeded.h"

#define NEURAL_TAPE 520         /* Floats on a tape. */

struct recurrent_cell;

struct neural_class {
    size_t n_weights;
    float rate;                 /* Step size of Adam. */
    int n_steps;                /* Steps of Adam after an iteration. */
    int n_batch;                /* Iterations that a step learns from. */
    bool corrects;              /* The network corrects the expected speed.
                                 * After a step that no input explains, the
                                 * expected speed alone is used while its
                                 * recent error is much smaller. */
    const struct recurrent_cell *cell;  /* Of a recurrent network. */
    bool loads;                 /* A recurrent network sees the loads. */

    /* Sets weights, which are 0. */
    void (*init)(const struct neural_class *, float *weights, struct seeded *);

    /* Returns the speed of iteration 'k' from what is known before it, and
     * fills 'tape'. */
    float (*run)(const struct neural_class *, const float *weights,
                 const struct series *, int64_t k, float *tape);

    /* Adds to 'gradient' for an output that is 'e' too large. */
    void (*back)(const struct neural_class *, const float *weights,
                 const float *tape, float e, float *gradient);
};

struct neural {
    struct predictor up;
    struct seeded random;
    float *weights, *gradient;
    float *mean, *square;       /* Adam's moments. */
    float mean_power, square_power;     /* Of the steps so far. */
    float error, expected_error; /* Recent ones, of the network and of the
                                  * expected speed. */
};

/* The functions of a predictor_class with a 'network'. */
void neural_init(struct predictor *, uint64_t seed);
void neural_uninit(struct predictor *);
void neural_update(struct predictor *);
double neural_predict(struct predictor *);

/* Moves the weights, and clears the gradient. */
void neural_step(struct neural *);

#endif /* trainer/balance/neural.h */
