/* SPDX-License-Identifier: Apache-2.0 */

/* Models that are nets of layers with softmax and cross entropy at the end.
 *
 * An MLP, a convolutional net and a residual net differ only in their layers.
 * They share the flat vectors, the memory, the order of computations, and
 * sending gradients layer by layer.
 *
 * A model's create() creates the net and adds layers that read the output of
 * an earlier one, between net_create() and net_finish().  The flat vector has
 * the parameters of each layer in order: weights, then biases. */

#include "trainer/models/model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/backend/backend.h"
#include "trainer/data/seeded.h"
#include "trainer/models/layer.h"

#define NET_MAX_LAYERS BACKEND_MAX_PARTS
#define NET_INPUT 0             /* The input layer: its output is the
                                 * samples. */

struct net_part {
    int layer;                  /* The part is final after the backward pass
                                 * of this layer. */
    size_t first, n;            /* Range of the gradient. */
};

/* Step for batches of 'n' samples.  The first one runs call by call, because
 * libraries prepare themselves in it; the second one is recorded. */
struct net_step {
    int n;                      /* Batch size, 0 if unused. */
    const float *x;             /* The samples in the host's memory. */
    const int32_t *labels;
    bool updates;               /* Updates the weights and sends no
                                 * gradient. */
    int n_done;
    struct backend_recording *recording;        /* NULL before the second
                                                 * step. */
};

#define NET_N_STEPS 8           /* Number of batch sizes with a recording. */

struct net {
    struct model up;
    struct backend *b;
    struct layer layers[NET_MAX_LAYERS];
    int n_layers;
    struct net_part parts[NET_MAX_LAYERS];      /* In the order in which
                                                 * they become final. */
    int n_parts;
    float rate, momentum;       /* Of steps that update the weights. */
    struct net_step steps[NET_N_STEPS];
    int next_step;              /* Index of the next one to replace. */

    /* Pinned host memory for samples; NULL if the backend has none. */
    float *staged_x;
    int32_t *staged_labels;

    /* Device memory. */
    float *d_weights, *d_gradient, *d_statistics;
    float *d_velocity;          /* NULL before the first step that updates. */
    int32_t *d_labels;
    float *d_columns;
};

static inline struct net *
net_cast(const struct model *model)
{
    return (struct net *) model;
}

static void net_resize(struct net *, int max_batch);

static void
net_forget_step(struct net *net, struct net_step *step)
{
    if (step->recording) {
        net->b->class->recording_free(net->b, step->recording);
    }
    *step = (struct net_step) { .n = 0 };
}

/* Copies to the device, asynchronously if the backend can: later operations
 * are queued behind the copy, and the host memory is not written before the
 * step or evaluation is complete. */
static void
send(struct net *net, void *d_to, const void *from, size_t bytes)
{
    if (net->b->class->send) {
        net->b->class->send(net->b, d_to, from, bytes);
    } else {
        net->b->class->upload(net->b, d_to, from, bytes);
    }
}

static void
net_weights_changed(struct model *model)
{
    struct net *net = net_cast(model);

    if (model->weights != net->d_weights) {
        send(net, net->d_weights, model->weights,
             model->n_parameters * sizeof *model->weights);
        send(net, net->d_statistics, model->statistics,
             model->n_statistics * sizeof *model->statistics);
    }
}

static struct layer_pass
pass_begin(struct net *net, int n, bool training)
{
    return (struct layer_pass) {
        .b = net->b, .layers = net->layers, .d_weights = net->d_weights,
        .d_gradient = net->d_gradient, .n = n, .training = training,
    };
}

/* Returns the batch in pinned memory if the backend uses it: copied there, but
 * for one of model_batch_create().  Allocates memory for a batch larger than
 * any before. */
static struct batch
stage(struct net *net, const struct batch *batch)
{
    struct batch staged = *batch;
    size_t size = image_size(&net->layers[NET_INPUT].out);

    if (batch->n > net->up.max_batch) {
        net_resize(net, batch->n);
    }
    if (net->staged_x && batch->memory.aux != net->b) {
        memcpy(net->staged_x, batch->x, batch->n * size * sizeof *batch->x);
        memcpy(net->staged_labels, batch->labels,
               batch->n * sizeof *batch->labels);
        staged.x = net->staged_x;
        staged.labels = net->staged_labels;
    }
    return staged;
}

