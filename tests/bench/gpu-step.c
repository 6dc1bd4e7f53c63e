/* SPDX-License-Identifier: Apache-2.0 */

/* Measures the time of a training step on a GPU, and prints JSON:
 *
 *    {"steps": N, "backend": TEXT,
 *     "mlp": {"step_ms": TIME, "gradient_ms": TIME, "compute_ms": TIME,
 *             "copy_ms": TIME, "hidden": 0.2, "losses": [LOSS...]}, ...}
 *
 * Times are medians, in milliseconds.  "step_ms": steps that stay on the
 * device, with the upload of the samples.  "gradient_ms": the work of a
 * worker: weights to the device, a gradient, which leaves in parts for the
 * host.  "hidden": the part of the gradient's copy time that overlaps with its
 * computation: (time of a gradient that stays on the device + time of the copy
 * alone - time of a gradient) / (time of the copy alone); null if nothing is
 * copied.  "losses": of the first 20 steps, which are the same in each run.
 *
 * gpu-step BACKEND [N_STEPS] [fp32|mixed|tf32] [direct] [products] [CASE].
 * "mixed": convolutions in TF32, products in fp32, as PyTorch has it.
 * "direct": without recordings.  "products": without a library of
 * convolutions.  CASE: only this one, such as "mlp".
 *
 * Exits with 77 if there is no device, with 1 if the backend is not available
 * for another reason, if it fails, or if a model does not learn. */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/backend/backend.h"
#include "trainer/models/model.h"

#define SKIPPED 77
#define WARM_US 500000          /* Clocks of a device rise slowly. */
#define N_LOSSES 20
#define RATE 0.001f
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

#define N_CASES (sizeof cases / sizeof cases[0])

static int n_steps = 200;
static struct backend *b;
static struct model *model;
static struct batch *batch;
static double *times;

/* The measured operations. */

static void
step_on_device(void)
{
    double loss;

    model->class->step(model, batch, RATE, MOMENTUM, &loss);
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

/* Returns the median of 'n_steps' times, in milliseconds. */
static double
measure(void (*work)(void))
{
    int64_t begin = clock_monotonic_us();

    while (clock_monotonic_us() - begin < WARM_US) {
        work();
    }
    for (int i = 0; i < n_steps; i++) {
        begin = clock_monotonic_us();
        work();
        times[i] = (clock_monotonic_us() - begin) / 1e3;
    }
    qsort(times, n_steps, sizeof *times, compare);
    return times[n_steps / 2];
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
    batch = model_batch_create(b);
    dataset_fill(data, 1, 0, cases[i].batch, batch);
    return data;
}

static void
close_case(struct dataset *data)
{
    batch_destroy(batch);
    model_destroy(model);
    dataset_destroy(data);
}

static void
leave_nothing(struct backend *backend, int part, void *to, const void *d_from,
              size_t size)
{
}

static void
await_nothing(struct backend *backend, int part)
{
}

/* Returns the time of a gradient that stays on the device. */
static double
measure_compute(size_t i)
{
    const struct backend_class *class = b->class;
    struct backend_class staying = *class;
    struct dataset *data;
    double time;

    staying.leave = leave_nothing;
    staying.await = await_nothing;
    b->class = &staying;
    data = open_case(i);
    time = measure(gradient_only);
    close_case(data);
    b->class = class;
    return time;
}

/* Prints the losses of the first steps.  Returns false if they do not fall. */
static bool
print_losses(void)
{
    double loss = 0, first = 0;

    printf("\"losses\": [");
    for (int j = 0; j < N_LOSSES; j++) {
        model->class->step(model, batch, RATE, MOMENTUM, &loss);
        first = j ? first : loss;
        printf("%s%.17g", j ? ", " : "", loss);
    }
    printf("], ");
    return isfinite(loss) && loss < first;
}

static bool
run_case(size_t i)
{
    bool copies = !b->class->map;
    double compute = copies ? measure_compute(i) : 0;
    struct dataset *data = open_case(i);
    double gradient, copy;
    bool learns;

    printf(", \"%s\": {", cases[i].name);
    learns = print_losses();
    printf("\"step_ms\": %.4f, ", measure(step_on_device));
    gradient = measure(exchange);
    printf("\"gradient_ms\": %.4f, ", gradient);
    if (copies) {
        copied_size = model->n_parameters * sizeof(float);
        d_copied = backend_alloc(b, copied_size);
        copied = backend_alloc_host(b, copied_size);
        copy = measure(copy_only);
        gradient = measure(gradient_only);
        printf("\"compute_ms\": %.4f, \"copy_ms\": %.4f, \"hidden\": %.3f}",
               compute, copy, (compute + copy - gradient) / copy);
        backend_free(b, d_copied);
        backend_free_host(b, copied);
    } else {
        printf("\"hidden\": null}");
    }
    fflush(stdout);
    if (!learns) {
        fprintf(stderr, "gpu-step: %s: the loss does not fall\n",
                cases[i].name);
    }
    close_case(data);
    return learns;
}

static void
print_backend(void)
{
    char text[256];

    snprintf(text, sizeof text, "%s", b->class->name);
    if (b->class->describe) {
        b->class->describe(b, text, sizeof text);
    }
    printf(", \"backend\": \"%s\"", text);
}

static bool
has_word(int argc, char *argv[], const char *word)
{
    for (int i = 3; i < argc; i++) {
        if (!strcmp(argv[i], word)) {
            return true;
        }
    }
    return false;
}

int
main(int argc, char *argv[])
{
    bool products = has_word(argc, argv, "tf32");
    bool convolutions = products || has_word(argc, argv, "mixed");
    struct backend_class class = { .name = NULL };
    bool good = true, all = true;
    int error;

    if (argc < 2) {
        fputs("usage: gpu-step cpu|cuda [N_STEPS] [fp32|mixed|tf32] [direct] "
              "[products] [CASE]\n", stderr);
        return 2;
    }
    for (int i = 0; backend_classes[i]; i++) {
        if (!strcmp(backend_classes[i]->name, argv[1])) {
            class = *backend_classes[i];
        }
    }
    error = class.name ? backend_open(&class, 0, 1, &b) : ENODEV;
    if (error) {
        fprintf(stderr, "gpu-step: %s: %s\n", argv[1],
                !class.name ? "not in this build"
                : class.why ? class.why() : strerror(error));
        return error == ENODEV ? SKIPPED : 1;
    }
    b->class = &class;
    if (has_word(argc, argv, "direct")) {
        class.record = NULL;
    }
    if (has_word(argc, argv, "products")) {
        class.convolve = NULL;
        class.convolve_weights = NULL;
        class.convolve_input = NULL;
    }
    if (class.set_tf32) {
        class.set_tf32(b, convolutions, products);
    }
    n_steps = argc > 2 && atoi(argv[2]) > 0 ? atoi(argv[2]) : n_steps;
    times = allocate(n_steps, sizeof *times);
    for (size_t i = 0; i < N_CASES; i++) {
        all = all && !has_word(argc, argv, cases[i].name);
    }
    printf("{\"steps\": %d", n_steps);
    for (size_t i = 0; i < N_CASES; i++) {
        if (all || has_word(argc, argv, cases[i].name)) {
            good = run_case(i) && good;
        }
    }
    print_backend();
    printf("}\n");
    free(times);
    if (backend_failure(b)) {
        fprintf(stderr, "gpu-step: %s\n", backend_failure(b));
        good = false;
    }
    backend_close(b);
    return good ? 0 : 1;
}
