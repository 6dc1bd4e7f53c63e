/* SPDX-License-Identifier: Apache-2.0 */

#ifndef MODEL_H
#define MODEL_H 1

/* Models: functions of a flat vector of weights that are trained.
 *
 * To parameter servers a model is one flat vector; to a worker it computes a
 * gradient from samples.  Layers, memory and the order of computations are
 * private to the model, so that a new model is one struct model_class and one
 * row of the table in model.c; a new net of layers is one function in net.c.
 *
 *    error = model_create(model_class_find("mlp"), &config, &model);
 *    model_init_weights(model, seed, model->weights);
 *    model_weights_changed(model);
 *    model_gradient(model, batch, NULL, NULL, &loss_sum);
 *    ...model->gradient is what to push...
 *    model_evaluate(model, data, &loss, &accuracy);
 *    model_destroy(model);
 *
 * To send parts of a gradient early, pass a function to model_gradient().  It
 * is called for each range of the gradient as soon as that is final, the last
 * layers first, while earlier layers are still being computed.  The ranges are
 * disjoint and cover the vector.
 *
 * The vectors are host memory of the model; the backend uses them in place if
 * it can.  Memory is allocated at creation and grows only for a
 * batch larger than any before.  One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/data/dataset.h"
#include "trainer/models/shape.h"

struct backend;
struct model_class;

/* Called when 'n' elements of the vector from 'first' on are final. */
typedef void model_part_func(void *aux, size_t first, size_t n);

struct model_config {
    struct backend *backend;
    int max_batch;              /* Expected largest batch; a larger one is
                                 * slower once. */
    struct shape shape;         /* "mlp": widths of the layers. */
    struct image image;         /* Dimensions of an image. */
    int n_inputs, n_classes;    /* Dimensions of the data. */
    bool sparse;                /* The data has sparse samples. */
    bool hinge;                 /* "linear": support vector machine instead
                                 * of logistic regression. */
};

/* First member of every model. */
struct model {
    const struct model_class *class;
    int max_batch;              /* Samples per step of an evaluation. */
    size_t sample_bytes;        /* Memory of the device for each sample of the
                                 * largest batch; 0: it varies. */
    size_t n_parameters;
    float *weights;             /* Call model_weights_changed() after a
                                 * write. */
    float *gradient;            /* Gradient of the mean loss of the last
                                 * batch. */

    /* What evaluations use besides weights and gradients change: the running
     * statistics of normalisations.  Call model_weights_changed() after a
     * write. */
    float *statistics;
    size_t n_statistics;

    /* Sparse models: sorted indices of the parameters that the last gradient
     * contains; it is 0 for all others.  Dense models have no keys. */
    const uint32_t *keys;
    size_t n_keys;
};

struct model_class {
    const char *name;
    bool images;                /* Needs samples that are images. */
    bool sparse;                /* Needs sparse samples. */

    struct model *(*create)(const struct model_config *);
    void (*destroy)(struct model *);
    void (*init_weights)(const struct model *, uint64_t seed, float *weights,
                         model_part_func *, void *aux);
    void (*weights_changed)(struct model *);
    void (*gradient)(struct model *, const struct batch *, model_part_func *,
                     void *aux, double *loss_sum);
    void (*evaluate)(struct model *, const struct batch *, double *loss_sum,
                     int *n_correct);

    /* Optional: one step of SGD with momentum on the device, for a worker that
     * trains alone.  The copies of gradient and weights on the host are not
     * updated. */
    void (*step)(struct model *, const struct batch *, float rate,
                 float momentum, double *loss_sum);
};

extern const struct model_class model_mlp;
extern const struct model_class model_cifarnet;
extern const struct model_class model_resnet32;
extern const struct model_class model_linear;

const struct model_class *model_class_find(const char *name);  /* Or NULL. */

/* Returns NULL, or a message that the caller frees. */
char *model_create(const struct model_class *, const struct model_config *,
                   struct model **);
void model_destroy(struct model *);

/* Creates a batch for models of this backend.  The device reads its samples
 * where they are, without another copy.  Destroy it before the backend. */
struct batch *model_batch_create(struct backend *);

/* Stores initial weights, which depend on the seed only, not on the
 * backend. */
void model_init_weights(const struct model *, uint64_t seed, float *weights);

/* Likewise.  'part' is called when the weights before the end of its range are
 * final, in ascending order; the last weights need no call. */
void model_init_parts(const struct model *, uint64_t seed, float *weights,
                      model_part_func *part, void *aux);

/* Copies weights and statistics to the device.  They must not be written again
 * before the next gradient or evaluation is complete. */
void model_weights_changed(struct model *);

/* Computes the gradient of the mean loss of the batch and the sum of its
 * losses.  For an empty batch, the gradient is not written and 'part' is not
 * called.  'part' may be NULL. */
void model_gradient(struct model *, const struct batch *,
                    model_part_func *part, void *aux, double *loss_sum);

/* Computes the mean loss of the validation samples and the fraction of correct
 * predictions. */
void model_evaluate(struct model *, const struct dataset *, double *loss,
                    double *accuracy);

#endif /* trainer/models/model.h */
