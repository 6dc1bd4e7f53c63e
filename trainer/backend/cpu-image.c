/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/backend/cpu-image.h"

#include <string.h>

/* Convolution. */

/* Stores a row of im2col(): the pixels under the kernel at output pixel (oy,
 * ox). */
static void
copy_under_kernel(const struct convolution *c, int oy, int ox,
                  const float *x, float *row)
{
    int left = ox * c->stride - c->pad;
    int first = left < 0 ? -left : 0;
    int last = c->width - left < c->kernel ? c->width - left : c->kernel;
    size_t length = (size_t) c->kernel * c->n_in;

    for (int ky = 0; ky < c->kernel; ky++, row += length) {
        int y = oy * c->stride - c->pad + ky;

        if (y < 0 || y >= c->height || last <= first) {
            memset(row, 0, length * sizeof *row);
            continue;
        }
        memset(row, 0, (size_t) first * c->n_in * sizeof *row);
        memcpy(row + (size_t) first * c->n_in,
               x + ((size_t) y * c->width + left + first) * c->n_in,
               (size_t) (last - first) * c->n_in * sizeof *row);
        memset(row + (size_t) last * c->n_in, 0,
               (size_t) (c->kernel - last) * c->n_in * sizeof *row);
    }
}

/* Adds a row to the pixels that it was copied from. */
static void
add_under_kernel(const struct convolution *c, int oy, int ox,
                 const float *row, float *x)
{
    int left = ox * c->stride - c->pad;
    int first = left < 0 ? -left : 0;
    int last = c->width - left < c->kernel ? c->width - left : c->kernel;
    size_t length = (size_t) c->kernel * c->n_in;

    for (int ky = 0; ky < c->kernel; ky++, row += length) {
        int y = oy * c->stride - c->pad + ky;

        if (y >= 0 && y < c->height) {
            float *to = x + ((size_t) y * c->width) * c->n_in;

            for (int i = first * c->n_in; i < last * c->n_in; i++) {
                to[left * c->n_in + i] += row[i];
            }
        }
    }
}

void
cpu_im2col(struct backend *b, const struct convolution *c, int n,
           const float *x, float *columns)
{
    int height = convolution_height(c), width = convolution_width(c);
    size_t length = (size_t) c->kernel * c->kernel * c->n_in;

    for (int i = 0; i < n; i++) {
        for (int p = 0; p < height * width; p++) {
            copy_under_kernel(c, p / width, p % width, x, columns);
            columns += length;
        }
        x += (size_t) c->height * c->width * c->n_in;
    }
}

void
cpu_col2im(struct backend *b, const struct convolution *c, int n,
           const float *columns, bool add, float *x)
{
    int height = convolution_height(c), width = convolution_width(c);
    size_t length = (size_t) c->kernel * c->kernel * c->n_in;
    size_t size = (size_t) c->height * c->width * c->n_in;

    for (int i = 0; i < n; i++, x += size) {
        if (!add) {
            memset(x, 0, size * sizeof *x);
        }
        for (int p = 0; p < height * width; p++) {
            add_under_kernel(c, p / width, p % width, columns, x);
            columns += length;
        }
    }
}

/* Pooling. */

/* Returns the first maximum of the square at 'x'. */
static size_t
largest_of_square(const struct pooling *p, const float *x)
{
    size_t best = 0;

    for (int i = 0; i < p->size; i++) {
        for (int j = 0; j < p->size; j++) {
            size_t at = ((size_t) i * p->width + j) * p->n_channels;

            best = x[at] > x[best] ? at : best;
        }
    }
    return best;
}

/* Returns the index of the square 's' of an image. */
static size_t
square_at(const struct pooling *p, int s)
{
    int per_row = p->width / p->size;

    return ((size_t) (s / per_row) * p->width + s % per_row)
           * p->size * p->n_channels;
}

void
cpu_max_pool(struct backend *b, const struct pooling *p, int n,
             const float *x, float *y)
{
    int n_squares = (p->height / p->size) * (p->width / p->size);

    for (int i = 0; i < n; i++) {
        for (int s = 0; s < n_squares; s++) {
            const float *square = x + square_at(p, s);

            for (int j = 0; j < p->n_channels; j++) {
                *y++ = square[j + largest_of_square(p, square + j)];
            }
        }
        x += (size_t) p->height * p->width * p->n_channels;
    }
}

void
cpu_max_pool_gradient(struct backend *b, const struct pooling *p, int n,
                      const float *x, const float *dy, float *dx)
{
    int n_squares = (p->height / p->size) * (p->width / p->size);
    size_t size = (size_t) p->height * p->width * p->n_channels;

    memset(dx, 0, n * size * sizeof *dx);
    for (int i = 0; i < n; i++, x += size, dx += size) {
        for (int s = 0; s < n_squares; s++) {
            size_t at = square_at(p, s);

            for (int j = 0; j < p->n_channels; j++) {
                dx[at + j + largest_of_square(p, x + at + j)] = *dy++;
            }
        }
    }
}

void
cpu_mean_pool(struct backend *b, int n, int n_pixels, int n_channels,
              const float *x, float *y)
{
    float share = 1.0f / n_pixels;

    for (int i = 0; i < n; i++, y += n_channels) {
        memset(y, 0, n_channels * sizeof *y);
        for (int p = 0; p < n_pixels; p++) {
            for (int j = 0; j < n_channels; j++) {
                y[j] += *x++;
            }
        }
        for (int j = 0; j < n_channels; j++) {
            y[j] *= share;
        }
    }
}

void
cpu_mean_pool_gradient(struct backend *b, int n, int n_pixels,
                       int n_channels, const float *dy, float *dx)
{
    float share = 1.0f / n_pixels;

    for (int i = 0; i < n; i++, dy += n_channels) {
        for (int p = 0; p < n_pixels; p++) {
            for (int j = 0; j < n_channels; j++) {
                *dx++ = share * dy[j];
            }
        }
    }
}

/* Residual blocks. */

void
cpu_join(struct backend *b, const struct shortcut *s, int n, const float *x,
         float *y)
{
    int skip = (s->n_out - s->n_in) / 2;

    for (int i = 0; i < n * s->height; i += s->stride) {
        const float *row = x + (size_t) i * s->width * s->n_in;

        for (int j = 0; j < s->width; j += s->stride, y += s->n_out) {
            for (int k = 0; k < s->n_in; k++) {
                y[skip + k] += row[(size_t) j * s->n_in + k];
            }
            for (int k = 0; k < s->n_out; k++) {
                y[k] = y[k] > 0 ? y[k] : 0;
            }
        }
    }
}

void
cpu_join_gradient(struct backend *b, const struct shortcut *s, int n,
                  const float *dy, float *dx)
{
    int skip = (s->n_out - s->n_in) / 2;

    memset(dx, 0, (size_t) n * s->height * s->width * s->n_in * sizeof *dx);
    for (int i = 0; i < n * s->height; i += s->stride) {
        float *row = dx + (size_t) i * s->width * s->n_in;

        for (int j = 0; j < s->width; j += s->stride, dy += s->n_out) {
            memcpy(row + (size_t) j * s->n_in, dy + skip,
                   s->n_in * sizeof *dy);
        }
    }
}
