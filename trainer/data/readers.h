/* SPDX-License-Identifier: Apache-2.0 */

#ifndef READERS_H
#define READERS_H 1

/* What the makers of data sets read from one file.
 *
 *
 * Motivation
 * ==========
 *
 * A file may be cut, of another kind, or made to do harm.  The part of a
 * loader that looks at its bytes is apart from the part that knows folders, so
 * that a fuzzer can feed it.
 *
 *
 * Usage
 * =====
 *
 *    struct idx idx;
 *    error = idx_read("name", stream, 3, max_n, &idx);
 *    ...
 *    idx_uninit(&idx);
 *
 * Each returns NULL or a message that begins with 'name'.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * What is read belongs to the caller, also after an error: x_uninit() frees
 * it. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "trainer/data/dataset.h"

/* MNIST's form: an array of bytes. */
struct idx {
    uint32_t dims[3];           /* Those there are not are 1. */
    uint8_t *bytes;             /* dims[0] * dims[1] * dims[2]. */
};

/* Reads at most 'max_n' elements of the first of 'n_dims' dimensions. */
char *idx_read(const char *name, FILE *, uint32_t n_dims, size_t max_n,
               struct idx *);
void idx_uninit(struct idx *);

/* CIFAR-10's form: a label, then the bytes of a colour after the other, 0 or
 * more times. */
#define CIFAR_SIDE 32
#define CIFAR_COLOURS 3
#define CIFAR_PIXELS (CIFAR_SIDE * CIFAR_SIDE)
#define CIFAR_CLASSES 10

struct cifar {
    size_t n;
    size_t max_n;               /* There is memory for so many. */
    uint8_t *bytes;             /* Of each: label, then the pixels. */
};

/* Adds what is in the file until there are 'max_n'. */
char *cifar_read(const char *name, FILE *, size_t max_n, struct cifar *);
void cifar_uninit(struct cifar *);

/* LibSVM's form: lines of a label and of "key:value"s, keys from 1 on and
 * ascending. */
struct libsvm {
    size_t n, n_keys;
    size_t max_n, max_keys;     /* There is memory for so many. */
    double *labels;
    struct sparse rows;         /* Keys from 0 on. */
};

/* 'n_inputs' is the largest key that is allowed. */
char *libsvm_read(const char *name, FILE *, size_t max_n, int n_inputs,
                  struct libsvm *);
void libsvm_uninit(struct libsvm *);

#endif /* trainer/data/readers.h */
