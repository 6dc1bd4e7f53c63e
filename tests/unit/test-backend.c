/* SPDX-License-Identifier: Apache-2.0 */

/* Every operation of a backend against float64 arithmetic.
 *
 * "test-backend cpu" is about the CPU's backend.  "test-backend all" is about
 * all backends of the build, and is skipped (77) if only the CPU's opens.
 *
 * A tolerance is relative to the sum of the absolute values of what was added
 * up: float32 has 24 bits, so 1e-6 lets a few roundings be in the same
 * direction. */

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trainer/backend/backend.h"
#include "trainer/message.h"
#include "trainer/task/model.h"
#include "trainer/task/seeded.h"
#include "trainer/task/shape.h"

#define SKIPPED 77
#define TOLERANCE 1e-6
#define N_ELEMENTS(ARRAY) (sizeof (ARRAY) / sizeof (ARRAY)[0])

static struct backend *b;       /* What is tested. */
static struct seeded rs;

/* A vector here and, with the same values, there. */
struct vector {
    size_t n;
    float *x, *d_x;
};

static struct vector
vector_random(size_t n, double scale)
{
    struct vector v = { .n = n };

    v.x = allocate(n, sizeof *v.x);
    v.d_x = backend_alloc(b, n * sizeof *v.x);
    for (size_t i = 0; i < n; i++) {
        v.x[i] = scale * seeded_normal(&rs);
    }
    b->class->upload(b, v.d_x, v.x, n * sizeof *v.x);
    return v;
}

/* What the backend's side has become; the caller frees it. */
static float *
vector_download(const struct vector *v)
{
    float *x = allocate(v->n, sizeof *x);

    b->class->download(b, x, v->d_x, v->n * sizeof *x);
    return x;
}

static void
vector_free(struct vector *v)
{
    backend_free(b, v->d_x);
    free(v->x);
}

/* Fails if the backend has 'x' where 'wanted' is right. */
static void
assert_near(double x, double wanted, double magnitude)
{
    if (!(fabs(x - wanted) <= TOLERANCE * magnitude + 1e-30)) {
        fail_msg("%s: %.9g, %.9g is right, to %.2g", b->class->name, x, wanted,
                 TOLERANCE * magnitude);
    }
}

/* Sizes around those of vectors, blocks and grids. */
static const size_t sizes[] = { 0, 1, 31, 255, 256, 257, 5000, 2000003 };

static const struct {
    int m, n;
} matrices[] = {
    { 1, 1 }, { 1, 33 }, { 7, 31 }, { 8, 32 }, { 9, 300 }, { 600, 10 },
    { 1100, 1000 },
};

static void
memory_is_zeroed_and_keeps_what_is_uploaded(void **state)
{
    struct vector v = vector_random(1000, 1);
    float *x = vector_download(&v), first = v.x[0];
    float *d_zero = backend_alloc(b, sizeof first);

    assert_memory_equal(x, v.x, v.n * sizeof *x);

    /* In the middle; and the host's memory is free again at once. */
    b->class->upload(b, v.d_x + 500, &first, sizeof first);
    first = 7;
    b->class->download(b, x, v.d_x + 500, sizeof *x);
    assert_true(x[0] == v.x[0]);
    b->class->download(b, x, d_zero, sizeof *x);
    assert_true(x[0] == 0);
    backend_free(b, d_zero);
    backend_free(b, NULL);
    free(x);
    vector_free(&v);
}

/* C[i][j] in float64, and the magnitude of its summands. */
static double
product(bool t_a, bool t_b, int m, int n, int k, const float *x,
        const float *y, int i, int j, double *magnitude)
{
    double sum = 0;

    *magnitude = 0;
    for (int l = 0; l < k; l++) {
        double summand = (double) x[t_a ? (size_t) l * m + i
                                        : (size_t) i * k + l]
                         * y[t_b ? (size_t) j * k + l : (size_t) l * n + j];

        sum += summand;
        *magnitude += fabs(summand);
    }
    return sum;
}

