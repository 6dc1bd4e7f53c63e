/* SPDX-License-Identifier: Apache-2.0 */

/* Files of MNIST, in the "idx" format: a magic number with the type and the
 * number of dimensions, the dimensions, then bytes. */

#include "trainer/data/dataset.h"

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
    FILE *stream;
    char *error = data_open(name, &stream);

    return error ? error
                 : data_close(name, stream,
                              idx_read(name, stream, n_dims, max_n, idx));
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

/* Returns the path of a file in the folder, or where torchvision has it. */
static char *
find_file(const char *folder, const char *part, const char *kind)
{
    char *path = message("%s/%s-%s-ubyte", folder, part, kind);
    char *raw = message("%s/MNIST/raw/%s-%s-ubyte", folder, part, kind);
    bool is_raw = !data_exists(path) && data_exists(raw);

    free(is_raw ? path : raw);
    return is_raw ? raw : path;
}

/* Reads the images and the labels of a part. */
static char *
read_part(const char *folder, const char *part, size_t max_n, int n_inputs,
          struct idx idx[2])
{
    char *names[] = { find_file(folder, part, "images-idx3"),
                      find_file(folder, part, "labels-idx1") };
    char *error = read_file(names[0], 3, max_n, &idx[0]);

    error = error ? error : read_file(names[1], 1, max_n, &idx[1]);
    error = error ? error : check_pair(&idx[0], &idx[1], n_inputs, names);
    free(names[0]);
    free(names[1]);
    return error;
}

char *
dataset_mnist(const struct dataset_config *config, const char *folder,
              struct dataset **dsp)
{
    struct idx idx[4] = { { .bytes = NULL } };
    int n_inputs = config->n_inputs;
    char *error;

    *dsp = NULL;
    if (config->n_classes != N_CLASSES) {
        return message("%d classes, MNIST has %d", config->n_classes,
                       N_CLASSES);
    }
    error = read_part(folder, "train", config->n_train, n_inputs, idx);
    error = error
                ? error
                : read_part(folder, "t10k", config->n_held, n_inputs, idx + 2);
    if (!error) {
        struct dataset *ds = dataset_create(n_inputs, N_CLASSES,
                                            idx[0].dims[0], idx[2].dims[0]);

        ds->image = (struct image){ idx[0].dims[1], idx[0].dims[2], 1 };
        convert(&idx[0], &idx[1], n_inputs, ds->train_x, ds->train_labels);
        convert(&idx[2], &idx[3], n_inputs, ds->held_x, ds->held_labels);
        *dsp = ds;
    }
    for (int i = 0; i < 4; i++) {
        idx_uninit(&idx[i]);
    }
    return error;
}
