/* SPDX-License-Identifier: Apache-2.0 */

#include "order/problem/progress-curve.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Weight of a sample, relative to the next one. */
#define FADE 0.97

/* Range and number of the exponents tried, and number of steps by which the
 * best is refined. */
#define MIN_EXPONENT 0.2
#define MAX_EXPONENT 2.0
#define N_EXPONENTS 10
#define N_NARROWINGS 16

/* Most of the way to its bound that a metric is expected to go still. */
#define MOST_OF_WAY (2. / 3)

/* Share of a predicted rise by which it may be wrong, and least standard
 * deviation of a prediction. */
#define RISE_ERROR (1. / 3)
#define MIN_DEVIATION 1e-9

/* A sample is late after this multiple of the usual distance. */
#define LATE 10

/* Curve for one exponent, and its distance from the samples. */
struct fit {
    double exponent;
    double limit, span;         /* Above the floor; both >= 0. */
    double error;               /* Weighted sum of squares. */
};

void
progress_curve_init(struct progress_curve *curve, double now)
{
    memset(curve, 0, sizeof *curve);
    curve->begin = now;
}

/* Removes the sample with the nearest neighbors in log(k + 1), where the curve
 * is nearly straight, except for the first and the last. */
static void
thin_out(struct progress_curve *curve)
{
    struct progress_sample *samples = curve->samples;
    double least = INFINITY;
    size_t drop = 1;

    for (size_t i = 1; i + 1 < curve->n; i++) {
        double gap = samples[i + 1].log_k - samples[i - 1].log_k;

        if (gap < least) {
            least = gap;
            drop = i;
        }
    }
    curve->n--;
    memmove(&samples[drop], &samples[drop + 1],
            (curve->n - drop) * sizeof *samples);
}

static void
push_sample(struct progress_curve *curve, double k, double value, double now)
{
    struct progress_sample sample = {
        .k = k, .log_k = log1p(k), .value = value, .time = now,
    };

    if (curve->n) {
        const struct progress_sample *last = &curve->samples[curve->n - 1];
        double distance = fmax(now - last->time, 0);

        sample.value = fmax(value, last->value);
        sample.step = fmax(last->step, sample.value - last->value);
        curve->distance = curve->distance > 0
            ? 0.8 * curve->distance + 0.2 * distance : distance;
    } else {
        curve->floor = fmin(value, 0);
        curve->distance = 0;
    }
    if (curve->n == PROGRESS_WINDOW) {
        thin_out(curve);
    }
    curve->samples[curve->n++] = sample;
}

void
progress_curve_add(struct progress_curve *curve, double k, double value,
                   double now)
{
    if (!isfinite(value) || !isfinite(k) || k < 0) {
        return;
    }
    if (curve->n && curve->samples[curve->n - 1].k == k) {
        value = fmax(value, curve->samples[curve->n - 1].value);
    }
    while (curve->n && curve->samples[curve->n - 1].k >= k) {
        curve->n--;
    }
    push_sample(curve, k, value, now);
    curve->fitted = false;
}

/* Returns the curve of 'exponent' that fits the samples best: a straight line
 * in x = (k + 1)^-exponent, which must not rise. */
static struct fit
fit_line(const struct progress_curve *curve, double exponent)
{
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0, wyy = 0;
    struct fit fit = { .exponent = exponent };
    double weight = 1, slope = 0, variance;

    for (size_t i = curve->n; i-- > 0; weight *= FADE) {
        double x = exp(-exponent * curve->samples[i].log_k);
        double y = curve->samples[i].value - curve->floor;

        w += weight;
        wx += weight * x;
        wy += weight * y;
        wxx += weight * x * x;
        wxy += weight * x * y;
        wyy += weight * y * y;
    }
    variance = wxx - wx * wx / w;
    if (variance > 1e-12 * wxx) {
        slope = fmin((wxy - wx * wy / w) / variance, 0);
    }
    fit.span = -slope;
    fit.limit = (wy - slope * wx) / w;
    fit.error = (wyy - wy * wy / w) - slope * slope * variance;
    return fit;
}

/* Fits all three parameters: a grid of exponents, then a golden-section search
 * around the best. */
static struct fit
fit_curve(const struct progress_curve *curve)
{
    const double step = (MAX_EXPONENT - MIN_EXPONENT) / (N_EXPONENTS - 1);
    const double golden = (sqrt(5) - 1) / 2;
    struct fit best = fit_line(curve, MAX_EXPONENT);
    double low, high;

    for (int i = 1; i < N_EXPONENTS; i++) {
        struct fit fit = fit_line(curve, MAX_EXPONENT - i * step);

        if (fit.error < best.error) {
            best = fit;
        }
    }
    low = fmax(best.exponent - step, MIN_EXPONENT);
    high = fmin(best.exponent + step, MAX_EXPONENT);
    for (int i = 0; i < N_NARROWINGS; i++) {
        struct fit a = fit_line(curve, high - golden * (high - low));
        struct fit b = fit_line(curve, low + golden * (high - low));

        if (a.error < b.error) {
            high = b.exponent;
        } else {
            low = a.exponent;
        }
        a = a.error < b.error ? a : b;
        best = a.error < best.error ? a : best;
    }
    return best;
}

static void
refit(struct progress_curve *curve)
{
    if (!curve->fitted) {
        struct fit fit = fit_curve(curve);

        curve->limit = curve->floor + fit.limit;
        curve->span = fit.span;
        curve->exponent = fit.exponent;
        curve->scatter =
            sqrt(fmax(fit.error, 0) * (1 - FADE) / (1 - pow(FADE, curve->n)));
        curve->fitted = true;
    }
}

