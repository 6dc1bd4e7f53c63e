/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PREDICTOR_H
#define PREDICTOR_H 1

/* The speed of a worker in the iteration that comes.
 *
 *
 * Motivation
 * ==========
 *
 * Batches that suit the workers' last speeds suit nobody once a speed has
 * changed, and batches that follow every hiccup suit nobody either.  What
 * others use of the machine at this moment tells a lasting change from a
 * hiccup before the speed itself does.
 *
 *
 * Usage
 * =====
 *
 * One predictor for each worker, told once an iteration:
 *
 *    p = predictor_create("narx", seed);
 *    for (;;) {
 *        speed = predictor_predict(p);
 *        ...the iteration, at 'measured'...
 *        predictor_update(p, measured, cpu, memory);
 *    }
 *
 * 'cpu' and 'memory' are what others use of the worker's machine after the
 * iteration that was measured, so just before the one to predict.  Any scale
 * will do for speeds; the uses go from 0 to 1.
 *
 *    memoryless  as fast as last time
 *    ema         exponential moving average
 *    arima       ARIMA(2,1,1), by recursive extended least squares
 *    rnn, lstm   recurrent networks over the last 10 speeds
 *    lstm-x      as lstm, with the uses
 *    narx        a network over the last 3 speeds and uses, those of now too
 *
 * All learn as they go and start as "ema" until they have seen enough.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A predictor allocates at creation only.  The same seed and updates give the
 * same predictions.  One thread. */

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

/* What every predictor begins with. */
struct predictor {
    const struct predictor_class *class;
};

/* Null-terminated. */
extern const struct predictor_class *const predictor_classes[];

/* NULL if there is none of that name. */
const struct predictor_class *predictor_class_find(const char *name);

struct predictor *predictor_create(const struct predictor_class *,
                                   uint64_t seed);
void predictor_destroy(struct predictor *);

/* A speed that is not finite and positive, as of an iteration without
 * samples, is none, and nothing changes. */
void predictor_update(struct predictor *, double speed, double cpu,
                      double memory);

/* More than 0, or 0 before the first update. */
double predictor_predict(struct predictor *);

extern const struct predictor_class predictor_arima;
extern const struct predictor_class predictor_ema;
extern const struct predictor_class predictor_lstm;
extern const struct predictor_class predictor_lstm_x;
extern const struct predictor_class predictor_memoryless;
extern const struct predictor_class predictor_narx;
extern const struct predictor_class predictor_rnn;

#endif /* trainer/balance/predictor.h */
