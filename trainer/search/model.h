/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SEARCH_MODEL_H
#define SEARCH_MODEL_H 1

/* What the jobs of a search train, and on what: its members "model" and
 * "data".
 *
 *
 * Motivation
 * ==========
 *
 * Whoever plans a search, or simulates it, has to know how many parameters go
 * over the network, but has no use for the arithmetic.  So this knows of each
 * model as much as its options and its size:
 *
 *    {"inputs": 64, "hidden_layers": 2, "classes": 10}     "name": "mlp"
 *    {"name": "cifarnet", "image": [32, 32, 3]}            or "resnet32"
 *    {"name": "linear", "features": 1000, "loss": "hinge"}
 *
 *    {"kind": "generated", "samples": 8192}
 *    {"kind": "mnist", "path": FOLDER}                     or "cifar10"
 *    {"kind": "libsvm", "path": FILE}
 *
 * Images have the size that the files' have; "image" is of generated ones.
 * Only "mlp" has widths to choose from.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data; whoever reads one frees it with search_model_uninit(). */

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
    int n_inputs, n_hidden, n_classes;  /* Of an MLP. */
    struct image image;         /* Of what sees images. */
    int64_t n_features;         /* Of a linear model, */
    const char *loss;           /* "logistic" or "hinge".  Static. */

    enum search_data data;
    int64_t n_samples;          /* To train on; of files at most so many. */
    char *path;                 /* Folder or file; NULL if generated. */
};

/* Reads the two members of 'at'. */
void search_model_read(struct search_model *, const struct json_at *at);
void search_model_uninit(struct search_model *);

/* Whether a trial of it has a width. */
bool search_model_has_width(const struct search_model *);

/* Of the model with hidden layers of 'width'. */
size_t search_model_n_parameters(const struct search_model *, int width);

/* The trainer's options for it, the next one's name and value each time, which
 * the caller frees; '*i' counts from 0.  Returns false behind the last. */
bool search_model_option(const struct search_model *, int width, int *i,
                         const char **name, char **value);

#endif /* trainer/search/model.h */
