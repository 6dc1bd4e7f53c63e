/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/search/spec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "base/memory.h"
#include "trainer/data/seeded.h"
#include "trainer/schemes/shard.h"
#include "trainer/schemes/sync.h"
#include "trainer/search/hosts.h"

#define MAX_TRIALS 1024
#define MAX_CHOICES 256
#define MAX_PLACEMENTS 1024
#define MAX_PROCESSES 256       /* Largest number of workers, and of
                                 * servers, of a job. */
#define MAX_SERVERS 64
#define MAX_BATCH 65536
#define MAX_SAMPLES (1 << 24)
#define MAX_FEATURES (1 << 30)
#define DEFAULT_VALIDATION 512 /* Samples, as of the trainer's option. */
#define N_IMAGE_CLASSES 10     /* Classes of images, generated or not. */

static const char *const backend_names[] = { "auto", "cpu", "cuda", NULL };
static const char *const scale_names[] = { "linear", "log", NULL };
static const char *const model_names[] = {
    "mlp", "cifarnet", "resnet32", "linear", NULL,
};
static const char *const data_names[] = {
    "generated", "mnist", "cifar10", "libsvm", NULL,
};
static const char *const loss_names[] = { "logistic", "hinge", NULL };

static const struct {
    struct image image; /* Dimensions of the images in the files. */
    int64_t n_samples;  /* Default number of samples. */
    const char *prefix; /* Prefix of the value of '--data'. */
} sources[] = {
    [SEARCH_GENERATED] = { { 32, 32, 3 }, 8192, NULL },
    [SEARCH_MNIST] = { { 28, 28, 1 }, 60000, "mnist" },
    [SEARCH_CIFAR10] = { { 32, 32, 3 }, 50000, "cifar10" },
    [SEARCH_LIBSVM] = { { 0, 0, 0 }, MAX_SAMPLES, "libsvm" },
};

static void
read_data(struct search_model *m, const struct json_at *data)
{
    m->data = json_enum(data, "kind", data_names);
    m->n_samples = json_integer_or(data, "samples", 1, MAX_SAMPLES,
                                   sources[m->data].n_samples);
    if (m->data != SEARCH_GENERATED) {
        m->path = json_string(data, "path");
    }
}

static void
read_mlp(struct search_model *m, const struct json_at *model,
         const struct json_at *at)
{
    struct image image = sources[m->data].image;
    int n_pixels = image.height * image.width * image.channels;

    m->n_inputs = json_integer(model, "inputs", 1, SHAPE_MAX_WIDTH);
    m->n_hidden =
        json_integer(model, "hidden_layers", 0, SHAPE_MAX_WIDTHS - 2);
    m->n_classes = json_integer(model, "classes", 2, SHAPE_MAX_WIDTH);
    if ((m->data == SEARCH_MNIST || m->data == SEARCH_CIFAR10)
        && (m->n_inputs != n_pixels || m->n_classes != N_IMAGE_CLASSES)) {
        json_fail(at, "model", "%d inputs and %d classes, %s has %d and %d",
                  m->n_inputs, m->n_classes,
                  m->data == SEARCH_MNIST ? "MNIST" : "CIFAR-10", n_pixels,
                  N_IMAGE_CLASSES);
    }
}

/* Reads height, width and channels within the limits of the trainer. */
static void
read_image(struct search_model *m, const struct json_at *model)
{
    const struct json_at *image;

    m->image = sources[m->data].image;
    if (m->data != SEARCH_GENERATED || !json_has(model, "image")) {
        return;
    }
    image = json_array(model, "image", 3, 3);
    if (json_n(image) == 3) {
        m->image =
            (struct image){ json_at_integer(json_element(image, 0), 8, 256),
                            json_at_integer(json_element(image, 1), 8, 256),
                            json_at_integer(json_element(image, 2), 1, 16) };
    }
}

static void
search_model_read(struct search_model *m, const struct json_at *at)
{
    const struct json_at *model;

    *m = (struct search_model){ .loss = loss_names[0] };
    read_data(m, json_object(at, "data"));
    model = json_object(at, "model");
    m->kind = json_enum_or(model, "name", model_names, SEARCH_MLP);
    if (m->kind == SEARCH_LINEAR) {
        m->n_features = json_integer(model, "features", 1, MAX_FEATURES - 1);
        m->loss = loss_names[json_enum_or(model, "loss", loss_names, 0)];
    } else if (m->kind == SEARCH_MLP) {
        read_mlp(m, model, at);
    } else {
        read_image(m, model);
    }
    if (m->data != SEARCH_GENERATED
        && (m->kind == SEARCH_LINEAR) != (m->data == SEARCH_LIBSVM)) {
        json_fail(at, "data", "%s is not for the model \"%s\"",
                  data_names[m->data], model_names[m->kind]);
    }
}

