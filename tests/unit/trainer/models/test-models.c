/* SPDX-License-Identifier: Apache-2.0 */

/* Models: their gradients are the slopes of their losses, they learn, and it
 * does not matter how many workers share a batch. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/unit-test.h"
#include "trainer/backend/backend.h"
#include "trainer/data/seeded.h"
#include "trainer/models/model.h"
#include "trainer/schemes/sync.h"

#define SEED 3

/* A model, small data for it, and what it must reach. */
struct task {
    const struct model_class *class;
    bool hinge;
    int batch;
    int n_steps;
    float rate;
    double loss;                /* Maximum after the last step. */
    bool splits;                /* A batch may be split among workers. */
};

static const struct task tasks[] = {
    { &model_mlp, false, 24, 80, 0.05f, 1.1, true },
    { &model_cifarnet, false, 16, 100, 0.02f, 1.1, true },
    { &model_resnet32, false, 16, 80, 0.05f, 1.1, false },
    { &model_linear, false, 24, 100, 0.1f, 0.55, true },
    { &model_linear, true, 24, 100, 0.1f, 0.6, true },
};

struct fixture {
    struct backend *b;
    struct dataset *data;
    struct model *model;
    struct batch *batch;
};

static struct fixture
begin(const struct task *task)
{
    struct dataset_config config = {
        .n_inputs = task->class->sparse ? 200 : 40, .n_classes = 4,
        .image = { 8, 8, 2 }, .n_train = 800, .n_held = 64, .seed = SEED,
    };
    struct model_config model_config = {
        .max_batch = task->batch, .image = config.image,
        .hinge = task->hinge, .sparse = task->class->sparse,
    };
    struct fixture f = { .batch = batch_create() };

    f.data = task->class->sparse ? dataset_generate_sparse(&config)
             : task->class->images ? dataset_generate_images(&config)
             : dataset_generate(&config);
    assert_int_equal(backend_open(&backend_cpu, 0, 1, &f.b), 0);
    assert_null(shape_from_string("40,13,11,4", &model_config.shape));
    model_config.backend = f.b;
    model_config.n_inputs = f.data->n_inputs;
    model_config.n_classes = f.data->n_classes;
    assert_null(model_create(task->class, &model_config, &f.model));
    model_init_weights(f.model, SEED, f.model->weights);
    model_weights_changed(f.model);
    return f;
}

static void
end(struct fixture *f)
{
    model_destroy(f->model);
    batch_destroy(f->batch);
    dataset_destroy(f->data);
    backend_close(f->b);
}

/* The mean loss of the batch as training sees it, at weights moved by 'step'
 * in a direction. */
static double
loss_at(struct fixture *f, const float *weights, const float *direction,
        double step)
{
    double loss;

    for (size_t i = 0; i < f->model->n_parameters; i++) {
        f->model->weights[i] = weights[i] + step * direction[i];
    }
    model_weights_changed(f->model);
    model_gradient(f->model, f->batch, NULL, NULL, &loss);
    return loss / f->batch->n;
}

/* Along random directions.  What is cut at 0 bends the loss, so that the
 * slope over a step is not exactly the slope at its middle. */
static void
check_slopes(const struct task *task)
{
    struct fixture f = begin(task);
    size_t n = f.model->n_parameters;
    float *weights = allocate(n, sizeof *weights);
    float *gradient = allocate(n, sizeof *gradient);
    float *direction = allocate(n, sizeof *direction);
    double step = 1e-3, wrong = 0, right = 0, loss;
    struct seeded rs;

    seeded_init(&rs, 1, 1);
    for (size_t i = 0; i < n; i++) {    /* A linear model begins with 0. */
        f.model->weights[i] += 0.02 * seeded_normal(&rs);
    }
    memcpy(weights, f.model->weights, n * sizeof *weights);
    model_weights_changed(f.model);
    dataset_fill(f.data, SEED, 0, task->batch, f.batch);
    model_gradient(f.model, f.batch, NULL, NULL, &loss);
    memcpy(gradient, f.model->gradient, n * sizeof *gradient);
    for (int i = 0; i < 20; i++) {
        double slope, wanted = 0;

        for (size_t j = 0; j < n; j++) {
            direction[j] = seeded_normal(&rs) / sqrt(n) * 4;
            wanted += (double) direction[j] * gradient[j];
        }
        slope = (loss_at(&f, weights, direction, step)
                 - loss_at(&f, weights, direction, -step)) / (2 * step);
        wrong += (slope - wanted) * (slope - wanted);
        right += wanted * wanted;
    }
    if (!(sqrt(wrong / right) < 0.02)) {
        fail_msg("%s: slopes are off by %g", task->class->name,
                 sqrt(wrong / right));
    }
    free(weights);
    free(gradient);
    free(direction);
    end(&f);
}

