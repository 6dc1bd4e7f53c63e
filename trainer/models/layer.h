/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAYER_H
#define LAYER_H 1

/* Interface between a net (net.c) and its kinds of layers (layer.c).
 *
 * A layer is a few calls of the backend, forward and backward.  Their memory
 * is assigned once, when the net is finished, so that each step is the same
 * sequence of calls and can be recorded.
 *
 * forward() computes 'd_y' from the 'd_y' of the input.  backward() gets the
 * gradient of 'd_y' in 'd_dy', which it may change.  It writes the gradient of
 * the weights, and the gradient of the input to the input's 'd_dy' unless that
 * is NULL; if 'adds' is true, it adds to what another layer has written.
 *
 * The net owns the layers and their memory.  One thread. */

#include <stdbool.h>
#include <stddef.h>

#include "trainer/backend/backend.h"
#include "trainer/data/dataset.h"
#include "trainer/data/seeded.h"
#include "trainer/models/model.h"

struct layer;

/* Initial weights that are being made, in ascending order. */
struct layer_drawing {
    struct seeded random;
    const float *weights;       /* All weights of the net. */
    model_part_func *part;      /* Called when more are final; or NULL. */
    void *aux;
};

/* Arguments of one forward or backward pass. */
struct layer_pass {
    struct backend *b;
    const struct layer *layers; /* All layers of the net. */
    const float *d_weights;     /* Flat vector of all weights. */
    float *d_gradient;
    int n;                      /* Number of samples. */
    bool training;              /* False for evaluation. */
};

struct layer_class {
    /* Optional: initial weights.  The default is 0. */
    void (*init)(const struct layer *, bool last, struct layer_drawing *,
                 float *weights);
    void (*forward)(const struct layer *, const struct layer_pass *);
    void (*backward)(const struct layer *, const struct layer_pass *);
};

struct layer {
    const struct layer_class *class;    /* NULL for the input layer. */
    int input;                  /* Index of the layer that it reads. */
    struct image in, out;       /* Dimensions of one sample. */
    bool relu;                  /* ReLU on the output. */
    bool cut;                   /* The next layer sets the gradient to 0 where
                                 * the output is 0. */
    bool bias;                  /* Convolution: has biases. */
    bool adds;                  /* Adds to the input's gradient. */
    int main;                   /* Join: the layer that is added to 'input'. */
    int share;                  /* Layer with the 'd_dy' that this one uses, 0
                                 * if none. */
    size_t first, n_parameters; /* Range of the parameters. */
    union {
        struct convolution convolution;
        struct pooling pooling;
        struct shortcut shortcut;
    };

    /* Device memory. */
    float *d_y, *d_dy;          /* Output, and its gradient if needed. */
    float *d_stats;             /* Running statistics of a normalisation. */
};

/* Returns the number of values of a sample. */
static inline size_t
image_size(const struct image *image)
{
    return (size_t) image->height * image->width * image->channels;
}

/* Returns the layers of a model that is a net, the input first, or NULL. */
const struct layer *net_layers(const struct model *, int *n);

extern const struct layer_class layer_dense;
extern const struct layer_class layer_convolution;
extern const struct layer_class layer_norm;
extern const struct layer_class layer_max_pool;
extern const struct layer_class layer_mean_pool;
extern const struct layer_class layer_join;

#endif /* trainer/models/layer.h */