bool
search_model_has_width(const struct search_model *m)
{
    return m->kind == SEARCH_MLP;
}

static struct shape
shape_of(const struct search_model *m, int width)
{
    struct shape shape = { .n = 0 };

    shape.width[shape.n++] = m->n_inputs;
    for (int i = 0; i < m->n_hidden; i++) {
        shape.width[shape.n++] = width;
    }
    shape.width[shape.n++] = m->n_classes;
    return shape;
}

/* Two 5x5 convolutions with biases, each followed by pooling that divides the
 * pixels by four, and two dense layers. */
static size_t
cifarnet_n_parameters(const struct image *image)
{
    size_t n_channels = 64, n_hidden = 256;
    size_t n_pixels = (size_t) (image->height / 4) * (image->width / 4);

    return (25 * image->channels + 1) * n_channels
           + (25 * n_channels + 1) * n_channels
           + (n_pixels * n_channels + 1) * n_hidden
           + (n_hidden + 1) * N_IMAGE_CLASSES;
}

/* A 3x3 convolution, three stages of ten, each twice as wide as the previous
 * one, all followed by a scale and a shift per channel, and a dense layer. */
static size_t
resnet32_n_parameters(const struct image *image)
{
    size_t n = image->channels, sum = 0;

    for (int i = 0; i < 31; i++) {
        size_t n_out = (size_t) 16 << (i ? (i - 1) / 10 : 0);

        sum += 9 * n * n_out + 2 * n_out;
        n = n_out;
    }
    return sum + (n + 1) * N_IMAGE_CLASSES;
}

size_t
search_model_n_parameters(const struct search_model *m, int width)
{
    struct shape shape;

    switch (m->kind) {
    case SEARCH_CIFARNET:
        return cifarnet_n_parameters(&m->image);
    case SEARCH_RESNET32:
        return resnet32_n_parameters(&m->image);
    case SEARCH_LINEAR:
        return m->n_features + 1;
    case SEARCH_MLP:
        break;
    }
    shape = shape_of(m, width);
    return shape_n_parameters(&shape);
}

void
search_model_options(const struct search_model *m, int width,
                     void (*add)(void *aux, const char *name, char *value),
                     void *aux)
{
    add(aux, "--model", duplicate(model_names[m->kind]));
    if (m->kind == SEARCH_MLP) {
        struct shape shape = shape_of(m, width);

        add(aux, "--shape", shape_to_string(&shape));
    } else if (m->kind == SEARCH_LINEAR) {
        add(aux, "--features", message("%lld", (long long) m->n_features));
        add(aux, "--loss", duplicate(m->loss));
    } else {
        add(aux, "--image",
            message("%dx%dx%d", m->image.height, m->image.width,
                    m->image.channels));
    }
    if (m->path) {
        add(aux, "--data", message("%s:%s", sources[m->data].prefix, m->path));
    }
    add(aux, "--samples", message("%lld", (long long) m->n_samples));
    if (!m->path && m->n_samples < DEFAULT_VALIDATION) {
        add(aux, "--validation", message("%lld", (long long) m->n_samples));
    }
}

static void
read_rates(struct search_spec *spec, const struct json_at *space)
{
    const struct json_at *at;

    if (json_has_object(space, "learning_rate")) {
        at = json_object(space, "learning_rate");
        spec->rate_min = json_number(at, "min", 1e-9, 1e3);
        spec->rate_max = json_number(at, "max", 1e-9, 1e3);
        spec->rate_log = json_enum(at, "scale", scale_names);
        if (spec->rate_max < spec->rate_min) {
            json_fail(at, "max", "%g; expected at least \"min\", %g",
                      spec->rate_max, spec->rate_min);
        }
        return;
    }
    at = json_array(space, "learning_rate", 1, MAX_CHOICES);
    spec->n_rates = json_n(at);
    spec->rates = allocate(spec->n_rates, sizeof *spec->rates);
    for (size_t i = 0; i < spec->n_rates; i++) {
        spec->rates[i] = json_at_number(json_element(at, i), 1e-9, 1e3);
    }
}

static int64_t *
read_integers(const struct json_at *at, const char *member, int64_t max,
              size_t *n)
{
    const struct json_at *array = json_array(at, member, 1, MAX_CHOICES);
    int64_t *values;

    *n = json_n(array);
    values = allocate(*n, sizeof *values);
    for (size_t i = 0; i < *n; i++) {
        values[i] = json_at_integer(json_element(array, i), 1, max);
    }
    return values;
}

