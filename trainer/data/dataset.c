/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/data/dataset.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/data/seeded.h"

struct dataset *
dataset_create(int n_inputs, int n_classes, size_t n_train, size_t n_held)
{
    struct dataset *ds = allocate(1, sizeof *ds);

    ds->n_inputs = n_inputs;
    ds->n_classes = n_classes;
    ds->n_train = n_train;
    ds->n_held = n_held;
    if (n_inputs) {
        ds->train_x = allocate(n_train * n_inputs, sizeof *ds->train_x);
        ds->held_x = allocate(n_held * n_inputs, sizeof *ds->held_x);
    }
    ds->train_labels = allocate(n_train, sizeof *ds->train_labels);
    ds->held_labels = allocate(n_held, sizeof *ds->held_labels);
    return ds;
}

static void
sparse_uninit(struct sparse *sparse)
{
    free(sparse->starts);
    free(sparse->keys);
    free(sparse->values);
}

void
dataset_destroy(struct dataset *ds)
{
    if (ds) {
        free(ds->train_x);
        free(ds->held_x);
        free(ds->train_labels);
        free(ds->held_labels);
        free(ds->shard);
        sparse_uninit(&ds->train);
        sparse_uninit(&ds->held);
        free(ds);
    }
}

struct batch *
batch_create(void)
{
    return allocate(1, sizeof(struct batch));
}

struct batch *
batch_create_in(struct batch_memory memory)
{
    struct batch *batch = batch_create();

    batch->memory = memory;
    return batch;
}

static void
batch_free(struct batch *batch, void *p)
{
    if (batch->memory.free) {
        batch->memory.free(batch->memory.aux, p);
    } else {
        free(p);
    }
}

void
batch_destroy(struct batch *batch)
{
    if (batch) {
        batch_free(batch, batch->x);
        batch_free(batch, batch->labels);
        sparse_uninit(&batch->sparse);
        free(batch);
    }
}

/* As renew(), in the memory of the batch. */
static void
batch_renew(struct batch *batch, void *p, size_t n, size_t size)
{
    void **at = p;

    batch_free(batch, *at);
    *at = batch->memory.alloc
              ? batch->memory.alloc(batch->memory.aux, n * size)
              : allocate(n, size);
}

/* Replaces the memory at '*p'; the previous content is lost. */
static void
renew(void *p, size_t n, size_t size)
{
    void **at = p;

    free(*at);
    *at = allocate(n, size);
}

static void
reserve(struct batch *batch, size_t n, size_t n_x, size_t n_keys)
{
    if (n > batch->max_n) {
        batch_renew(batch, &batch->labels, n, sizeof *batch->labels);
        renew(&batch->sparse.starts, n + 1, sizeof *batch->sparse.starts);
        batch->max_n = n;
    }
    if (n_x > batch->max_x) {
        batch_renew(batch, &batch->x, n_x, sizeof *batch->x);
        batch->max_x = n_x;
    }
    if (n_keys > batch->max_keys) {
        renew(&batch->sparse.keys, n_keys, sizeof *batch->sparse.keys);
        renew(&batch->sparse.values, n_keys, sizeof *batch->sparse.values);
        batch->max_keys = n_keys;
    }
}

/* Returns the sample at 'position' of the sequence. */
static size_t
sample_at(const struct dataset *ds, uint64_t seed, uint64_t position)
{
    size_t n = ds->shard ? ds->n_shard : ds->n_train;
    uint64_t epoch = position / n;
    size_t i = seeded_permute(seed ^ (epoch << 20), position % n, n);

    return ds->shard ? ds->shard[i] : i;
}

/* Appends piece 'i' of 'n' of the samples in the order of their labels. */
static void
add_piece(struct dataset *ds, const size_t order[], size_t i, size_t n)
{
    size_t first = ds->n_train * i / n, end = ds->n_train * (i + 1) / n;

    memcpy(ds->shard + ds->n_shard, order + first,
           (end - first) * sizeof *order);
    ds->n_shard += end - first;
}

void
dataset_shard_by_label(struct dataset *ds, uint64_t seed, int i, int n)
{
    size_t *order = allocate(ds->n_train, sizeof *order), n_sorted = 0;

    for (int label = 0; label < ds->n_classes; label++) {
        for (size_t k = 0; k < ds->n_train; k++) {
            if (ds->train_labels[k] == label) {
                order[n_sorted++] = k;
            }
        }
    }
    ds->shard = allocate(ds->n_train, sizeof *ds->shard);
    for (int k = 0; k < 2; k++) {
        add_piece(ds, order, seeded_permute(seed, 2 * i + k, 2 * n), 2 * n);
    }
    free(order);
}

static void
fill_sparse(const struct dataset *ds, uint64_t seed, uint64_t position,
            int n, struct batch *batch)
{
    const struct sparse *from = &ds->train;
    struct sparse *to = &batch->sparse;
    size_t n_keys = 0;

    for (int i = 0; i < n; i++) {
        size_t sample = sample_at(ds, seed, position + i);

        n_keys += from->starts[sample + 1] - from->starts[sample];
    }
    reserve(batch, n, 0, n_keys);
    n_keys = 0;
    for (int i = 0; i < n; i++) {
        size_t sample = sample_at(ds, seed, position + i);
        size_t first = from->starts[sample];
        size_t length = from->starts[sample + 1] - first;

        to->starts[i] = n_keys;
        memcpy(to->keys + n_keys, from->keys + first,
               length * sizeof *to->keys);
        memcpy(to->values + n_keys, from->values + first,
               length * sizeof *to->values);
        batch->labels[i] = ds->train_labels[sample];
        n_keys += length;
    }
    to->starts[n] = n_keys;
}

void
dataset_fill(const struct dataset *ds, uint64_t seed, uint64_t position,
             int n, struct batch *batch)
{
    batch->n = n;
    if (ds->train.starts) {
        if (n) {
            fill_sparse(ds, seed, position, n, batch);
        }
        return;
    }
    reserve(batch, n, (size_t) n * ds->n_inputs, 0);
    for (int i = 0; i < n; i++) {
        size_t sample = sample_at(ds, seed, position + i);

        memcpy(batch->x + (size_t) i * ds->n_inputs,
               ds->train_x + sample * ds->n_inputs,
               ds->n_inputs * sizeof *batch->x);
        batch->labels[i] = ds->train_labels[sample];
    }
}

struct batch
dataset_held(const struct dataset *ds, size_t first, int n)
{
    struct batch batch = {
        .n = n, .x = ds->held_x ? ds->held_x + first * ds->n_inputs : NULL,
        .sparse = ds->held, .labels = ds->held_labels + first
    };

    if (batch.sparse.starts) {
        batch.sparse.starts += first;
    }
    return batch;
}
