/* SPDX-License-Identifier: Apache-2.0 */

/* The binary files of CIFAR-10. */

#include "trainer/data/dataset.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/data/readers.h"

#define RECORD (1 + CIFAR_COLOURS * CIFAR_PIXELS)

char *
cifar_read(const char *name, FILE *stream, size_t max_n, struct cifar *cifar)
{
    while (cifar->n < max_n) {
        uint8_t *record;
        size_t length;

        cifar->bytes = grow(cifar->bytes, cifar->n, &cifar->max_n, RECORD);
        record = cifar->bytes + cifar->n * RECORD;
        length = fread(record, 1, RECORD, stream);
        if (!length) {
            break;
        }
        if (length < RECORD) {
            return message("%s: ends within an image, a label and %d bytes "
                           "each are needed", name, RECORD - 1);
        }
        if (record[0] >= CIFAR_CLASSES) {
            return message("%s: label %u; expected 0 to %d", name, record[0],
                           CIFAR_CLASSES - 1);
        }
        cifar->n++;
    }
    return NULL;
}

void
cifar_uninit(struct cifar *cifar)
{
    free(cifar->bytes);
}

/* Finds the files in the folder or its 'subfolder'. */
static bool
find_files(const char *folder, const char *subfolder, const char *pattern,
           glob_t *found)
{
    char *path = message("%s/{,%s/}%s", folder, subfolder, pattern);
    bool none = glob(path, GLOB_BRACE, NULL, found);

    free(path);
    return !none;
}

/* Reads all files that match 'pattern'. */
static char *
read_files(const char *folder, const char *pattern, size_t max_n,
           struct cifar *cifar)
{
    char *error = NULL;
    glob_t found;

    if (!find_files(folder, "cifar-10-batches-bin", pattern, &found)) {
        return find_files(folder, "cifar-10-batches-py", "data_batch_1",
                          &found)
                   ? message(
                       "%s: Python's version of CIFAR-10; expected the binary "
                       "one, cifar-10-batches-bin",
                       folder)
                   : message("%s/%s: no such file", folder, pattern);
    }
    for (size_t i = 0; i < found.gl_pathc && !error; i++) {
        const char *name = found.gl_pathv[i];
        FILE *stream;

        error = data_open(name, &stream);
        error = error ? error
                      : data_close(name, stream,
                                   cifar_read(name, stream, max_n, cifar));
    }
    if (!error && !cifar->n) {
        error = message("%s/%s: no images", folder, pattern);
    }
    globfree(&found);
    return error;
}

/* Interleaves the colours of each pixel, and scales the values to about mean 0
 * and variance 1. */
static void
convert(const struct cifar *cifar, float *x, int32_t *labels)
{
    for (size_t i = 0; i < cifar->n; i++) {
        const uint8_t *record = cifar->bytes + i * RECORD;

        labels[i] = record[0];
        for (int j = 0; j < CIFAR_PIXELS; j++) {
            for (int k = 0; k < CIFAR_COLOURS; k++) {
                *x++ = (record[1 + k * CIFAR_PIXELS + j] / 255.0 - 0.47)
                       / 0.25;
            }
        }
    }
}

char *
dataset_cifar(const struct dataset_config *config, const char *folder,
              struct dataset **dsp)
{
    struct cifar train = { .n = 0 }, held = { .n = 0 };
    char *error;

    *dsp = NULL;
    if (config->n_classes != CIFAR_CLASSES
        || config->n_inputs != CIFAR_COLOURS * CIFAR_PIXELS) {
        return message("%d inputs and %d classes, CIFAR-10 has %d and %d",
                       config->n_inputs, config->n_classes,
                       CIFAR_COLOURS * CIFAR_PIXELS, CIFAR_CLASSES);
    }
    error = read_files(folder, "data_batch*.bin*", config->n_train, &train);
    if (!error) {
        error = read_files(folder, "test_batch*.bin*", config->n_held, &held);
    }
    if (!error) {
        struct dataset *ds = dataset_create(config->n_inputs, CIFAR_CLASSES,
                                            train.n, held.n);

        ds->image = (struct image) { CIFAR_SIDE, CIFAR_SIDE, CIFAR_COLOURS };
        convert(&train, ds->train_x, ds->train_labels);
        convert(&held, ds->held_x, ds->held_labels);
        *dsp = ds;
    }
    cifar_uninit(&train);
    cifar_uninit(&held);
    return error;
}
