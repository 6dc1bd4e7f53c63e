/* SPDX-License-Identifier: Apache-2.0 */

/* What a checkpoint has learned: how good it is, and its weights in a file
 * that other programs read.
 *
 * The file is of the format "safetensors": the length of a header, the header,
 * which is JSON, and the values of all tensors.  Shapes and orders are those
 * of PyTorch, which has channels before pixels, and outputs before inputs. */

#include "trainer/train/train.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/backend/backend.h"
#include "trainer/loop/loop.h"
#include "trainer/models/layer.h"
#include "trainer/process/options.h"
#include "trainer/ps/checkpoint.h"

#define MAX_TENSORS 256
#define MAX_DIMS 4

/* Value (i, j, k, l) is at the sum of its indices by 'strides'. */
struct tensor {
    char name[32];
    const float *values;
    size_t dims[MAX_DIMS], strides[MAX_DIMS];
    int n_dims; /* Of the shape; the last one has the product
                 * of those after it. */
};

struct tensors {
    struct tensor all[MAX_TENSORS];
    int n;
};

static struct tensor *
add(struct tensors *t, const char *kind, int number, const char *what)
{
    struct tensor *tensor = &t->all[t->n++];

    snprintf(tensor->name, sizeof tensor->name, "%s%.0d.%s", kind, number,
             what);
    return tensor;
}

static void
add_vector(struct tensors *t, const char *kind, int number, const char *what,
           const float *values, size_t n)
{
    struct tensor *tensor = add(t, kind, number, what);

    tensor->values = values;
    memcpy(tensor->dims, (size_t[]){ n, 1, 1, 1 }, sizeof tensor->dims);
    tensor->strides[0] = 1;
    tensor->n_dims = 1;
}

/* Adds the parameters of the layer, of which the net has 'number'. */
static void
add_layer(struct tensors *t, const struct layer *l, int number,
          const float *weights, const float *statistics)
{
    bool dense = l->class == &layer_dense, norm = l->class == &layer_norm;
    const char *kind = dense ? "dense" : norm ? "norm" : "conv";
    size_t n_out = l->out.channels, n_in = l->in.channels;
    size_t height = dense ? l->in.height : l->convolution.kernel;
    size_t width = dense ? l->in.width : l->convolution.kernel;
    size_t n = height * width * n_in, step = dense ? n_out : 1;
    struct tensor *w;

    if (norm) {
        add_vector(t, kind, number, "weight", weights, n_out);
        add_vector(t, kind, number, "bias", weights + n_out, n_out);
        add_vector(t, kind, number, "running_mean", statistics + 2 * n_out,
                   n_out);
        add_vector(t, kind, number, "running_var", statistics + 3 * n_out,
                   n_out);
        return;
    }
    w = add(t, kind, number, "weight");
    w->values = weights;
    w->n_dims = dense ? 2 : MAX_DIMS;
    memcpy(w->dims, (size_t[]){ n_out, n_in, height, width }, sizeof w->dims);
    memcpy(w->strides,
           (size_t[]){ dense ? 1 : n, step, width * n_in * step, n_in * step },
           sizeof w->strides);
    if (dense || l->bias) {
        add_vector(t, kind, number, "bias", weights + n * n_out, n_out);
    }
}

/* Lists what the model has learned; the last of its parameters is a bias if it
 * is no net. */
static void
list_tensors(const struct model *model, struct tensors *t)
{
    int n_layers = 0, numbers[3] = { 0 };
    const struct layer *layers = net_layers(model, &n_layers);
    const float *statistics = model->statistics;

    for (int i = 0; i < n_layers; i++) {
        const struct layer *l = &layers[i];
        int kind = l->class == &layer_dense ? 0 : l->class == &layer_norm;

        if (l->n_parameters) {
            kind = l->class == &layer_convolution ? 2 : kind;
            add_layer(t, l, ++numbers[kind], model->weights + l->first,
                      statistics);
            statistics += kind == 1 ? 4 * l->out.channels : 0;
        }
    }
    if (!layers) {
        size_t n = model->n_parameters - 1;

        add_vector(t, "linear", 0, "weight", model->weights, n);
        t->all[0].n_dims = 2; /* One output. */
        t->all[0].dims[0] = t->all[0].strides[1] = 1;
        t->all[0].dims[1] = n;
        add_vector(t, "linear", 0, "bias", model->weights + n, 1);
    }
}

static size_t
size_of(const struct tensor *t)
{
    return t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
}

