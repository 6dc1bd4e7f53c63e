/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NET_H
#define NET_H 1

/* A model that is a net of layers, softmax and cross entropy at its end.
 *
 *
 * Motivation
 * ==========
 *
 * An MLP, a convolutional net and a residual net differ in which layers they
 * have.  What they share is here: the flat vectors, the memory, the order of
 * computing, and gradients that leave layer by layer.
 *
 *
 * Usage
 * =====
 *
 * A model's create() makes the net and adds layers, each of which reads the
 * output of an earlier one, and returns it:
 *
 *    struct net *net = net_create(&model_mlp, config, image);
 *    int layer = net_dense(net, NET_INPUT, 100, true);
 *    net_dense(net, layer, 10, false);
 *    return net_finish(net);
 *
 * The other members of its struct model_class are NET_METHODS.  The layers'
 * parameters follow each other in the flat vector as the layers do: weights,
 * then biases.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The net is the model, which model_destroy() destroys.  One thread. */

#include <stdbool.h>

#include "trainer/models/model.h"

#define NET_INPUT 0             /* The layer whose output is the samples. */

struct net;

struct net *net_create(const struct model_class *,
                       const struct model_config *, struct image);
struct model *net_finish(struct net *);

/* y = x W + bias, cut at 0 if 'relu'. */
int net_dense(struct net *, int input, int n_out, bool relu);

/* A convolution with zeros around the image, so many that with 'stride' 1 the
 * output has the size of the input.  'kernel' is odd.  Without 'bias' what
 * follows is to be a normalisation. */
int net_convolution(struct net *, int input, int kernel, int stride,
                    int n_out, bool bias, bool relu);

/* Batch normalisation.  Only this may read 'input'. */
int net_norm(struct net *, int input, bool relu);

int net_max_pool(struct net *, int input, int size);
int net_mean_pool(struct net *, int input);

/* The end of a residual block: 'main', a normalisation that only this reads,
 * plus the way around it from 'input', cut at 0.  If that has other
 * dimensions, by leaving out pixels and adding channels of 0.  One layer
 * before this reads 'input' too. */
int net_join(struct net *, int input, int main);

/* The methods of a model that is a net. */
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
