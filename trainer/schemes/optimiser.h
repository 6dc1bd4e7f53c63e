/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PS_OPTIMISER_H
#define PS_OPTIMISER_H 1

/* How a gradient changes weights.
 *
 *
 * Motivation
 * ==========
 *
 * Schemes and stores decide when a gradient counts; what it then does is the
 * same arithmetic for whole vectors, ranges of them and single keys.  Each
 * weight has its own state, so that a key that is seen rarely is treated as
 * if it were alone.
 *
 *
 * Usage
 * =====
 *
 *    const struct optimiser_class *class = optimiser_find("adam");
 *    float *state[OPTIMISER_MAX_STATES];       // class->n_states vectors of
 *                                              // zeros, as long as weights.
 *    class->step(&config, n, gradient, state, weights);
 *
 * Ownership: plain functions on the caller's vectors. */

#include <stddef.h>
#include <stdint.h>

#define OPTIMISER_MAX_STATES 4

struct optimiser_class;

struct optimiser_config {
    const struct optimiser_class *class;
    float rate;                 /* Of all but "sum". */
    float momentum;             /* Of "momentum"; of "adam" the decay of the
                                 * mean. */
    float decay;                /* Of "adam": of the mean square. */
    float epsilon;              /* Of "adagrad" and "adam". */
};

struct optimiser_class {
    const char *name;
    int n_states;

    /* 'state' has n_states vectors that begin as zeros. */
    void (*step)(const struct optimiser_config *, size_t n,
                 const float *gradient, float *const state[], float *weights);
};

/* "sum": w = w + g, for counters and for those who compute steps
 * themselves.  Then "sgd", "momentum", "adagrad", "adam".  Ends with a null
 * pointer; the order is that of the numbers in hellos. */
extern const struct optimiser_class *const optimiser_classes[];

/* Null if there is none. */
const struct optimiser_class *optimiser_find(const char *name);
const struct optimiser_class *optimiser_by_number(uint32_t);
uint32_t optimiser_number(const struct optimiser_class *);

/* The usual decay and epsilon. */
struct optimiser_config optimiser_defaults(const struct optimiser_class *,
                                           float rate, float momentum);

#endif /* trainer/schemes/optimiser.h */
