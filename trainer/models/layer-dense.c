/* SPDX-License-Identifier: Apache-2.0 */

/* Dense layer.  Parameters: weights (inputs by outputs), then biases. */

#include "trainer/models/layer.h"

#include <math.h>

#include "trainer/backend/backend.h"
#include "trainer/data/seeded.h"

/* The scale preserves the variance of the activations. */
static void
dense_init(const struct layer *layer, bool last, struct seeded *rs,
           float *weights)
{
    size_t n_in = image_size(&layer->in), n_out = image_size(&layer->out);
    double scale = sqrt((last ? 1.0 : 2.0) / n_in);

    for (size_t i = 0; i < n_in * n_out; i++) {
        weights[i] = scale * seeded_normal(rs);
    }
}

static void
dense_forward(const struct layer *layer, const struct layer_pass *pass)
{
    const struct backend_class *class = pass->b->class;
    size_t n_in = image_size(&layer->in), n_out = image_size(&layer->out);
    const float *d_w = pass->d_weights + layer->first;

    class->gemm(pass->b, false, false, pass->n, n_out, n_in,
                pass->layers[layer->input].d_y, d_w, 0, layer->d_y);
    class->bias(pass->b, pass->n, n_out, d_w + n_in * n_out, layer->relu,
                layer->d_y);
}

static void
dense_backward(const struct layer *layer, const struct layer_pass *pass)
{
    const struct backend_class *class = pass->b->class;
    const struct layer *input = &pass->layers[layer->input];
    size_t n_in = image_size(&layer->in), n_out = image_size(&layer->out);
    float *d_dw = pass->d_gradient + layer->first;

    if (layer->relu) {
        class->relu_gradient(pass->b, pass->n * n_out, layer->d_y,
                             layer->d_dy);
    }
    class->column_sums(pass->b, pass->n, n_out, layer->d_dy,
                       d_dw + n_in * n_out);
    class->gemm(pass->b, true, false, n_in, n_out, pass->n, input->d_y,
                layer->d_dy, 0, d_dw);
    if (input->d_dy) {
        class->gemm(pass->b, false, true, pass->n, n_in, n_out, layer->d_dy,
                    pass->d_weights + layer->first, layer->adds ? 1 : 0,
                    input->d_dy);
    }
}

const struct layer_class layer_dense = {
    .init = dense_init,
    .forward = dense_forward,
    .backward = dense_backward,
};
