/* SPDX-License-Identifier: Apache-2.0 */

/* Operations on images and on columns against float64 arithmetic. */

#include "tests/unit/trainer/backend/test-backend.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "tests/unit/unit-test.h"

/* A kernel that is larger than what it lies on, strides, edges, and sizes that
 * fit no block. */
static const struct {
    int n;
    struct convolution c;
} convolutions[] = {
    { 1, { 1, 1, 1, 1, 1, 1, 0 } },
    { 2, { 5, 7, 3, 4, 3, 1, 1 } },
    { 3, { 8, 8, 2, 5, 3, 2, 1 } },
    { 3, { 6, 9, 16, 8, 5, 1, 2 } },
    { 7, { 4, 3, 1, 2, 5, 2, 2 } },
    { 2, { 9, 6, 3, 33, 1, 3, 0 } },
    /* Kernels of 3x3 that a backend may have for few channels. */
    { 3, { 12, 11, 16, 16, 3, 1, 1 } },
    { 2, { 8, 10, 16, 32, 3, 2, 1 } },
    { 1, { 7, 5, 32, 32, 3, 1, 1 } },
    { 2, { 9, 7, 32, 64, 3, 2, 0 } },
    { 2, { 6, 8, 64, 64, 3, 1, 1 } },
    { 1, { 6, 4, 64, 16, 3, 1, 2 } },
    { 1, { 4, 6, 64, 32, 3, 3, 1 } },
    { 2, { 5, 5, 32, 16, 3, 1, 1 } },
    { 1, { 5, 9, 16, 64, 3, 2, 2 } },
    { 1, { 9, 6, 64, 64, 5, 1, 2 } },
    { 2, { 8, 7, 16, 32, 5, 2, 1 } },
    { 2, { 10, 12, 3, 64, 5, 1, 2 } },
    { 3, { 9, 8, 3, 16, 3, 1, 1 } },
};

/* The pixel of the input under place (i, j) of the kernel at an output pixel;
 * -1 if outside. */
static long
under(const struct convolution *c, int pixel, int i, int j)
{
    int width = convolution_width(c);
    int y = pixel / width * c->stride - c->pad + i;
    int x = pixel % width * c->stride - c->pad + j;

    return y < 0 || y >= c->height || x < 0 || x >= c->width
           ? -1 : (long) y * c->width + x;
}

/* Calls 'each' for every product of a convolution: places of image, weights
 * and output. */
static void
for_each_product(const struct convolution *c, int n,
                 void (*each)(void *, size_t x, size_t w, size_t y),
                 void *aux)
{
    int pixels = convolution_height(c) * convolution_width(c);
    int kernel = c->kernel * c->kernel;

    for (size_t i = 0; i < (size_t) n * pixels * kernel; i++) {
        int place = i % kernel, pixel = i / kernel % pixels;
        size_t image = i / kernel / pixels;
        long at = under(c, pixel, place / c->kernel, place % c->kernel);

        for (int j = 0; at >= 0 && j < c->n_in * c->n_out; j++) {
            int in = j % c->n_in, out = j / c->n_in;

            each(aux, (image * c->height * c->width + at) * c->n_in + in,
                 ((size_t) out * kernel + place) * c->n_in + in,
                 (image * pixels + pixel) * c->n_out + out);
        }
    }
}

/* Sums of products in float64, and of their absolute values. */
struct sums {
    const float *a, *b;
    int which;                  /* Sums for 0: x, 1: w, 2: y. */
    double *sum, *magnitude;
};

static void
add_product(void *sums_, size_t x, size_t w, size_t y)
{
    struct sums *s = sums_;
    size_t at[3] = { x, w, y };
    size_t to = at[s->which], first = at[s->which == 0 ? 1 : 0];
    size_t second = at[s->which == 2 ? 1 : 2];
    double product = (double) s->a[first] * s->b[second];

    s->sum[to] += product;
    s->magnitude[to] += fabs(product);
}

/* Compares with what is to be a sum over products of 'a' and 'b', added to
 * 'before' if that is nonnull. */
static void
check_convolution(const struct convolution *c, int n, int which,
                  const float *first, const float *second,
                  const float *before, const struct vector *result)
{
    struct sums s = { first, second, which, NULL, NULL };
    float *x = vector_download(result);

    s.sum = allocate(result->n, sizeof *s.sum);
    s.magnitude = allocate(result->n, sizeof *s.magnitude);
    for_each_product(c, n, add_product, &s);
    for (size_t i = 0; i < result->n; i++) {
        double old = before ? before[i] : 0;

        assert_near(x[i], s.sum[i] + old, s.magnitude[i] + fabs(old));
    }
    free(s.sum);
    free(s.magnitude);
    free(x);
}

