/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/models/model.h"

#include <string.h>

#include "base/memory.h"
#include "trainer/backend/backend.h"

static const struct model_class *const classes[] = {
    &model_mlp, &model_cifarnet, &model_resnet32, &model_linear, NULL
};

const struct model_class *
model_class_find(const char *name)
{
    for (int i = 0; classes[i]; i++) {
        if (!strcmp(classes[i]->name, name)) {
            return classes[i];
        }
    }
    return NULL;
}

static char *
check_config(const struct model_class *class, const struct model_config *c)
{
    const struct image *image = &c->image;

    if (class->images
        && (image->height < 8 || image->width < 8 || image->channels < 1
            || image->height % 4 || image->width % 4)) {
        return message("--model: \"%s\" needs images, height and width "
                       "multiples of 4 from 8 on", class->name);
    }
    if (class->sparse != c->sparse) {
        return message("--model: \"%s\" needs samples that are %ssparse",
                       class->name, class->sparse ? "" : "not ");
    }
    if (class->sparse && c->n_classes != 2) {
        return message("--model: \"%s\" needs 2 classes, there are %d",
                       class->name, c->n_classes);
    }
    return NULL;
}

char *
model_create(const struct model_class *class,
             const struct model_config *config, struct model **modelp)
{
    char *error = check_config(class, config);

    *modelp = error ? NULL : class->create(config);
    return error;
}

void
model_destroy(struct model *model)
{
    if (model) {
        model->class->destroy(model);
    }
}

void
model_init_weights(const struct model *model, uint64_t seed, float *weights)
{
    model->class->init_weights(model, seed, weights, NULL, NULL);
}

void
model_init_parts(const struct model *model, uint64_t seed, float *weights,
                 model_part_func *part, void *aux)
{
    model->class->init_weights(model, seed, weights, part, aux);
}

void
model_weights_changed(struct model *model)
{
    model->class->weights_changed(model);
}

static void *
alloc_samples(void *backend, size_t bytes)
{
    return backend_alloc_host(backend, bytes);
}

static void
free_samples(void *backend, void *p)
{
    backend_free_host(backend, p);
}

struct batch *
model_batch_create(struct backend *b)
{
    return batch_create_in((struct batch_memory){
        .alloc = alloc_samples, .free = free_samples, .aux = b });
}

void
model_gradient(struct model *model, const struct batch *batch,
               model_part_func *part, void *aux, double *loss_sum)
{
    *loss_sum = 0;
    if (batch->n) {
        model->class->gradient(model, batch, part, aux, loss_sum);
    }
}

void
model_evaluate(struct model *model, const struct dataset *data, double *loss,
               double *accuracy)
{
    double loss_total = 0;
    size_t n_right = 0;

    for (size_t i = 0; i < data->n_held; ) {
        size_t left = data->n_held - i;
        struct batch batch = dataset_held(
            data, i, left < model->max_batch ? left : model->max_batch);
        double loss_sum;
        int n_correct;

        model->class->evaluate(model, &batch, &loss_sum, &n_correct);
        loss_total += loss_sum;
        n_right += n_correct;
        i += batch.n;
    }
    *loss = loss_total / data->n_held;
    *accuracy = (double) n_right / data->n_held;
}