static void
check_gemm(bool t_a, bool t_b, int m, int n, int k, float beta)
{
    struct vector x = vector_random((size_t) m * k, 1);
    struct vector y = vector_random((size_t) k * n, 1);
    struct vector z = vector_random((size_t) m * n, 1);
    float *result;

    b->class->gemm(b, t_a, t_b, m, n, k, x.d_x, y.d_x, beta, z.d_x);
    result = vector_download(&z);
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            size_t at = (size_t) i * n + j;
            double magnitude;
            double sum = product(t_a, t_b, m, n, k, x.x, y.x, i, j,
                                 &magnitude);

            assert_near(result[at], sum + (double) beta * z.x[at],
                        magnitude + fabs((double) beta * z.x[at]));
        }
    }
    free(result);
    vector_free(&x);
    vector_free(&y);
    vector_free(&z);
}

static void
gemm_multiplies_and_transposes(void **state)
{
    static const struct {
        int m, n, k;
    } products[] = {
        { 1, 1, 1 }, { 3, 5, 7 }, { 1, 64, 33 }, { 64, 10, 256 },
        { 129, 65, 200 },
    };
    static const float betas[] = { 0, 1, -0.5f };

    for (size_t i = 0; i < N_ELEMENTS(products) * 12; i++) {
        check_gemm(i & 1, i & 2, products[i / 12].m, products[i / 12].n,
                   products[i / 12].k, betas[i % 12 / 4]);
    }
}

static void
bias_is_added_to_each_row_and_cut(void **state)
{
    for (size_t c = 0; c < 2 * N_ELEMENTS(matrices); c++) {
        int m = matrices[c / 2].m, n = matrices[c / 2].n;
        bool relu = c & 1;
        struct vector y = vector_random((size_t) m * n, 1);
        struct vector bias = vector_random(n, 1);
        float *result;

        b->class->bias(b, m, n, bias.d_x, relu, y.d_x);
        result = vector_download(&y);
        for (size_t i = 0; i < y.n; i++) {
            double sum = (double) y.x[i] + bias.x[i % n];

            assert_near(result[i], relu && sum < 0 ? 0 : sum,
                        fabs(y.x[i]) + fabs(bias.x[i % n]));
        }
        free(result);
        vector_free(&y);
        vector_free(&bias);
    }
}

static void
gradient_of_what_was_cut_is_0(void **state)
{
    for (size_t c = 0; c < N_ELEMENTS(sizes); c++) {
        struct vector y = vector_random(sizes[c], 1);
        struct vector dy = vector_random(sizes[c], 1);
        float *result;

        for (size_t i = 0; i < y.n; i += 2) {
            y.x[i] = y.x[i] > 0 ? y.x[i] : 0;   /* As a cut layer has. */
        }
        b->class->upload(b, y.d_x, y.x, y.n * sizeof *y.x);
        b->class->relu_gradient(b, y.n, y.d_x, dy.d_x);
        result = vector_download(&dy);
        for (size_t i = 0; i < y.n; i++) {
            assert_true(result[i] == (y.x[i] > 0 ? dy.x[i] : 0));
        }
        free(result);
        vector_free(&y);
        vector_free(&dy);
    }
}

static void
columns_are_summed(void **state)
{
    for (size_t c = 0; c < N_ELEMENTS(matrices); c++) {
        int m = matrices[c].m, n = matrices[c].n;
        struct vector y = vector_random((size_t) m * n, 1);
        struct vector sums = vector_random(n, 1);
        float *result;

        b->class->column_sums(b, m, n, y.d_x, sums.d_x);
        result = vector_download(&sums);
        for (int j = 0; j < n; j++) {
            double sum = 0, magnitude = 0;

            for (int i = 0; i < m; i++) {
                sum += y.x[(size_t) i * n + j];
                magnitude += fabs(y.x[(size_t) i * n + j]);
            }
            assert_near(result[j], sum, magnitude);
        }
        free(result);
        vector_free(&y);
        vector_free(&sums);
    }
}

/* Cross entropy of one row.  Stores softmax(row) - one_hot(label). */
static double
row_loss(int n, const float *y, int label, double *gradient, bool *correct)
{
    double sum = 0;
    int best = 0;

    for (int j = 0; j < n; j++) {
        best = y[j] > y[best] ? j : best;
    }
    for (int j = 0; j < n; j++) {
        gradient[j] = exp((double) y[j] - y[best]);
        sum += gradient[j];
    }
    for (int j = 0; j < n; j++) {
        gradient[j] = gradient[j] / sum - (j == label);
    }
    *correct = best == label;
    return log(sum) + y[best] - y[label];
}

