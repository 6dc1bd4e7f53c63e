/* SPDX-License-Identifier: Apache-2.0 */

/* Generators of data sets. */

#include "trainer/data/dataset.h"

#include <math.h>
#include <stdlib.h>

#include "base/compare.h"
#include "base/memory.h"
#include "trainer/data/seeded.h"

#define CLOUDS_PER_CLASS 3
#define CLOUD_DISTANCE 0.42     /* Distance of cloud centres in units of the
                                 * noise: clouds overlap a little in 64
                                 * dimensions. */

/* Draws 'n' samples around 'centres'.  The inputs are scaled to variance 1. */
static void
draw_samples(struct seeded *rs, const float *centres, int n_clouds,
             const struct dataset *ds, size_t n, float *x, int32_t *labels)
{
    const double scale = 1 / sqrt(1 + CLOUD_DISTANCE * CLOUD_DISTANCE);

    for (size_t i = 0; i < n; i++) {
        int cloud = seeded_below(rs, n_clouds);
        const float *centre = centres + (size_t) cloud * ds->n_inputs;

        labels[i] = cloud % ds->n_classes;
        for (int j = 0; j < ds->n_inputs; j++) {
            *x++ = scale * (centre[j] + seeded_normal(rs));
        }
    }
}

struct dataset *
dataset_generate(const struct dataset_config *config)
{
    struct dataset *ds = dataset_create(config->n_inputs, config->n_classes,
                                        config->n_train, config->n_held);
    int n_clouds = CLOUDS_PER_CLASS * ds->n_classes;
    size_t n = (size_t) n_clouds * ds->n_inputs;
    float *centres = allocate(n, sizeof *centres);
    struct seeded rs;

    seeded_init(&rs, config->seed, 1);
    for (size_t i = 0; i < n; i++) {
        centres[i] = CLOUD_DISTANCE * seeded_normal(&rs);
    }
    draw_samples(&rs, centres, n_clouds, ds, ds->n_train, ds->train_x,
                 ds->train_labels);
    draw_samples(&rs, centres, n_clouds, ds, ds->n_held, ds->held_x,
                 ds->held_labels);
    free(centres);
    return ds;
}

/* Images. */

#define WAVES_PER_CLASS 2
#define WAVE 0.5                /* Amplitude; the noise has deviation 1. */

/* A wave: its phase per pixel, and its amplitude in each channel. */
struct wave {
    double dy, dx;
    double *colour;
};

static struct wave *
draw_waves(struct seeded *rs, int n, int n_channels)
{
    struct wave *waves = allocate(n, sizeof *waves);

    for (int i = 0; i < n; i++) {
        waves[i].dy = M_PI * (seeded_uniform(rs) - 0.5);
        waves[i].dx = M_PI * (seeded_uniform(rs) - 0.5);
        waves[i].colour = allocate(n_channels, sizeof *waves[i].colour);
        for (int j = 0; j < n_channels; j++) {
            waves[i].colour[j] = WAVE * seeded_normal(rs);
        }
    }
    return waves;
}

static void
free_waves(struct wave *waves, int n)
{
    for (int i = 0; i < n; i++) {
        free(waves[i].colour);
    }
    free(waves);
}

/* Adds the wave to an image, with phase 'phase'. */
static void
add_wave(const struct wave *wave, const struct image *image, double phase,
         float *x)
{
    double step_cos = cos(wave->dx), step_sin = sin(wave->dx);

    for (int i = 0; i < image->height; i++) {
        double c = cos(phase + i * wave->dy), s = sin(phase + i * wave->dy);

        for (int j = 0; j < image->width; j++) {
            double next = c * step_cos - s * step_sin;

            for (int k = 0; k < image->channels; k++) {
                *x++ += c * wave->colour[k];
            }
            s = s * step_cos + c * step_sin;
            c = next;
        }
    }
}

