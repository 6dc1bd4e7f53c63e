/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRIAL_CURVE_H
#define TRIAL_CURVE_H 1

/* Learning curves of the trainer's own trials, for simulated ones.
 *
 * tests/bench/trial-curves.py has trained them and printed the table: nets of
 * two hidden layers on generated samples.  Their accuracies have the noise of
 * a few hundred validation samples, as those that a search looks at. */

struct trial_curve;

/* Returns the curve of the trial most similar to one with 'n_classes' classes
 * and this learning rate. */
const struct trial_curve *trial_curve_find(int n_classes,
                                           double learning_rate);

/* Returns the accuracy after 'k' iterations: between two that are recorded, on
 * the line between them, after the last one as there. */
double trial_curve_at(const struct trial_curve *, double k);

#endif /* sim/workload/trial-curve.h */
