/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RECURRENT_H
#define RECURRENT_H 1

/* Common part of the recurrent predictors: everything but the cell.
 *
 * A cell is run over the last iterations, the oldest first; the output is
 * linear in its last state and in the last speed.  It learns by truncated
 * back-propagation through time over windows from what the series remembers.
 *
 * A cell's weights are a part of the network's vector.  What its backward pass
 * needs is on a tape that the caller provides. */

#include <stddef.h>
#include <stdint.h>

#define RECURRENT_WINDOW 10     /* Iterations that a prediction looks at. */
#define RECURRENT_HIDDEN 8      /* Width of a cell's state. */
#define RECURRENT_INPUTS 4      /* A constant, the speed, the two uses. */
#define RECURRENT_TAPE 512      /* Floats on a tape. */

struct predictor;
struct seeded;

struct recurrent_cell {
    size_t n_weights;

    void (*init)(float *weights, struct seeded *);

    /* Runs over 'x', stores the last state in 'h' and fills 'tape'. */
    void (*forward)(const float *weights,
                    const float x[RECURRENT_WINDOW][RECURRENT_INPUTS],
                    float h[RECURRENT_HIDDEN], float *tape);

    /* Adds to 'gradient' for 'd_h', the loss's derivative by the last state,
     * which it overwrites. */
    void (*backward)(const float *weights,
                     const float x[RECURRENT_WINDOW][RECURRENT_INPUTS],
                     const float *tape, float d_h[RECURRENT_HIDDEN],
                     float *gradient);
};

extern const struct recurrent_cell recurrent_lstm;
extern const struct recurrent_cell recurrent_rnn;

/* The functions of a predictor_class.  Without 'uses' the cell sees speeds
 * only. */
struct predictor *recurrent_create(const struct recurrent_cell *, int uses,
                                   uint64_t seed);
void recurrent_destroy(struct predictor *);
void recurrent_update(struct predictor *, double speed, double cpu,
                      double memory);
double recurrent_predict(struct predictor *);

#endif /* trainer/balance/recurrent.h */
