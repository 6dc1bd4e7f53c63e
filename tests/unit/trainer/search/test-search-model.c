/* SPDX-License-Identifier: Apache-2.0 */

/* What a search knows of models and data is what the trainer makes of it. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "tests/unit/unit-test.h"
#include "trainer/backend/backend.h"
#include "trainer/models/model.h"
#include "trainer/search/spec.h"

static const char search[] =
    "{\"name\": \"a\", \"trials\": 1, \"space\": {\"learning_rate\": [0.01], "
    "%s\"batch\": [16]}, \"rungs\": [{\"iterations\": 20}], "
    "\"placements\": [{\"workers\": [\"h0\", \"h1\"], "
    "\"servers\": [\"h1\"]}], "
    "\"model\": %s, \"data\": %s, \"sync\": \"%s\"}";

static const struct {
    const char *model, *data, *sync;
    const char *options;        /* With a width of 16, if it has one. */
} models[] = {
    { "{\"inputs\": 16, \"hidden_layers\": 2, \"classes\": 4}",
      "{\"kind\": \"generated\", \"samples\": 256}", "bsp",
      "--model mlp --shape 16,16,16,4 --samples 256 --validation 256 " },
    { "{\"name\": \"mlp\", \"inputs\": 784, \"hidden_layers\": 0, "
      "\"classes\": 10}",
      "{\"kind\": \"mnist\", \"path\": \"/m\"}", "static,ratios=1:2",
      "--model mlp --shape 784,10 --data mnist:/m --samples 60000 " },
    { "{\"name\": \"cifarnet\"}", "{\"kind\": \"cifar10\", \"path\": \"/c\"}",
      "essp",
      "--model cifarnet --image 32x32x3 --data cifar10:/c --samples 50000 " },
    { "{\"name\": \"resnet32\", \"image\": [16, 24, 1]}",
      "{\"kind\": \"generated\"}", "lbbsp-cpu,predictor=ema",
      "--model resnet32 --image 16x24x1 --samples 8192 " },
    { "{\"name\": \"linear\", \"features\": 100, \"loss\": \"hinge\"}",
      "{\"kind\": \"libsvm\", \"path\": \"/a9a\", \"samples\": 9}", "asp",
      "--model linear --features 100 --loss hinge --data libsvm:/a9a "
      "--samples 9 " },
};

/* Of the model that the trainer makes of it. */
static size_t
real_n_parameters(const struct search_model *m, int width)
{
    struct model_config config = {
        .max_batch = 1, .image = m->image, .hinge = true,
        .n_inputs = m->image.height * m->image.width * m->image.channels,
        .n_classes = 10,
    };
    const struct model_class *class = &model_mlp;
    struct model *model;
    size_t n;

    if (m->kind == SEARCH_MLP) {
        config.shape.width[config.shape.n++] = m->n_inputs;
        for (int i = 0; i < m->n_hidden; i++) {
            config.shape.width[config.shape.n++] = width;
        }
        config.shape.width[config.shape.n++] = m->n_classes;
        config.n_inputs = m->n_inputs;
        config.n_classes = m->n_classes;
    } else if (m->kind == SEARCH_LINEAR) {
        class = &model_linear;
        config.n_inputs = m->n_features;
        config.n_classes = 2;
        config.sparse = true;
    } else {
        class = m->kind == SEARCH_CIFARNET ? &model_cifarnet
                                           : &model_resnet32;
    }
    assert_int_equal(backend_open(&backend_cpu, 0, 1, &config.backend), 0);
    assert_null(model_create(class, &config, &model));
    n = model->n_parameters;
    model_destroy(model);
    backend_close(config.backend);
    return n;
}

static void
append(void *options, const char *name, char *value)
{
    strcat(strcat(strcat(options, name), " "), value);
    strcat(options, " ");
    free(value);
}

UNIT_TEST(models_data_and_schemes_become_options)
{
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        bool wide = !strstr(models[i].model, "name")
                    || strstr(models[i].model, "\"mlp\"");
        char text[1024], options[256] = "";
        struct search_spec *spec;
        struct json_check *jc;
        struct search_trial trial;

        snprintf(text, sizeof text, search, wide ? "\"width\": [16], " : "",
                 models[i].model, models[i].data, models[i].sync);
        jc = json_check_open("s.json", text);
        search_spec_from_json(json_check_top(jc), &spec);
        assert_no_error(json_check_close(jc));
        trial = search_spec_trial(spec, 0);
        assert_int_equal(search_model_n_parameters(&spec->model,
                                                   trial.width),
                         real_n_parameters(&spec->model, trial.width));
        search_model_options(&spec->model, trial.width, append, options);
        assert_string_equal(options, models[i].options);
        assert_string_equal(spec->sync, models[i].sync);
        search_spec_destroy(spec);
    }
}
