/* SPDX-License-Identifier: Apache-2.0 */

/* Linear function of sparse samples: logistic regression or a support vector
 * machine.  One weight per feature, then the bias.
 *
 * The gradient covers the features of the batch only.  The host transposes the
 * batch, from the features of each sample to the samples of each feature, so
 * that both directions are the same operation with sums in a fixed order. */

#include "trainer/models/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/compare.h"
#include "base/memory.h"
#include "trainer/backend/backend.h"

/* Sparse matrix on the host and on the device. */
struct rows {
    size_t max_rows, max_entries;       /* Allocated sizes. */
    uint32_t *starts, *at;
    float *values;
    uint32_t *d_starts, *d_at;
    float *d_values;
};

struct linear {
    struct model up;
    struct backend *b;
    bool hinge;
    uint32_t n_features;
    struct rows samples;        /* The batch, by sample. */
    struct rows features;       /* The batch, by feature. */
    uint32_t *keys;             /* Memory of up.keys, max_keys elements. */
    uint32_t *place;            /* By feature: its index among the keys. */
    float *slopes;              /* Gradient by key, on the host. */
    size_t max_keys;

    /* Device memory.  Weights; output, its gradient and label of each of
     * 'max_samples'; gradient by key, then of the bias. */
    float *d_weights, *d_y, *d_dy, *d_slopes;
    int32_t *d_labels;
    size_t max_samples;
};

static struct linear *
linear_cast(const struct model *model)
{
    return (struct linear *) model;
}

static void
rows_uninit(struct rows *r, struct backend *b)
{
    free(r->starts);
    free(r->at);
    free(r->values);
    backend_free(b, r->d_starts);
    backend_free(b, r->d_at);
    backend_free(b, r->d_values);
}

/* The previous content is lost. */
static void
rows_reserve(struct rows *r, struct backend *b, size_t n, size_t n_entries)
{
    if (n > r->max_rows || n_entries > r->max_entries || !r->starts) {
        size_t max_rows = n > r->max_rows ? n : r->max_rows;
        size_t max_entries = n_entries > r->max_entries ? n_entries
                                                        : r->max_entries;

        rows_uninit(r, b);
        r->max_rows = max_rows;
        r->max_entries = max_entries;
        r->starts = allocate(max_rows + 1, sizeof *r->starts);
        r->at = allocate(max_entries, sizeof *r->at);
        r->values = allocate(max_entries, sizeof *r->values);
        r->d_starts = backend_alloc(b, (max_rows + 1) * sizeof *r->starts);
        r->d_at = backend_alloc(b, max_entries * sizeof *r->at);
        r->d_values = backend_alloc(b, max_entries * sizeof *r->values);
    }
}

static void
rows_upload(const struct rows *r, struct backend *b, size_t n)
{
    size_t n_entries = r->starts[n];

    b->class->upload(b, r->d_starts, r->starts, (n + 1) * sizeof *r->starts);
    b->class->upload(b, r->d_at, r->at, n_entries * sizeof *r->at);
    b->class->upload(b, r->d_values, r->values, n_entries * sizeof *r->values);
}

static void
alloc_samples(struct linear *linear, size_t n)
{
    struct backend *b = linear->b;

    if (n > linear->max_samples) {
        backend_free(b, linear->d_y);
        backend_free(b, linear->d_dy);
        backend_free(b, linear->d_labels);
        linear->d_y = backend_alloc(b, n * sizeof *linear->d_y);
        linear->d_dy = backend_alloc(b, n * sizeof *linear->d_dy);
        linear->d_labels = backend_alloc(b, n * sizeof *linear->d_labels);
        linear->max_samples = n;
    }
}

/* Each array has one more element for the bias. */
static void
alloc_keys(struct linear *linear, size_t n)
{
    if (n > linear->max_keys) {
        free(linear->keys);
        free(linear->slopes);
        backend_free(linear->b, linear->d_slopes);
        linear->keys = allocate(n, sizeof *linear->keys);
        linear->slopes = allocate(n, sizeof *linear->slopes);
        linear->d_slopes = backend_alloc(linear->b,
                                         n * sizeof *linear->slopes);
        linear->max_keys = n;
    }
}

static struct model *
linear_create(const struct model_config *config)
{
    struct linear *linear = allocate(1, sizeof *linear);
    size_t n = config->n_inputs + 1;

    linear->up.class = &model_linear;
    linear->up.max_batch = config->max_batch;
    linear->up.n_parameters = n;
    linear->up.weights = allocate(n, sizeof *linear->up.weights);
    linear->up.gradient = allocate(n, sizeof *linear->up.gradient);
    linear->b = config->backend;
    linear->hinge = config->hinge;
    linear->n_features = config->n_inputs;
    linear->place = allocate(n, sizeof *linear->place);
    linear->d_weights = backend_alloc(linear->b,
                                      n * sizeof *linear->d_weights);
    alloc_samples(linear, config->max_batch);
    return &linear->up;
}

static void
linear_destroy(struct model *model)
{
    struct linear *linear = linear_cast(model);
    struct backend *b = linear->b;

    rows_uninit(&linear->samples, b);
    rows_uninit(&linear->features, b);
    free(model->weights);
    free(model->gradient);
    free(linear->keys);
    free(linear->place);
    free(linear->slopes);
    backend_free(b, linear->d_weights);
    backend_free(b, linear->d_y);
    backend_free(b, linear->d_dy);
    backend_free(b, linear->d_slopes);
    backend_free(b, linear->d_labels);
    free(linear);
}

static void
linear_init_weights(const struct model *model, uint64_t seed, float *weights,
                    model_part_func *part, void *aux)
{
    memset(weights, 0, model->n_parameters * sizeof *weights);
}