/* With memory to work with for all samples at once or only for one. */
static void
convolutions_and_gradients_are_sums_of_products(void **state)
{
    for (size_t i = 0; i < 2 * N_ELEMENTS(convolutions); i++) {
        struct convolution c = convolutions[i / 2].c;
        int n = convolutions[i / 2].n;
        int pixels = convolution_height(&c) * convolution_width(&c);
        struct vector x = vector_random(
            (size_t) n * c.height * c.width * c.n_in, 1);
        struct vector w = vector_random(
            (size_t) c.kernel * c.kernel * c.n_in * c.n_out, 1);
        struct vector y = vector_random((size_t) n * pixels * c.n_out, 1);
        struct vector dw = vector_random(w.n, 1);
        struct vector dx = vector_random(x.n, 1);
        struct vector columns;

        c.max_columns = convolution_columns(&c) * (i & 1 ? n : 1);
        columns = vector_random(c.max_columns, 1);
        c.d_columns = columns.d_x;

        backend_convolve_weights(b, &c, n, x.d_x, y.d_x, dw.d_x);
        check_convolution(&c, n, 1, x.x, y.x, NULL, &dw);
        backend_convolve_input(b, &c, n, y.d_x, w.d_x, true, dx.d_x);
        check_convolution(&c, n, 0, w.x, y.x, dx.x, &dx);
        backend_convolve_input(b, &c, n, y.d_x, w.d_x, false, dx.d_x);
        check_convolution(&c, n, 0, w.x, y.x, NULL, &dx);
        backend_convolve(b, &c, n, x.d_x, w.d_x, y.d_x);
        check_convolution(&c, n, 2, x.x, w.x, NULL, &y);
        vector_free(&x);
        vector_free(&w);
        vector_free(&y);
        vector_free(&dw);
        vector_free(&dx);
        vector_free(&columns);
    }
}

static void
neighbourhoods_are_copied_and_added_up(void **state)
{
    for (size_t i = 0; i < N_ELEMENTS(convolutions); i++) {
        const struct convolution *c = &convolutions[i].c;
        int n = convolutions[i].n, kernel = c->kernel * c->kernel;
        size_t size = (size_t) n * c->height * c->width * c->n_in;
        struct vector x = vector_random(size, 1), back = x;
        struct vector columns = vector_random(n * convolution_columns(c), 1);
        int *copies = allocate(size, sizeof *copies);
        float *result;

        b->class->im2col(b, c, n, x.d_x, columns.d_x);
        result = vector_download(&columns);
        for (size_t j = 0; j < columns.n; j++) {
            int in = j % c->n_in, place = j / c->n_in % kernel;
            size_t pixel = j / c->n_in / kernel;
            size_t per = convolution_columns(c) / c->n_in / kernel;
            long at = under(c, pixel % per, place / c->kernel,
                            place % c->kernel);
            size_t from = (pixel / per * c->height * c->width + at) * c->n_in
                          + in;

            assert_true(result[j] == (at < 0 ? 0 : x.x[from]));
            if (at >= 0) {
                copies[from]++;
            }
        }
        free(result);
        b->class->col2im(b, c, n, columns.d_x, false, back.d_x);
        result = vector_download(&back);
        for (size_t j = 0; j < size; j++) {
            assert_near(result[j], (double) copies[j] * x.x[j],
                        copies[j] * fabs(x.x[j]));
        }
        free(result);
        free(copies);
        vector_free(&x);
        vector_free(&columns);
    }
}

