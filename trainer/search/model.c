/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/search/model.h"

#include "base/json-check.h"
#include "base/memory.h"

#define MAX_SAMPLES (1 << 24)
#define MAX_FEATURES (1 << 30)
#define DEFAULT_VALIDATION 512  /* Samples, as of the trainer's option. */
#define N_IMAGE_CLASSES 10      /* Classes of images, generated or not. */

static const char *const model_names[] = {
    "mlp", "cifarnet", "resnet32", "linear", NULL,
};
static const char *const data_names[] = {
    "generated", "mnist", "cifar10", "libsvm", NULL,
};
static const char *const loss_names[] = { "logistic", "hinge", NULL };

static const struct {
    struct image image;         /* Dimensions of the images in the files. */
    int64_t n_samples;          /* Default number of samples. */
    const char *prefix;         /* Prefix of the value of '--data'. */
} sources[] = {
    [SEARCH_GENERATED] = { { 32, 32, 3 }, 8192, NULL },
    [SEARCH_MNIST] = { { 28, 28, 1 }, 60000, "mnist" },
    [SEARCH_CIFAR10] = { { 32, 32, 3 }, 50000, "cifar10" },
    [SEARCH_LIBSVM] = { { 0, 0, 0 }, MAX_SAMPLES, "libsvm" },
};

static void
read_data(struct search_model *m, const struct json_at *data)
{
    m->data = json_enum(data, "kind", data_names);
    m->n_samples = json_integer_or(data, "samples", 1, MAX_SAMPLES,
                                   sources[m->data].n_samples);
    if (m->data != SEARCH_GENERATED) {
        m->path = json_string(data, "path");
    }
}

static void
read_mlp(struct search_model *m, const struct json_at *model,
         const struct json_at *at)
{
    struct image image = sources[m->data].image;
    int n_pixels = image.height * image.width * image.channels;

    m->n_inputs = json_integer(model, "inputs", 1, SHAPE_MAX_WIDTH);
    m->n_hidden = json_integer(model, "hidden_layers", 0,
                               SHAPE_MAX_WIDTHS - 2);
    m->n_classes = json_integer(model, "classes", 2, SHAPE_MAX_WIDTH);
    if ((m->data == SEARCH_MNIST || m->data == SEARCH_CIFAR10)
        && (m->n_inputs != n_pixels || m->n_classes != N_IMAGE_CLASSES)) {
        json_fail(at, "model", "%d inputs and %d classes, %s has %d and %d",
                  m->n_inputs, m->n_classes,
                  m->data == SEARCH_MNIST ? "MNIST" : "CIFAR-10", n_pixels,
                  N_IMAGE_CLASSES);
    }
}

/* Reads height, width and channels within the limits of the trainer. */
static void
read_image(struct search_model *m, const struct json_at *model)
{
    const struct json_at *image;

    m->image = sources[m->data].image;
    if (m->data != SEARCH_GENERATED || !json_has(model, "image")) {
        return;
    }
    image = json_array(model, "image", 3, 3);
    if (json_n(image) == 3) {
        m->image =
            (struct image){ json_at_integer(json_element(image, 0), 8, 256),
                            json_at_integer(json_element(image, 1), 8, 256),
                            json_at_integer(json_element(image, 2), 1, 16) };
    }
}

void
search_model_read(struct search_model *m, const struct json_at *at)
{
    const struct json_at *model;

    *m = (struct search_model) { .loss = loss_names[0] };
    read_data(m, json_object(at, "data"));
    model = json_object(at, "model");
    m->kind = json_enum_or(model, "name", model_names, SEARCH_MLP);
    if (m->kind == SEARCH_LINEAR) {
        m->n_features = json_integer(model, "features", 1, MAX_FEATURES - 1);
        m->loss = loss_names[json_enum_or(model, "loss", loss_names, 0)];
    } else if (m->kind == SEARCH_MLP) {
        read_mlp(m, model, at);
    } else {
        read_image(m, model);
    }
    if (m->data != SEARCH_GENERATED
        && (m->kind == SEARCH_LINEAR) != (m->data == SEARCH_LIBSVM)) {
        json_fail(at, "data", "%s is not for the model \"%s\"",
                  data_names[m->data], model_names[m->kind]);
    }
}

bool
search_model_has_width(const struct search_model *m)
{
    return m->kind == SEARCH_MLP;
}

static struct shape
shape_of(const struct search_model *m, int width)
{
    struct shape shape = { .n = 0 };

    shape.width[shape.n++] = m->n_inputs;
    for (int i = 0; i < m->n_hidden; i++) {
        shape.width[shape.n++] = width;
    }
    shape.width[shape.n++] = m->n_classes;
    return shape;
}

/* Two 5x5 convolutions with biases, each followed by pooling that divides the
 * pixels by four, and two dense layers. */
static size_t
cifarnet_n_parameters(const struct image *image)
{
    size_t n_channels = 64, n_hidden = 256;
    size_t n_pixels = (size_t) (image->height / 4) * (image->width / 4);

    return (25 * image->channels + 1) * n_channels
           + (25 * n_channels + 1) * n_channels
           + (n_pixels * n_channels + 1) * n_hidden
           + (n_hidden + 1) * N_IMAGE_CLASSES;
}

/* A 3x3 convolution, three stages of ten, each twice as wide as the previous
 * one, all followed by a scale and a shift per channel, and a dense layer. */
static size_t
resnet32_n_parameters(const struct image *image)
{
    size_t n = image->channels, sum = 0;

    for (int i = 0; i < 31; i++) {
        size_t n_out = (size_t) 16 << (i ? (i - 1) / 10 : 0);

        sum += 9 * n * n_out + 2 * n_out;
        n = n_out;
    }
    return sum + (n + 1) * N_IMAGE_CLASSES;
}

size_t
search_model_n_parameters(const struct search_model *m, int width)
{
    struct shape shape;

    switch (m->kind) {
    case SEARCH_CIFARNET:
        return cifarnet_n_parameters(&m->image);
    case SEARCH_RESNET32:
        return resnet32_n_parameters(&m->image);
    case SEARCH_LINEAR:
        return m->n_features + 1;
    case SEARCH_MLP:
        break;
    }
    shape = shape_of(m, width);
    return shape_n_parameters(&shape);
}

void
search_model_options(const struct search_model *m, int width,
                     void (*add)(void *aux, const char *name, char *value),
                     void *aux)
{
    add(aux, "--model", duplicate(model_names[m->kind]));
    if (m->kind == SEARCH_MLP) {
        struct shape shape = shape_of(m, width);

        add(aux, "--shape", shape_to_string(&shape));
    } else if (m->kind == SEARCH_LINEAR) {
        add(aux, "--features", message("%lld", (long long) m->n_features));
        add(aux, "--loss", duplicate(m->loss));
    } else {
        add(aux, "--image", message("%dx%dx%d", m->image.height,
                                    m->image.width, m->image.channels));
    }
    if (m->path) {
        add(aux, "--data", message("%s:%s", sources[m->data].prefix, m->path));
    }
    add(aux, "--samples", message("%lld", (long long) m->n_samples));
    if (!m->path && m->n_samples < DEFAULT_VALIDATION) {
        add(aux, "--validation", message("%lld", (long long) m->n_samples));
    }
}
