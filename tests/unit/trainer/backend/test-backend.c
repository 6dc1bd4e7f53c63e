/* SPDX-License-Identifier: Apache-2.0 */

/* Every operation of a backend against float64 arithmetic.
 *
 * "test-backend cpu" is about the CPU's backend.  "test-backend all" is about
 * all backends of the build, and is skipped (77) if only the CPU's opens.
 *
 * The operations on images and the models are in files of their own. */

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/trainer/backend/test-backend.h"
#include "tests/unit/unit-test.h"

#define SKIPPED 77

struct backend *b;
struct seeded rs;

struct vector
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

float *
vector_download(const struct vector *v)
{
    float *x = allocate(v->n, sizeof *x);

    b->class->download(b, x, v->d_x, v->n * sizeof *x);
    return x;
}

void
vector_free(struct vector *v)
{
    backend_free(b, v->d_x);
    free(v->x);
}

void
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
    { 1100, 1000 }, { 1, 66000 },
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

/* Adds 'x' to 'sum', which leaves for 'to' if that is nonnull. */
static void
queue_addition(struct vector *x, struct vector *sum, float *to)
{
    b->class->step(b);
    b->class->accumulate(b, x->n, 1, x->d_x, sum->d_x);
    if (to) {
        b->class->leave(b, 0, to, sum->d_x, x->n * sizeof *to);
        b->class->accumulate(b, x->n, 1, x->d_x, x->d_x);
    }
}

/* With and without something that leaves: what leaves is what was there before
 * the work that was queued after it. */
static void
what_is_recorded_is_replayed(void **state)
{
    const size_t n = 1000;

    for (int leaves = 0; b->class->record && leaves < 2; leaves++) {
        struct vector x = vector_random(n, 1), sum = vector_random(n, 1);
        float *to = backend_alloc_host(b, n * sizeof *to), *result;
        struct backend_recording *recording = NULL;

        if (b->class->record(b)) {
            queue_addition(&x, &sum, leaves ? to : NULL);
            recording = b->class->record_end(b);
        }
        if (getenv("EMULATOR_REFUSES")) {
            assert_null(recording);
            backend_free_host(b, to);
            vector_free(&x);
            vector_free(&sum);
            skip();
        }
        assert_non_null(recording);
        result = vector_download(&sum);
        assert_memory_equal(result, sum.x, n * sizeof *result);
        free(result);
        for (int i = 1; i <= 3; i++) {
            b->class->replay(b, recording);
            if (leaves) {
                b->class->await(b, 0);
            }
            result = vector_download(&sum);
            for (size_t j = 0; j < n; j++) {
                double times = leaves ? (1 << i) - 1 : i;

                assert_near(result[j], sum.x[j] + times * x.x[j],
                            fabs(sum.x[j]) + times * fabs(x.x[j]));
                assert_true(!leaves || to[j] == result[j]);
            }
            free(result);
        }
        b->class->recording_free(b, recording);
        backend_free_host(b, to);
        vector_free(&x);
        vector_free(&sum);
    }
}

/* The number of times that a part leaves; an argument of the program. */
static int n_replays = 200;

/* What await() has waited for is there as a whole, at once, and of its own
 * step.  All elements of the part are the number of the step. */
static void
parts_are_whole_when_they_arrive(void **state)
{
    const size_t n = n_replays > 1000 ? 2 << 20 : 1000;
    float *ones, *to;
    float *d_one, *d_sum;
    struct backend_recording *recording = NULL;

    if (!b->class->record) {
        skip();
    }
    ones = backend_alloc_host(b, n * sizeof *ones);
    to = backend_alloc_host(b, n * sizeof *to);
    d_one = backend_alloc(b, n * sizeof *d_one);
    d_sum = backend_alloc(b, n * sizeof *d_sum);
    for (size_t i = 0; i < n; i++) {
        ones[i] = 1;
    }
    b->class->upload(b, d_one, ones, n * sizeof *ones);
    if (b->class->record(b)) {
        b->class->step(b);
        b->class->accumulate(b, n, 1, d_one, d_sum);
        b->class->leave(b, 0, to, d_sum, n * sizeof *to);
        recording = b->class->record_end(b);
    }
    for (int i = 1; recording && i <= n_replays; i++) {
        size_t n_right = 0;

        b->class->replay(b, recording);
        b->class->await(b, 0);
        for (size_t j = 0; j < n; j++) {
            n_right += to[j] == i;
        }
        assert_int_equal(n_right, n);
        /* The next step must not write before this one is read. */
        backend_sync(b);
    }
    if (recording) {
        b->class->recording_free(b, recording);
    }
    backend_free(b, d_sum);
    backend_free(b, d_one);
    backend_free_host(b, to);
    backend_free_host(b, ones);
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

    assert_is(error, "--backend: \"abacus\": not in this build, "
                     "\"auto\" takes what there is");
    assert_null(other);
    assert_null(backend_open_named(b->class->name, 1, &other));
    assert_ptr_equal(other->class, b->class);
    backend_close(other);
    assert_null(backend_open_named("auto", 1, &other));
    backend_close(other);
    assert_int_equal(backend_open(b->class, 1000, 1, &other), ENODEV);
    assert_null(other);
}