static void
pools_take_the_largest_and_its_gradient_returns(void **state)
{
    static const struct {
        int n;
        struct pooling p;
    } pools[] = {
        { 1, { 2, 2, 1, 2 } }, { 3, { 7, 5, 3, 2 } }, { 2, { 9, 9, 33, 3 } },
        { 2, { 4, 4, 2, 1 } }, { 3, { 7, 5, 3, 2, true } },
        { 1, { 4, 6, 2, 2, true } },
    };

    for (size_t i = 0; i < N_ELEMENTS(pools); i++) {
        const struct pooling *p = &pools[i].p;
        int n = pools[i].n, rows = p->height / p->size;
        int columns = p->width / p->size;
        struct vector x = vector_random(
            (size_t) n * p->height * p->width * p->n_channels, 1);
        struct vector y = vector_random(
            (size_t) n * rows * columns * p->n_channels, 1);
        struct vector dy = vector_random(y.n, 1);
        struct vector dx = vector_random(x.n, 1);
        float *wanted = allocate(x.n, sizeof *wanted), *result, *gradient;

        for (size_t j = 0; j < x.n; j++) {
            x.x[j] = rintf(2 * x.x[j]);         /* So that some are equal. */
        }
        b->class->upload(b, x.d_x, x.x, x.n * sizeof *x.x);
        b->class->max_pool(b, p, n, x.d_x, y.d_x);
        b->class->max_pool_gradient(b, p, n, x.d_x, dy.d_x, dx.d_x);
        result = vector_download(&y);
        gradient = vector_download(&dx);
        for (size_t j = 0; j < y.n; j++) {
            int k = j % p->n_channels, column = j / p->n_channels % columns;
            size_t row = j / p->n_channels / columns % rows;
            size_t image = j / p->n_channels / columns / rows, best = 0;
            float largest = -INFINITY;

            for (int q = 0; q < p->size * p->size; q++) {
                size_t at = ((image * p->height + row * p->size
                              + q / p->size) * p->width
                             + (size_t) column * p->size + q % p->size)
                            * p->n_channels + k;

                if (x.x[at] > largest) {
                    largest = x.x[at];
                    best = at;
                }
            }
            assert_true(result[j] == largest);
            wanted[best] = p->relu && largest <= 0 ? 0 : dy.x[j];
        }
        assert_memory_equal(gradient, wanted, x.n * sizeof *wanted);
        free(wanted);
        free(result);
        free(gradient);
        vector_free(&x);
        vector_free(&y);
        vector_free(&dy);
        vector_free(&dx);
    }
}

static void
mean_pools_and_their_gradient_spread(void **state)
{
    static const struct {
        int n, pixels, channels;
    } pools[] = { { 1, 1, 1 }, { 3, 49, 5 }, { 2, 64, 64 } };

    for (size_t i = 0; i < N_ELEMENTS(pools); i++) {
        int n = pools[i].n, pixels = pools[i].pixels;
        int channels = pools[i].channels;
        struct vector x = vector_random((size_t) n * pixels * channels, 1);
        struct vector y = vector_random((size_t) n * channels, 1);
        float *result, *gradient;

        b->class->mean_pool_gradient(b, n, pixels, channels, y.d_x, x.d_x);
        gradient = vector_download(&x);
        for (size_t j = 0; j < x.n; j++) {
            size_t from = j / channels / pixels * channels + j % channels;

            assert_near(gradient[j], (double) y.x[from] / pixels,
                        fabs(y.x[from]) / pixels);
        }
        b->class->upload(b, x.d_x, x.x, x.n * sizeof *x.x);
        b->class->mean_pool(b, n, pixels, channels, x.d_x, y.d_x);
        result = vector_download(&y);
        for (size_t j = 0; j < y.n; j++) {
            double sum = 0, magnitude = 0;

            for (int k = 0; k < pixels; k++) {
                double value = x.x[(j / channels * pixels + k) * channels
                                   + j % channels];

                sum += value / pixels;
                magnitude += fabs(value) / pixels;
            }
            assert_near(result[j], sum, magnitude);
        }
        free(result);
        free(gradient);
        vector_free(&x);
        vector_free(&y);
    }
}

/* Normalisation of column 'j' in float64. */
struct column {
    double mean, var;
};

static struct column
column_moments(int m, int n, int j, const float *x)
{
    struct column c = { 0, 0 };

    for (int i = 0; i < m; i++) {
        c.mean += (double) x[(size_t) i * n + j] / m;
    }
    for (int i = 0; i < m; i++) {
        double off = x[(size_t) i * n + j] - c.mean;

        c.var += off * off / m;
    }
    return c;
}

/* What a normalisation has: random input, scale and shift, and statistics of
 * batches before. */
struct norm {
    int m, n;
    struct vector x, y, scale, shift, stats;
};

