/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHAPE_H
#define SHAPE_H 1

/* Widths of the layers of a multi-layer perceptron.
 *
 * They determine the number of parameters and thus the bytes of an
 * iteration.  A search needs that without an arithmetic library, so it is
 * separate from the model.  Plain data of the caller. */

#include <stddef.h>

#define SHAPE_MAX_WIDTHS 18     /* Inputs, 16 hidden layers, classes. */
#define SHAPE_MAX_WIDTH 65536
#define SHAPE_MAX_PARAMETERS ((size_t) 1 << 32)     /* 16 GiB. */

struct shape {
    int n;                      /* Number of widths, at least 2. */
    int width[SHAPE_MAX_WIDTHS];    /* Inputs first, classes last. */
};

/* Parses "64,512,512,10".  Returns NULL or a message. */
char *shape_from_string(const char *, struct shape *);

/* Returns the number of weights and biases of all layers. */
size_t shape_n_parameters(const struct shape *);

/* Returns text such as "64,512,512,10", which the caller frees. */
char *shape_to_string(const struct shape *);

#endif /* trainer/models/shape.h */
