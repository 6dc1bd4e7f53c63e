/* SPDX-License-Identifier: Apache-2.0 */

#ifndef READERS_H
#define READERS_H 1

/* Parsers of single files of data sets.
 *
 * A file may be truncated, of another kind, or malicious.  Parsing is separate
 * from finding files, so that it can be fuzzed.
 *
 *    struct idx idx;
 *    error = idx_read("name", stream, 3, max_n, &idx);
 *    ...
 *    idx_uninit(&idx);
 *
 * Each returns NULL or a message that begins with 'name'.
 *
 * Files are opened as they are distributed, also compressed by gzip:
 *
 *    error = data_open("a9a", &stream);        // Or a9a.gz.
 *    error = error ? error
 *            : data_close("a9a", stream, libsvm_read("a9a", stream, ...));
 *
 * The caller owns the result, also after an error: x_uninit() frees it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "trainer/data/dataset.h"

/* data_open(): opens 'name', or 'name' with ".gz" behind it if only that
 * exists, and skips a byte order mark.  data_close(): returns 'error', or else
 * a message if the end of the file is missing. */
bool data_exists(const char *name);
char *data_open(const char *name, FILE **);
char *data_close(const char *name, FILE *, char *error);

/* Format of MNIST: an array of bytes. */
struct idx {
    uint32_t dims[3];           /* Missing dimensions are 1. */
    uint8_t *bytes;             /* dims[0] * dims[1] * dims[2] bytes. */
};

/* Reads at most 'max_n' elements of the first of 'n_dims' dimensions. */
char *idx_read(const char *name, FILE *, uint32_t n_dims, size_t max_n,
               struct idx *);
void idx_uninit(struct idx *);

/* Format of CIFAR-10: records of a label and the bytes of one colour after the
 * other. */
#define CIFAR_SIDE 32
#define CIFAR_COLOURS 3
#define CIFAR_PIXELS (CIFAR_SIDE * CIFAR_SIDE)
#define CIFAR_CLASSES 10

struct cifar {
    size_t n;
    size_t max_n;               /* Allocated number. */
    uint8_t *bytes;             /* Per record: label, then the pixels. */
};

/* Adds the records of the file, up to 'max_n' in all. */
char *cifar_read(const char *name, FILE *, size_t max_n, struct cifar *);
void cifar_uninit(struct cifar *);

/* Format of LibSVM: lines of a label and "key:value" pairs with ascending keys
 * from 1 on. */
struct libsvm {
    size_t n, n_keys;
    size_t max_n, max_keys;     /* Allocated sizes. */
    double *labels;
    struct sparse rows;         /* With keys from 0 on. */
};

/* 'n_inputs' is the largest allowed key. */
char *libsvm_read(const char *name, FILE *, size_t max_n, int n_inputs,
                  struct libsvm *);
void libsvm_uninit(struct libsvm *);

#endif /* trainer/data/readers.h */
