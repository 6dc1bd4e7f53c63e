/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PREDICTOR_H
#define PREDICTOR_H 1

/* Prediction of a worker's speed in the next iteration.
 *
 * Batches for the last speeds are wrong as soon as a speed changes, and
 * batches that follow every short disturbance are wrong too.  The current load
 * by other programs tells a lasting change from a disturbance before the speed
 * does.
 *
 * One predictor per worker, updated once per iteration:
 *
 *    p = predictor_create(predictor_class_find("narx"), seed);
 *    for (;;) {
 *        speed = predictor_predict(p);
 *        ...the iteration, at 'measured'...
 *        predictor_update(p, measured, cpu, memory);
 *    }
 *
 * 'cpu' and 'memory' are the load by other programs on the worker's machine
 * after the measured iteration, that is before the one to predict, from 0 to
 * 1.  Speeds may have any unit.
 *
 *    memoryless  the last speed
 *    ema         exponential moving average
 *    arima       ARIMA(2,1,1), by recursive extended least squares
 *    rnn, lstm   recurrent networks over the last 10 speeds
 *    lstm-x      as lstm, with the loads
 *    narx        a network over the last 3 speeds and loads, the current load,
 *                and the speed that is expected with it; the default
 *
 * All learn online, and arima and the recurrent networks predict as "ema"
 * until they have enough data.
 *
 * A predictor allocates memory at creation only.  The same seed and updates
 * give the same predictions.  One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERIES_N 256            /* Stored iterations, a power of 2. */
#define SERIES_TRAINING 200     /* Iterations that a network learns from. */
#define SERIES_WARM 30          /* Iterations before a network is used. */

/* The speeds of the last iterations, and the load by other programs before
 * each of them and now.  Iterations are counted from 0.  Speeds are known
 * before iteration 'n', loads up to 'n', the next one. */
struct series {
    uint64_t n;                 /* Iterations so far. */
    double max;                 /* Highest speed so far. */
    double average;             /* Exponential moving average of the speeds. */
    double speeds[SERIES_N];
    double cpus[SERIES_N], memories[SERIES_N];

    /* The speed of the machine without others, and of iterations up to 'n'
     * what it lets expect: that times the part of the processor that others do
     * not use.  As long as no use is known, the mean of that and of the last
     * speed. */
    double alone;
    bool loaded; /* There was a use. */
    double expected[SERIES_N];
};

/* First member of every predictor. */
struct predictor {
    const struct predictor_class *class;
    struct series series;

    unsigned int thrift; /* A network learns from one of 'thrift' + 1
                          * iterations that it would learn from. */
};

struct neural_class;

struct predictor_class {
    const char *name;
    size_t size;                /* Bytes of a predictor, zeroed at first. */
    uint64_t warm;              /* Iterations before 'predict' is used. */
    const struct neural_class *network;         /* See neural.h. */

    /* Optional. */
    void (*init)(struct predictor *, uint64_t seed);
    void (*uninit)(struct predictor *);

    /* Optional: called after an iteration has been added to the series. */
    void (*update)(struct predictor *);
    double (*predict)(struct predictor *);
};

/* Null-terminated. */
extern const struct predictor_class *const predictor_classes[];

/* Returns NULL if there is no such class. */
const struct predictor_class *predictor_class_find(const char *name);

struct predictor *predictor_create(const struct predictor_class *,
                                   uint64_t seed);
void predictor_destroy(struct predictor *);

/* Adds a measurement.  A speed that is not finite and positive, as in an
 * iteration without samples, is ignored. */
void predictor_update(struct predictor *, double speed, double cpu,
                      double memory);

/* Returns a speed above 0, or 0 before the first update. */
double predictor_predict(struct predictor *);

/* For predictors: values of iteration 'k', one of the last SERIES_N - 1;
 * iterations before the first have its values.  Networks learn best from
 * numbers of about 1, so speeds are fractions of the highest one. */
static inline float
series_at(const double *values, int64_t k)
{
    return values[k > 0 ? k % SERIES_N : 0];
}

static inline float
series_speed(const struct series *s, int64_t k)
{
    return series_at(s->speeds, k) / s->max;
}

static inline float
series_cpu(const struct series *s, int64_t k)
{
    return series_at(s->cpus, k);
}

static inline float
series_memory(const struct series *s, int64_t k)
{
    return series_at(s->memories, k);
}

static inline float
series_expected(const struct series *s, int64_t k)
{
    return series_at(s->expected, k) / s->max;
}

/* Returns the speed for a network's 'output', limited to half the lowest and
 * the highest speed seen. */
double series_rescale(const struct series *, float output);

extern const struct predictor_class predictor_arima;
extern const struct predictor_class predictor_ema;
extern const struct predictor_class predictor_lstm;
extern const struct predictor_class predictor_lstm_x;
extern const struct predictor_class predictor_memoryless;
extern const struct predictor_class predictor_narx;
extern const struct predictor_class predictor_rnn;

#endif /* trainer/balance/predictor.h */
