/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NET_H
#define NET_H 1

/* Models that are nets of layers with softmax and cross entropy at the end.
 *
 *
 * Motivation
 * ==========
 *
 * An MLP, a convolutional net and a residual net differ only in their layers.
 * This module has what they share: the flat vectors, the memory, the order of
 * computations, and sending gradients layer by layer.
 *
 *
 * Usage
 * =====
 *
 * A model's create() creates the net and adds layers, each of which reads the
 * output of an earlier one:
 *
 *    struct net *net = net_create(&model_mlp, config, image);
 *    int layer = net_dense(net, NET_INPUT, 100, true);
 *    net_dense(net, layer, 10, false);
 *    return net_finish(net);
 *
 * The other members of its struct model_class are NET_METHODS.  The flat
 * vector has the parameters of each layer in order: weights, then biases.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The net is the model, which model_destroy() destroys.  One thread. */

#include <stdbool.h>

#include "trainer/models/model.h"

#define NET_INPUT 0             /* The input layer: its output is the
                                 * samples. */

struct net;

struct net *net_create(const struct model_class *,
                       const struct model_config *, struct image);
struct model *net_finish(struct net *);

/* Dense layer: y = x W + bias, with ReLU if 'relu'. */
int net_dense(struct net *, int input, int n_out, bool relu);

/* Convolution, padded with zeros such that with 'stride' 1 the output has the
 * size of the input.  'kernel' is odd.  Without 'bias', a normalisation must
 * follow. */
int net_convolution(struct net *, int input, int kernel, int stride,
                    int n_out, bool bias, bool relu);

/* Batch normalisation.  No other layer may read 'input'. */
int net_norm(struct net *, int input, bool relu);

int net_max_pool(struct net *, int input, int size);
int net_mean_pool(struct net *, int input);

/* Residual join: adds the shortcut from 'input' to 'main', a normalisation
 * that no other layer reads, and applies ReLU.  If the dimensions differ, the
 * shortcut drops pixels and pads channels with 0.  Exactly one earlier layer
 * reads 'input' too. */
int net_join(struct net *, int input, int main);

/* Methods of a model that is a net. */
void net_destroy(struct model *);
void net_init_weights(const struct model *, uint64_t seed, float *weights);
void net_weights_changed(struct model *);
void net_gradient(struct model *, const struct batch *, model_part_func *,
                  void *aux, double *loss_sum);
void net_evaluate(struct model *, const struct batch *, double *loss_sum,
                  int *n_correct);
void net_step(struct model *, const struct batch *, float rate,
              float momentum, double *loss_sum);

#define NET_METHODS                             \
    .destroy = net_destroy,                     \
    .init_weights = net_init_weights,           \
    .weights_changed = net_weights_changed,     \
    .gradient = net_gradient,                   \
    .evaluate = net_evaluate,                   \
    .step = net_step

#endif /* trainer/models/net.h */