/* Whole models; operations one by one.  An argument of the program omits one,
 * but not the tests of recordings. */
static bool with_models = true, with_operations = true;

/* Tests 'b'.  Returns the number of failed tests. */
static int
test_backend(const char *name)
{
    const struct CMUnitTest operations[] = {
        cmocka_unit_test(memory_is_zeroed_and_keeps_what_is_uploaded),
        cmocka_unit_test(gemm_multiplies_and_transposes),
        cmocka_unit_test(bias_is_added_to_each_row_and_cut),
        cmocka_unit_test(gradient_of_what_was_cut_is_0),
        cmocka_unit_test(columns_are_summed),
        cmocka_unit_test(cross_entropy_has_loss_hits_and_gradient),
        cmocka_unit_test(the_first_of_equals_is_the_answer),
        cmocka_unit_test(sparse_rows_are_multiplied),
        cmocka_unit_test(margins_have_loss_hits_and_gradient),
        cmocka_unit_test(accumulate_adds_a_multiple),
        cmocka_unit_test(sgd_steps_with_momentum),
    };
    const struct CMUnitTest recordings[] = {
        cmocka_unit_test(what_is_recorded_is_replayed),
        cmocka_unit_test(parts_are_whole_when_they_arrive),
        cmocka_unit_test(names_are_those_of_the_build),
        cmocka_unit_test(nothing_has_failed),
    };

    int n_failed = 0;

    seeded_init(&rs, 11, 1);
    if (with_operations) {
        n_failed += test_backend_images(name);
    }
    if (with_models) {
        n_failed += test_backend_models(name);
    }
    if (with_operations) {
        n_failed += cmocka_run_group_tests_name(name, operations, NULL, NULL);
    }
    n_failed += cmocka_run_group_tests_name(name, recordings, NULL, NULL);
    return n_failed;
}

int
main(int argc, char *argv[])
{
    bool all = argc > 1 && !strcmp(argv[1], "all");
    int n_failed = 0, n_gpus = 0;

    if (argc < 2 || argc > 4 || (!all && strcmp(argv[1], "cpu"))
        || (argc == 4 && strcmp(argv[3], "operations")
            && strcmp(argv[3], "models"))) {
        fputs("usage: test-backend cpu|all [N_REPLAYS [operations|models]]\n",
              stderr);
        return 2;
    }
    n_replays = argc > 2 ? atoi(argv[2]) : n_replays;
    with_models = argc < 4 || !strcmp(argv[3], "models");
    with_operations = argc < 4 || !with_models;
    for (int i = 0; backend_classes[i]; i++) {
        const struct backend_class *class = backend_classes[i];
        int error;

        if (!all && class != &backend_cpu) {
            continue;
        }
        error = backend_open(class, 0, 1, &b);
        if (error) {
            printf("%s: %s: %s\n", class->name,
                   error == ENODEV ? "skipped" : "failed",
                   class->why ? class->why() : strerror(error));
            n_failed += error != ENODEV;
            continue;
        }
        n_gpus += class != &backend_cpu;
        n_failed += test_backend(class->name);
        if (class->describe) {
            char text[256];

            class->describe(b, text, sizeof text);
            printf("%s: %s\n", class->name, text);
        }
        backend_close(b);
    }
    if (all && !n_gpus && !n_failed) {
        puts("skipped: no GPU backend has a device here");
        return getenv("REQUIRE_GPU") ? 1 : SKIPPED;
    }
    return n_failed > 0;
}
