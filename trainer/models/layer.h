/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAYER_H
#define LAYER_H 1

/* A layer of a net: what net.c knows of all kinds, and layer-*.c of its own.
 *
 *
 * Motivation
 * ==========
 *
 * A layer is a few calls of the backend, forward and backward.  Which memory
 * they read and write is decided once, when the net is finished, so that a
 * step is the same sequence of calls each time.
 *
 *
 * Usage
 * =====
 *
 * forward() makes 'd_y' of the inputs' 'd_y'.  backward() has the gradient of
 * 'd_y' in 'd_dy', which it may change, and writes that of the weights, and
 * that of the input's output to the input's 'd_dy', unless that is NULL.  If
 * 'adds', another layer has written there before: then it adds.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The net owns the layers and their memory.  One thread. */

#include <stdbool.h>
#include <stddef.h>

#include "trainer/backend/backend.h"
#include "trainer/data/dataset.h"

struct layer;
struct seeded;

/* What a layer works with in one step. */
struct layer_pass {
    struct backend *b;
    const struct layer *layers; /* All of the net. */
    const float *d_weights;     /* The flat vectors. */
    float *d_gradient;
    int n;                      /* Samples. */
    bool training;              /* Not evaluation. */
};

struct layer_class {
    /* Optional: first weights, where they are not 0. */
    void (*init)(const struct layer *, bool last, struct seeded *,
                 float *weights);
    void (*forward)(const struct layer *, const struct layer_pass *);
    void (*backward)(const struct layer *, const struct layer_pass *);
};

struct layer {
    const struct layer_class *class;    /* NULL: the samples. */
    int input;                  /* Whose output it reads. */
    struct image in, out;       /* Of a sample. */
    bool relu;                  /* The output is cut at 0. */
    bool bias;                  /* A convolution has one. */
    bool adds;                  /* To the input's gradient. */
    int main;                   /* Of a join: what is joined to 'input'. */
    int share;                  /* Nonzero: the layer whose 'd_dy' is ours. */
    size_t first, n_parameters; /* Of the flat vectors. */
    union {
        struct convolution convolution;
        struct pooling pooling;
        struct shortcut shortcut;
    };

    /* Of the backend. */
    float *d_y, *d_dy;          /* Output, and its gradient if needed. */
    float *d_stats;             /* Of a normalisation. */
};

/* Values of a sample. */
static inline size_t
image_size(const struct image *image)
{
    return (size_t) image->height * image->width * image->channels;
}

extern const struct layer_class layer_dense;
extern const struct layer_class layer_convolution;
extern const struct layer_class layer_norm;
extern const struct layer_class layer_max_pool;
extern const struct layer_class layer_mean_pool;
extern const struct layer_class layer_join;

#endif /* trainer/models/layer.h */