/* 'dy' is NULL if no gradient was asked for. */
static void
check_losses(int m, int n, const float *y, const int32_t *labels,
             const float *dy, double loss, int n_correct)
{
    double *gradient = allocate(n, sizeof *gradient);
    double wanted = 0;
    int n_wanted = 0;

    for (int i = 0; i < m; i++) {
        size_t row = (size_t) i * n;
        bool correct;

        wanted += row_loss(n, y + row, labels[i], gradient, &correct);
        n_wanted += correct;
        for (int j = 0; dy && j < n; j++) {
            /* The exponent's own rounding counts: it is up to 100. */
            assert_near(dy[row + j], gradient[j] / m, 20.0 / m);
        }
    }
    assert_near(loss, wanted, 1 + wanted);
    assert_int_equal(n_correct, n_wanted);
    free(gradient);
}

static void
check_cross_entropy(int m, int n, double scale)
{
    struct vector y = vector_random((size_t) m * n, scale);
    struct vector dy = vector_random(y.n, 1);
    int32_t *labels = allocate(m, sizeof *labels);
    int32_t *d_labels = backend_alloc(b, m * sizeof *labels);
    float *result;
    double loss;
    int n_correct;

    for (int i = 0; i < m; i++) {
        labels[i] = seeded_below(&rs, n);
    }
    b->class->upload(b, d_labels, labels, m * sizeof *labels);
    b->class->cross_entropy(b, m, n, y.d_x, d_labels, NULL);
    b->class->losses(b, &loss, &n_correct);
    check_losses(m, n, y.x, labels, NULL, loss, n_correct);
    b->class->cross_entropy(b, m, n, y.d_x, d_labels, dy.d_x);
    b->class->losses(b, &loss, &n_correct);
    result = vector_download(&dy);
    check_losses(m, n, y.x, labels, result, loss, n_correct);
    free(result);
    free(labels);
    backend_free(b, d_labels);
    vector_free(&y);
    vector_free(&dy);
}

static void
cross_entropy_has_loss_hits_and_gradient(void **state)
{
    for (size_t c = 0; c < N_ELEMENTS(matrices); c++) {
        check_cross_entropy(matrices[c].m, matrices[c].n, 1);
        check_cross_entropy(matrices[c].m, matrices[c].n, 30);
    }
    check_cross_entropy(2000, 3, 1);
}

/* 40 equal values: only the first of them is the row's answer. */
static void
the_first_of_equals_is_the_answer(void **state)
{
    float *d_y = backend_alloc(b, 2 * 40 * sizeof *d_y);
    int32_t labels[2] = { 0, 33 }, *d_labels;
    double loss;
    int n_correct;

    d_labels = backend_alloc(b, sizeof labels);
    b->class->upload(b, d_labels, labels, sizeof labels);
    b->class->cross_entropy(b, 2, 40, d_y, d_labels, NULL);
    b->class->losses(b, &loss, &n_correct);
    assert_near(loss, 2 * log(40), 8);
    assert_int_equal(n_correct, 1);
    backend_free(b, d_y);
    backend_free(b, d_labels);
}

static void
accumulate_adds_a_multiple(void **state)
{
    for (size_t c = 0; c < N_ELEMENTS(sizes); c++) {
        struct vector x = vector_random(sizes[c], 1);
        struct vector sum = vector_random(sizes[c], 1);
        float *result;

        b->class->accumulate(b, x.n, 0.3f, x.d_x, sum.d_x);
        result = vector_download(&sum);
        for (size_t i = 0; i < x.n; i++) {
            double summand = (double) 0.3f * x.x[i];

            assert_near(result[i], sum.x[i] + summand,
                        fabs(sum.x[i]) + fabs(summand));
        }
        free(result);
        vector_free(&x);
        vector_free(&sum);
    }
}

static void
sgd_steps_with_momentum(void **state)
{
    const float rate = 0.05f, momentum = 0.9f;

    for (size_t c = 0; c < N_ELEMENTS(sizes); c++) {
        struct vector g = vector_random(sizes[c], 1);
        struct vector v = vector_random(sizes[c], 1);
        struct vector w = vector_random(sizes[c], 1);
        float *v_result, *w_result;

        b->class->sgd(b, g.n, rate, momentum, g.d_x, v.d_x, w.d_x);
        v_result = vector_download(&v);
        w_result = vector_download(&w);
        for (size_t i = 0; i < g.n; i++) {
            double step = (double) momentum * v.x[i] + g.x[i];
            double size = fabs(v.x[i]) + fabs(g.x[i]);

            assert_near(v_result[i], step, size);
            assert_near(w_result[i], w.x[i] - rate * step,
                        fabs(w.x[i]) + rate * size);
        }
        free(v_result);
        free(w_result);
        vector_free(&g);
        vector_free(&v);
        vector_free(&w);
    }
}

