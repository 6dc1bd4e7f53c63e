/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_OPTIMISER_H
#define PS_OPTIMISER_H 1

/* Optimisers: the step that a gradient makes.
 *
 * Schemes and stores decide when a gradient counts; the step is the same
 * arithmetic for whole vectors, ranges and single keys.  Each weight has its
 * own state, so that rarely used keys are treated as if they were alone.
 *
 *    const struct optimiser_class *class = optimiser_find("adam");
 *    float *state[OPTIMISER_MAX_STATES];       // class->n_states vectors of
 *                                              // zeros, as long as weights.
 *    class->step(&config, n, gradient, state, weights);
 *
 * Ownership: functions on the caller's vectors. */

#include <stddef.h>
#include <stdint.h>

#define OPTIMISER_MAX_STATES 4

struct optimiser_class;

/* The learning rate at an iteration, as part of the one that was set.  It
 * depends on the iteration only, so that training continues it exactly.  Zeros
 * are a constant rate.  On the wire and in checkpoints as in memory. */
struct rate_schedule {
    uint32_t kind;    /* Order of words in --schedule. */
    uint32_t warm_up; /* Iterations in which it rises linearly. */
    uint64_t period;  /* Iterations between two steps, or until the
                       * cosine's end. */
    double factor;    /* Of each step, or at the cosine's end. */
};

enum { RATE_CONSTANT, RATE_STEP, RATE_COSINE };

struct optimiser_config {
    const struct optimiser_class *class;
    float rate;                 /* Learning rate; not used by "sum". */
    float momentum;             /* "momentum"; "adam": decay of the mean. */
    float decay;                /* "adam": decay of the mean square. */
    float epsilon;              /* "adagrad" and "adam". */
    struct rate_schedule schedule; /* For optimiser_step(). */
};

struct optimiser_class {
    const char *name;
    int n_states;

    /* 'state' has n_states vectors that begin as zeros. */
    void (*step)(const struct optimiser_config *, size_t n,
                 const float *gradient, float *const state[], float *weights);
};

/* "sum" (w = w + g, for counters and workers that compute steps themselves),
 * "sgd", "momentum", "adagrad" and "adam" have the numbers from 0 on, as in
 * hellos.  Return NULL if there is no such optimiser. */
const struct optimiser_class *optimiser_find(const char *name);
const struct optimiser_class *optimiser_by_number(uint32_t);
uint32_t optimiser_number(const struct optimiser_class *);

/* Sets the usual decay and epsilon. */
struct optimiser_config optimiser_defaults(const struct optimiser_class *,
                                           float rate, float momentum);

/* As step() of the class, at the rate of 'iteration'. */
void optimiser_step(const struct optimiser_config *, uint64_t iteration,
                    size_t n, const float *gradient, float *const state[],
                    float *weights);

#endif /* trainer/schemes/optimiser.h */
