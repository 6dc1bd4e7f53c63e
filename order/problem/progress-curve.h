/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PROGRESS_CURVE_H
#define PROGRESS_CURVE_H 1

/* Fits the learning curve of a job and predicts its gain.
 *
 * A training job improves most in its first iterations.  An order that prefers
 * jobs that improve fast needs two values of each running job: whether it is
 * in its early phase, and its gain in the next seconds.  Both come from the
 * metric that the job logs, by fitting the power law of learning curves:
 *
 *     a(k) = limit - span (k + 1)^-exponent        after k iterations.
 *
 * Metrics have different units, so the gain is relative to the job's largest
 * step from sample to sample so far.  A job without metric samples is treated
 * as early, but for at most 'boot_s' seconds, so that a job cannot keep its
 * priority by not reporting.
 *
 * A job has one curve.  Samples are added as the job logs them; the score is
 * computed for each order:
 *
 *    struct progress_options options = PROGRESS_OPTIONS_INIT;
 *    struct progress_curve curve;
 *
 *    progress_curve_init(&curve, now);
 *    progress_curve_add(&curve, k, accuracy, now);
 *    progress_curve_score(&curve, &options, k, iteration_s, now,
 *                         &traits.gain, &traits.early);
 *
 * The last metric of a job is the value of the curve at 'end', or the limit if
 * 'end' is unknown.  The limit of a curve that still rises is hardly known: a
 * fit of the first ten accuracies often has one above 1.  So the last metric
 * is at most two thirds of the way from the best one to its bound: 1 if that
 * is from 0 to 1, 0 if it is negative.  Trials of two classes are at 0.9 of
 * their last accuracy after 6 to 10 iterations; by the fit alone they are
 * early until the 12th to the 23rd.
 *
 * A larger metric must be better: negate a loss.  A metric below zero counts
 * from its first sample, so that 'theta' has the same meaning for a loss as
 * for an accuracy.
 *
 * The score depends on the samples:
 *
 *    - Without samples, the gain is INFINITY for the first 'samples'
 *      iterations, and the job is early, both for at most 'boot_s' seconds.
 *      Afterwards both follow from the prior, a(k) = 1 - 1 / (k + 1).
 *
 *    - With fewer than PROGRESS_MIN_FIT samples, the gain is the prior's.
 *
 *    - With more samples, the gain is the gain of the fitted curve in the next
 *      'period_s' seconds.  The job is early while it has fewer than 'samples'
 *      samples or is below 'theta' of its last metric.
 *
 *    - If no sample arrives for ten times the usual distance, or for ten
 *      iterations if that is longer, the gain stops changing and halves in
 *      each period from then on.  A small number of samples then no longer
 *      makes the job early.
 *
 *    - If the iteration count goes back, as after a restart from a checkpoint,
 *      the samples from there on are removed.
 *
 * A curve has a fixed size and no pointers: it may be copied and needs no
 * cleanup.  Adding a sample allocates nothing; the fit is computed at the next
 * score.  Times are seconds of the caller's clock. */

#include <stdbool.h>
#include <stddef.h>

/* Maximum number of samples kept.  If there are more, samples are removed
 * where they are densest on a logarithmic scale of k: the fit needs the
 * curve's beginning as well as its end. */
#define PROGRESS_WINDOW 64

/* Minimum number of samples for a fit of the three parameters. */
#define PROGRESS_MIN_FIT 4

struct progress_options {
    double theta;               /* A job is early below this share of its last
                                 * metric, 0 to 1. */
    int samples;                /* A job is early with fewer samples, 0 to
                                 * PROGRESS_WINDOW. */
    double boot_s;              /* Seconds for which a job without samples is
                                 * early. */
    double period_s;            /* Seconds for which gains are predicted,
                                 * > 0. */
    double end;                 /* Iteration until which the job is to run, in
                                 * the mean if that depends on which jobs its
                                 * search keeps; 0 if unknown. */
};

#define PROGRESS_OPTIONS_INIT                                               \
    { .theta = 0.95, .samples = 5, .boot_s = 300, .period_s = 5 }

struct progress_sample {
    double k;                   /* Iterations, rising from sample to sample. */
    double log_k;               /* log(k + 1). */
    double value;               /* Best metric so far. */
    double step;                /* Largest rise between two samples so far,
                                 * >= 0. */
    double time;                /* Time of arrival, seconds. */
};

/* Read-only outside this module. */
struct progress_curve {
    double begin;               /* Start of the job, seconds. */
    double floor;               /* Smaller of 0 and the first value; values
                                 * count from here. */
    double distance;            /* Usual seconds between samples; 0 with fewer
                                 * than two samples. */
    size_t n;
    struct progress_sample samples[PROGRESS_WINDOW];    /* Oldest first. */

    /* Fitted parameters, valid if 'fitted'.  'limit' is at least 'floor',
     * 'span' at least 0. */
    bool fitted;
    double limit, span, exponent;
    double scatter; /* Standard deviation of the samples. */
};

/* Initializes the curve of a job that starts at 'now'. */
void progress_curve_init(struct progress_curve *, double now);

/* Adds the metric after 'k' >= 0 iterations.  Of several values for one 'k'
 * the best counts.  Values that are not finite are ignored. */
void progress_curve_add(struct progress_curve *, double k, double value,
                        double now);

/* Returns the predicted number of iterations from the k-th until the metric
 * reaches theta of its last value; 0 if it has reached it.  A job that has
 * reported fewer than 'samples' needs at least the iterations until it will
 * have reported them, at the usual distance.  Uses the prior before there is a
 * fit. */
double progress_curve_to_theta(struct progress_curve *,
                               const struct progress_options *, double k);

/* Predicts the metric after 'k' iterations, with a standard deviation above 0:
 * samples scatter, and the rise that is still to come is known to a third.
 * Returns false with fewer than PROGRESS_MIN_FIT samples. */
bool progress_curve_predict(struct progress_curve *, double k, double *mean,
                            double *sd);

/* Stores 'gain' and 'early' of struct order_traits.  'k' is the current
 * iteration, at least the iteration of the last sample.  'iteration_s' is the
 * duration of an iteration, seconds; if 0, a period is one iteration. */
void progress_curve_score(struct progress_curve *,
                          const struct progress_options *, double k,
                          double iteration_s, double now, double *gain,
                          bool *early);

#endif /* order/problem/progress-curve.h */