static struct norm
norm_random(int m, int n)
{
    struct norm v = {
        m, n,
        vector_random((size_t) m * n, 3), vector_random((size_t) m * n, 1),
        vector_random(n, 1), vector_random(n, 1), vector_random(4 * n, 1),
    };

    for (size_t i = 0; i < v.x.n; i++) {
        v.x.x[i] += 5 * (int) (i % n % 3);      /* Means that are not 0. */
    }
    for (int j = 0; j < n; j++) {
        v.stats.x[3 * n + j] = fabs(v.stats.x[3 * n + j]) + 0.1;
    }
    b->class->upload(b, v.x.d_x, v.x.x, v.x.n * sizeof *v.x.x);
    b->class->upload(b, v.stats.d_x, v.stats.x, v.stats.n * sizeof(float));
    return v;
}

static void
norm_free(struct norm *v)
{
    vector_free(&v->x);
    vector_free(&v->y);
    vector_free(&v->scale);
    vector_free(&v->shift);
    vector_free(&v->stats);
}

/* 100 roundings are allowed here: differences of values and their means are
 * smaller than both. */
static void
check_normed(const struct norm *v, int j, double mean, double var, bool relu,
             const float *y)
{
    double factor = v->scale.x[j] / sqrt(var + BACKEND_NORM_EPSILON);

    for (int i = 0; i < v->m; i++) {
        size_t at = (size_t) i * v->n + j;
        double z = (v->x.x[at] - mean) * factor + v->shift.x[j];

        assert_near(y[at], relu && z < 0 ? 0 : z,
                    100 * (fabs(z) + fabs(factor) + 1));
    }
}

static const struct {
    int m, n;
} norms[] = {
    { 2, 1 }, { 3, 5 }, { 64, 16 }, { 257, 33 }, { 40, 300 }, { 20000, 16 },
};

static void
columns_are_normalised_and_statistics_move_on(void **state)
{
    for (size_t c = 0; c < 2 * N_ELEMENTS(norms); c++) {
        struct norm v = norm_random(norms[c / 2].m, norms[c / 2].n);
        int m = v.m, n = v.n;
        bool relu = c & 1;
        float *y, *stats;

        b->class->norm_fixed(b, m, n, v.x.d_x, v.scale.d_x, v.shift.d_x, relu,
                             v.stats.d_x, v.y.d_x);
        y = vector_download(&v.y);
        for (int j = 0; j < n; j++) {
            check_normed(&v, j, v.stats.x[2 * n + j], v.stats.x[3 * n + j],
                         relu, y);
        }
        free(y);
        b->class->norm(b, m, n, v.x.d_x, v.scale.d_x, v.shift.d_x, relu,
                       v.stats.d_x, v.y.d_x);
        y = vector_download(&v.y);
        stats = vector_download(&v.stats);
        for (int j = 0; j < n; j++) {
            struct column right = column_moments(m, n, j, v.x.x);
            float *old = v.stats.x + j;

            check_normed(&v, j, right.mean, right.var, relu, y);
            assert_near(stats[j], right.mean, fabs(right.mean) + 10);
            assert_near(stats[n + j] * sqrt(right.var + 1e-5), 1, 10);
            assert_near(stats[2 * n + j], 0.9 * old[2 * n] + 0.1 * right.mean,
                        fabs(old[2 * n]) + fabs(right.mean) + 1);
            assert_near(stats[3 * n + j],
                        0.9 * old[3 * n] + 0.1 * right.var * m / (m - 1),
                        10 * (old[3 * n] + right.var));
        }
        free(y);
        free(stats);
        norm_free(&v);
    }
}

/* Against the formula, with the sums in float64. */
static void
check_norm_gradient(const struct norm *v, const float *y, const float *dy,
                    bool relu, const float *dx, const float *dscale,
                    const float *dshift)
{
    int m = v->m, n = v->n;

    for (int j = 0; j < n; j++) {
        struct column c = column_moments(m, n, j, v->x.x);
        double factor = 1 / sqrt(c.var + BACKEND_NORM_EPSILON);
        double sum = 0, product = 0, magnitude = 0;

        for (int i = 0; i < m; i++) {
            size_t at = (size_t) i * n + j;
            double d = relu && y[at] <= 0 ? 0 : dy[at];
            double off = (v->x.x[at] - c.mean) * factor;

            sum += d;
            product += d * off;
            magnitude += fabs(d) * (1 + fabs(off));
        }
        assert_near(dshift[j], sum, 10 * magnitude);
        assert_near(dscale[j], product, 10 * magnitude);
        for (int i = 0; i < m; i++) {
            size_t at = (size_t) i * n + j;
            double d = relu && y[at] <= 0 ? 0 : dy[at];
            double off = (v->x.x[at] - c.mean) * factor;

            assert_near(dx[at], v->scale.x[j] * factor
                        * (d - (sum + off * product) / m),
                        20 * fabs(v->scale.x[j] * factor)
                        * (fabs(d) + (1 + fabs(off)) * magnitude / m));
        }
    }
}

