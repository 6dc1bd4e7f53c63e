/* SPDX-License-Identifier: Apache-2.0 */

/* Multi-layer perceptron: dense layers with ReLU between them. */

#include "trainer/models/net.h"

static struct model *
mlp_create(const struct model_config *config)
{
    const struct shape *shape = &config->shape;
    struct image input = { 1, 1, shape_inputs(shape) };
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