static void
linear_weights_changed(struct model *model)
{
    struct linear *linear = linear_cast(model);

    linear->b->class->upload(linear->b, linear->d_weights, model->weights,
                             model->n_parameters * sizeof *model->weights);
}

/* Copies the batch to 'samples' and the backend, and computes its outputs. */
static void
forward(struct linear *linear, const struct batch *batch)
{
    const struct sparse *from = &batch->sparse;
    size_t first = from->starts[0];
    size_t n_entries = from->starts[batch->n] - first;
    struct rows *to = &linear->samples;
    struct backend *b = linear->b;

    alloc_samples(linear, batch->n);
    rows_reserve(to, b, batch->n, n_entries);
    for (int i = 0; i <= batch->n; i++) {
        to->starts[i] = from->starts[i] - first;
    }
    if (n_entries) {
        memcpy(to->at, from->keys + first, n_entries * sizeof *to->at);
        memcpy(to->values, from->values + first,
               n_entries * sizeof *to->values);
    }
    rows_upload(to, b, batch->n);
    b->class->upload(b, linear->d_labels, batch->labels,
                     batch->n * sizeof *batch->labels);
    b->class->gather(b, batch->n, to->d_starts, to->d_at, to->d_values,
                     linear->d_weights, linear->d_y);
    b->class->bias(b, batch->n, 1, linear->d_weights + linear->n_features,
                   false, linear->d_y);
}

/* Finds the features of the batch.  Stores the index of each in 'place', and
 * the number of samples with it in 'features.starts', one element further on.
 * 'place' is 0 before and after the call for all other features. */
static size_t
find_keys(struct linear *linear, size_t n_entries)
{
    const uint32_t *at = linear->samples.at;
    size_t n = 0;

    alloc_keys(linear, (n_entries < linear->n_features
                        ? n_entries : linear->n_features) + 1);
    for (size_t e = 0; e < n_entries; e++) {
        if (!linear->place[at[e]]) {
            linear->place[at[e]] = 1;
            linear->keys[n++] = at[e];
        }
    }
    qsort(linear->keys, n, sizeof *linear->keys, compare_u32);
    rows_reserve(&linear->features, linear->b, n, n_entries);
    memset(linear->features.starts, 0,
           (n + 1) * sizeof *linear->features.starts);
    for (size_t i = 0; i < n; i++) {
        linear->place[linear->keys[i]] = i;
    }
    for (size_t e = 0; e < n_entries; e++) {
        linear->features.starts[linear->place[at[e]] + 1]++;
    }
    return n;
}

/* Transposes 'samples' into 'features'.  Returns the number of features. */
static size_t
transpose(struct linear *linear, int n_samples)
{
    const struct rows *from = &linear->samples;
    struct rows *to = &linear->features;
    size_t n = find_keys(linear, from->starts[n_samples]);

    for (size_t i = 0; i < n; i++) {
        to->starts[i + 1] += to->starts[i];
    }
    for (int i = 0; i < n_samples; i++) {
        for (uint32_t e = from->starts[i]; e < from->starts[i + 1]; e++) {
            uint32_t place = to->starts[linear->place[from->at[e]]]++;

            to->at[place] = i;
            to->values[place] = from->values[e];
        }
    }
    for (size_t i = n; i > 0; i--) {
        to->starts[i] = to->starts[i - 1];
    }
    to->starts[0] = 0;
    for (size_t i = 0; i < n; i++) {
        linear->place[linear->keys[i]] = 0;
    }
    return n;
}

/* Copies the gradient from the backend to its place in the vector. */
static void
scatter(struct linear *linear, size_t n)
{
    float *gradient = linear->up.gradient;

    linear->b->class->download(linear->b, linear->slopes, linear->d_slopes,
                               n * sizeof *linear->slopes);
    for (size_t i = 0; i < n; i++) {
        gradient[linear->keys[i]] = linear->slopes[i];
    }
    linear->up.keys = linear->keys;
    linear->up.n_keys = n;
}

static void
linear_gradient(struct model *model, const struct batch *batch,
                model_part_func *func, void *aux, double *loss_sum)
{
    struct linear *linear = linear_cast(model);
    const struct rows *turned = &linear->features;
    struct backend *b = linear->b;
    size_t n;
    int n_correct;

    for (size_t i = 0; i < model->n_keys; i++) {
        model->gradient[model->keys[i]] = 0;
    }
    forward(linear, batch);
    b->class->margin_loss(b, batch->n, linear->hinge, linear->d_y,
                          linear->d_labels, linear->d_dy);
    n = transpose(linear, batch->n);
    rows_upload(turned, b, n);
    b->class->gather(b, n, turned->d_starts, turned->d_at, turned->d_values,
                     linear->d_dy, linear->d_slopes);
    b->class->column_sums(b, batch->n, 1, linear->d_dy, linear->d_slopes + n);
    linear->keys[n] = linear->n_features;
    scatter(linear, n + 1);
    b->class->losses(b, loss_sum, &n_correct);
    if (func) {
        func(aux, 0, model->n_parameters);
    }
}

static void
linear_evaluate(struct model *model, const struct batch *batch,
                double *loss_sum, int *n_correct)
{
    struct linear *linear = linear_cast(model);
    struct backend *b = linear->b;

    forward(linear, batch);
    b->class->margin_loss(b, batch->n, linear->hinge, linear->d_y,
                          linear->d_labels, NULL);
    b->class->losses(b, loss_sum, n_correct);
}

const struct model_class model_linear = {
    .name = "linear",
    .sparse = true,
    .create = linear_create,
    .destroy = linear_destroy,
    .init_weights = linear_init_weights,
    .weights_changed = linear_weights_changed,
    .gradient = linear_gradient,
    .evaluate = linear_evaluate,
};