static void
fetch(struct net *net, const struct batch *staged)
{
    size_t size = image_size(&net->layers[NET_INPUT].out);

    send(net, net->layers[NET_INPUT].d_y, staged->x,
         staged->n * size * sizeof *staged->x);
    send(net, net->d_labels, staged->labels,
         staged->n * sizeof *staged->labels);
}

static void
forward(struct net *net, const struct layer_pass *pass)
{
    for (int i = 1; i < net->n_layers; i++) {
        net->layers[i].class->forward(&net->layers[i], pass);
    }
}

/* Computes softmax and cross entropy of the last layer's output. */
static void
judge(struct net *net, int n, bool gradient)
{
    const struct layer *last = &net->layers[net->n_layers - 1];

    net->b->class->cross_entropy(net->b, n, image_size(&last->out), last->d_y,
                                 net->d_labels, gradient ? last->d_dy : NULL);
}

/* Copies to the host, as number 'part' of what await() waits for if the
 * backend does not wait here. */
static void
leave(struct net *net, int part, float *to, const float *d_from, size_t n)
{
    const struct backend_class *class = net->b->class;

    if (class->leave) {
        class->leave(net->b, part, to, d_from, n * sizeof *to);
    } else if (to != d_from) {
        class->download(net->b, to, d_from, n * sizeof *to);
    }
}

/* Sends a part of the gradient to the host, and calls 'func' unless the
 * backend reports its arrival later. */
static void
part_leaves(struct net *net, int part, model_part_func *func, void *aux)
{
    size_t first = net->parts[part].first, n = net->parts[part].n;

    leave(net, part, net->up.gradient + first, net->d_gradient + first, n);
    if (!net->b->class->leave) {
        backend_sync(net->b);
        if (func) {
            func(aux, first, n);
        }
    }
}

static void
queue_update(struct net *net)
{
    net->b->class->sgd(net->b, net->up.n_parameters, net->rate, net->momentum,
                       net->d_gradient, net->d_velocity, net->d_weights);
}

static void
queue_step(struct net *net, const struct batch *staged, bool updates,
           model_part_func *func, void *aux)
{
    struct layer_pass pass = pass_begin(net, staged->n, true);
    int part = 0;

    if (net->b->class->step) {
        net->b->class->step(net->b);
    }
    fetch(net, staged);
    forward(net, &pass);
    if (net->up.n_statistics && !updates) {
        leave(net, net->n_parts, net->up.statistics, net->d_statistics,
              net->up.n_statistics);
    }
    judge(net, staged->n, true);
    for (int i = net->n_layers - 1; i > 0; i--) {
        net->layers[i].class->backward(&net->layers[i], &pass);
        if (!updates && part < net->n_parts && net->parts[part].layer == i) {
            part_leaves(net, part++, func, aux);
        }
    }
    if (updates) {
        queue_update(net);
    }
}

static struct net_step *
find_step(struct net *net, const struct batch *staged, bool updates)
{
    struct net_step *step;

    for (int i = 0; i < NET_N_STEPS; i++) {
        step = &net->steps[i];
        if (step->n == staged->n && step->updates == updates
            && step->x == staged->x && step->labels == staged->labels) {
            return step;
        }
    }
    step = &net->steps[net->next_step++ % NET_N_STEPS];
    net_forget_step(net, step);
    step->n = staged->n;
    step->x = staged->x;
    step->labels = staged->labels;
    step->updates = updates;
    return step;
}

/* Queues a gradient or an updating step, as one recording if there is one. */
static void
begin_step(struct net *net, const struct batch *staged, bool updates,
           model_part_func *func, void *aux)
{
    const struct backend_class *class = net->b->class;
    struct net_step *step = find_step(net, staged, updates);

    if (class->record && step->n_done == 1 && class->record(net->b)) {
        queue_step(net, staged, updates, NULL, NULL);
        step->recording = class->record_end(net->b);
    }
    if (step->recording) {
        class->replay(net->b, step->recording);
    } else {
        queue_step(net, staged, updates, func, aux);
    }
    step->n_done += step->n_done < 2;
}