UNIT_TEST(gradients_are_the_slopes_of_the_loss)
{
    for (size_t i = 0; i < N_ELEMENTS(tasks); i++) {
        check_slopes(&tasks[i]);
    }
}

/* Trains with each batch split among 'n_workers', which are all the one model
 * here.  Stores the losses of the batches. */
static void
train(struct fixture *f, const struct task *task, int n_workers, int n_steps,
      double losses[])
{
    size_t n = f->model->n_parameters;
    struct sync *sync = sync_create(&sync_bsp, &(struct sync_config) {
        .backend = f->b, .n_workers = n_workers, .n = n,
        .optimiser = optimiser_defaults(optimiser_find("momentum"),
                                        task->rate, 0.9f),
    });
    uint64_t iteration;
    float loss;

    memcpy(sync_weights(sync), f->model->weights, n * sizeof(float));
    for (int k = 0; k < n_steps; k++) {
        for (int i = 0; i < n_workers; i++) {
            int first = task->batch * i / n_workers;
            int share = task->batch * (i + 1) / n_workers - first;
            double sum;

            dataset_fill(f->data, SEED, (uint64_t) k * task->batch + first,
                         share, f->batch);
            model_gradient(f->model, f->batch, NULL, NULL, &sum);
            memcpy(sync_inbox(sync, i), f->model->gradient,
                   n * sizeof(float));
            assert_null(sync_bsp.push(sync, i, k, share, sum / share));
        }
        assert_true(sync_bsp.ready(sync, 0, &iteration, &loss));
        losses[k] = loss;
        memcpy(f->model->weights, sync_weights(sync), n * sizeof(float));
        model_weights_changed(f->model);
    }
    sync_destroy(sync);
}

UNIT_TEST(losses_fall)
{
    for (size_t i = 0; i < N_ELEMENTS(tasks); i++) {
        struct fixture f = begin(&tasks[i]);
        double *losses = allocate(tasks[i].n_steps, sizeof *losses);
        double before, after, accuracy;

        model_evaluate(f.model, f.data, &before, &accuracy);
        train(&f, &tasks[i], 1, tasks[i].n_steps, losses);
        model_evaluate(f.model, f.data, &after, &accuracy);
        if (!(after < tasks[i].loss && after < before)) {
            fail_msg("%s: held-out loss %g, %g wanted",
                     tasks[i].class->name, after, tasks[i].loss);
        }
        free(losses);
        end(&f);
    }
}

UNIT_TEST(workers_that_share_batches_have_the_same_curve)
{
    enum { N_STEPS = 8 };

    for (size_t i = 0; i < N_ELEMENTS(tasks); i++) {
        double curves[2][N_STEPS];

        for (int j = 0; tasks[i].splits && j < 2; j++) {
            struct fixture f = begin(&tasks[i]);

            train(&f, &tasks[i], j ? 5 : 1, N_STEPS, curves[j]);
            end(&f);
        }
        for (int j = 0; tasks[i].splits && j < N_STEPS; j++) {
            assert_true(fabs(curves[0][j] - curves[1][j]) < 1e-4);
        }
    }
}

/* To the bit what the scheme makes of the same gradients. */
UNIT_TEST(steps_alone_are_those_of_one_worker)
{
    enum { N_STEPS = 5 };

    for (size_t i = 0; i < N_ELEMENTS(tasks); i++) {
        const struct task *task = &tasks[i];
        struct fixture f = begin(task), alone = begin(task);
        double curve[N_STEPS], loss;

        train(&f, task, 1, N_STEPS, curve);
        for (int k = 0; task->class->step && k < N_STEPS; k++) {
            dataset_fill(alone.data, SEED, (uint64_t) k * task->batch,
                         task->batch, alone.batch);
            task->class->step(alone.model, alone.batch, task->rate, 0.9f,
                              &loss);
            assert_true((float) (loss / task->batch) == (float) curve[k]);
        }
        if (task->class->step) {
            assert_memory_equal(f.model->weights, alone.model->weights,
                                f.model->n_parameters * sizeof(float));
        }
        end(&f);
        end(&alone);
    }
}

/* What was final when it was announced is what is there at the end, and comes
 * from the end of the vector on. */
struct parts {
    const struct model *model;
    float *seen;
    size_t next;                /* Everything from here on has been seen. */
    int n;
};

static void
see_part(void *parts_, size_t first, size_t n)
{
    struct parts *parts = parts_;

    assert_int_equal(first + n, parts->next);
    memcpy(parts->seen + first, parts->model->gradient + first,
           n * sizeof *parts->seen);
    parts->next = first;
    parts->n++;
}

