/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FACTORISE_STEP_H
#define FACTORISE_STEP_H 1

/* Steps of stochastic gradient descent on a matrix of two factors.
 *
 *
 * Motivation
 * ==========
 *
 * A rating x of row vector w and column vector h has the loss (x - w.h)^2 +
 * d_w |w|^2 + d_h |h|^2, with the weight decay of each.  A step follows the
 * gradient.  It changes the vectors in place or, if they belong to a store,
 * computes the changes.
 *
 * The bold driver increases the length of steps while the loss falls, and
 * halves it otherwise.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Pure functions; vectors must not overlap. */

#include <stddef.h>

struct factorise_step {
    size_t rank;                /* Number of floats of a vector. */
    float rate;
    float value;                /* The rating. */
    float shrink_w, shrink_h;
};

/* Changes 'w' and 'h'.  Returns the previous x - w.h. */
float factorise_step(const struct factorise_step *, float *w, float *h);

/* Stores the changes that factorise_step() would make. */
float factorise_delta(const struct factorise_step *, const float *w,
                      const float *h, float *dw, float *dh);

struct bold_driver {
    double rate;
    double last;                /* Last loss, 0 before the first one. */
};

/* Adapts the rate after an epoch with this loss. */
void bold_driver_run(struct bold_driver *, double loss);

#endif /* trainer/tasks/factorise-step.h */
