/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DATASET_H
#define DATASET_H 1

/* Data sets: training samples and validation samples.
 *
 * A search is realistic only if its jobs learn, and learn better with some
 * hyper-parameters than with others.  The generators create such tasks from a
 * seed, without a download:
 *
 *    - clouds: each class is a few clouds of points that lie between the
 *      clouds of other classes.
 *    - images: each class is a texture of a few waves, at a random position,
 *      under noise, so that convolutions have an advantage.
 *    - sparse: two classes that are separated by a linear function of few
 *      features; some features are in many samples and most in few.
 *
 * Real data is read as distributed, also compressed by gzip: files of MNIST,
 * binary files of CIFAR-10, text of LibSVM.
 *
 *    ds = dataset_generate(&config);
 *    batch = batch_create();
 *    dataset_fill(ds, seed, position, n, batch);
 *    ...batch...
 *    batch_destroy(batch);
 *    dataset_destroy(ds);
 *
 * Samples are drawn without replacement from an endless sequence of
 * permutations.  The sequence depends on the seed only, so workers that use
 * different positions never get the same sample in the same epoch.
 *
 * The caller owns the data set, which is constant after creation.  A batch of
 * dataset_fill() owns its memory, which grows on demand; a batch of
 * dataset_held() is a view of the data set and must not be destroyed. */

#include <stddef.h>
#include <stdint.h>

/* Pixels of a sample, row by row, channels interleaved; all 0 if the samples
 * are no images. */
struct image {
    int height, width, channels;
};

/* Sparse samples: rows of a matrix without its zeros.  Row i is at starts[i]
 * to starts[i + 1] - 1, with ascending keys. */
struct sparse {
    size_t *starts;             /* NULL if the samples are dense. */
    uint32_t *keys;             /* Columns, less than 'n_inputs'. */
    float *values;
};

struct dataset {
    int n_inputs, n_classes;
    struct image image;
    size_t n_train, n_held;     /* Numbers of training and validation
                                 * samples. */
    float *train_x, *held_x;    /* Dense samples, n_train and n_held by
                                 * n_inputs. */
    struct sparse train, held;  /* Sparse samples, instead of dense ones. */
    int32_t *train_labels, *held_labels;        /* 0 .. n_classes - 1. */

    size_t *shard;              /* Training samples that dataset_fill() draws
                                 * from; NULL: all. */
    size_t n_shard;             /* Their number. */
};

/* Memory other than the heap, for the samples of a batch. */
struct batch_memory {
    void *(*alloc)(void *aux, size_t bytes);    /* Never returns null. */
    void (*free)(void *aux, void *);
    void *aux;
};

/* A batch of samples. */
struct batch {
    int n;
    float *x;                   /* Dense samples, n by n_inputs. */
    struct sparse sparse;       /* Sparse samples, instead of dense ones. */
    int32_t *labels;

    /* Allocated sizes, if the batch owns its memory, and the memory of 'x' and
     * 'labels'; the heap if 'memory.alloc' is null. */
    size_t max_n, max_x, max_keys;
    struct batch_memory memory;
};

#define DATASET_ALL ((size_t) 1 << 30) /* More samples than any file has. */
#define DATASET_HELD 512 /* Usual number of validation samples. */

struct dataset_config {
    int n_inputs, n_classes;
    struct image image;         /* Dimensions of generated images. */
    size_t n_train, n_held;     /* Generated samples; file: maximum. */
    uint64_t seed;
};

/* Generate data sets: clouds, images, sparse samples. */
struct dataset *dataset_generate(const struct dataset_config *);
struct dataset *dataset_generate_images(const struct dataset_config *);
struct dataset *dataset_generate_sparse(const struct dataset_config *);

/* Read data sets from files.  Images of MNIST must have 'n_inputs' pixels.
 * For CIFAR-10 all data_batch*.bin of the folder and test_batch*.bin are
 * read.  Both are also found in the subfolders that torchvision makes.
 * Samples of LibSVM have two labels and features up to 'n_inputs';
 * validation samples are in the file with ".t" appended to the name, or else
 * the last ones.  Return NULL or a message. */
char *dataset_mnist(const struct dataset_config *, const char *folder,
                    struct dataset **);
char *dataset_cifar(const struct dataset_config *, const char *folder,
                    struct dataset **);
char *dataset_libsvm(const struct dataset_config *, const char *file,
                     struct dataset **);
void dataset_destroy(struct dataset *);

struct batch *batch_create(void);
struct batch *batch_create_in(struct batch_memory);
void batch_destroy(struct batch *);

/* Fills the batch with the samples at 'position' to 'position + n - 1' of the
 * sequence. */
void dataset_fill(const struct dataset *, uint64_t seed, uint64_t position,
                  int n, struct batch *);

/* Restricts dataset_fill() to share 'i' of 'n' of the training samples, by
 * label: the samples in the order of their labels are cut into 2 n pieces, and
 * a share is two of them, drawn by 'seed'.  So a share has few labels, and all
 * shares together have each sample once.  The sequence is then one of the
 * share's samples. */
void dataset_shard_by_label(struct dataset *, uint64_t seed, int i, int n);

/* Returns 'n' validation samples from 'first' on. */
struct batch dataset_held(const struct dataset *, size_t first, int n);

/* For readers and generators: allocates 'n_train' and 'n_held' dense samples;
 * without 'n_inputs' only their labels. */
struct dataset *dataset_create(int n_inputs, int n_classes,
                               size_t n_train, size_t n_held);

#endif /* trainer/data/dataset.h */
