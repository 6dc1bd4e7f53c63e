/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SEARCH_MODEL_H
#define SEARCH_MODEL_H 1

/* Model and data of a search: its members "model" and "data".
 *
 * Planning and simulating a search needs the number of parameters that are
 * transferred, but not the arithmetic.  So this module has only the options
 * and the size of each model:
 *
 *    {"inputs": 64, "hidden_layers": 2, "classes": 10}     "name": "mlp"
 *    {"name": "cifarnet", "image": [32, 32, 3]}            or "resnet32"
 *    {"name": "linear", "features": 1000, "loss": "hinge"}
 *
 *    {"kind": "generated", "samples": 8192}
 *    {"kind": "mnist", "path": FOLDER}                     or "cifar10"
 *    {"kind": "libsvm", "path": FILE}
 *
 * The size of images is that of the files; "image" is for generated ones.
 * Only "mlp" has a width to search.
 *
 * Plain data; the owner frees 'path'. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/data/dataset.h"
#include "trainer/models/shape.h"

struct json_at;

enum search_data {
    SEARCH_GENERATED,
    SEARCH_MNIST,
    SEARCH_CIFAR10,
    SEARCH_LIBSVM,
};

enum search_model_kind {
    SEARCH_MLP,
    SEARCH_CIFARNET,
    SEARCH_RESNET32,
    SEARCH_LINEAR,
};

struct search_model {
    enum search_model_kind kind;
    int n_inputs, n_hidden, n_classes;  /* Dimensions of an MLP. */
    struct image image;         /* Dimensions of images. */
    int64_t n_features;         /* Features of a linear model. */
    const char *loss;           /* "logistic" or "hinge".  Static. */

    enum search_data data;
    int64_t n_samples;          /* Training samples; of files: maximum. */
    char *path;                 /* Folder or file; NULL if generated. */
};

/* Reads the two members of 'at'. */
void search_model_read(struct search_model *, const struct json_at *at);

/* Returns true if its trials have a width. */
bool search_model_has_width(const struct search_model *);

/* Returns the number of parameters with hidden layers of 'width'. */
size_t search_model_n_parameters(const struct search_model *, int width);

/* Passes each option for the trainer to 'add', which gets ownership of
 * 'value'. */
void search_model_options(const struct search_model *, int width,
                          void (*add)(void *aux, const char *name,
                                      char *value),
                          void *aux);

#endif /* trainer/search/model.h */
