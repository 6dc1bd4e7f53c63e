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
 * some hyper-parameters than under others.  The generator makes such a task
 * from a seed with nothing to download: each class is a few clouds of points
 * that lie between the clouds of other classes.  MNIST's own files are read as
 * they are distributed (after gunzip).
 *
 *
 * Usage
 * =====
 *
 *    error = dataset_generate(&config, &ds);
 *    dataset_fill(ds, seed, position, n, x, labels);
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
 * The caller owns the data set, which nobody writes after it is made. */

#include <stddef.h>
#include <stdint.h>

struct dataset {
    int n_inputs, n_classes;
    size_t n_train, n_held;     /* Samples to learn from and to judge by. */
    float *train_x, *held_x;    /* n_train by n_inputs, n_held by n_inputs. */
    int32_t *train_labels, *held_labels;        /* 0 .. n_classes - 1. */
};

struct dataset_config {
    int n_inputs, n_classes;
    size_t n_train, n_held;     /* Of MNIST: at most so many. */
    uint64_t seed;
};

/* Return NULL or a message. */
char *dataset_generate(const struct dataset_config *, struct dataset **);
char *dataset_mnist(const struct dataset_config *, const char *folder,
                    struct dataset **);
void dataset_destroy(struct dataset *);

/* Copies the samples at 'position' to 'position + n - 1' of the sequence. */
void dataset_fill(const struct dataset *, uint64_t seed, uint64_t position,
                  int n, float *x, int32_t *labels);

/* For the makers: memory for 'n_train' and 'n_held' samples. */
struct dataset *dataset_create(int n_inputs, int n_classes,
                               size_t n_train, size_t n_held);

#endif /* trainer/task/dataset.h */
