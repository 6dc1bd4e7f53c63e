/* SPDX-License-Identifier: Apache-2.0 */

/* ARIMA(2,1,1): the change of the speed is a linear function of the last two
 * changes and of the last error.  Its three coefficients follow the data by
 * recursive least squares that slowly forgets; the errors that enter are those
 * of its own predictions ("extended" least squares). */

#include <math.h>

#include "trainer/balance/predictor.h"

#define N 3
#define FORGET 0.995            /* Weight of what is one iteration older. */
#define UNCERTAIN 1.0           /* Variance of a coefficient at first. */
#define MAX_UNCERTAIN 100.0     /* Nothing new to learn must not blow it up. */

struct arima {
    struct predictor up;
    double x[N];                /* Last change, the one before, last error. */
    double coefficients[N];
    double p[N][N];             /* Their covariance, but for a factor. */
};

static void
arima_init(struct predictor *up, uint64_t seed)
{
    for (int i = 0; i < N; i++) {
        ((struct arima *) up)->p[i][i] = UNCERTAIN;
    }
}

static double
expected_change(const struct arima *a)
{
    double change = 0;

    for (int i = 0; i < N; i++) {
        change += a->coefficients[i] * a->x[i];
    }
    return change;
}

/* One step of recursive least squares for the error 'e'. */
static void
learn(struct arima *a, double e)
{
    double px[N] = { 0 }, divisor = FORGET, trace = 0;

    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            px[i] += a->p[i][j] * a->x[j];
        }
        divisor += a->x[i] * px[i];
        trace += a->p[i][i];
    }
    for (int i = 0; i < N; i++) {
        a->coefficients[i] += px[i] / divisor * e;
        a->coefficients[i] = fmax(-1, fmin(1, a->coefficients[i]));
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            a->p[i][j] -= px[i] * px[j] / divisor;
            if (trace < MAX_UNCERTAIN) {
                a->p[i][j] /= FORGET;
            }
        }
    }
}

static void
arima_update(struct predictor *up)
{
    struct arima *a = (struct arima *) up;
    const struct series *s = &up->series;
    double before, change, e;

    if (s->n < 2) {
        return;
    }
    before = series_speed(s, s->n - 2);
    change = series_speed(s, s->n - 1) - before;
    e = change - expected_change(a);
    learn(a, e);
    a->x[1] = a->x[0];
    a->x[0] = change;
    a->x[2] = e;
}

static double
arima_predict(struct predictor *up)
{
    const struct series *s = &up->series;

    return series_rescale(s, series_speed(s, s->n - 1)
                             + expected_change((const struct arima *) up));
}

const struct predictor_class predictor_arima = {
    .name = "arima", .size = sizeof(struct arima), .warm = SERIES_WARM,
    .init = arima_init, .update = arima_update, .predict = arima_predict,
};