static void
net_gradient(struct model *model, const struct batch *batch,
             model_part_func *func, void *aux, double *loss_sum)
{
    struct net *net = net_cast(model);
    struct batch staged = stage(net, batch);
    int n_correct;

    begin_step(net, &staged, false, func, aux);
    if (net->b->class->await && model->n_statistics) {
        net->b->class->await(net->b, net->n_parts);
    }
    if (net->b->class->await) {
        for (int i = 0; i < net->n_parts; i++) {
            net->b->class->await(net->b, i);
            if (func) {
                func(aux, net->parts[i].first, net->parts[i].n);
            }
        }
    }
    net->b->class->losses(net->b, loss_sum, &n_correct);
}

/* A recording contains rate and momentum. */
static void
net_step(struct model *model, const struct batch *batch, float rate,
         float momentum, double *loss_sum)
{
    struct net *net = net_cast(model);
    struct batch staged = stage(net, batch);
    int n_correct;

    if (!net->d_velocity) {
        net->d_velocity = backend_alloc(
            net->b, model->n_parameters * sizeof *net->d_velocity);
    }
    if (rate != net->rate || momentum != net->momentum) {
        for (int i = 0; i < NET_N_STEPS; i++) {
            if (net->steps[i].updates) {
                net_forget_step(net, &net->steps[i]);
            }
        }
        net->rate = rate;
        net->momentum = momentum;
    }
    begin_step(net, &staged, true, NULL, NULL);
    net->b->class->losses(net->b, loss_sum, &n_correct);
}

static void
net_evaluate(struct model *model, const struct batch *batch, double *loss_sum,
             int *n_correct)
{
    struct net *net = net_cast(model);
    struct batch staged = stage(net, batch);
    struct layer_pass pass = pass_begin(net, batch->n, false);

    fetch(net, &staged);
    forward(net, &pass);
    judge(net, batch->n, false);
    net->b->class->losses(net->b, loss_sum, n_correct);
}

/* Smallest part of a gradient that is sent by itself, in elements. */
#define MIN_PART ((size_t) 16384)

/* Working memory of a convolution, in elements: 4 MiB, or 256 MiB on a GPU. */
#define MAX_COLUMNS ((size_t) 1 << 20)
#define MAX_COLUMNS_GPU ((size_t) 1 << 26)

static int
net_add(struct net *net, struct layer layer)
{
    assert(net->n_layers < NET_MAX_LAYERS);
    layer.first = net->up.n_parameters;
    net->up.n_parameters += layer.n_parameters;
    net->layers[net->n_layers] = layer;
    return net->n_layers++;
}

static struct net *
net_create(const struct model_class *class, const struct model_config *config,
           struct image image)
{
    struct net *net = allocate(1, sizeof *net);

    net->up.class = class;
    net->up.max_batch = config->max_batch;
    net->b = config->backend;
    net_add(net, (struct layer) { .out = image });
    return net;
}

/* Dense layer: y = x W + bias, with ReLU if 'relu'. */
static int
net_dense(struct net *net, int input, int n_out, bool relu)
{
    struct layer layer = {
        .class = &layer_dense, .input = input,
        .in = net->layers[input].out, .out = { 1, 1, n_out }, .relu = relu,
    };

    layer.n_parameters = (image_size(&layer.in) + 1) * n_out;
    return net_add(net, layer);
}

/* Convolution, padded with zeros such that with 'stride' 1 the output has the
 * size of the input.  'kernel' is odd.  Without 'bias', a normalisation must
 * follow. */
static int
net_convolution(struct net *net, int input, int kernel, int stride, int n_out,
                bool bias, bool relu)
{
    struct layer layer = {
        .class = &layer_convolution, .input = input, .bias = bias,
        .in = net->layers[input].out, .relu = relu,
    };
    struct convolution *c = &layer.convolution;

    assert(bias || !relu);
    *c = (struct convolution) {
        .height = layer.in.height, .width = layer.in.width,
        .n_in = layer.in.channels, .n_out = n_out, .kernel = kernel,
        .stride = stride, .pad = kernel / 2,
    };
    layer.out = (struct image) {
        convolution_height(c), convolution_width(c), n_out,
    };
    layer.n_parameters = ((size_t) kernel * kernel * c->n_in + bias) * n_out;
    return net_add(net, layer);
}