/* In place and not. */
static void
gradient_of_normalisation_is_that_of_the_formula(void **state)
{
    for (size_t c = 0; c < 4 * N_ELEMENTS(norms); c++) {
        struct norm v = norm_random(norms[c / 4].m, norms[c / 4].n);
        struct vector dy = vector_random(v.x.n, 1);
        struct vector dx = vector_random(v.x.n, 1);
        struct vector dscale = vector_random(v.n, 1);
        struct vector dshift = vector_random(v.n, 1);
        struct vector *to = c & 2 ? &dy : &dx;
        float *y, *result, *scale_result, *shift_result;
        bool relu = c & 1;

        b->class->norm(b, v.m, v.n, v.x.d_x, v.scale.d_x, v.shift.d_x, relu,
                       v.stats.d_x, v.y.d_x);
        b->class->norm_gradient(b, v.m, v.n, v.x.d_x, v.y.d_x, v.scale.d_x,
                                relu, v.stats.d_x, dy.d_x, to->d_x,
                                dscale.d_x, dshift.d_x);
        y = vector_download(&v.y);
        result = vector_download(to);
        scale_result = vector_download(&dscale);
        shift_result = vector_download(&dshift);
        check_norm_gradient(&v, y, dy.x, relu, result, scale_result,
                            shift_result);
        free(y);
        free(result);
        free(scale_result);
        free(shift_result);
        vector_free(&dy);
        vector_free(&dx);
        vector_free(&dscale);
        vector_free(&dshift);
        norm_free(&v);
    }
}

static void
ways_around_skip_pixels_and_pad_channels(void **state)
{
    static const struct {
        int n;
        struct shortcut s;
    } shortcuts[] = {
        { 2, { 3, 5, 4, 4, 1 } }, { 3, { 4, 6, 4, 8, 2 } },
        { 1, { 8, 8, 16, 32, 2 } },
    };

    for (size_t i = 0; i < N_ELEMENTS(shortcuts); i++) {
        const struct shortcut *s = &shortcuts[i].s;
        int n = shortcuts[i].n, width = s->width / s->stride;
        int height = s->height / s->stride, skip = (s->n_out - s->n_in) / 2;
        struct vector x = vector_random(
            (size_t) n * s->height * s->width * s->n_in, 1);
        struct vector y = vector_random(
            (size_t) n * height * width * s->n_out, 1);
        struct vector dx = vector_random(x.n, 1);
        float *wanted = allocate(x.n, sizeof *wanted), *result, *gradient;

        b->class->join_gradient(b, s, n, y.d_x, dx.d_x);
        b->class->join(b, s, n, x.d_x, y.d_x);
        result = vector_download(&y);
        gradient = vector_download(&dx);
        for (size_t j = 0; j < y.n; j++) {
            int k = j % s->n_out - skip, column = j / s->n_out % width;
            size_t row = j / s->n_out / width;
            size_t at = ((row / height * s->height + row % height * s->stride)
                         * s->width + (size_t) column * s->stride) * s->n_in
                        + k;
            bool inside = k >= 0 && k < s->n_in;
            double z = (double) y.x[j] + (inside ? x.x[at] : 0);

            assert_near(result[j], z > 0 ? z : 0, fabs(z) + 1);
            if (inside) {
                wanted[at] = y.x[j];
            }
        }
        assert_memory_equal(gradient, wanted, x.n * sizeof *wanted);
        free(wanted);
        free(result);
        free(gradient);
        vector_free(&x);
        vector_free(&y);
        vector_free(&dx);
    }
}

int
test_backend_images(const char *name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_and_gradients_are_sums_of_products),
        cmocka_unit_test(neighbourhoods_are_copied_and_added_up),
        cmocka_unit_test(pools_take_the_largest_and_its_gradient_returns),
        cmocka_unit_test(mean_pools_and_their_gradient_spread),
        cmocka_unit_test(columns_are_normalised_and_statistics_move_on),
        cmocka_unit_test(gradient_of_normalisation_is_that_of_the_formula),
        cmocka_unit_test(ways_around_skip_pixels_and_pad_channels),
    };

    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