static void
draw_images(struct seeded *rs, const struct wave *waves,
            const struct dataset *ds, size_t n, float *x, int32_t *labels)
{
    const double noise = sqrt(12);      /* Uniform, of variance 1. */

    for (size_t i = 0; i < n; i++, x += ds->n_inputs) {
        labels[i] = seeded_below(rs, ds->n_classes);
        for (int j = 0; j < ds->n_inputs; j++) {
            x[j] = noise * (seeded_uniform(rs) - 0.5);
        }
        for (int j = 0; j < WAVES_PER_CLASS; j++) {
            add_wave(&waves[labels[i] * WAVES_PER_CLASS + j], &ds->image,
                     2 * M_PI * seeded_uniform(rs), x);
        }
    }
}

struct dataset *
dataset_generate_images(const struct dataset_config *config)
{
    const struct image *image = &config->image;
    struct dataset *ds = dataset_create(
        image->height * image->width * image->channels, config->n_classes,
        config->n_train, config->n_held);
    int n_waves = WAVES_PER_CLASS * ds->n_classes;
    struct wave *waves;
    struct seeded rs;

    ds->image = *image;
    seeded_init(&rs, config->seed, 3);
    waves = draw_waves(&rs, n_waves, image->channels);
    draw_images(&rs, waves, ds, ds->n_train, ds->train_x, ds->train_labels);
    draw_images(&rs, waves, ds, ds->n_held, ds->held_x, ds->held_labels);
    free_waves(waves, n_waves);
    return ds;
}

/* Sparse samples. */

#define MAX_KEYS 32             /* Keys per sample; at least half as many
                                 * are drawn, with repetitions. */
#define FLIPPED 0.02            /* Fraction of wrong labels. */

/* Draws the keys of a sample, few of them often and most rarely.  Returns the
 * number of different ones. */
static int
draw_keys(struct seeded *rs, int n_inputs, uint32_t keys[])
{
    int n_drawn = MAX_KEYS / 2 + seeded_below(rs, MAX_KEYS / 2), n = 0;

    for (int i = 0; i < n_drawn; i++) {
        double u = seeded_uniform(rs);

        keys[i] = n_inputs * u * u * u;
    }
    qsort(keys, n_drawn, sizeof *keys, compare_u32);
    for (int i = 0; i < n_drawn; i++) {
        if (!n || keys[i] != keys[n - 1]) {
            keys[n++] = keys[i];
        }
    }
    return n;
}

static void
draw_sparse(struct seeded *rs, const float *truth, int n_inputs, size_t n,
            struct sparse *sparse, int32_t *labels)
{
    size_t n_keys = 0;

    sparse->starts = allocate(n + 1, sizeof *sparse->starts);
    sparse->keys = allocate(n * MAX_KEYS, sizeof *sparse->keys);
    sparse->values = allocate(n * MAX_KEYS, sizeof *sparse->values);
    for (size_t i = 0; i < n; i++) {
        int length = draw_keys(rs, n_inputs, sparse->keys + n_keys);
        double sum = 0;

        for (int j = 0; j < length; j++) {
            sum += truth[sparse->keys[n_keys + j]];
            sparse->values[n_keys + j] = 1;
        }
        labels[i] = (sum > 0) != (seeded_uniform(rs) < FLIPPED);
        n_keys += length;
        sparse->starts[i + 1] = n_keys;
    }
}

struct dataset *
dataset_generate_sparse(const struct dataset_config *config)
{
    struct dataset *ds = dataset_create(0, 2, config->n_train, config->n_held);
    float *truth = allocate(config->n_inputs, sizeof *truth);
    struct seeded rs;

    ds->n_inputs = config->n_inputs;
    seeded_init(&rs, config->seed, 4);
    for (int i = 0; i < config->n_inputs; i++) {
        truth[i] = seeded_normal(&rs);
    }
    draw_sparse(&rs, truth, ds->n_inputs, ds->n_train, &ds->train,
                ds->train_labels);
    draw_sparse(&rs, truth, ds->n_inputs, ds->n_held, &ds->held,
                ds->held_labels);
    free(truth);
    return ds;
}
