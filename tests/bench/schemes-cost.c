/* SPDX-License-Identifier: Apache-2.0 */

/* Measures values for tests/bench/schemes-*.sh and prints JSON: the processor
 * time of batch size managers per iteration of 8, 32 and 128 workers, and the
 * dependence of a gradient's time on its samples on this machine:
 * 'launch_samples' is the constant part, in units of the time of one sample.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "trainer/backend/backend.h"
#include "trainer/balance/batch-size-manager.h"
#include "trainer/data/dataset.h"
#include "trainer/models/model.h"

#define ITERATIONS 1000
#define REPETITIONS 60
#define FEW 8                   /* Samples of a small gradient. */
#define MANY 64

/* Returns the seconds of a gradient of the samples in 'batch'. */
static double
gradient_seconds(struct model *model, const struct batch *batch)
{
    int64_t began = clock_monotonic_us();
    double loss;

    model_gradient(model, batch, NULL, NULL, &loss);
    return (clock_monotonic_us() - began) * 1e-6;
}

/* Stores the fastest times of gradients of few and of many samples, measured
 * alternately, because other programs only make some of them slower. */
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
    struct batch *batches[2] = { batch_create(), batch_create() };
    double fastest[2] = { INFINITY, INFINITY };
    struct model *model;

    if (backend_open(&backend_cpu, 0, 1, &config.backend)
        || model_create(model_class_find("mlp"), &config, &model)) {
        exit(1);
    }
    model_init_weights(model, 1, model->weights);
    model_weights_changed(model);
    dataset_fill(data, 1, 0, FEW, batches[0]);
    dataset_fill(data, 1, 0, MANY, batches[1]);
    for (int i = 0; i < 2 * REPETITIONS; i++) {
        fastest[i % 2] = fmin(fastest[i % 2],
                              gradient_seconds(model, batches[i % 2]));
    }
    *sample_s = (fastest[1] - fastest[0]) / (MANY - FEW);
    *fixed_s = fastest[0] - FEW * *sample_s;
    batch_destroy(batches[0]);
    batch_destroy(batches[1]);
    model_destroy(model);
    dataset_destroy(data);
    backend_close(config.backend);
}

static double
measure_manager(enum batch_size_mode mode, int n_workers)
{
    struct batch_size_config config = { .mode = mode,
                                        .n_workers = n_workers,
                                        .batch = 64 * n_workers,
                                        .seed = 1 };
    struct batch_size_manager *bsm;
    double began;

    if (batch_size_manager_create(&config, &bsm)) {
        exit(1);
    }
    began = clock_cpu_s();
    for (int k = 0; k < ITERATIONS; k++) {
        const uint32_t *sizes = batch_size_manager_next(bsm);

        for (int i = 0; i < n_workers; i++) {
            double speed = i % 8 == 6 ? 1600 : i % 8 == 7 ? 400 : 800;

            batch_size_manager_report(bsm, i, sizes[i],
                                      sizes[i] / (speed + k * i % 7), 0, 0);
        }
    }
    batch_size_manager_destroy(bsm);
    return (clock_cpu_s() - began) / ITERATIONS;
}

int
main(void)
{
    double fixed_s, sample_s;

    measure_gradient(&fixed_s, &sample_s);
    printf("{\"manager_8_s\": %.9f, \"manager_32_s\": %.9f, "
           "\"manager_128_s\": %.9f, \"manager_gpu_s\": %.9f, "
           "\"gradient_fixed_s\": %.6f, "
           "\"gradient_sample_s\": %.7f, \"launch_samples\": %.2f}\n",
           measure_manager(BATCH_SIZE_CPU, 8),
           measure_manager(BATCH_SIZE_CPU, 32),
           measure_manager(BATCH_SIZE_CPU, 128),
           measure_manager(BATCH_SIZE_GPU, 8), fixed_s, sample_s,
           fixed_s / sample_s);
    return 0;
}
