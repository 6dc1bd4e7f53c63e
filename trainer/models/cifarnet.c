/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutional net for small images: two blocks of a 5x5 convolution with 64
 * channels and 2x2 max pooling, a dense layer of 256, and the classes.  It has
 * 1.16 million parameters for 32x32 pixels of three colours. */

#include "trainer/models/net.h"

#define N_CHANNELS 64
#define N_HIDDEN 256

static struct model *
cifarnet_create(const struct model_config *config)
{
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
    .name = "cifarnet",
    .images = true,
    .create = cifarnet_create,
    NET_METHODS,
};
