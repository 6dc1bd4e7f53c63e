/* SPDX-License-Identifier: Apache-2.0 */

/* Layers: dense, convolution, batch normalisation, pooling, residual join. */

#include "trainer/models/layer.h"

#include <math.h>


#define DRAWN ((size_t) 1 << 20)        /* Weights drawn at once. */

static void
draw_weights(struct layer_drawing *d, double variance, size_t n,
             float *weights)
{
    double scale = sqrt(variance);

    for (size_t i = 0; i < n; i += DRAWN) {
        size_t part = n - i < DRAWN ? n - i : DRAWN;

        for (size_t j = i; j < i + part; j++) {
            weights[j] = scale * seeded_normal(&d->random);
        }
        if (d->part) {
            d->part(d->aux, weights + i - d->weights, part);
        }
    }
}

/* Dense.  Parameters: weights (inputs by outputs), then biases. */

/* The scale preserves the variance of the activations. */
static void
dense_init(const struct layer *layer, bool last, struct layer_drawing *d,
           float *weights)
{
    size_t n_in = image_size(&layer->in);

    draw_weights(d, (last ? 1.0 : 2.0) / n_in,
                 n_in * image_size(&layer->out), weights);
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
    .init = dense_init, .forward = dense_forward, .backward = dense_backward
};

static size_t
pixels(const struct image *image)
{
    return (size_t) image->height * image->width;
}

/* Convolution.  Parameters: weights as in struct convolution, then biases. */

static size_t
kernel_size(const struct layer *layer)
{
    const struct convolution *c = &layer->convolution;

    return (size_t) c->kernel * c->kernel * c->n_in;
}

/* ReLU halves the variance, but max pooling follows every convolution with a
 * bias in these nets and makes up for that. */
static void
convolution_init(const struct layer *layer, bool last, struct layer_drawing *d,
                 float *weights)
{
    size_t size = kernel_size(layer);

    draw_weights(d, (layer->bias ? 1.0 : 2.0) / size,
                 size * layer->out.channels, weights);
}

static void
convolution_forward(const struct layer *layer, const struct layer_pass *pass)
{
    int n_out = layer->out.channels;
    const float *d_w = pass->d_weights + layer->first;

    backend_convolve(pass->b, &layer->convolution, pass->n,
                     pass->layers[layer->input].d_y, d_w, layer->d_y);
    if (layer->bias) {
        pass->b->class->bias(pass->b, pass->n * pixels(&layer->out), n_out,
                             d_w + kernel_size(layer) * n_out, layer->relu,
                             layer->d_y);
    }
}

static void
convolution_backward(const struct layer *layer, const struct layer_pass *pass)
{
    const struct layer *input = &pass->layers[layer->input];
    int n_out = layer->out.channels;
    size_t m = pass->n * pixels(&layer->out);
    float *d_dw = pass->d_gradient + layer->first;

    if (layer->relu && !layer->cut) {
        pass->b->class->relu_gradient(pass->b, m * n_out, layer->d_y,
                                      layer->d_dy);
    }
    if (layer->bias) {
        pass->b->class->column_sums(pass->b, m, n_out, layer->d_dy,
                                    d_dw + kernel_size(layer) * n_out);
    }
    backend_convolve_weights(pass->b, &layer->convolution, pass->n,
                             input->d_y, layer->d_dy, d_dw);
    if (input->d_dy) {
        backend_convolve_input(pass->b, &layer->convolution, pass->n,
                               layer->d_dy, pass->d_weights + layer->first,
                               layer->adds, input->d_dy);
    }
}

const struct layer_class layer_convolution = {
    .init = convolution_init, .forward = convolution_forward,
    .backward = convolution_backward
};

/* Batch normalisation.  Parameters: scales, then shifts. */

static void
norm_init(const struct layer *layer, bool last, struct layer_drawing *d,
          float *weights)
{
    for (int i = 0; i < layer->out.channels; i++) {
        weights[i] = 1;
    }
}

static void
norm_forward(const struct layer *layer, const struct layer_pass *pass)
{
    const struct backend_class *class = pass->b->class;
    const float *d_x = pass->layers[layer->input].d_y;
    const float *d_scale = pass->d_weights + layer->first;
    size_t m = pass->n * pixels(&layer->out);
    int n = layer->out.channels;

    if (pass->training) {
        class->norm(pass->b, m, n, d_x, d_scale, d_scale + n, layer->relu,
                    layer->d_stats, layer->d_y);
    } else {
        class->norm_fixed(pass->b, m, n, d_x, d_scale, d_scale + n,
                          layer->relu, layer->d_stats, layer->d_y);
    }
}

static void
norm_backward(const struct layer *layer, const struct layer_pass *pass)
{
    const struct layer *input = &pass->layers[layer->input];
    float *d_dscale = pass->d_gradient + layer->first;

    pass->b->class->norm_gradient(
        pass->b, pass->n * pixels(&layer->out), layer->out.channels,
        input->d_y, layer->d_y, pass->d_weights + layer->first, layer->relu,
        layer->d_stats, layer->d_dy, input->d_dy, d_dscale,
        d_dscale + layer->out.channels);
}

const struct layer_class layer_norm = {
    .init = norm_init, .forward = norm_forward, .backward = norm_backward
};

/* Pooling. */

static void
max_pool_forward(const struct layer *layer, const struct layer_pass *pass)
{
    pass->b->class->max_pool(pass->b, &layer->pooling, pass->n,
                             pass->layers[layer->input].d_y, layer->d_y);
}

static void
max_pool_backward(const struct layer *layer, const struct layer_pass *pass)
{
    const struct layer *input = &pass->layers[layer->input];

    pass->b->class->max_pool_gradient(pass->b, &layer->pooling, pass->n,
                                      input->d_y, layer->d_dy, input->d_dy);
}

const struct layer_class layer_max_pool = { .forward = max_pool_forward,
                                            .backward = max_pool_backward };

static void
mean_pool_forward(const struct layer *layer, const struct layer_pass *pass)
{
    pass->b->class->mean_pool(pass->b, pass->n, pixels(&layer->in),
                              layer->in.channels,
                              pass->layers[layer->input].d_y, layer->d_y);
}

static void
mean_pool_backward(const struct layer *layer, const struct layer_pass *pass)
{
    pass->b->class->mean_pool_gradient(pass->b, pass->n, pixels(&layer->in),
                                       layer->in.channels, layer->d_dy,
                                       pass->layers[layer->input].d_dy);
}

const struct layer_class layer_mean_pool = { .forward = mean_pool_forward,
                                             .backward = mean_pool_backward };

/* Residual join.  The output reuses the memory of the layer that is joined,
 * which no other layer reads, and shares its gradient with it; so does the
 * shortcut if it does not change the dimensions. */

static void
join_forward(const struct layer *layer, const struct layer_pass *pass)
{
    pass->b->class->join(pass->b, &layer->shortcut, pass->n,
                         pass->layers[layer->input].d_y, layer->d_y);
}

static void
join_backward(const struct layer *layer, const struct layer_pass *pass)
{
    const struct layer *input = &pass->layers[layer->input];

    pass->b->class->relu_gradient(pass->b, pass->n * image_size(&layer->out),
                                  layer->d_y, layer->d_dy);
    if (input->d_dy != layer->d_dy) {
        pass->b->class->join_gradient(pass->b, &layer->shortcut, pass->n,
                                      layer->d_dy, input->d_dy);
    }
}

const struct layer_class layer_join = { .forward = join_forward,
                                        .backward = join_backward };
