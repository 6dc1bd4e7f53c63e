/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit-test.h"
#include "trainer/backend/backend.h"
#include "trainer/data/dataset.h"
#include "trainer/data/seeded.h"
#include "trainer/models/model.h"
#include "trainer/models/shape.h"
#include "trainer/schemes/sync.h"

#define BATCH 24

struct fixture {
    struct backend *b;
    struct shape shape;
    struct dataset *ds;
    struct model *model;
    struct batch *batch;
    size_t n;                   /* Parameters. */
};

static struct model *
create_model(const struct fixture *f, int max_batch)
{
    struct model_config config = {
        .backend = f->b, .max_batch = max_batch, .shape = f->shape,
    };
    struct model *model;

    assert_null(model_create(&model_mlp, &config, &model));
    return model;
}

static int
set_up(void **state)
{
    static struct fixture f;
    struct dataset_config config = {
        .n_inputs = 9, .n_classes = 5, .n_train = 100, .n_held = 50,
        .seed = 3,
    };

    assert_null(shape_from_string("9,13,11,5", &f.shape));
    assert_int_equal(backend_open(&backend_cpu, 0, 1, &f.b), 0);
    f.ds = dataset_generate(&config);
    f.model = create_model(&f, BATCH);
    f.n = f.model->n_parameters;
    assert_int_equal(f.n, shape_n_parameters(&f.shape));
    f.batch = batch_create();
    model_init_weights(f.model, 3, f.model->weights);
    model_weights_changed(f.model);
    *state = &f;
    return 0;
}

static int
tear_down(void **state)
{
    struct fixture *f = *state;

    model_destroy(f->model);
    batch_destroy(f->batch);
    dataset_destroy(f->ds);
    backend_close(f->b);
    return 0;
}

/* The mean loss with parameter 'i' moved by 'step'. */
static double
loss_at(struct fixture *f, size_t i, double step)
{
    float *weights = f->model->weights;
    float old = weights[i];
    double loss_sum;
    int n_correct;

    weights[i] = old + step;
    model_weights_changed(f->model);
    model_mlp.evaluate(f->model, f->batch, &loss_sum, &n_correct);
    weights[i] = old;
    model_weights_changed(f->model);
    return loss_sum / BATCH;
}

FIXTURE_TEST(gradient_is_the_slope_of_the_loss)
{
    const float *gradient = f->model->gradient;
    const double step = 1e-3;
    double error = 0, norm = 0, loss;

    dataset_fill(f->ds, 3, 0, BATCH, f->batch);
    model_gradient(f->model, f->batch, NULL, NULL, &loss);
    assert_true(fabs(loss / BATCH - loss_at(f, 0, 0)) < 1e-5);
    for (size_t i = 0; i < f->n; i++) {
        double slope = (loss_at(f, i, step) - loss_at(f, i, -step))
                       / (2 * step);

        error += (slope - gradient[i]) * (slope - gradient[i]);
        norm += slope * slope;
    }
    assert_true(norm > 1e-3);
    assert_true(sqrt(error / norm) < 1e-3);
}

FIXTURE_TEST(evaluation_does_not_depend_on_the_batch)
{
    struct model *other = create_model(f, 7);
    double loss[2], accuracy[2];

    memcpy(other->weights, f->model->weights, f->n * sizeof(float));
    model_weights_changed(other);
    model_evaluate(f->model, f->ds, &loss[0], &accuracy[0]);
    model_evaluate(other, f->ds, &loss[1], &accuracy[1]);
    assert_true(fabs(loss[0] - loss[1]) < 1e-5);
    assert_true(accuracy[0] == accuracy[1]);
    model_destroy(other);
}

/* Trains with the batch split into 'parts' among as many workers.  Stores the
 * last weights in 'weights'. */
static void
train(struct fixture *f, int n_workers, const int parts[], float *weights)
{
    struct sync *sync = sync_create(&sync_bsp, &(struct sync_config) {
        .backend = f->b, .n_workers = n_workers, .n = f->n,
        .optimiser = optimiser_defaults(optimiser_find("momentum"), 0.1f,
                                        0.9f),
    });
    uint64_t iteration;
    float loss;

    model_init_weights(f->model, 3, sync_weights(sync));
    for (uint64_t k = 0; k < 10; k++) {
        uint64_t position = k * BATCH;

        memcpy(f->model->weights, sync_weights(sync),
               f->n * sizeof *weights);
        model_weights_changed(f->model);
        for (int i = 0; i < n_workers; i++) {
            double sum;

            assert_true(sync_bsp.ready(sync, i, &iteration, &loss));
            assert_int_equal(iteration, k);
            dataset_fill(f->ds, 3, position, parts[i], f->batch);
            position += parts[i];
            model_gradient(f->model, f->batch, NULL, NULL, &sum);
            memcpy(sync_inbox(sync, i), f->model->gradient,
                   f->n * sizeof *weights);
            assert_null(sync_bsp.push(sync, i, k, parts[i],
                                      parts[i] ? sum / parts[i] : 0));
            if (i < n_workers - 1) {
                assert_false(sync_bsp.ready(sync, i, &iteration, &loss));
            }
        }
    }
    memcpy(weights, sync_weights(sync), f->n * sizeof *weights);
    sync_destroy(sync);
}