/* Returns the rise of a curve in 'm' iterations from the k-th. */
static double
rise(double span, double exponent, double k, double m)
{
    return span * pow(k + 1, -exponent)
           * -expm1(-exponent * log1p(m / (k + 1)));
}

/* Returns the metric above the floor at which the early phase of a curve ends,
 * which is 'most' at last. */
static double
early_end_value(const struct progress_options *options, double limit,
                double span, double exponent, double most)
{
    double last = options->end > 0
        ? limit - span * pow(options->end + 1, -exponent) : limit;

    return options->theta * fmin(last, most);
}

/* Returns the most that the metric above the floor can be at last. */
static double
most_at_last(const struct progress_curve *curve)
{
    double best = curve->samples[curve->n - 1].value;
    double bound = best > 1 ? INFINITY : best > 0 ? 1 : 0;

    return best + MOST_OF_WAY * (bound - best) - curve->floor;
}

/* Scores by the prior. */
static void
score_prior(const struct progress_options *options, double k, double m,
            double *gain, bool *early)
{
    *gain = rise(1, 1, k, m) / rise(1, 1, 0, 1);
    *early = k / (k + 1) < early_end_value(options, 1, 1, 1, 1);
}

/* Scores by the fitted curve. */
static void
score_fit(struct progress_curve *curve, const struct progress_options *options,
          double k, double m, double *gain, bool *early)
{
    const struct progress_sample *last = &curve->samples[curve->n - 1];

    refit(curve);
    *gain = last->step > 0
            ? rise(curve->span, curve->exponent, k, m) / last->step : 0;
    *early = last->value - curve->floor < early_end_value(
                 options, curve->limit - curve->floor, curve->span,
                 curve->exponent, most_at_last(curve));
}

/* Returns the seconds by which the next sample is late at 'now', or 0. */
static double
lateness(const struct progress_curve *curve,
         const struct progress_options *options, double iteration_s,
         double now)
{
    double due = curve->n > 1 ? LATE * curve->distance : options->boot_s;

    due = fmax(due, LATE * iteration_s);
    return fmax(now - curve->samples[curve->n - 1].time - due, 0);
}

static void
score_no_samples(const struct progress_curve *curve,
                 const struct progress_options *options, double k, double m,
                 double now, double *gain, bool *early)
{
    score_prior(options, k, m, gain, early);
    if (now - curve->begin < options->boot_s) {
        *gain = k < options->samples ? INFINITY : *gain;
        *early = true;
    }
}

void
progress_curve_score(struct progress_curve *curve,
                     const struct progress_options *options, double k,
                     double iteration_s, double now, double *gain, bool *early)
{
    double m = iteration_s > 0 ? options->period_s / iteration_s : 1;
    double last_k, late;

    k = fmax(k, 0);
    if (!curve->n) {
        score_no_samples(curve, options, k, m, now, gain, early);
        return;
    }
    late = lateness(curve, options, iteration_s, now);
    last_k = curve->samples[curve->n - 1].k;
    k = late > 0 ? last_k : fmax(k, last_k);
    if (curve->n < PROGRESS_MIN_FIT) {
        score_prior(options, k, m, gain, early);
    } else {
        score_fit(curve, options, k, m, gain, early);
    }
    *gain *= exp2(-late / options->period_s);
    *early |= late <= 0 && curve->n < options->samples;
}

/* Returns the number of iterations from the k-th until the curve will have
 * 'samples' samples, at their usual distance, at least 1; 0 if it has them or
 * none yet. */
static double
iterations_to_samples(const struct progress_curve *curve,
                      const struct progress_options *options, double k)
{
    const struct progress_sample *first = curve->samples, *last;
    double missing = options->samples - (double) curve->n;
    double gap;

    if (!curve->n || missing <= 0) {
        return 0;
    }
    last = &first[curve->n - 1];
    gap = curve->n > 1 ? (last->k - first->k) / (curve->n - 1) : last->k;
    gap = fmax(gap, k - last->k);
    return fmax(missing * fmax(gap, 1) - fmax(k - last->k, 0), 1);
}

double
progress_curve_to_theta(struct progress_curve *curve,
                        const struct progress_options *options, double k)
{
    double missing = iterations_to_samples(curve, options, k);
    double limit = 1, span = 1, exponent = 1, most = 1;
    double distance;

    if (curve->n >= PROGRESS_MIN_FIT) {
        refit(curve);
        limit = curve->limit - curve->floor;
        span = curve->span;
        exponent = curve->exponent;
        most = most_at_last(curve);
    }
    if (limit <= 0) {
        return missing;
    }
    distance = limit - early_end_value(options, limit, span, exponent, most);
    distance = fmax(distance, DBL_EPSILON * limit);
    return fmax(pow(span / distance, 1 / exponent) - 1 - fmax(k, 0), missing);
}

bool
progress_curve_predict(struct progress_curve *curve, double k, double *mean,
                       double *sd)
{
    double best, fitted;

    if (curve->n < PROGRESS_MIN_FIT) {
        return false;
    }
    refit(curve);
    best = curve->samples[curve->n - 1].value;
    fitted = curve->limit - curve->span * pow(k + 1, -curve->exponent);
    fitted = fmin(fitted, curve->floor + most_at_last(curve));
    *mean = fmax(best, fitted);
    *sd = fmax(hypot(curve->scatter, RISE_ERROR * (*mean - best)),
               MIN_DEVIATION);
    return true;
}