UNIT_TEST(parts_of_gradients_are_final_when_they_leave)
{
    for (size_t i = 0; i < N_ELEMENTS(tasks); i++) {
        struct fixture f = begin(&tasks[i]);
        size_t n = f.model->n_parameters;
        struct parts parts = { f.model, allocate(n, sizeof(float)), n, 0 };
        double loss;

        dataset_fill(f.data, SEED, 0, tasks[i].batch, f.batch);
        model_gradient(f.model, f.batch, see_part, &parts, &loss);
        assert_int_equal(parts.next, 0);
        assert_memory_equal(parts.seen, f.model->gradient, n * sizeof(float));
        assert_true(n < 40000 || parts.n > 1);
        free(parts.seen);
        end(&f);
    }
}

/* More samples than at creation, then few again, give the same as ever. */
UNIT_TEST(batches_may_grow)
{
    for (size_t i = 0; i < N_ELEMENTS(tasks); i++) {
        struct fixture f = begin(&tasks[i]);
        size_t bytes = f.model->n_parameters * sizeof(float);
        float *before = allocate(1, bytes);
        double loss, again, other;

        dataset_fill(f.data, SEED, 0, 4, f.batch);
        model_gradient(f.model, f.batch, NULL, NULL, &loss);
        memcpy(before, f.model->gradient, bytes);
        dataset_fill(f.data, SEED, 4, 3 * tasks[i].batch, f.batch);
        model_gradient(f.model, f.batch, NULL, NULL, &other);
        assert_memory_not_equal(before, f.model->gradient, bytes);
        dataset_fill(f.data, SEED, 0, 4, f.batch);
        model_gradient(f.model, f.batch, NULL, NULL, &again);
        assert_true(loss == again);
        assert_memory_equal(before, f.model->gradient, bytes);
        dataset_fill(f.data, SEED, 0, 0, f.batch);
        model_gradient(f.model, f.batch, NULL, NULL, &loss);
        assert_true(loss == 0);
        free(before);
        end(&f);
    }
}

UNIT_TEST(keys_of_sparse_gradients_are_all_that_is_not_0)
{
    struct fixture f = begin(&tasks[3]);
    const struct model *m = f.model;
    double loss;

    for (int k = 0; k < 5; k++) {
        size_t next = 0;

        dataset_fill(f.data, SEED, 7 * k, 3, f.batch);
        model_gradient(f.model, f.batch, NULL, NULL, &loss);
        assert_true(m->n_keys > 1 && m->n_keys < m->n_parameters);
        assert_int_equal(m->keys[m->n_keys - 1], m->n_parameters - 1);
        for (size_t i = 0; i < m->n_parameters; i++) {
            bool is_key = next < m->n_keys && m->keys[next] == i;

            next += is_key;
            assert_true(is_key || m->gradient[i] == 0);
        }
        assert_int_equal(next, m->n_keys);
    }
    end(&f);
}

UNIT_TEST(models_have_the_sizes_that_are_known)
{
    static const struct {
        const struct model_class *class;
        struct image image;
        size_t n_parameters;
    } sizes[] = {
        { &model_cifarnet, { 32, 32, 3 }, 1158730 },
        { &model_cifarnet, { 28, 28, 1 }, 909770 },
        { &model_resnet32, { 32, 32, 3 }, 464154 },
    };
    struct backend *b;

    assert_int_equal(backend_open(&backend_cpu, 0, 1, &b), 0);
    for (size_t i = 0; i < N_ELEMENTS(sizes); i++) {
        struct model_config config = {
            .backend = b, .max_batch = 1, .image = sizes[i].image,
            .n_classes = 10,
        };
        struct model *model;

        assert_null(model_create(sizes[i].class, &config, &model));
        assert_int_equal(model->n_parameters, sizes[i].n_parameters);
        model_destroy(model);
    }
    backend_close(b);
}

UNIT_TEST(models_refuse_samples_of_another_kind)
{
    static const struct {
        const char *model;
        struct model_config config;
        const char *message;
    } cases[] = {
        { "cifarnet", { .n_classes = 10 },
          "--model: \"cifarnet\" needs images, height and width multiples of "
          "4 from 8 on" },
        { "resnet32", { .image = { 10, 12, 3 }, .n_classes = 10 },
          "--model: \"resnet32\" needs images, height and width multiples of "
          "4 from 8 on" },
        { "linear", { .n_inputs = 5, .n_classes = 2 },
          "--model: \"linear\" needs samples that are sparse" },
        { "mlp", { .n_inputs = 5, .n_classes = 2, .sparse = true },
          "--model: \"mlp\" needs samples that are not sparse" },
    };

    for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
        struct model *model;
        char *error = model_create(model_class_find(cases[i].model),
                                   &cases[i].config, &model);

        assert_is(error, cases[i].message);
        assert_null(model);
    }
    assert_null(model_class_find("perceptron"));
}
