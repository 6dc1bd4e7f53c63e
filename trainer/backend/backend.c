/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/backend/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

const struct backend_class *const backend_classes[] = {
#ifdef HAVE_CUDA
    &backend_cuda,
#endif
    &backend_cpu, NULL
};

int
backend_open(const struct backend_class *class, int index, int n_threads,
             struct backend **backendp)
{
    *backendp = NULL;
    return class->open(index, n_threads, backendp);
}

/* A device that does not work is an error also for "auto".  Otherwise training
 * would silently use a slower one. */
char *
backend_open_named(const char *name, int n_threads, struct backend **backendp)
{
    bool any = !strcmp(name, "auto");
    const char *why = "not in this build";
    int error = ENODEV;

    for (int i = 0; backend_classes[i] && error == ENODEV; i++) {
        const struct backend_class *class = backend_classes[i];

        if (any || !strcmp(name, class->name)) {
            error = backend_open(class, 0, n_threads, backendp);
            why = error == ENODEV ? "no device here"
                  : class->why ? class->why() : strerror(error);
        }
    }
    if (!error) {
        return NULL;
    }
    *backendp = NULL;
    return message("--backend: \"%s\": %s, %s", name, why,
                   error == ENODEV ? "\"auto\" takes what there is"
                                   : "\"cpu\" needs no device");
}

void
backend_close(struct backend *b)
{
    if (b) {
        b->class->close(b);
    }
}

/* Memory is allocated before the first iteration; without it the program
 * ends. */
void *
backend_alloc(struct backend *b, size_t bytes)
{
    void *d_buffer = b->class->alloc(b, bytes);

    if (!d_buffer) {
        fprintf(stderr, "%s: no memory for %zu bytes\n", b->class->name,
                bytes);
        abort();
    }
    return d_buffer;
}

void
backend_free(struct backend *b, void *d_buffer)
{
    if (d_buffer) {
        b->class->free(b, d_buffer);
    }
}

void *
backend_alloc_host(struct backend *b, size_t bytes)
{
    void *p = b->class->alloc_host ? b->class->alloc_host(b, bytes)
                                   : malloc(bytes ? bytes : 1);

    if (!p) {
        fprintf(stderr, "%s: no memory for %zu bytes of the host\n",
                b->class->name, bytes);
        abort();
    }
    return memset(p, 0, bytes);
}

void
backend_free_host(struct backend *b, void *p)
{
    if (b->class->free_host) {
        b->class->free_host(b, p);
    } else {
        free(p);
    }
}

void
backend_sync(struct backend *b)
{
    if (b->class->sync) {
        b->class->sync(b);
    }
}

const char *
backend_failure(const struct backend *b)
{
    return b->class->failure ? b->class->failure(b) : NULL;
}

/* Convolutions by matrix products, with as many samples at a time as fit into
 * the working memory of the caller. */

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
backend_convolve_weights(struct backend *b, const struct convolution *c, int n,
                         const float *d_x, const float *d_dy, float *d_dw)
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
                       c->n_out, d_dy + i * out_size(c), d_w, 0, c->d_columns);
        b->class->col2im(b, c, part, c->d_columns, add, d_dx + i * in_size(c));
    }
}