/* Images. */

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
        { 2, { 4, 4, 2, 1 } },
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
            wanted[best] = dy.x[j];
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
        m, n, vector_random((size_t) m * n, 3), vector_random((size_t) m * n, 1),
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

/* Sparse samples. */

static void
check_gather(int m, int n, int max_length)
{
    uint32_t *starts = allocate(m + 1, sizeof *starts), *at;
    uint32_t *d_starts = backend_alloc(b, (m + 1) * sizeof *starts), *d_at;
    struct vector x = vector_random(n, 1), y = vector_random(m, 1), values;
    float *result;

    for (int i = 0; i < m; i++) {
        starts[i + 1] = starts[i] + seeded_below(&rs, max_length + 1);
    }
    values = vector_random(starts[m], 1);
    at = allocate(starts[m], sizeof *at);
    d_at = backend_alloc(b, starts[m] * sizeof *at);
    for (uint32_t e = 0; e < starts[m]; e++) {
        at[e] = seeded_below(&rs, n);
    }
    b->class->upload(b, d_starts, starts, (m + 1) * sizeof *starts);
    b->class->upload(b, d_at, at, starts[m] * sizeof *at);
    b->class->gather(b, m, d_starts, d_at, values.d_x, x.d_x, y.d_x);
    result = vector_download(&y);
    for (int i = 0; i < m; i++) {
        double sum = 0, magnitude = 0;

        for (uint32_t e = starts[i]; e < starts[i + 1]; e++) {
            sum += (double) values.x[e] * x.x[at[e]];
            magnitude += fabs((double) values.x[e] * x.x[at[e]]);
        }
        assert_near(result[i], sum, magnitude);
    }
    free(result);
    free(starts);
    free(at);
    backend_free(b, d_starts);
    backend_free(b, d_at);
    vector_free(&x);
    vector_free(&y);
    vector_free(&values);
}

static void
sparse_rows_are_multiplied(void **state)
{
    check_gather(0, 1, 0);
    check_gather(1, 1, 1);
    check_gather(50, 10, 3);            /* With empty rows. */
    check_gather(300, 70, 100);
    check_gather(2, 5, 5000);
}

static void
margins_have_loss_hits_and_gradient(void **state)
{
    for (int c = 0; c < 8; c++) {
        int m = c & 4 ? 1500 : 7, n_correct, n_wanted = 0;
        bool hinge = c & 1;
        struct vector y = vector_random(m, c & 2 ? 100 : 1);
        struct vector dy = vector_random(m, 1);
        int32_t *labels = allocate(m, sizeof *labels);
        int32_t *d_labels = backend_alloc(b, m * sizeof *labels);
        double loss, wanted = 0;
        float *result;

        for (int i = 0; i < m; i++) {
            labels[i] = seeded_below(&rs, 2);
        }
        b->class->upload(b, d_labels, labels, m * sizeof *labels);
        b->class->margin_loss(b, m, hinge, y.d_x, d_labels, NULL);
        b->class->margin_loss(b, m, hinge, y.d_x, d_labels, dy.d_x);
        b->class->losses(b, &loss, &n_correct);
        result = vector_download(&dy);
        for (int i = 0; i < m; i++) {
            double sign = 2 * labels[i] - 1, a = sign * y.x[i];
            double slope = hinge ? a < 1 : a < -500 ? 1 : 1 / (1 + exp(a));

            wanted += hinge ? fmax(0, 1 - a)
                      : a < -500 ? -a : log1p(exp(-a));
            n_wanted += a > 0;
            assert_near(result[i], -sign * slope / m, 20.0 / m);
        }
        assert_near(loss, wanted, 1 + wanted);
        assert_int_equal(n_correct, n_wanted);
        free(result);
        free(labels);
        backend_free(b, d_labels);
        vector_free(&y);
        vector_free(&dy);
    }
}

/* Models that learn the same samples here and on the CPU. */
static const struct {
    const struct model_class *class;
    int n;                      /* Samples of a batch. */
} models[] = {
    { &model_mlp, 50 }, { &model_cifarnet, 5 }, { &model_resnet32, 6 },
    { &model_linear, 40 },
};

