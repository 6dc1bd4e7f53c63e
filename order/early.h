/* SPDX-License-Identifier: Apache-2.0 */

#ifndef EARLY_H
#define EARLY_H 1

/* How a job's metric grows, and how much it is about to gain.
 *
 *
 * Motivation
 * ==========
 *
 * A training job gains most in its first iterations.  An order that prefers
 * jobs that still learn fast needs two things of each, while it runs: is it
 * early, and what will the next few seconds bring.  Both come from the metric
 * that it logs, by fitting the power law that learning curves follow:
 *
 *     a(k) = limit - span (k + 1)^-exponent        after k iterations.
 *
 * Metrics have different units, so a gain is counted in the job's largest step
 * from sample to sample so far.  A job that says nothing must be given a
 * chance and must not be able to keep it by saying nothing.
 *
 *
 * Usage
 * =====
 *
 * One curve a job.  Samples come as the job logs them, in any number; a score
 * is asked for whenever an order is computed:
 *
 *    struct progress_options options = PROGRESS_OPTIONS_INIT;
 *    struct progress_curve curve;
 *
 *    progress_curve_init(&curve, now);
 *    progress_curve_add(&curve, k, accuracy, now);
 *    progress_curve_score(&curve, &options, k, iteration_s, now,
 *                         &traits.gain, &traits.early);
 *
 * A greater metric must be better: negate a loss.  A metric below zero counts
 * from its first sample, so that "so much of the final value" means the same
 * for a loss as for an accuracy.
 *
 * What a curve tells:
 *
 *    - Nothing yet: the gain is INFINITY for the first 'samples' iterations,
 *      and the job is early, but neither for longer than 'boot_s'.  Then the
 *      prior, below, says both.
 *
 *    - Fewer than PROGRESS_MIN_FIT samples: the gain is the prior's,
 *      a(k) = 1 - 1 / (k + 1).
 *
 *    - Then the fitted curve's gain in the next 'period_s' seconds.  The job
 *      is early while it has fewer than 'samples' samples or is below 'theta'
 *      of the limit.
 *
 *    - Samples that stop coming (none for ten times their usual distance, or
 *      ten iterations if that is longer): the gain stays where it was and
 *      halves in each period from then on, and few samples are no reason to
 *      be early.
 *
 *    - A count of iterations that goes back, as when a job is restarted from a
 *      checkpoint or its log is read again: samples from there on are
 *      forgotten.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A curve is plain memory of a fixed size without pointers: it may be copied,
 * and there is nothing to free.  Adding a sample takes no allocation; the fit
 * is made when a score is asked for after new samples.  Times are the
 * caller's, in seconds of whatever clock. */

#include <stdbool.h>
#include <stddef.h>

/* Samples that are kept.  When there are more, the densest are thinned out on
 * the logarithm of k: the fit needs the curve's beginning as well as its
 * end. */
#define PROGRESS_WINDOW 64

/* The fewest samples that the three parameters are fitted to. */
#define PROGRESS_MIN_FIT 4

struct progress_options {
    double theta;               /* Early: below so much of the limit, 0 to
                                 * 1. */
    int samples;                /* Early with fewer than so many of them, 0 to
                                 * PROGRESS_WINDOW. */
    double boot_s;              /* Seconds a job may stay silent. */
    double period_s;            /* Seconds that gains are predicted for,
                                 * > 0. */
};

#define PROGRESS_OPTIONS_INIT                                               \
    { .theta = 0.95, .samples = 5, .boot_s = 300, .period_s = 5 }

struct progress_sample {
    double k;                   /* Iterations, rising from sample to sample. */
    double log_k;               /* log(k + 1). */
    double value;               /* The metric's best so far. */
    double step;                /* Largest rise between two samples so far,
                                 * >= 0. */
    double time;                /* When it came. */
};

/* Read-only outside this module. */
struct progress_curve {
    double begin;               /* When the job began. */
    double floor;               /* From where values count: 0 or, if that is
                                 * less, the first one. */
    double distance;            /* Usual seconds between samples, 0 if there
                                 * are less than two. */
    size_t n;
    struct progress_sample samples[PROGRESS_WINDOW];    /* Oldest first. */

    /* The fit, if 'fitted' since the last sample and n >= PROGRESS_MIN_FIT.
     * 'limit' is at least 'floor', 'span' at least 0. */
    bool fitted;
    double limit, span, exponent;
};

/* Begins the curve of a job that begins at 'now'. */
void progress_curve_init(struct progress_curve *, double now);

/* Adds what the metric was after 'k' >= 0 iterations.  Several values for one
 * 'k' count as the best of them; what is not finite is ignored. */
void progress_curve_add(struct progress_curve *, double k, double value,
                        double now);

/* Returns how many iterations after the k-th the metric will be at theta of its
 * limit, as the curve or, before it is known, the prior predicts; 0 if that is
 * past. */
double progress_curve_ahead(struct progress_curve *,
                            const struct progress_options *, double k);

/* Stores what 'struct order_traits' calls so.  'k' is where the job is now, at
 * least where its last sample was, and 'iteration_s' the seconds that it takes
 * for one more, 0 if not known: then a period is one iteration. */
void progress_curve_score(struct progress_curve *,
                          const struct progress_options *, double k,
                          double iteration_s, double now, double *gain,
                          bool *early);

#endif /* order/early.h */