/* Returns the header, with spaces behind it up to a multiple of 8 bytes. */
static char *
make_header(const struct tensors *t, uint64_t iteration)
{
    cJSON *top = cJSON_CreateObject();
    cJSON *about = cJSON_AddObjectToObject(top, "__metadata__");
    char *number = message("%" PRIu64, iteration), *text, *padded;
    double at = 0;

    cJSON_AddStringToObject(about, "format", "pt");
    cJSON_AddStringToObject(about, "iteration", number);
    for (int i = 0; i < t->n; i++) {
        const struct tensor *tensor = &t->all[i];
        cJSON *entry = cJSON_AddObjectToObject(top, tensor->name);
        double end = at + size_of(tensor) * sizeof(float);
        double shape[MAX_DIMS], size = size_of(tensor);

        for (int j = 0; j < tensor->n_dims; j++) {
            shape[j] = j < tensor->n_dims - 1 ? tensor->dims[j] : size;
            size /= shape[j];
        }
        cJSON_AddStringToObject(entry, "dtype", "F32");
        cJSON_AddItemToObject(entry, "shape",
                              cJSON_CreateDoubleArray(shape, tensor->n_dims));
        cJSON_AddItemToObject(
            entry, "data_offsets",
            cJSON_CreateDoubleArray((double[]){ at, end }, 2));
        at = end;
    }
    text = cJSON_PrintUnformatted(top);
    padded = message("%s%*s", text, (int) (-strlen(text) & 7), "");
    cJSON_Delete(top);
    free(text);
    free(number);
    return padded;
}

static void
write_values(const struct tensor *t, FILE *file)
{
    const size_t *n = t->dims, *by = t->strides;

    for (size_t i = 0; i < n[0]; i++) {
        for (size_t j = 0; j < n[1]; j++) {
            for (size_t k = 0; k < n[2] * n[3]; k++) {
                fwrite(t->values + i * by[0] + j * by[1] + k / n[3] * by[2]
                           + k % n[3] * by[3],
                       sizeof *t->values, 1, file);
            }
        }
    }
}

static char *
write_weights(const struct model *model, const char *name, uint64_t iteration)
{
    struct tensors tensors = { .n = 0 };
    FILE *file = fopen(name, "we");
    uint64_t length;
    char *header;
    bool failed;

    if (!file) {
        return message("%s: %s", name, strerror(errno));
    }
    list_tensors(model, &tensors);
    header = make_header(&tensors, iteration);
    length = strlen(header);
    fwrite(&length, sizeof length, 1, file);
    fputs(header, file);
    free(header);
    for (int i = 0; i < tensors.n; i++) {
        write_values(&tensors.all[i], file);
    }
    failed = ferror(file);
    return fclose(file) || failed ? message("%s: cannot be written", name)
                                  : NULL;
}

/* Adds the outputs of the net for all validation samples. */
static void
add_outputs(cJSON *top, struct backend *b, struct model *model,
            const struct layer *last, const struct dataset *data)
{
    cJSON *rows = cJSON_AddArrayToObject(top, "outputs");
    int n_out = image_size(&last->out), n_correct;
    float *outputs = allocate(n_out, sizeof *outputs);
    double loss;

    for (size_t i = 0; i < data->n_held; i++) {
        struct batch batch = dataset_held(data, i, 1);

        model->class->evaluate(model, &batch, &loss, &n_correct);
        b->class->download(b, outputs, last->d_y, n_out * sizeof *outputs);
        cJSON_AddItemToArray(rows, cJSON_CreateFloatArray(outputs, n_out));
    }
    free(outputs);
}

static char *
evaluate(const struct options *o, struct backend *b, struct model *model,
         uint64_t iteration)
{
    int n_layers = 0;
    const struct layer *layers = net_layers(model, &n_layers);
    struct dataset *data;
    char *error = loop_open_data(o, &data), *text;
    double loss, accuracy;
    cJSON *top;

    if (error) {
        return error;
    }
    model_weights_changed(model);
    model_evaluate(model, data, &loss, &accuracy);
    top = cJSON_CreateObject();
    cJSON_AddNumberToObject(top, "iteration", iteration);
    cJSON_AddNumberToObject(top, "samples", data->n_held);
    cJSON_AddNumberToObject(top, "loss", loss);
    cJSON_AddNumberToObject(top, "accuracy", accuracy);
    if (o->outputs && layers) {
        add_outputs(top, b, model, &layers[n_layers - 1], data);
    }
    text = o->json ? cJSON_PrintUnformatted(top)
                   : message("iteration %" PRIu64 ", %zu samples: loss %.4f, "
                             "accuracy %.4f",
                             iteration, data->n_held, loss, accuracy);
    puts(text);
    free(text);
    cJSON_Delete(top);
    dataset_destroy(data);
    return NULL;
}

char *
weights_command(const struct options *o)
{
    bool exports = o->role == ROLE_EXPORT;
    struct backend *b = NULL;
    struct model *model = NULL;
    uint64_t iteration;
    char *error = backend_open_named(exports ? "cpu" : o->backend,
                                     exports ? 1 : o->n_threads, &b);

    error = error ? error : loop_open_model(o, b, &model);
    error = error ? error
                  : checkpoint_load(o->checkpoint, model->n_parameters,
                                    model->weights, model->n_statistics,
                                    model->statistics, &iteration);
    error = error     ? error
            : exports ? write_weights(model, o->output, iteration)
                      : evaluate(o, b, model, iteration);
    model_destroy(model);
    backend_close(b);
    return error;
}