#define N_STEPS 4               /* On a GPU: call by call, then recorded. */

/* What a model of random weights has learned. */
struct learned {
    size_t n_parameters;
    float *gradient;            /* The last one. */
    double losses[N_STEPS];     /* Of the batches. */
    double alone[N_STEPS];      /* And of steps alone after them. */
    double loss;                /* Of the samples to judge by. */
    int n_parts;
    size_t n_covered;           /* By the parts of the last gradient. */
};

static void
note_part(void *learned_, size_t first, size_t n)
{
    struct learned *l = learned_;

    l->n_parts++;
    l->n_covered += n;
    assert_true(first + n <= l->n_parameters);
}

static struct learned
learn(struct backend *backend, const struct model_class *class,
      const struct dataset *data, int n)
{
    struct model_config config = {
        .backend = backend, .max_batch = n / 2 + 1, .image = data->image,
        .n_inputs = data->n_inputs, .n_classes = data->n_classes,
        .sparse = data->train.starts,
    };
    struct batch *batch = batch_create();
    struct learned l = { .gradient = NULL };
    struct model *model;
    double accuracy;

    assert_null(shape_from_string("20,70,33,7", &config.shape));
    assert_null(model_create(class, &config, &model));
    l.n_parameters = model->n_parameters;
    l.gradient = allocate(model->n_parameters, sizeof *l.gradient);
    model_init_weights(model, 5, model->weights);
    for (int i = 0; i < N_STEPS; i++) {
        model_weights_changed(model);
        dataset_fill(data, 3, (i & 1) * n, n, batch);
        l.n_parts = l.n_covered = 0;
        model_gradient(model, batch, note_part, &l, &l.losses[i]);
        memcpy(l.gradient, model->gradient,
               model->n_parameters * sizeof *l.gradient);
        for (size_t j = 0; j < model->n_parameters; j++) {
            model->weights[j] -= 0.005f * l.gradient[j];
        }
    }
    model_weights_changed(model);
    for (int i = 0; class->step && i < N_STEPS; i++) {
        class->step(model, batch, i < 3 ? 0.005f : 0.001f, 0.9f,
                    &l.alone[i]);
    }
    model_evaluate(model, data, &l.loss, &accuracy);
    assert_int_equal(l.n_covered, l.n_parameters);
    model_destroy(model);
    batch_destroy(batch);
    return l;
}

static struct dataset *
make_data(const struct model_class *class)
{
    struct dataset_config config = {
        .n_inputs = class->sparse ? 300 : 20, .n_classes = 7,
        .image = { 12, 8, 3 }, .n_train = 100, .n_held = 30, .seed = 4,
    };

    return class->sparse ? dataset_generate_sparse(&config)
           : class->images ? dataset_generate_images(&config)
           : dataset_generate(&config);
}

/* Compares with the CPU's backend.  To the bit if 'tolerance' is 0. */
static void
check_model(struct backend *backend, const struct model_class *class, int n,
            double tolerance)
{
    struct dataset *data = make_data(class);
    double off = 0, norm = 0;
    struct backend *cpu;
    struct learned mine, right;

    assert_int_equal(backend_open(&backend_cpu, 0, 1, &cpu), 0);
    mine = learn(backend, class, data, n);
    right = learn(cpu, class, data, n);
    if (!(right.losses[2] < right.losses[0])) {
        fail_msg("%s: loss %g, then %g", class->name, right.losses[0],
                 right.losses[2]);
    }
    for (int i = 0; i < N_STEPS; i++) {
        assert_true(fabs(mine.losses[i] - right.losses[i])
                    <= tolerance * right.losses[i]);
        assert_true(fabs(mine.alone[i] - right.alone[i])
                    <= tolerance * right.alone[i]);
    }
    assert_true(fabs(mine.loss - right.loss) <= tolerance * right.loss);
    for (size_t i = 0; i < right.n_parameters; i++) {
        double difference = mine.gradient[i] - right.gradient[i];

        off += difference * difference;
        norm += (double) right.gradient[i] * right.gradient[i];
    }
    assert_true(norm > 0 && sqrt(off / norm) <= tolerance);
    assert_int_equal(mine.n_parts, right.n_parts);
    free(mine.gradient);
    free(right.gradient);
    dataset_destroy(data);
    backend_close(cpu);
}

