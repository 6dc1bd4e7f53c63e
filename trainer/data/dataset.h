/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DATASET_H
#define DATASET_H 1

/* Samples to learn from, and samples to judge by.
 *
 *
 * Motivation
 * ==========
 *
 * A search is only real if its jobs learn something, and learn it better under
 * some hyper-parameters than under others.  The generators make such tasks
 * from a seed with nothing to download:
 *
 *    - clouds: each class is a few clouds of points that lie between the
 *      clouds of other classes.
 *    - images: each class is a texture of a few waves, at any place, under
 *      noise, so that what convolves has an advantage.
 *    - sparse: two classes that a linear function of few features tells apart,
 *      where some features are in many samples and most in few.
 *
 * Real data is read as it is distributed (after gunzip): MNIST's files,
 * CIFAR-10's binary ones, and LibSVM's text.
 *
 *
 * Usage
 * =====
 *
 *    ds = dataset_generate(&config);
 *    batch = batch_create();
 *    dataset_fill(ds, seed, position, n, batch);
 *    ...batch...
 *    batch_destroy(batch);
 *    dataset_destroy(ds);
 *
 * Samples are drawn without replacement from an endless sequence of
 * permutations.  Everybody with the same seed has the same sequence, so
 * workers that take different positions of it never see the same sample in
 * the same epoch.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The caller owns the data set, which nobody writes after it is made.  A
 * batch of dataset_fill() owns its memory and grows as it is needed; one of
 * dataset_held() is a view of the data set and is not to be destroyed. */

#include <stddef.h>
#include <stdint.h>

/* Pixels of a sample, row by row, channels side by side; all 0: no image. */
struct image {
    int height, width, channels;
};

/* Samples as rows of a matrix of which only what is not 0 is stored: that of
 * row i is at starts[i] to starts[i + 1] - 1.  The keys of a row ascend. */
struct sparse {
    size_t *starts;             /* NULL: not sparse. */
    uint32_t *keys;             /* Column, less than 'n_inputs'. */
    float *values;
};

struct dataset {
    int n_inputs, n_classes;
    struct image image;
    size_t n_train, n_held;     /* Samples to learn from and to judge by. */
    float *train_x, *held_x;    /* n_train by n_inputs, n_held by n_inputs, */
    struct sparse train, held;  /* or else these. */
    int32_t *train_labels, *held_labels;        /* 0 .. n_classes - 1. */
};

/* Some samples. */
struct batch {
    int n;
    float *x;                   /* n by n_inputs, or else */
    struct sparse sparse;       /* n rows. */
    int32_t *labels;

    /* How much there is memory for, if the batch owns it. */
    size_t max_n, max_x, max_keys;
};

struct dataset_config {
    int n_inputs, n_classes;
    struct image image;         /* Of generated ones. */
    size_t n_train, n_held;     /* Of a file: at most so many. */
    uint64_t seed;
};

/* Generated ones: of clouds, images, and sparse samples. */
struct dataset *dataset_generate(const struct dataset_config *);
struct dataset *dataset_generate_images(const struct dataset_config *);
struct dataset *dataset_generate_sparse(const struct dataset_config *);

/* From files.  MNIST's images are to have 'n_inputs' pixels.  CIFAR-10's
 * files are all data_batch*.bin of the folder and test_batch*.bin.  LibSVM's
 * samples have two labels and features up to 'n_inputs'; those to judge by are
 * in the file of that name with ".t" at its end, or else the last ones.
 * Return NULL or a message. */
char *dataset_mnist(const struct dataset_config *, const char *folder,
                    struct dataset **);
char *dataset_cifar(const struct dataset_config *, const char *folder,
                    struct dataset **);
char *dataset_libsvm(const struct dataset_config *, const char *file,
                     struct dataset **);
void dataset_destroy(struct dataset *);

struct batch *batch_create(void);
void batch_destroy(struct batch *);

/* Makes the batch the samples at 'position' to 'position + n - 1' of the
 * sequence. */
void dataset_fill(const struct dataset *, uint64_t seed, uint64_t position,
                  int n, struct batch *);

/* 'n' of the samples to judge by. */
struct batch dataset_held(const struct dataset *, size_t first, int n);

/* For the makers: memory for 'n_train' and 'n_held' dense samples; without
 * 'n_inputs' for their labels only. */
struct dataset *dataset_create(int n_inputs, int n_classes,
                               size_t n_train, size_t n_held);

#endif /* trainer/data/dataset.h */
