/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FACTORISE_STEP_H
#define FACTORISE_STEP_H 1

/* Steps of stochastic gradient descent on a matrix of two factors.
 *
 *
 * Motivation
 * ==========
 *
 * A rating x of row vector w and column vector h costs (x - w.h)^2 +
 * shrink_w |w|^2 + shrink_h |h|^2, and a step goes against the gradient of
 * that.  Both are changed where they are; or, where they are not ours to
 * change, what to add to them is made.
 *
 * The bold driver makes steps longer as long as the loss falls, and half as
 * long once it has not.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Pure functions of what they are given; vectors do not overlap. */

#include <stddef.h>

struct factorise_step {
    size_t rank;                /* Floats of a vector. */
    float rate;
    float value;                /* The rating. */
    float shrink_w, shrink_h;
};

/* Changes 'w' and 'h'.  Returns x - w.h before that. */
float factorise_step(const struct factorise_step *, float *w, float *h);

/* Stores what factorise_step() would add. */
float factorise_delta(const struct factorise_step *, const float *w,
                      const float *h, float *dw, float *dh);

struct bold_driver {
    double rate;
    double last;                /* Loss; 0 before the first. */
};

/* Judges an epoch by its loss. */
void bold_driver_run(struct bold_driver *, double loss);

#endif /* trainer/tasks/factorise-step.h */
