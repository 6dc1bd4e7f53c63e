/* SPDX-License-Identifier: Apache-2.0 */

/* Gradients, steps and evaluation of a net. */

#include "trainer/models/net-private.h"

#include <string.h>

void
net_forget_step(struct net *net, struct net_step *step)
{
    if (step->recording) {
        net->b->class->recording_free(net->b, step->recording);
    }
    *step = (struct net_step) { .n = 0 };
}

/* Without waiting if the backend can: what is queued later comes later, and
 * nobody writes the host's memory before a step or an evaluation is over. */
static void
send(struct net *net, void *d_to, const void *from, size_t bytes)
{
    if (net->b->class->send) {
        net->b->class->send(net->b, d_to, from, bytes);
    } else {
        net->b->class->upload(net->b, d_to, from, bytes);
    }
}

void
net_weights_changed(struct model *model)
{
    struct net *net = net_cast(model);

    if (model->weights != net->d_weights) {
        send(net, net->d_weights, model->weights,
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

/* Where the samples are for the backend to take.  Makes room for them if
 * there never were so many. */
static struct batch
stage(struct net *net, const struct batch *batch)
{
    struct batch staged = *batch;
    size_t size = image_size(&net->layers[NET_INPUT].out);

    if (batch->n > net->up.max_batch) {
        net_resize(net, batch->n);
    }
    if (net->staged_x) {
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

/* Softmax and cross entropy of the last layer's output. */
static void
judge(struct net *net, int n, bool gradient)
{
    const struct layer *last = &net->layers[net->n_layers - 1];

    net->b->class->cross_entropy(net->b, n, image_size(&last->out), last->d_y,
                                 net->d_labels, gradient ? last->d_dy : NULL);
}

/* A part of the gradient is computed, or will be: sends it to the host, and
 * tells 'func' unless the backend says later when it is there. */
static void
part_leaves(struct net *net, int part, model_part_func *func, void *aux)
{
    const struct backend_class *class = net->b->class;
    size_t first = net->parts[part].first, n = net->parts[part].n;
    float *to = net->up.gradient + first;
    const float *d_from = net->d_gradient + first;

    if (class->leave) {
        class->leave(net->b, part, to, d_from, n * sizeof *to);
        return;
    }
    if (to != d_from) {
        class->download(net->b, to, d_from, n * sizeof *to);
    }
    backend_sync(net->b);
    if (func) {
        func(aux, first, n);
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
find_step(struct net *net, int n, bool updates)
{
    struct net_step *step;

    for (int i = 0; i < NET_N_STEPS; i++) {
        if (net->steps[i].n == n && net->steps[i].updates == updates) {
            return &net->steps[i];
        }
    }
    step = &net->steps[net->next_step++ % NET_N_STEPS];
    net_forget_step(net, step);
    step->n = n;
    step->updates = updates;
    return step;
}

/* Queues what net_gradient() or net_step() computes, in one go if it is
 * recorded. */
static void
begin_step(struct net *net, const struct batch *staged, bool updates,
           model_part_func *func, void *aux)
{
    const struct backend_class *class = net->b->class;
    struct net_step *step = find_step(net, staged->n, updates);

    if (class->record && step->n_done == 1) {
        class->record(net->b);
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

void
net_gradient(struct model *model, const struct batch *batch,
             model_part_func *func, void *aux, double *loss_sum)
{
    struct net *net = net_cast(model);
    struct batch staged = stage(net, batch);
    int n_correct;

    begin_step(net, &staged, false, func, aux);
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

/* A recording has rate and momentum in it. */
void
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

void
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
