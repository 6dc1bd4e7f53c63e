/* SPDX-License-Identifier: Apache-2.0 */

/* Measures the time of a training step on a GPU, and prints JSON:
 *
 *    {"mlp": {"step_ms": [TIME...], "gradient_ms": [...], "hidden": 0.9}, ...}
 *
 * "step_ms": steps that stay on the device.  "gradient_ms": the work of a
 * worker: weights to the device, a step, the gradient to the host.  "hidden":
 * the part of the gradient's copy time that overlaps with the step: (time of a
 * step without copies + time of the copies alone - time of a gradient) / (time
 * of the copies alone); null if nothing is copied.
 *
 * gpu-step BACKEND [N_STEPS] [TF32].  Prints nothing and exits with 77 if the
 * backend is not available. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/backend/backend.h"
#include "base/clock.h"
#include "base/memory.h"
#include "trainer/models/model.h"

#define SKIPPED 77
#define N_WARM 10
#define RATE 0.01f
#define MOMENTUM 0.9f

static const struct {
    const char *name;           /* Name in the output. */
    const struct model_class *class;
    const char *shape;
    int batch;
} cases[] = {
    { "mlp", &model_mlp, "784,1024,1024,10", 256 },
    { "cifarnet", &model_cifarnet, NULL, 128 },
    { "resnet32", &model_resnet32, NULL, 128 },
};

static int n_steps = 200;
static struct backend *b;
static struct model *model;
static struct batch *batch;

/* The measured operations. */

static void
step_on_device(void)
{
    double loss;

    model->class->step(model, batch, RATE, MOMENTUM, &loss);
}

static void
compute_only(void)
{
    double loss;

    model->class->step(model, batch, 0, 0, &loss);
}

static void
gradient_only(void)
{
    double loss;

    model_gradient(model, batch, NULL, NULL, &loss);
}

static void
exchange(void)
{
    model_weights_changed(model);
    gradient_only();
}

/* 'copied_size' is the size of 'd_copied' and 'copied', in bytes. */
static float *d_copied, *copied;
static size_t copied_size;

static void
copy_only(void)
{
    b->class->download(b, copied, d_copied, copied_size);
}

static int
compare(const void *a, const void *c)
{
    double x = *(const double *) a, y = *(const double *) c;

    return x < y ? -1 : x > y;
}

/* Fills 'times' with 'n_steps' milliseconds, sorted.  Returns their median. */
static double
measure(void (*work)(void), double times[])
{
    for (int i = 0; i < N_WARM; i++) {
        work();
    }
    for (int i = 0; i < n_steps; i++) {
        int64_t begin = clock_monotonic_us();

        work();
        times[i] = (clock_monotonic_us() - begin) / 1e3;
    }
    qsort(times, n_steps, sizeof *times, compare);
    return times[n_steps / 2];
}

static void
print_times(const char *name, const double times[])
{
    printf("\"%s\": [", name);
    for (int i = 0; i < n_steps; i++) {
        printf("%s%.4f", i ? ", " : "", times[i]);
    }
    printf("]");
}

static struct dataset *
open_case(size_t i)
{
    struct dataset_config config = {
        .n_inputs = 784, .n_classes = 10, .image = { 32, 32, 3 },
        .n_train = 4 * cases[i].batch, .n_held = 1, .seed = 1,
    };
    struct dataset *data = cases[i].class->images
                           ? dataset_generate_images(&config)
                           : dataset_generate(&config);
    struct model_config model_config = {
        .backend = b, .max_batch = cases[i].batch, .image = data->image,
        .n_inputs = data->n_inputs, .n_classes = data->n_classes,
    };

    if (cases[i].shape) {
        free(shape_from_string(cases[i].shape, &model_config.shape));
    }
    free(model_create(cases[i].class, &model_config, &model));
    model_init_weights(model, 1, model->weights);
    model_weights_changed(model);
    batch = batch_create();
    dataset_fill(data, 1, 0, cases[i].batch, batch);
    return data;
}

static void
run_case(size_t i)
{
    struct dataset *data = open_case(i);
    double *times = allocate(n_steps, sizeof *times);
    double compute, gradient, copy;

    copied_size = model->n_parameters * sizeof(float);
    d_copied = backend_alloc(b, copied_size);
    copied = backend_alloc_host(b, copied_size);
    copy = measure(copy_only, times);
    compute = measure(compute_only, times);
    gradient = measure(gradient_only, times);
    printf("%s\"%s\": {\"compute_ms\": %.4f, \"copy_ms\": %.4f, ",
           i ? ", " : "", cases[i].name, compute, copy);
    if (b->class->map) {
        printf("\"hidden\": null, ");
    } else {
        printf("\"hidden\": %.3f, ", (compute + copy - gradient) / copy);
    }
    measure(step_on_device, times);
    print_times("step_ms", times);
    printf(", ");
    measure(exchange, times);
    print_times("gradient_ms", times);
    printf("}");
    free(times);
    backend_free(b, d_copied);
    backend_free_host(b, copied);
    batch_destroy(batch);
    model_destroy(model);
    dataset_destroy(data);
}

int
main(int argc, char *argv[])
{
    char *error;
    int status;

    if (argc < 2 || argc > 4) {
        fputs("usage: gpu-step BACKEND [N_STEPS] [TF32: 0|1]\n", stderr);
        return 2;
    }
    error = backend_open_named(argv[1], 1, &b);
    if (error) {
        fprintf(stderr, "gpu-step: %s\n", error);
        free(error);
        return SKIPPED;
    }
    n_steps = argc > 2 && atoi(argv[2]) > 0 ? atoi(argv[2]) : n_steps;
    if (b->class->set_tf32) {
        b->class->set_tf32(b, argc > 3 && atoi(argv[3]));
    }
    printf("{");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_case(i);
    }
    printf("}\n");
    status = backend_failure(b) ? 1 : 0;
    if (status) {
        fprintf(stderr, "gpu-step: %s\n", backend_failure(b));
    }
    backend_close(b);
    return status;
}
