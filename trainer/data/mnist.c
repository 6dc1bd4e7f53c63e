/* SPDX-License-Identifier: Apache-2.0 */

/* Files of MNIST, in the "idx" format: a magic number with the type and the
 * number of dimensions, the dimensions, then bytes. */

#include "trainer/data/dataset.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/data/readers.h"

#define N_CLASSES 10

static bool
read_u32(FILE *stream, uint32_t *value)
{
    uint8_t b[4];

    if (fread(b, sizeof b, 1, stream) != 1) {
        return false;
    }
    *value = (uint32_t) b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
    return true;
}

char *
idx_read(const char *name, FILE *stream, uint32_t n_dims, size_t max_n,
         struct idx *idx)
{
    uint32_t magic;
    size_t length = 1;

    memset(idx, 0, sizeof *idx);
    if (!read_u32(stream, &magic) || magic != (0x0800 | n_dims)) {
        return message("%s: not an idx file of bytes with %u dimensions",
                       name, n_dims);
    }
    for (uint32_t i = 0; i < 3; i++) {
        idx->dims[i] = 1;
        if (i < n_dims && (!read_u32(stream, &idx->dims[i])
                           || idx->dims[i] < 1 || idx->dims[i] > 1 << 24)) {
            return message("%s: dimension %u is missing or not 1 to %d",
                           name, i, 1 << 24);
        }
        if (!i && idx->dims[0] > max_n) {
            idx->dims[0] = max_n;
        }
        length *= idx->dims[i];
        if (length > (size_t) 1 << 30) {
            return message("%s: more than 1 GiB", name);
        }
    }
    idx->bytes = allocate(length, 1);
    if (fread(idx->bytes, length, 1, stream) != 1) {
        return message("%s: shorter than its header says", name);
    }
    return NULL;
}

void
idx_uninit(struct idx *idx)
{
    free(idx->bytes);
}

static char *
read_file(const char *name, uint32_t n_dims, size_t max_n, struct idx *idx)
{
    FILE *stream = fopen(name, "rb");
    char *error;

    if (!stream) {
        return message("%s: %s", name, strerror(errno));
    }
    error = idx_read(name, stream, n_dims, max_n, idx);
    fclose(stream);
    return error;
}

static char *
check_pair(const struct idx *images, const struct idx *labels, int n_inputs,
           char *const names[2])
{
    if (images->dims[0] != labels->dims[0]) {
        return message("%s: %u labels, %u are needed", names[1],
                       labels->dims[0], images->dims[0]);
    }
    if ((size_t) images->dims[1] * images->dims[2] != n_inputs) {
        return message("%s: %u by %u pixels, %d are needed", names[0],
                       images->dims[1], images->dims[2], n_inputs);
    }
    for (uint32_t i = 0; i < labels->dims[0]; i++) {
        if (labels->bytes[i] >= N_CLASSES) {
            return message("%s: label %u; expected 0 to %d", names[1],
                           labels->bytes[i], N_CLASSES - 1);
        }
    }
    return NULL;
}

static void
convert(const struct idx *images, const struct idx *labels, size_t n_inputs,
        float *x, int32_t *y)
{
    for (size_t i = 0; i < images->dims[0] * n_inputs; i++) {
        x[i] = (images->bytes[i] / 255.0 - 0.13) / 0.31;
    }
    for (size_t i = 0; i < labels->dims[0]; i++) {
        y[i] = labels->bytes[i];
    }
}

/* Reads the four files 'names'. */
static char *
read_files(const struct dataset_config *config, char *const names[4],
           struct idx idx[4])
{
    char *error = NULL;

    for (int i = 0; i < 4 && !error; i++) {
        error = read_file(names[i], i & 1 ? 1 : 3,
                          i < 2 ? config->n_train : config->n_held, &idx[i]);
        if (!error && i & 1) {
            error = check_pair(&idx[i - 1], &idx[i], config->n_inputs,
                               &names[i - 1]);
        }
    }
    return error;
}

static struct dataset *
make_dataset(const struct idx idx[4])
{
    struct dataset *ds = dataset_create(idx[0].dims[1] * idx[0].dims[2],
                                        N_CLASSES, idx[0].dims[0],
                                        idx[2].dims[0]);

    ds->image = (struct image) { idx[0].dims[1], idx[0].dims[2], 1 };
    convert(&idx[0], &idx[1], ds->n_inputs, ds->train_x, ds->train_labels);
    convert(&idx[2], &idx[3], ds->n_inputs, ds->held_x, ds->held_labels);
    return ds;
}

char *
dataset_mnist(const struct dataset_config *config, const char *folder,
              struct dataset **dsp)
{
    static const char *const files[4] = {
        "train-images-idx3-ubyte", "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte",
    };
    struct idx idx[4] = { { .bytes = NULL } };
    char *names[4], *error;

    *dsp = NULL;
    if (config->n_classes != N_CLASSES) {
        return message("%d classes, MNIST has %d", config->n_classes,
                       N_CLASSES);
    }
    for (int i = 0; i < 4; i++) {
        names[i] = message("%s/%s", folder, files[i]);
    }
    error = read_files(config, names, idx);
    if (!error) {
        *dsp = make_dataset(idx);
    }
    for (int i = 0; i < 4; i++) {
        idx_uninit(&idx[i]);
        free(names[i]);
    }
    return error;
}
