/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions by matrix products, with as many samples at a time as fit into
 * the working memory of the caller. */

#include "trainer/backend/backend.h"

int
convolution_height(const struct convolution *c)
{
    return (c->height + 2 * c->pad - c->kernel) / c->stride + 1;
}

int
convolution_width(const struct convolution *c)
{
    return (c->width + 2 * c->pad - c->kernel) / c->stride + 1;
}

static size_t
out_pixels(const struct convolution *c)
{
    return (size_t) convolution_height(c) * convolution_width(c);
}

static size_t
row_size(const struct convolution *c)
{
    return (size_t) c->kernel * c->kernel * c->n_in;
}

size_t
convolution_columns(const struct convolution *c)
{
    return out_pixels(c) * row_size(c);
}

/* Returns the number of samples that fit at once, at most 'n'. */
static int
chunk_size(const struct convolution *c, int n)
{
    size_t fit = c->max_columns / convolution_columns(c);

    return fit < 1 ? 1 : fit < n ? fit : n;
}

static size_t
in_size(const struct convolution *c)
{
    return (size_t) c->height * c->width * c->n_in;
}

static size_t
out_size(const struct convolution *c)
{
    return out_pixels(c) * c->n_out;
}

void
backend_convolve(struct backend *b, const struct convolution *c, int n,
                 const float *d_x, const float *d_w, float *d_y)
{
    int chunk = chunk_size(c, n);

    if (b->class->convolve && b->class->convolve(b, c, n, d_x, d_w, d_y)) {
        return;
    }
    for (int i = 0; i < n; i += chunk) {
        int part = n - i < chunk ? n - i : chunk;

        b->class->im2col(b, c, part, d_x + i * in_size(c), c->d_columns);
        b->class->gemm(b, false, true, part * out_pixels(c), c->n_out,
                       row_size(c), c->d_columns, d_w, 0,
                       d_y + i * out_size(c));
    }
}

void
backend_convolve_weights(struct backend *b, const struct convolution *c,
                         int n, const float *d_x, const float *d_dy,
                         float *d_dw)
{
    int chunk = chunk_size(c, n);

    if (b->class->convolve_weights
        && b->class->convolve_weights(b, c, n, d_x, d_dy, d_dw)) {
        return;
    }
    for (int i = 0; i < n; i += chunk) {
        int part = n - i < chunk ? n - i : chunk;

        b->class->im2col(b, c, part, d_x + i * in_size(c), c->d_columns);
        b->class->gemm(b, true, false, c->n_out, row_size(c),
                       part * out_pixels(c), d_dy + i * out_size(c),
                       c->d_columns, i ? 1 : 0, d_dw);
    }
}

void
backend_convolve_input(struct backend *b, const struct convolution *c, int n,
                       const float *d_dy, const float *d_w, bool add,
                       float *d_dx)
{
    int chunk = chunk_size(c, n);

    if (b->class->convolve_input
        && b->class->convolve_input(b, c, n, d_dy, d_w, add, d_dx)) {
        return;
    }
    for (int i = 0; i < n; i += chunk) {
        int part = n - i < chunk ? n - i : chunk;

        b->class->gemm(b, false, false, part * out_pixels(c), row_size(c),
                       c->n_out, d_dy + i * out_size(c), d_w, 0,
                       c->d_columns);
        b->class->col2im(b, c, part, c->d_columns, add, d_dx + i * in_size(c));
    }
}