/* The differences of four steps, of which each begins where the last one
 * ended, add up. */
static void
models_learn_as_on_the_cpu(void **state)
{
    for (size_t i = 0; i < N_ELEMENTS(models); i++) {
        check_model(b, models[i].class, models[i].n,
                    b->class == &backend_cpu ? 0 : 1e-4);
    }
}

/* A model whose vectors the host cannot see in place copies them, and gets
 * the same. */
static void
models_need_no_mapped_memory(void **state)
{
    struct backend_class unmapped = *b->class;
    struct backend *alone;

    if (b->class != &backend_cpu) {
        skip();
    }
    assert_int_equal(backend_open(&backend_cpu, 0, 1, &alone), 0);
    unmapped.map = NULL;
    alone->class = &unmapped;
    for (size_t i = 0; i < N_ELEMENTS(models); i++) {
        check_model(alone, models[i].class, models[i].n, 0);
    }
    backend_close(alone);
}

static void
nothing_has_failed(void **state)
{
    assert_null(backend_failure(b));
}

static void
names_are_those_of_the_build(void **state)
{
    struct backend *other;
    char *error = backend_open_named("abacus", 1, &other);

    assert_string_equal(error, "--backend: \"abacus\": not in this build, "
                        "\"auto\" takes what there is");
    assert_null(other);
    free(error);
    assert_null(backend_open_named(b->class->name, 1, &other));
    assert_ptr_equal(other->class, b->class);
    backend_close(other);
    assert_null(backend_open_named("auto", 1, &other));
    backend_close(other);
    assert_int_equal(backend_open(b->class, 1000, 1, &other), ENODEV);
    assert_null(other);
}

/* Tests 'b'.  Returns the number of failed tests. */
static int
test_backend(const char *name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_keeps_what_is_uploaded),
        cmocka_unit_test(gemm_multiplies_and_transposes),
        cmocka_unit_test(bias_is_added_to_each_row_and_cut),
        cmocka_unit_test(gradient_of_what_was_cut_is_0),
        cmocka_unit_test(columns_are_summed),
        cmocka_unit_test(cross_entropy_has_loss_hits_and_gradient),
        cmocka_unit_test(the_first_of_equals_is_the_answer),
        cmocka_unit_test(convolutions_and_gradients_are_sums_of_products),
        cmocka_unit_test(neighbourhoods_are_copied_and_added_up),
        cmocka_unit_test(pools_take_the_largest_and_its_gradient_returns),
        cmocka_unit_test(mean_pools_and_their_gradient_spread),
        cmocka_unit_test(columns_are_normalised_and_statistics_move_on),
        cmocka_unit_test(gradient_of_normalisation_is_that_of_the_formula),
        cmocka_unit_test(ways_around_skip_pixels_and_pad_channels),
        cmocka_unit_test(sparse_rows_are_multiplied),
        cmocka_unit_test(margins_have_loss_hits_and_gradient),
        cmocka_unit_test(accumulate_adds_a_multiple),
        cmocka_unit_test(sgd_steps_with_momentum),
        cmocka_unit_test(models_learn_as_on_the_cpu),
        cmocka_unit_test(models_need_no_mapped_memory),
        cmocka_unit_test(names_are_those_of_the_build),
        cmocka_unit_test(nothing_has_failed),
    };

    seeded_init(&rs, 11, 1);
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int
main(int argc, char *argv[])
{
    bool all = argc == 2 && !strcmp(argv[1], "all");
    int n_failed = 0, n_gpus = 0;

    if (!all && (argc != 2 || strcmp(argv[1], "cpu"))) {
        fputs("usage: test-backend cpu|all\n", stderr);
        return 2;
    }
    for (int i = 0; backend_classes[i]; i++) {
        const struct backend_class *class = backend_classes[i];
        int error;

        if (!all && class != &backend_cpu) {
            continue;
        }
        error = backend_open(class, 0, 1, &b);
        if (error) {
            printf("%s: skipped: %s\n", class->name, strerror(error));
            n_failed += error != ENODEV;
            continue;
        }
        n_gpus += class != &backend_cpu;
        n_failed += test_backend(class->name);
        backend_close(b);
    }
    if (all && !n_gpus && !n_failed) {
        puts("skipped: no GPU backend has a device here");
        return SKIPPED;
    }
    return n_failed > 0;
}
