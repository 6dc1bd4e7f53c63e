/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PREDICTOR_H
#define PREDICTOR_H 1

/* Prediction of a worker's speed in the next iteration.
 *
 *
 * Motivation
 * ==========
 *
 * Batches for the last speeds are wrong as soon as a speed changes, and
 * batches that follow every short disturbance are wrong too.  The current load
 * by other programs tells a lasting change from a disturbance before the speed
 * does.
 *
 *
 * Usage
 * =====
 *
 * One predictor per worker, updated once per iteration:
 *
 *    p = predictor_create("narx", seed);
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
 *    narx        a network over the last 3 speeds and loads and the current load
 *
 * All learn online and predict as "ema" until they have enough data.
 *
 *
 * Decisions
 * =========
 *
 * NARX is the default predictor, because the load of other programs tells a
 * lasting change from a short disturbance.  It has 8 tanh units and a direct
 * path over the last 3 speeds and loads; with 5 units it learns more slowly
 * and errs more.  It makes 4 steps of Adam per iteration over the last 200
 * iterations.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A predictor allocates memory at creation only.  The same seed and updates
 * give the same predictions.  One thread. */

#include <stddef.h>
#include <stdint.h>

struct predictor;

struct predictor_class {
    const char *name;
    struct predictor *(*create)(uint64_t seed);
    void (*destroy)(struct predictor *);
    void (*update)(struct predictor *, double speed, double cpu,
                   double memory);
    double (*predict)(struct predictor *);
};

/* First member of every predictor. */
struct predictor {
    const struct predictor_class *class;
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

extern const struct predictor_class predictor_arima;
extern const struct predictor_class predictor_ema;
extern const struct predictor_class predictor_lstm;
extern const struct predictor_class predictor_lstm_x;
extern const struct predictor_class predictor_memoryless;
extern const struct predictor_class predictor_narx;
extern const struct predictor_class predictor_rnn;

#endif /* trainer/balance/predictor.h */
