/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/task/mlp.h"

#include <math.h>
#include <stdlib.h>

#include "trainer/backend/backend.h"
#include "trainer/message.h"
#include "trainer/task/seeded.h"
#include "trainer/task/shape.h"

struct mlp {
    struct backend *b;
    struct shape shape;
    int max_batch;
    size_t n_parameters;

    /* Of the backend. */
    float *d_weights, *d_gradient;      /* Flat, see the header. */
    float *d_y[SHAPE_MAX_WIDTHS];       /* Output of each layer; 0 is input. */
    float *d_dy[SHAPE_MAX_WIDTHS];      /* Its gradient; none for the input. */
    int32_t *d_labels;

    /* What the host sees: the above, or copies. */
    float *weights, *gradient;
};

static float *
host_view(struct backend *b, float *d_buffer, size_t n)
{
    return b->class->map ? b->class->map(b, d_buffer)
                         : allocate(n, sizeof(float));
}

struct mlp *
mlp_create(struct backend *b, const struct shape *shape, int max_batch)
{
    struct mlp *mlp = allocate(1, sizeof *mlp);

    mlp->b = b;
    mlp->shape = *shape;
    mlp->max_batch = max_batch;
    mlp->n_parameters = shape_n_parameters(shape);
    mlp->d_weights = backend_alloc(b, mlp->n_parameters * sizeof(float));
    mlp->d_gradient = backend_alloc(b, mlp->n_parameters * sizeof(float));
    for (int i = 0; i < shape->n; i++) {
        size_t bytes = (size_t) max_batch * shape->width[i] * sizeof(float);

        mlp->d_y[i] = backend_alloc(b, bytes);
        mlp->d_dy[i] = i ? backend_alloc(b, bytes) : NULL;
    }
    mlp->d_labels = backend_alloc(b, max_batch * sizeof *mlp->d_labels);
    mlp->weights = host_view(b, mlp->d_weights, mlp->n_parameters);
    mlp->gradient = host_view(b, mlp->d_gradient, mlp->n_parameters);
    return mlp;
}

void
mlp_destroy(struct mlp *mlp)
{
    if (mlp) {
        struct backend *b = mlp->b;

        if (!b->class->map) {
            free(mlp->weights);
            free(mlp->gradient);
        }
        backend_free(b, mlp->d_weights);
        backend_free(b, mlp->d_gradient);
        for (int i = 0; i < mlp->shape.n; i++) {
            backend_free(b, mlp->d_y[i]);
            backend_free(b, mlp->d_dy[i]);
        }
        backend_free(b, mlp->d_labels);
        free(mlp);
    }
}

float *
mlp_weights(struct mlp *mlp)
{
    return mlp->weights;
}

const float *
mlp_gradient_vector(const struct mlp *mlp)
{
    return mlp->gradient;
}

void
mlp_weights_changed(struct mlp *mlp)
{
    if (mlp->weights != mlp->d_weights) {
        mlp->b->class->upload(mlp->b, mlp->d_weights, mlp->weights,
                              mlp->n_parameters * sizeof *mlp->weights);
    }
}

void
mlp_init_weights(float *weights, const struct shape *shape, uint64_t seed)
{
    struct seeded rs;

    seeded_init(&rs, seed, 2);
    for (int i = 1; i < shape->n; i++) {
        int n_in = shape->width[i - 1], n_out = shape->width[i];
        double scale = sqrt((i == shape->n - 1 ? 1.0 : 2.0) / n_in);

        for (size_t j = 0; j < (size_t) n_in * n_out; j++) {
            *weights++ = scale * seeded_normal(&rs);
        }
        for (int j = 0; j < n_out; j++) {
            *weights++ = 0;
        }
    }
}

/* Runs 'n' samples through all layers. */
static void
forward(struct mlp *mlp, const float *x, const int32_t *labels, int n)
{
    const struct backend_class *class = mlp->b->class;
    const struct shape *s = &mlp->shape;
    const float *d_w = mlp->d_weights;

    class->upload(mlp->b, mlp->d_y[0], x,
                  (size_t) n * s->width[0] * sizeof *x);
    class->upload(mlp->b, mlp->d_labels, labels, n * sizeof *labels);
    for (int i = 1; i < s->n; i++) {
        int n_in = s->width[i - 1], n_out = s->width[i];
        const float *d_bias = d_w + (size_t) n_in * n_out;

        class->gemm(mlp->b, false, false, n, n_out, n_in, mlp->d_y[i - 1],
                    d_w, 0, mlp->d_y[i]);
        class->bias(mlp->b, n, n_out, d_bias, i < s->n - 1, mlp->d_y[i]);
        d_w = d_bias + n_out;
    }
}

/* Runs the gradient of the last layer's output back through all layers. */
static void
backward(struct mlp *mlp, int n)
{
    const struct backend_class *class = mlp->b->class;
    const struct shape *s = &mlp->shape;
    size_t offset = mlp->n_parameters;

    for (int i = s->n - 1; i > 0; i--) {
        int n_in = s->width[i - 1], n_out = s->width[i];

        offset -= n_out;
        class->column_sums(mlp->b, n, n_out, mlp->d_dy[i],
                           mlp->d_gradient + offset);
        offset -= (size_t) n_in * n_out;
        class->gemm(mlp->b, true, false, n_in, n_out, n, mlp->d_y[i - 1],
                    mlp->d_dy[i], 0, mlp->d_gradient + offset);
        if (i > 1) {
            class->gemm(mlp->b, false, true, n, n_in, n_out, mlp->d_dy[i],
                        mlp->d_weights + offset, 0, mlp->d_dy[i - 1]);
            class->relu_gradient(mlp->b, (size_t) n * n_in, mlp->d_y[i - 1],
                                 mlp->d_dy[i - 1]);
        }
    }
}

void
mlp_gradient(struct mlp *mlp, const float *x, const int32_t *labels, int n,
             double *loss_sum)
{
    int last = mlp->shape.n - 1, n_correct;

    *loss_sum = 0;
    if (n > 0) {
        forward(mlp, x, labels, n);
        mlp->b->class->cross_entropy(mlp->b, n, mlp->shape.width[last],
                                     mlp->d_y[last], mlp->d_labels,
                                     mlp->d_dy[last], loss_sum, &n_correct);
        backward(mlp, n);
        backend_sync(mlp->b);
    }
    if (mlp->gradient != mlp->d_gradient) {
        mlp->b->class->download(mlp->b, mlp->gradient, mlp->d_gradient,
                                mlp->n_parameters * sizeof *mlp->gradient);
    }
}

void
mlp_evaluate(struct mlp *mlp, const float *x, const int32_t *labels,
             size_t n, double *loss, double *accuracy)
{
    int last = mlp->shape.n - 1;
    double loss_total = 0;
    size_t n_right = 0;

    for (size_t i = 0; i < n; ) {
        int batch = n - i < mlp->max_batch ? n - i : mlp->max_batch;
        double loss_sum;
        int n_correct;

        forward(mlp, x + i * mlp->shape.width[0], labels + i, batch);
        mlp->b->class->cross_entropy(mlp->b, batch, mlp->shape.width[last],
                                     mlp->d_y[last], mlp->d_labels, NULL,
                                     &loss_sum, &n_correct);
        loss_total += loss_sum;
        n_right += n_correct;
        i += batch;
    }
    *loss = loss_total / n;
    *accuracy = (double) n_right / n;
}
