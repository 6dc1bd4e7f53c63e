/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/balance/predictor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define ALPHA 0.3               /* Weight of the last speed in 'average'. */
#define ALPHA_ALONE 0.15        /* And in 'alone'. */
#define STEADY 0.05             /* Largest change of a steady use. */
#define LEAST_FREE 0.02         /* Part of a processor that counts. */

static double
last_speed(struct predictor *p)
{
    return p->series.speeds[(p->series.n - 1) % SERIES_N];
}

const struct predictor_class predictor_memoryless = {
    .name = "memoryless", .size = sizeof(struct predictor), .warm = 1,
    .predict = last_speed,
};

const struct predictor_class predictor_ema = {
    .name = "ema", .size = sizeof(struct predictor), .warm = UINT64_MAX,
};

const struct predictor_class *const predictor_classes[] = {
    &predictor_memoryless, &predictor_ema,    &predictor_arima, &predictor_rnn,
    &predictor_lstm,       &predictor_lstm_x, &predictor_narx,  NULL
};

const struct predictor_class *
predictor_class_find(const char *name)
{
    for (size_t i = 0; predictor_classes[i]; i++) {
        if (!strcmp(predictor_classes[i]->name, name)) {
            return predictor_classes[i];
        }
    }
    return NULL;
}

struct predictor *
predictor_create(const struct predictor_class *class, uint64_t seed)
{
    struct predictor *p = allocate(1, class->size);

    p->class = class;
    if (class->init) {
        class->init(p, seed);
    }
    return p;
}

void
predictor_destroy(struct predictor *p)
{
    if (p && p->class->uninit) {
        p->class->uninit(p);
    }
    free(p);
}

/* An unknown load counts as 0. */
static double
share(double use)
{
    return use > 0 ? fmin(use, 1) : 0;
}

/* Adds what the use of the processor, after an iteration at 'speed', lets
 * expect of the next one. */
static void
expect(struct series *s, double speed)
{
    double before = s->cpus[(s->n - 1) % SERIES_N];
    double cpu = s->cpus[s->n % SERIES_N], free = fmax(1 - cpu, LEAST_FREE);

    if (s->n == 1) {
        s->expected[0] = speed;
        s->alone = speed / free;
    } else if (fabs(cpu - before) <= STEADY) {
        s->alone += ALPHA_ALONE * (speed / free - s->alone);
    }
    s->loaded = s->loaded || cpu > 0;
    s->expected[s->n % SERIES_N] =
        s->loaded ? s->alone * free : (s->alone + speed) / 2;
}

void
predictor_update(struct predictor *p, double speed, double cpu, double memory)
{
    struct series *s = &p->series;

    if (!isfinite(speed) || speed <= 0) {
        return;
    }
    if (!s->n) {
        s->cpus[0] = share(cpu);
        s->memories[0] = share(memory);
        s->average = speed;
    }
    s->speeds[s->n % SERIES_N] = speed;
    s->max = fmax(s->max, speed);
    s->average += ALPHA * (speed - s->average);
    s->n++;
    s->cpus[s->n % SERIES_N] = share(cpu);
    s->memories[s->n % SERIES_N] = share(memory);
    expect(s, speed);
    if (p->class->update) {
        p->class->update(p);
    }
}

double
predictor_predict(struct predictor *p)
{
    return p->series.n < p->class->warm ? p->series.average
                                        : p->class->predict(p);
}

double
series_rescale(const struct series *s, float output)
{
    uint64_t n = s->n < SERIES_N ? s->n : SERIES_N;
    double low = s->max;

    for (uint64_t i = 0; i < n; i++) {
        low = s->speeds[i] < low ? s->speeds[i] : low;
    }
    return isfinite(output) ? fmin(s->max, fmax(low / 2, output * s->max))
                            : s->average;
}
