/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NEURAL_H
#define NEURAL_H 1

/* What the small networks of the predictors share: a vector of weights that
 * Adam moves.
 *
 * The vector is made at creation; 'gradient' is for the network to add to and
 * is cleared by each step. */

#include <stddef.h>
#include <stdint.h>

struct seeded;

struct neural {
    size_t n;
    float *weights, *gradient;
    float *mean, *square;       /* Adam's moments. */
    float rate;                 /* Step size. */
    float mean_power, square_power;     /* Of the steps so far. */
};

void neural_init(struct neural *, size_t n, float rate);
void neural_uninit(struct neural *);

/* Sets 'n' weights from 'first' to normal numbers of deviation 'sd'. */
void neural_randomise(struct neural *, size_t first, size_t n, float sd,
                      struct seeded *);
void neural_step(struct neural *);

/* The gradient of the loss for an output that is 'error' too large.  Beyond
 * a bound it is that bound, so that one hiccup does not undo what was
 * learned. */
float neural_bounded(float error);

#endif /* trainer/balance/neural.h */
