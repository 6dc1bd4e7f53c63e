/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/task/net.h"

#include <assert.h>
#include <stdlib.h>

#include "trainer/backend/backend.h"
#include "trainer/message.h"
#include "trainer/task/layer.h"
#include "trainer/task/seeded.h"

#define MAX_LAYERS 160

/* Layers whose gradients leave together: less is not worth a message. */
#define MIN_PART ((size_t) 16384)

struct part {
    int layer;                  /* Final when this has gone backward. */
    size_t first, n;            /* Of the gradient. */
};

struct net {
    struct model up;
    struct backend *b;
    struct layer layers[MAX_LAYERS];
    int n_layers;
    struct part parts[MAX_LAYERS];      /* In the order in which they leave. */
    int n_parts;

    /* Of the backend. */
    float *d_weights, *d_gradient;
    int32_t *d_labels;
};

static struct net *
net_cast(const struct model *model)
{
    return (struct net *) model;
}

static int
net_add(struct net *net, struct layer layer)
{
    assert(net->n_layers < MAX_LAYERS);
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

/* Which ranges of the gradient leave when. */
static void
make_parts(struct net *net)
{
    size_t end = net->up.n_parameters;

    for (int i = net->n_layers - 1; i > 0; i--) {
        const struct layer *layer = &net->layers[i];

        if (layer->n_parameters
            && (!layer->first || end - layer->first >= MIN_PART)) {
            net->parts[net->n_parts++] = (struct part) {
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

static void
alloc_layers(struct net *net)
{
    size_t n = net->up.max_batch;

    for (int i = 0; i < net->n_layers; i++) {
        struct layer *layer = &net->layers[i];
        size_t size = n * image_size(&layer->out);

        layer->d_y = vector(net, size);
        layer->d_dy = i ? vector(net, size) : NULL;
    }
    net->d_labels = backend_alloc(net->b, n * sizeof *net->d_labels);
}

static void
free_layers(struct net *net)
{
    for (int i = 0; i < net->n_layers; i++) {
        backend_free(net->b, net->layers[i].d_y);
        backend_free(net->b, net->layers[i].d_dy);
    }
    backend_free(net->b, net->d_labels);
}

static float *
host_view(struct backend *b, float *d_buffer, size_t n)
{
    return b->class->map ? b->class->map(b, d_buffer)
                         : allocate(n, sizeof(float));
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
    return &net->up;
}

void
net_destroy(struct model *model)
{
    struct net *net = net_cast(model);

    if (!net->b->class->map) {
        free(model->weights);
        free(model->gradient);
    }
    free_layers(net);
    backend_free(net->b, net->d_weights);
    backend_free(net->b, net->d_gradient);
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

void
net_weights_changed(struct model *model)
{
    struct net *net = net_cast(model);

    if (model->weights != net->d_weights) {
        net->b->class->upload(net->b, net->d_weights, model->weights,
                              model->n_parameters * sizeof *model->weights);
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

/* Brings samples to the backend; makes room for them if there never were so
 * many. */
static void
upload(struct net *net, const struct batch *batch)
{
    size_t n_x = batch->n * image_size(&net->layers[NET_INPUT].out);

    if (batch->n > net->up.max_batch) {
        free_layers(net);
        net->up.max_batch = batch->n;
        alloc_layers(net);
    }
    net->b->class->upload(net->b, net->layers[NET_INPUT].d_y, batch->x,
                          n_x * sizeof *batch->x);
    net->b->class->upload(net->b, net->d_labels, batch->labels,
                          batch->n * sizeof *batch->labels);
}

static void
forward(struct net *net, const struct layer_pass *pass)
{
    for (int i = 1; i < net->n_layers; i++) {
        net->layers[i].class->forward(&net->layers[i], pass);
    }
}

/* Softmax and cross entropy of the last layer's output. */
static void
judge(struct net *net, int n, bool gradient, double *loss_sum, int *n_correct)
{
    const struct layer *last = &net->layers[net->n_layers - 1];

    net->b->class->cross_entropy(net->b, n, image_size(&last->out), last->d_y,
                                 net->d_labels, gradient ? last->d_dy : NULL,
                                 loss_sum, n_correct);
}

/* A part of the gradient is computed, or will be. */
static void
part_leaves(struct net *net, const struct part *part, model_part_func *func,
            void *aux)
{
    struct model *model = &net->up;

    if (model->gradient != net->d_gradient) {
        net->b->class->download(net->b, model->gradient + part->first,
                                net->d_gradient + part->first,
                                part->n * sizeof *model->gradient);
    } else {
        backend_sync(net->b);
    }
    if (func) {
        func(aux, part->first, part->n);
    }
}

void
net_gradient(struct model *model, const struct batch *batch,
             model_part_func *func, void *aux, double *loss_sum)
{
    struct net *net = net_cast(model);
    struct layer_pass pass = pass_begin(net, batch->n, true);
    const struct part *part = net->parts;
    int n_correct;

    upload(net, batch);
    forward(net, &pass);
    judge(net, batch->n, true, loss_sum, &n_correct);
    for (int i = net->n_layers - 1; i > 0; i--) {
        net->layers[i].class->backward(&net->layers[i], &pass);
        if (part->layer == i) {
            part_leaves(net, part++, func, aux);
        }
    }
}

void
net_evaluate(struct model *model, const struct batch *batch, double *loss_sum,
             int *n_correct)
{
    struct net *net = net_cast(model);
    struct layer_pass pass = pass_begin(net, batch->n, false);

    upload(net, batch);
    forward(net, &pass);
    judge(net, batch->n, false, loss_sum, n_correct);
}
