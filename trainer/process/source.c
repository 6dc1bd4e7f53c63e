/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/process/source.h"

#include <string.h>

#include "trainer/process/options.h"
#include "trainer/models/model.h"

static struct dataset *
generate(const struct model_class *class, const struct dataset_config *config)
{
    return class->sparse ? dataset_generate_sparse(config)
           : class->images ? dataset_generate_images(config)
           : dataset_generate(config);
}

char *
source_open_data(const struct options *o, struct dataset **datap)
{
    const struct model_class *class = model_class_find(o->model);
    struct dataset_config config = {
        .n_inputs = options_n_inputs(o), .n_classes = options_n_classes(o),
        .image = o->image, .n_train = o->samples, .n_held = o->validation,
        .seed = o->seed,
    };

    switch (o->data_kind) {
    case DATA_MNIST:
        return dataset_mnist(&config, o->data_path, datap);
    case DATA_CIFAR:
        return dataset_cifar(&config, o->data_path, datap);
    case DATA_LIBSVM:
        return dataset_libsvm(&config, o->data_path, datap);
    case DATA_GENERATED:
        break;
    }
    *datap = generate(class, &config);
    return NULL;
}

char *
source_open_model(const struct options *o, const struct dataset *data,
                  struct backend *b, int max_batch, struct model **modelp)
{
    struct model_config config = {
        .backend = b, .max_batch = max_batch, .shape = o->shape,
        .image = data->image, .n_inputs = data->n_inputs,
        .n_classes = data->n_classes, .sparse = data->train.starts,
        .hinge = !strcmp(o->loss, "hinge"),
    };

    return model_create(model_class_find(o->model), &config, modelp);
}