/* Adds a layer with an output of the dimensions of its input. */
static int
net_like(struct net *net, const struct layer_class *class, int input,
         bool relu)
{
    return net_add(net, (struct layer) {
        .class = class, .input = input, .relu = relu,
        .in = net->layers[input].out, .out = net->layers[input].out,
    });
}

/* Batch normalisation.  No other layer may read 'input'. */
static int
net_norm(struct net *net, int input, bool relu)
{
    int layer = net_like(net, &layer_norm, input, relu);

    net->layers[layer].n_parameters = 2 * net->layers[layer].out.channels;
    net->up.n_parameters += net->layers[layer].n_parameters;
    net->up.n_statistics += 4 * net->layers[layer].out.channels;
    net->layers[input].share = layer;
    return layer;
}

/* Maxima of squares.  No other layer may read 'input'. */
static int
net_max_pool(struct net *net, int input, int size)
{
    int layer = net_like(net, &layer_max_pool, input, false);
    struct layer *l = &net->layers[layer];

    l->pooling = (struct pooling){ l->in.height, l->in.width, l->in.channels,
                                   size, net->layers[input].relu };
    net->layers[input].cut = true;
    l->out.height /= size;
    l->out.width /= size;
    return layer;
}

static int
net_mean_pool(struct net *net, int input)
{
    int layer = net_like(net, &layer_mean_pool, input, false);

    net->layers[layer].out.height = net->layers[layer].out.width = 1;
    return layer;
}

/* Residual join: adds the shortcut from 'input' to 'main', a normalisation
 * that no other layer reads, and applies ReLU.  If the dimensions differ, the
 * shortcut drops pixels and pads channels with 0.  Exactly one earlier layer
 * reads 'input' too.
 *
 * The layer that reads 'input' before the join comes after it in the backward
 * pass, and adds to the gradient that the join has written. */
static int
net_join(struct net *net, int input, int main)
{
    int layer = net_like(net, &layer_join, input, true);
    struct layer *l = &net->layers[layer];
    bool same;

    l->out = net->layers[main].out;
    l->main = main;
    l->shortcut = (struct shortcut) {
        .height = l->in.height, .width = l->in.width,
        .n_in = l->in.channels, .n_out = l->out.channels,
        .stride = l->in.height / l->out.height,
    };
    same = l->shortcut.stride == 1 && l->in.channels == l->out.channels;
    for (int i = input + 1; i < layer; i++) {
        net->layers[i].adds = net->layers[i].adds
                              || net->layers[i].input == input;
    }
    net->layers[main].share = layer;
    net->layers[input].share = same ? layer : 0;
    net->layers[net->layers[main].input].share = 0;
    return layer;
}

/* Divides the gradient into the parts that are sent together. */
static void
make_parts(struct net *net)
{
    size_t end = net->up.n_parameters;

    for (int i = net->n_layers - 1; i > 0; i--) {
        const struct layer *layer = &net->layers[i];

        if (layer->n_parameters
            && (!layer->first || end - layer->first >= MIN_PART)) {
            net->parts[net->n_parts++] = (struct net_part) {
                .layer = i, .first = layer->first, .n = end - layer->first,
            };
            end = layer->first;
        }
    }
}

static float *
vector(struct net *net, size_t n)
{
    return backend_alloc(net->b, n * sizeof(float));
}

/* Allocates the working memory of convolutions, which process as many samples
 * at a time as fit into it. */
static void
alloc_columns(struct net *net)
{
    size_t limit = net->b->class->map ? MAX_COLUMNS : MAX_COLUMNS_GPU;
    size_t most = 0;

    for (int i = 1; i < net->n_layers; i++) {
        if (net->layers[i].class == &layer_convolution) {
            size_t one = convolution_columns(&net->layers[i].convolution);
            size_t all = one * net->up.max_batch;
            size_t useful = all < limit ? all : one < limit ? limit : one;

            most = useful > most ? useful : most;
        }
    }
    net->d_columns = vector(net, most);
    for (int i = 1; i < net->n_layers; i++) {
        if (net->layers[i].class == &layer_convolution) {
            net->layers[i].convolution.d_columns = net->d_columns;
            net->layers[i].convolution.max_columns = most;
        }
    }
}