static void
read_space(struct search_spec *spec, const struct json_at *space)
{
    read_rates(spec, space);
    if (search_model_has_width(&spec->model)) {
        spec->widths = read_integers(space, "width", SHAPE_MAX_WIDTH,
                                     &spec->n_widths);
    } else {
        spec->widths = allocate(1, sizeof *spec->widths);
        spec->n_widths = 1;
    }
    spec->batches = read_integers(space, "batch", MAX_BATCH, &spec->n_batches);
}

static char **
read_names(const struct json_at *at, const char *member, size_t max, size_t *n)
{
    const struct json_at *array = json_array(at, member, 1, max);
    char **names;

    *n = json_n(array);
    names = allocate(*n, sizeof *names);
    for (size_t i = 0; i < *n; i++) {
        names[i] = json_at_name(json_element(array, i));
    }
    return names;
}

static void
read_placements(struct search_spec *spec, const struct json_at *at)
{
    const struct json_at *array = json_array(at, "placements", 1,
                                             MAX_PLACEMENTS);

    spec->n_placements = json_n(array);
    spec->placements = allocate(spec->n_placements, sizeof *spec->placements);
    for (size_t i = 0; i < spec->n_placements; i++) {
        const struct json_at *place = json_element_object(array, i);
        struct search_placement *p = &spec->placements[i];

        p->workers = read_names(place, "workers", MAX_PROCESSES,
                                &p->n_workers);
        if (!spec->scheme.serverless) {
            p->servers = read_names(place, "servers", MAX_SERVERS,
                                    &p->n_servers);
        } else if (json_has(place, "servers")) {
            json_fail(place, "servers", "not allowed, \"sync\": \"%s\" has "
                      "no servers", spec->scheme.name);
        }
    }
}

/* Checks that the servers of all placements can hold the model. */
static void
check_size(struct search_spec *spec, const struct json_at *at)
{
    for (size_t i = 0; i < spec->n_widths * spec->n_placements; i++) {
        int width = spec->widths[i / spec->n_placements];
        char *error = shard_check(
            search_model_n_parameters(&spec->model, width),
            spec->scheme.serverless ? UINT32_MAX
            : spec->placements[i % spec->n_placements].n_servers);

        if (error && search_model_has_width(&spec->model)) {
            json_fail(at, "space", "width %d: %s", width, error);
        } else if (error) {
            json_fail(at, "model", "%s", error);
        }
        free(error);
    }
}

/* Reads the scheme, which decides whether placements have servers. */
static void
read_sync(struct search_spec *spec, const struct json_at *at)
{
    char *error;

    spec->sync = json_string_or(at, "sync", NULL);
    error = sync_spec_read(spec->sync ? spec->sync : "bsp", &spec->scheme);
    if (error) {
        json_fail(at, "sync", "%s", error);
        free(error);
    }
}

/* Checks that the workers and servers of all placements fit the scheme. */
static void
check_sync(struct search_spec *spec, const struct json_at *at)
{
    char *error = NULL;

    for (size_t i = 0; spec->scheme.name && i < spec->n_placements && !error;
         i++) {
        const struct search_placement *p = &spec->placements[i];

        error = sync_spec_check(&spec->scheme, p->n_workers);
        if (!error && spec->scheme.parameters & SYNC_GROUPS
            && p->n_servers > 1) {
            error = message("%s: %zu servers in /placements/%zu; expected 1",
                            spec->scheme.name, p->n_servers, i);
        }
    }
    if (error) {
        json_fail(at, "sync", "%s", error);
        free(error);
    }
}

void
search_spec_from_json(const struct json_at *at, struct search_spec **specp)
{
    struct search_spec *spec = allocate(1, sizeof *spec);

    json_ignore(at, "$schema");
    json_ignore(at, "description");
    spec->name = json_name(at, "name");
    spec->weight = json_number_or(at, "weight", 1e-3, 1e6, 1);
    spec->seed = json_integer_or(at, "seed", 0, INT64_C(1000000000000), 1);
    spec->n_trials = json_integer(at, "trials", 1, MAX_TRIALS);
    search_model_read(&spec->model, at);
    read_space(spec, json_object(at, "space"));
    spec->rungs =
        search_method_read(at, spec->n_trials, &spec->method, &spec->n_rungs);
    read_sync(spec, at);
    read_placements(spec, at);
    check_sync(spec, at);
    check_size(spec, at);
    spec->momentum = json_number_or(at, "momentum", 0, 0.9999, 0.9);
    spec->sample_cost_us = json_number_or(at, "sample_cost_us", 0, 1e9, 0);
    spec->eval_every =
        json_integer_or(at, "eval_every", 1, RUNG_MAX_ITERATIONS, 10);
    spec->congestion = json_string_or(at, "congestion", NULL);
    spec->backend = backend_names[json_enum_or(at, "backend", backend_names,
                                               0)];
    *specp = spec;
}

