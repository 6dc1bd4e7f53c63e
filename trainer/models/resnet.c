/* SPDX-License-Identifier: Apache-2.0 */

/* Residual net of 32 layers for small images: three stages of five blocks with
 * 16, 32 and 64 channels; each stage halves height and width.  Shortcuts have
 * no parameters ("option A").  0.46 million parameters for images of three
 * colours.
 *
 * Batch normalisation uses the samples of one worker, as is usual where
 * workers do not exchange their statistics, so the division of a batch among
 * workers changes the learning curve a little.  Evaluation uses the running
 * statistics of the worker that evaluates. */

#include "trainer/models/net.h"

#define N_STAGES 3
#define N_BLOCKS 5
#define N_CHANNELS 16           /* Channels of the first stage. */

/* Returns the last layer of the block. */
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

static struct model *
resnet32_create(const struct model_config *config)
{
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
    .name = "resnet32",
    .images = true,
    .create = resnet32_create,
    NET_METHODS,
};