FIXTURE_TEST(any_split_of_a_batch_gives_the_same_weights)
{
    static const struct {
        int n_workers, parts[5];
    } splits[] = {
        { 2, { 12, 12 } },
        { 4, { 6, 6, 6, 6 } },
        { 3, { 1, 22, 1 } },
        { 4, { 0, 20, 4, 0 } },
    };
    float *alone = calloc(f->n, sizeof *alone);
    float *split = calloc(f->n, sizeof *split);

    train(f, 1, (const int[]) { BATCH }, alone);
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        double worst = 0;

        train(f, splits[i].n_workers, splits[i].parts, split);
        for (size_t j = 0; j < f->n; j++) {
            worst = fmax(worst, fabs(alone[j] - split[j]));
        }
        assert_true(worst < 1e-5);
    }

    /* The test sees a difference if there is one. */
    train(f, 1, (const int[]) { BATCH - 1 }, split);
    assert_memory_not_equal(alone, split, f->n * sizeof *alone);
    free(alone);
    free(split);
}

FIXTURE_TEST(refuses_gradients_of_another_iteration)
{
    struct sync *sync = sync_create(&sync_bsp, &(struct sync_config) {
        .backend = f->b, .n_workers = 2, .n = 4,
        .optimiser = optimiser_defaults(optimiser_find("sgd"), 1, 0),
    });
    char *error = sync_bsp.push(sync, 0, 1, 1, 0);

    assert_is(error, "gradient of iteration 1; expected 0");
    assert_null(sync_bsp.push(sync, 0, 0, 1, 0));
    error = sync_bsp.push(sync, 0, 0, 1, 0);    /* Twice. */
    assert_non_null(error);
    free(error);
    sync_destroy(sync);
}

UNIT_TEST(permutations_hit_everything_once)
{
    for (uint64_t n = 1; n < 200; n += 7) {
        char *seen = calloc(n, 1);

        for (uint64_t i = 0; i < n; i++) {
            uint64_t j = seeded_permute(42, i, n);

            assert_true(j < n && !seen[j]);
            seen[j] = 1;
        }
        free(seen);
    }
}

static void
put_idx(const char *folder, const char *name, const uint8_t *bytes, size_t n)
{
    char path[256];
    FILE *stream;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, n, 1, stream), 1);
    fclose(stream);
}

UNIT_TEST(reads_idx_files_and_refuses_bad_ones)
{
    static const char *const names[] = {
        "train-images-idx3-ubyte", "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte",
    };
    static const uint8_t images[] = {
        0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3,
        0, 128, 255, 1, 2, 3,
    };
    static const uint8_t labels[] = { 0, 0, 8, 1, 0, 0, 0, 2, 7, 9 };
    static const uint8_t bad_labels[] = { 0, 0, 8, 1, 0, 0, 0, 2, 7, 10 };
    struct dataset_config config = {
        .n_inputs = 3, .n_classes = 10, .n_train = 100, .n_held = 1,
    };
    char folder[] = "/tmp/sct-mnist-XXXXXX", path[256];
    struct dataset *ds;
    char *error;

    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 4; i++) {
        put_idx(folder, names[i], i & 1 ? labels : images,
                i & 1 ? sizeof labels : sizeof images);
    }
    assert_null(dataset_mnist(&config, folder, &ds));
    assert_int_equal(ds->n_train, 2);
    assert_int_equal(ds->n_held, 1);
    assert_int_equal(ds->train_labels[1], 9);
    assert_true(ds->train_x[0] < ds->train_x[1]
                && ds->train_x[1] < ds->train_x[2]);
    dataset_destroy(ds);

    put_idx(folder, names[1], bad_labels, sizeof bad_labels);
    assert_says(dataset_mnist(&config, folder, &ds), "label 10");

    put_idx(folder, names[0], images, sizeof images - 1);
    error = dataset_mnist(&config, folder, &ds);
    assert_says(error, "shorter than its header says");

    config.n_inputs = 4;
    put_idx(folder, names[0], images, sizeof images);
    put_idx(folder, names[1], labels, sizeof labels);
    error = dataset_mnist(&config, folder, &ds);
    assert_says(error, "1 by 3 pixels, 4 are needed");
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

UNIT_TEST(shapes_say_what_is_wrong)
{
    static const char *const bad[] = {
        "", "64", "64,", ",64", "64,x", "64,0,10", "64,-1,10", "64 10",
        "64,99999999999999999999,10", "1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1",
        "65536,65536",          /* 2^32 + 2^16 parameters. */
    };
    struct shape shape;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char *error = shape_from_string(bad[i], &shape);

        assert_non_null(error);
        free(error);
    }
    assert_null(shape_from_string("2,3,4", &shape));
    assert_int_equal(shape_n_parameters(&shape), 2 * 3 + 3 + 3 * 4 + 4);
    assert_null(shape_from_string("65535,65536", &shape));
    assert_int_equal(shape_n_parameters(&shape), (size_t) 1 << 32);
}
