/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/task/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/message.h"
#include "trainer/task/seeded.h"

#define CLOUDS_PER_CLASS 3
#define CLOUD_DISTANCE 0.42     /* Of cloud centres, in units of the noise:
                                 * clouds overlap a little in 64 dimensions. */

struct dataset *
dataset_create(int n_inputs, int n_classes, size_t n_train, size_t n_held)
{
    struct dataset *ds = allocate(1, sizeof *ds);

    ds->n_inputs = n_inputs;
    ds->n_classes = n_classes;
    ds->n_train = n_train;
    ds->n_held = n_held;
    ds->train_x = allocate(n_train * n_inputs, sizeof *ds->train_x);
    ds->held_x = allocate(n_held * n_inputs, sizeof *ds->held_x);
    ds->train_labels = allocate(n_train, sizeof *ds->train_labels);
    ds->held_labels = allocate(n_held, sizeof *ds->held_labels);
    return ds;
}

void
dataset_destroy(struct dataset *ds)
{
    if (ds) {
        free(ds->train_x);
        free(ds->held_x);
        free(ds->train_labels);
        free(ds->held_labels);
        free(ds);
    }
}

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

char *
dataset_generate(const struct dataset_config *config, struct dataset **dsp)
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
    *dsp = ds;
    return NULL;
}

void
dataset_fill(const struct dataset *ds, uint64_t seed, uint64_t position,
             int n, float *x, int32_t *labels)
{
    for (int i = 0; i < n; i++, position++) {
        uint64_t epoch = position / ds->n_train;
        size_t sample = seeded_permute(seed ^ (epoch << 20),
                                       position % ds->n_train, ds->n_train);

        memcpy(x + (size_t) i * ds->n_inputs,
               ds->train_x + sample * ds->n_inputs,
               ds->n_inputs * sizeof *x);
        labels[i] = ds->train_labels[sample];
    }
}
