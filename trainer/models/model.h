/* SPDX-License-Identifier: Apache-2.0 */

#ifndef MODEL_H
#define MODEL_H 1

/* What is trained: a function of a flat vector of weights.
 *
 *
 * Motivation
 * ==========
 *
 * The parameter servers see a model as one flat vector, and the worker sees
 * it as something that makes a gradient of samples.  Everything else, layers,
 * memory, order of computing, is the model's own business, so that a new model
 * is one file and one row of model_classes[].
 *
 *
 * Usage
 * =====
 *
 *    error = model_create(model_class_find("mlp"), &config, &model);
 *    model_init_weights(model, seed, model->weights);
 *    model_weights_changed(model);
 *    model_gradient(model, batch, NULL, NULL, &loss_sum);
 *    ...model->gradient is what to push...
 *    model_evaluate(model, data, &loss, &accuracy);
 *    model_destroy(model);
 *
 * Whoever can send parts of a gradient early gives model_gradient() a
 * function: it is called for each range of the gradient when that is final,
 * the last layers' first, while earlier layers are still being computed.  The
 * ranges are disjoint and cover the vector.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The two vectors are host memory that belongs to the model, in place where
 * the backend allows that.  Memory is allocated at creation; only a batch
 * larger than any before makes it grow.  One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/data/dataset.h"
#include "trainer/models/shape.h"

struct backend;
struct model_class;

/* A range of the gradient is final. */
typedef void model_part_func(void *aux, size_t first, size_t n);

struct model_config {
    struct backend *backend;
    int max_batch;              /* Samples; more is slower the first time. */
    struct shape shape;         /* "mlp": widths of the layers. */
    struct image image;         /* What convolutions see. */
    int n_inputs, n_classes;    /* Of the data. */
    bool sparse;                /* The data's samples are. */
    bool hinge;                 /* "linear": not logistic, a SVM. */
};

/* The head of every model. */
struct model {
    const struct model_class *class;
    int max_batch;              /* Evaluation goes by so many samples. */
    size_t n_parameters;
    float *weights;             /* Whoever writes them says so. */
    float *gradient;            /* Of the mean loss of the last batch. */

    /* Of a sparse model: the sorted parameters that the last gradient is of;
     * all others of it are 0.  A dense one has no keys. */
    const uint32_t *keys;
    size_t n_keys;
};

struct model_class {
    const char *name;
    bool images;                /* Wants samples that are images. */
    bool sparse;                /* Wants sparse samples. */

    struct model *(*create)(const struct model_config *);
    void (*destroy)(struct model *);
    void (*init_weights)(const struct model *, uint64_t seed, float *weights);
    void (*weights_changed)(struct model *);
    void (*gradient)(struct model *, const struct batch *, model_part_func *,
                     void *aux, double *loss_sum);
    void (*evaluate)(struct model *, const struct batch *, double *loss_sum,
                     int *n_correct);

    /* Optional: a step of SGD with momentum where the model is, for who trains
     * alone: neither gradient nor weights pass through the host, whose copies
     * of them get out of date. */
    void (*step)(struct model *, const struct batch *, float rate,
                 float momentum, double *loss_sum);
};

extern const struct model_class model_mlp;
extern const struct model_class model_cifarnet;
extern const struct model_class model_resnet32;
extern const struct model_class model_linear;

/* All of them, then NULL. */
extern const struct model_class *const model_classes[];

const struct model_class *model_class_find(const char *name);  /* Or NULL. */

/* Returns NULL or a message. */
char *model_create(const struct model_class *, const struct model_config *,
                   struct model **);
void model_destroy(struct model *);

/* First weights, the same for the same seed on every backend. */
void model_init_weights(const struct model *, uint64_t seed, float *weights);

/* They may be on their way until the next gradient or evaluation is there, and
 * are not to be written before. */
void model_weights_changed(struct model *);

/* Computes the gradient of the mean loss of the batch, and the sum of its
 * samples' losses.  An empty batch has neither: then the gradient is not
 * written, and 'part' is not called.  'part' may be NULL. */
void model_gradient(struct model *, const struct batch *,
                    model_part_func *part, void *aux, double *loss_sum);

/* Mean loss of the held-out samples, and the part of them that is right. */
void model_evaluate(struct model *, const struct dataset *, double *loss,
                    double *accuracy);

#endif /* trainer/models/model.h */
