/* SPDX-License-Identifier: Apache-2.0 */

/* What tests/bench/schemes-*.sh cannot see from outside, as JSON: seconds of
 * batch size managers per iteration of 8 workers, and how a gradient's time
 * on this machine depends on its samples: 'launch_samples' is the part that
 * does not, in samples' times. */

#include <stdio.h>
#include <stdlib.h>

#include "trainer/backend/backend.h"
#include "trainer/balance/batch-size-manager.h"
#include "trainer/report.h"
#include "trainer/task/dataset.h"
#include "trainer/task/model.h"

#define N_WORKERS 8
#define ITERATIONS 1000
#define REPETITIONS 31

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return x < y ? -1 : x > y;
}

/* Median seconds of a gradient of 'n' samples. */
static double
gradient_seconds(struct model *model, const struct dataset *data, int n)
{
    struct batch *batch = batch_create();
    double seconds[REPETITIONS], loss;

    dataset_fill(data, 1, 0, n, batch);
    for (int i = -3; i < REPETITIONS; i++) {
        int64_t began = report_monotonic_us();

        model_gradient(model, batch, NULL, NULL, &loss);
        if (i >= 0) {
            seconds[i] = (report_monotonic_us() - began) * 1e-6;
        }
    }
    batch_destroy(batch);
    qsort(seconds, REPETITIONS, sizeof *seconds, compare_doubles);
    return seconds[REPETITIONS / 2];
}

static void
measure_gradient(double *fixed_s, double *sample_s)
{
    struct model_config config = {
        .max_batch = 64, .n_inputs = 784, .n_classes = 10,
        .shape = { .n = 4, .width = { 784, 1024, 1024, 10 } },
    };
    struct dataset *data = dataset_generate(&(struct dataset_config) {
        .n_inputs = 784, .n_classes = 10, .n_train = 256, .n_held = 1,
        .seed = 1,
    });
    struct model *model;
    double few, many;

    if (backend_open(&backend_cpu, 0, 1, &config.backend)
        || model_create(model_class_find("mlp"), &config, &model)) {
        exit(1);
    }
    model_init_weights(model, 1, model->weights);
    model_weights_changed(model);
    few = gradient_seconds(model, data, 8);
    many = gradient_seconds(model, data, 64);
    *sample_s = (many - few) / 56;
    *fixed_s = few - 8 * *sample_s;
    model_destroy(model);
    dataset_destroy(data);
    backend_close(config.backend);
}

static double
measure_manager(enum batch_size_mode mode)
{
    struct batch_size_config config = {
        .mode = mode, .n_workers = N_WORKERS, .batch = 512,
        .seed = 1,
    };
    struct batch_size_manager *bsm;
    int64_t began;

    if (batch_size_manager_create(&config, &bsm)) {
        exit(1);
    }
    began = report_monotonic_us();
    for (int k = 0; k < ITERATIONS; k++) {
        const uint32_t *sizes = batch_size_manager_next(bsm);

        for (int i = 0; i < N_WORKERS; i++) {
            double speed = i == 6 ? 1600 : i == 7 ? 400 : 800;

            batch_size_manager_report(bsm, i, sizes[i],
                                      sizes[i] / (speed + k * i % 7), 0, 0);
        }
    }
    batch_size_manager_destroy(bsm);
    return (report_monotonic_us() - began) * 1e-6 / ITERATIONS;
}

int
main(void)
{
    double fixed_s, sample_s;

    measure_gradient(&fixed_s, &sample_s);
    printf("{\"manager_s\": %.9f, \"manager_gpu_s\": %.9f, "
           "\"gradient_fixed_s\": %.6f, "
           "\"gradient_sample_s\": %.7f, \"launch_samples\": %.2f}\n",
           measure_manager(BATCH_SIZE_CPU), measure_manager(BATCH_SIZE_GPU),
           fixed_s, sample_s, fixed_s / sample_s);
    return 0;
}