/* Allocates an output of a layer, or its gradient, for the largest batch. */
static float *
samples_vector(struct net *net, const struct layer *layer)
{
    size_t size = image_size(&layer->out);

    net->up.sample_bytes += size * sizeof(float);
    return vector(net, net->up.max_batch * size);
}

/* Starts at the last layer, because layers share memory of later ones. */
static void
alloc_layers(struct net *net)
{
    size_t n = net->up.max_batch;

    net->up.sample_bytes = sizeof *net->d_labels;
    for (int i = net->n_layers - 1; i >= 0; i--) {
        struct layer *layer = &net->layers[i];

        if (i) {
            layer->d_dy = layer->share ? net->layers[layer->share].d_dy
                                       : samples_vector(net, layer);
        }
        if (layer->class == &layer_join) {
            layer->d_y = samples_vector(net, layer);
            net->layers[layer->main].d_y = layer->d_y;
        } else if (!layer->d_y) {
            layer->d_y = samples_vector(net, layer);
        }
    }
    net->d_labels = backend_alloc(net->b, n * sizeof *net->d_labels);
    if (net->b->class->send) {
        net->staged_x = backend_alloc_host(
            net->b, n * image_size(&net->layers[NET_INPUT].out)
                    * sizeof *net->staged_x);
        net->staged_labels = backend_alloc_host(
            net->b, n * sizeof *net->staged_labels);
    }
    alloc_columns(net);
}

static void
free_layers(struct net *net)
{
    for (int i = 0; i < NET_N_STEPS; i++) {
        net_forget_step(net, &net->steps[i]);
    }
    for (int i = 0; i < net->n_layers; i++) {
        struct layer *layer = &net->layers[i];

        if (!layer->share) {
            backend_free(net->b, layer->d_dy);
        }
        if (layer->class == &layer_join) {
            net->layers[layer->main].d_y = NULL;
        }
    }
    for (int i = 0; i < net->n_layers; i++) {
        backend_free(net->b, net->layers[i].d_y);
        net->layers[i].d_y = NULL;
    }
    backend_free(net->b, net->d_labels);
    backend_free(net->b, net->d_columns);
    backend_free_host(net->b, net->staged_x);
    backend_free_host(net->b, net->staged_labels);
}

static void
net_resize(struct net *net, int max_batch)
{
    free_layers(net);
    net->up.max_batch = max_batch;
    alloc_layers(net);
}

static float *
host_view(struct backend *b, float *d_buffer, size_t n)
{
    return b->class->map ? b->class->map(b, d_buffer)
                         : backend_alloc_host(b, n * sizeof(float));
}

/* Initial means are 0 and variances 1; both survive a larger batch. */
static void
alloc_statistics(struct net *net)
{
    float *at, *d_at = vector(net, net->up.n_statistics);

    net->d_statistics = d_at;
    net->up.statistics = at = host_view(net->b, d_at, net->up.n_statistics);
    for (int i = 1; i < net->n_layers; i++) {
        struct layer *layer = &net->layers[i];
        int n = layer->class == &layer_norm ? layer->out.channels : 0;

        layer->d_stats = d_at;
        for (int j = 3 * n; j < 4 * n; j++) {
            at[j] = 1;
        }
        at += 4 * n;
        d_at += 4 * n;
    }
}

static struct model *
net_finish(struct net *net)
{
    size_t n = net->up.n_parameters;

    make_parts(net);
    net->d_weights = vector(net, n);
    net->d_gradient = vector(net, n);
    net->up.weights = host_view(net->b, net->d_weights, n);
    net->up.gradient = host_view(net->b, net->d_gradient, n);
    alloc_layers(net);
    alloc_statistics(net);
    return &net->up;
}

static void
net_destroy(struct model *model)
{
    struct net *net = net_cast(model);

    free_layers(net);
    if (!net->b->class->map) {
        backend_free_host(net->b, model->weights);
        backend_free_host(net->b, model->gradient);
        backend_free_host(net->b, model->statistics);
    }
    backend_free(net->b, net->d_statistics);
    backend_free(net->b, net->d_weights);
    backend_free(net->b, net->d_gradient);
    backend_free(net->b, net->d_velocity);
    free(net);
}