void
search_spec_destroy(struct search_spec *spec)
{
    if (spec) {
        for (size_t i = 0; i < spec->n_placements; i++) {
            struct search_placement *p = &spec->placements[i];

            free_strings(p->workers, p->n_workers);
            free_strings(p->servers, p->n_servers);
        }
        free(spec->placements);
        free(spec->name);
        free(spec->rates);
        free(spec->widths);
        free(spec->batches);
        free(spec->rungs);
        free(spec->model.path);
        free(spec->sync);
        free(spec->congestion);
        free(spec);
    }
}

static int
count_name(char *const *names, size_t n, const char *name)
{
    int count = 0;

    for (size_t i = 0; i < n; i++) {
        count += names[i] && !strcmp(names[i], name);
    }
    return count;
}

int
search_spec_processes(const struct search_spec *spec, const char *host)
{
    int count = 0, most = 0, places = spec->method.places;

    for (int i = 0; i < spec->n_trials && spec->n_placements; i++) {
        const struct search_placement *p =
            &spec->placements[i % spec->n_placements];
        int n = count_name(p->workers, p->n_workers, host)
                + count_name(p->servers, p->n_servers, host);

        count += n;
        most = n > most ? n : most;
    }
    return places && count > places * most ? places * most : count;
}

static void
check_names(const struct json_at *array, const struct search_spec *spec,
            char *const *names, size_t n, const struct search_hosts *hosts)
{
    for (size_t i = 0; i < n; i++) {
        const struct json_at *at = json_element(array, i);
        const struct search_host *host;
        int count;

        if (!names[i]) {
            continue;           /* Already reported. */
        }
        host = search_hosts_find(hosts, names[i]);
        if (!host) {
            json_fail(at, NULL, "no such host \"%s\"", names[i]);
            continue;
        }
        count = search_spec_processes(spec, names[i]);
        if (count > host->slots) {
            json_fail(at, NULL,
                      "needs %d processes on %s; expected at most %d", count,
                      names[i], host->slots);
        }
    }
}

void
search_spec_check(const struct json_at *at, const struct search_spec *spec,
                  const struct search_hosts *hosts)
{
    const struct json_at *array = json_array(at, "placements", 1,
                                             MAX_PLACEMENTS);

    for (size_t i = 0; i < spec->n_placements; i++) {
        const struct json_at *place = json_element_object(array, i);
        const struct search_placement *p = &spec->placements[i];

        check_names(json_array(place, "workers", 1, MAX_PROCESSES), spec,
                    p->workers, p->n_workers, hosts);
        if (p->n_servers) {
            check_names(json_array(place, "servers", 1, MAX_SERVERS), spec,
                        p->servers, p->n_servers, hosts);
        }
    }
}

char *
search_spec_from_file(const char *file, const struct search_hosts *hosts,
                      struct search_spec **specp)
{
    char *text, *error = json_read_file(file, &text);
    struct json_check *jc;

    *specp = NULL;
    if (error) {
        return error;
    }
    jc = json_check_open(file, text);
    search_spec_from_json(json_check_top(jc), specp);
    if (hosts) {
        search_spec_check(json_check_top(jc), *specp, hosts);
    }
    error = json_check_close(jc);
    free(text);
    if (error) {
        search_spec_destroy(*specp);
        *specp = NULL;
    }
    return error;
}

/* Returns element 'i' of a sequence that goes through 0 .. n - 1 in random
 * order, and then again in another order. */
static uint64_t
without_repetition(uint64_t seed, uint64_t i, uint64_t n)
{
    return seeded_permute(seed + i / n, i % n, n);
}

/* Returns a rate of the range: each trial has its own stratum. */
static double
rate_of_range(const struct search_spec *spec, int i)
{
    struct seeded rs;
    double x;

    seeded_init(&rs, spec->seed, 1000 + i);
    x = (seeded_permute(spec->seed, i, spec->n_trials)
         + seeded_uniform(&rs)) / spec->n_trials;
    return spec->rate_log
           ? spec->rate_min * pow(spec->rate_max / spec->rate_min, x)
           : spec->rate_min + (spec->rate_max - spec->rate_min) * x;
}

struct search_trial
search_spec_trial(const struct search_spec *spec, int i)
{
    uint64_t n_rates = spec->n_rates ? spec->n_rates : 1;
    uint64_t n = n_rates * spec->n_widths * spec->n_batches;
    uint64_t choice = without_repetition(spec->seed, i, n);

    return (struct search_trial) {
        .learning_rate = spec->n_rates ? spec->rates[choice % n_rates]
                                       : rate_of_range(spec, i),
        .width = spec->widths[choice / n_rates % spec->n_widths],
        .batch = spec->batches[choice / n_rates / spec->n_widths],
        .placement = &spec->placements[i % spec->n_placements],
    };
}
