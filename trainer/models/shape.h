/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHAPE_H
#define SHAPE_H 1

/* How wide each layer of a multi-layer perceptron is.
 *
 * The shape decides how many parameters a model has and so what an iteration
 * moves over the network.  A search must know that without any arithmetic
 * library, so this is apart from the model.  Plain data of the caller. */

#include <stddef.h>

#define SHAPE_MAX_WIDTHS 18     /* Inputs, 16 hidden layers, classes. */
#define SHAPE_MAX_WIDTH 65536
#define SHAPE_MAX_PARAMETERS ((size_t) 1 << 26)     /* 256 MiB. */

struct shape {
    int n;                      /* Widths: at least 2. */
    int width[SHAPE_MAX_WIDTHS];    /* Inputs first, classes last. */
};

/* Reads "64,512,512,10".  Returns NULL or a message. */
char *shape_from_string(const char *, struct shape *);
char *shape_check(const struct shape *);

/* Weights and biases of all layers. */
size_t shape_n_parameters(const struct shape *);
int shape_inputs(const struct shape *);
int shape_classes(const struct shape *);

/* "64,512,512,10"; the caller frees it. */
char *shape_to_string(const struct shape *);

#endif /* trainer/models/shape.h */