static void
net_init_weights(const struct model *model, uint64_t seed, float *weights,
                 model_part_func *part, void *aux)
{
    const struct net *net = net_cast(model);
    struct layer_drawing drawing = {
        .weights = weights, .part = part, .aux = aux,
    };

    seeded_init(&drawing.random, seed, 2);
    memset(weights, 0, model->n_parameters * sizeof *weights);
    for (int i = 1; i < net->n_layers; i++) {
        const struct layer *layer = &net->layers[i];

        if (layer->class->init) {
            layer->class->init(layer, i == net->n_layers - 1, &drawing,
                               weights + layer->first);
        }
    }
}

const struct layer *
net_layers(const struct model *model, int *n)
{
    const struct net *net = net_cast(model);

    if (model->class->destroy != net_destroy) {
        return NULL;
    }
    *n = net->n_layers;
    return net->layers;
}

#define NET_METHODS                             \
    .destroy = net_destroy,                     \
    .init_weights = net_init_weights,           \
    .weights_changed = net_weights_changed,     \
    .gradient = net_gradient,                   \
    .evaluate = net_evaluate,                   \
    .step = net_step

/* Multi-layer perceptron: dense layers with ReLU between them. */
static struct model *
mlp_create(const struct model_config *config)
{
    const struct shape *shape = &config->shape;
    struct image input = { 1, 1, shape->width[0] };
    struct net *net = net_create(&model_mlp, config, input);
    int layer = NET_INPUT;

    for (int i = 1; i < shape->n; i++) {
        layer = net_dense(net, layer, shape->width[i], i < shape->n - 1);
    }
    return net_finish(net);
}

const struct model_class model_mlp = {
    .name = "mlp",
    .create = mlp_create,
    NET_METHODS,
};

/* Convolutional net for small images: two blocks of a 5x5 convolution with 64
 * channels and 2x2 max pooling, a dense layer of 256, and the classes.  It has
 * 1.16 million parameters for 32x32 pixels of three colours. */
static struct model *
cifarnet_create(const struct model_config *config)
{
    enum { N_CHANNELS = 64, N_HIDDEN = 256 };
    struct net *net = net_create(&model_cifarnet, config, config->image);
    int layer = NET_INPUT;

    for (int i = 0; i < 2; i++) {
        layer = net_convolution(net, layer, 5, 1, N_CHANNELS, true, true);
        layer = net_max_pool(net, layer, 2);
    }
    layer = net_dense(net, layer, N_HIDDEN, true);
    net_dense(net, layer, config->n_classes, false);
    return net_finish(net);
}

const struct model_class model_cifarnet = {
    .name = "cifarnet", .images = true, .create = cifarnet_create, NET_METHODS
};

/* Adds two convolutions with a shortcut.  Returns the last layer. */
static int
add_block(struct net *net, int input, int n_channels, int stride)
{
    int layer = net_convolution(net, input, 3, stride, n_channels, false,
                                false);

    layer = net_norm(net, layer, true);
    layer = net_convolution(net, layer, 3, 1, n_channels, false, false);
    layer = net_norm(net, layer, false);
    return net_join(net, input, layer);
}

/* Residual net of 32 layers for small images: three stages of five blocks with
 * 16, 32 and 64 channels; each stage halves height and width.  Shortcuts have
 * no parameters ("option A").  0.46 million parameters for images of three
 * colours.
 *
 * Batch normalisation uses the samples of one worker, as is usual where
 * workers do not exchange their statistics, so the division of a batch among
 * workers changes the learning curve a little.  Evaluation uses the running
 * statistics of the worker that evaluates. */
static struct model *
resnet32_create(const struct model_config *config)
{
    enum { N_STAGES = 3, N_BLOCKS = 5, N_CHANNELS = 16 };
    struct net *net = net_create(&model_resnet32, config, config->image);
    int layer = net_convolution(net, NET_INPUT, 3, 1, N_CHANNELS, false,
                                false);

    layer = net_norm(net, layer, true);
    for (int stage = 0; stage < N_STAGES; stage++) {
        for (int block = 0; block < N_BLOCKS; block++) {
            layer = add_block(net, layer, N_CHANNELS << stage,
                              stage && !block ? 2 : 1);
        }
    }
    layer = net_mean_pool(net, layer);
    net_dense(net, layer, config->n_classes, false);
    return net_finish(net);
}

const struct model_class model_resnet32 = {
    .name = "resnet32", .images = true, .create = resnet32_create, NET_METHODS
};
