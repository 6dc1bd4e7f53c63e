/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/models/net.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "trainer/models/net-private.h"
#include "trainer/data/seeded.h"

/* Layers whose gradients leave together: less is not worth a message. */
#define MIN_PART ((size_t) 16384)

/* Elements that a convolution works with at once: 4 MiB, and 256 MiB. */
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

struct net *
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

int
net_dense(struct net *net, int input, int n_out, bool relu)
{
    struct layer layer = {
        .class = &layer_dense, .input = input,
        .in = net->layers[input].out, .out = { 1, 1, n_out }, .relu = relu,
    };

    layer.n_parameters = (image_size(&layer.in) + 1) * n_out;
    return net_add(net, layer);
}

int
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

/* A layer whose output has the form of its input. */
static int
net_like(struct net *net, const struct layer_class *class, int input,
         bool relu)
{
    return net_add(net, (struct layer) {
        .class = class, .input = input, .relu = relu,
        .in = net->layers[input].out, .out = net->layers[input].out,
    });
}

int
net_norm(struct net *net, int input, bool relu)
{
    int layer = net_like(net, &layer_norm, input, relu);

    net->layers[layer].n_parameters = 2 * net->layers[layer].out.channels;
    net->up.n_parameters += net->layers[layer].n_parameters;
    net->layers[input].share = layer;
    return layer;
}

int
net_max_pool(struct net *net, int input, int size)
{
    int layer = net_like(net, &layer_max_pool, input, false);
    struct layer *l = &net->layers[layer];

    l->pooling = (struct pooling) {
        l->in.height, l->in.width, l->in.channels, size,
    };
    l->out.height /= size;
    l->out.width /= size;
    return layer;
}

int
net_mean_pool(struct net *net, int input)
{
    int layer = net_like(net, &layer_mean_pool, input, false);

    net->layers[layer].out.height = net->layers[layer].out.width = 1;
    return layer;
}

/* Who reads 'input' before the join comes after it on the way back, and adds
 * to what the join has left there. */
int
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

/* Which ranges of the gradient leave when. */
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

/* Convolutions work a few samples at a time: in a cache, or on a GPU with
 * enough at once to keep it busy. */
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

/* From the end, because layers share what later ones have. */
static void
alloc_layers(struct net *net)
{
    size_t n = net->up.max_batch;

    for (int i = net->n_layers - 1; i >= 0; i--) {
        struct layer *layer = &net->layers[i];
        size_t size = n * image_size(&layer->out);

        if (i) {
            layer->d_dy = layer->share ? net->layers[layer->share].d_dy
                                       : vector(net, size);
        }
        if (layer->class == &layer_join) {
            net->layers[layer->main].d_y = layer->d_y = vector(net, size);
        } else if (!layer->d_y) {
            layer->d_y = vector(net, size);
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

/* Means of 0 and variances of 1, which survive a larger batch. */
static void
alloc_stats(struct net *net)
{
    for (int i = 1; i < net->n_layers; i++) {
        struct layer *layer = &net->layers[i];

        if (layer->class == &layer_norm) {
            int n = layer->out.channels;
            float *ones = allocate(n, sizeof *ones);

            for (int j = 0; j < n; j++) {
                ones[j] = 1;
            }
            layer->d_stats = vector(net, 4 * n);
            net->b->class->upload(net->b, layer->d_stats + 3 * n, ones,
                                  n * sizeof *ones);
            free(ones);
        }
    }
}

void
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

struct model *
net_finish(struct net *net)
{
    size_t n = net->up.n_parameters;

    make_parts(net);
    net->d_weights = vector(net, n);
    net->d_gradient = vector(net, n);
    net->up.weights = host_view(net->b, net->d_weights, n);
    net->up.gradient = host_view(net->b, net->d_gradient, n);
    alloc_layers(net);
    alloc_stats(net);
    return &net->up;
}

void
net_destroy(struct model *model)
{
    struct net *net = net_cast(model);

    free_layers(net);
    if (!net->b->class->map) {
        backend_free_host(net->b, model->weights);
        backend_free_host(net->b, model->gradient);
    }
    for (int i = 0; i < net->n_layers; i++) {
        backend_free(net->b, net->layers[i].d_stats);
    }
    backend_free(net->b, net->d_weights);
    backend_free(net->b, net->d_gradient);
    backend_free(net->b, net->d_velocity);
    free(net);
}

void
net_init_weights(const struct model *model, uint64_t seed, float *weights)
{
    const struct net *net = net_cast(model);
    struct seeded rs;

    seeded_init(&rs, seed, 2);
    for (size_t i = 0; i < model->n_parameters; i++) {
        weights[i] = 0;
    }
    for (int i = 1; i < net->n_layers; i++) {
        const struct layer *layer = &net->layers[i];

        if (layer->class->init) {
            layer->class->init(layer, i == net->n_layers - 1, &rs,
                               weights + layer->first);
        }
    }
}

