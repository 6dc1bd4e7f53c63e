/* SPDX-License-Identifier: Apache-2.0 */

/* Models of a backend against those of the CPU. */

#include "tests/unit/trainer/backend/test-backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tests/unit/unit-test.h"
#include "trainer/models/model.h"

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

/* Statistics that are kept and written again are those that were. */
static void
check_statistics(struct model *model, const struct dataset *data)
{
    size_t n = model->n_statistics;
    float *kept = allocate(n, sizeof *kept);
    double before, moved, after, accuracy;

    memcpy(kept, model->statistics, n * sizeof *kept);
    model_evaluate(model, data, &before, &accuracy);
    for (size_t i = 0; i < n; i++) {
        model->statistics[i] = 2;
    }
    model_weights_changed(model);
    model_evaluate(model, data, &moved, &accuracy);
    memcpy(model->statistics, kept, n * sizeof *kept);
    model_weights_changed(model);
    model_evaluate(model, data, &after, &accuracy);
    assert_true(after == before && moved != before);
    free(kept);
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
    struct batch *batch = n & 1 ? batch_create() : model_batch_create(backend);
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
    if (model->n_statistics) {
        check_statistics(model, data);
    }
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

/* The differences of four steps add up if each begins where the last one
 * ended. */
static void
models_learn_as_on_the_cpu(void **state)
{
    for (size_t i = 0; i < N_ELEMENTS(models); i++) {
        check_model(b, models[i].class, models[i].n,
                    b->class == &backend_cpu ? 0 : 1e-4);
    }
}

/* A model with vectors that the host cannot see in place copies them, and gets
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

int
test_backend_models(const char *name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_learn_as_on_the_cpu),
        cmocka_unit_test(models_need_no_mapped_memory),
    };

    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
