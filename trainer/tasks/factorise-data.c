/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/tasks/factorise-data.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "trainer/data/seeded.h"
#include "trainer/models/vector.h"
#include "trainer/process/options.h"

/* Factors by which the bold driver changes the rate. */
#define LONGER 1.05
#define SHORTER 0.5

/* First stream of the seed for initial vectors; each vector has its own. */
#define STREAM_VALUES (UINT64_C(0x4d46) << 32)

struct blocking *
blocking_create(uint32_t n_items, int n, uint64_t seed)
{
    struct blocking *b = allocate(1, sizeof *b);

    b->n = n;
    b->seed = seed;
    b->items = allocate(n_items, sizeof *b->items);
    b->starts = allocate(n + 1, sizeof *b->starts);
    b->block_of = allocate(n_items, sizeof *b->block_of);
    for (uint32_t i = 0; i < n_items; i++) {
        b->items[i] = seeded_permute(seed, i, n_items);
    }
    for (int block = 0; block < n; block++) {
        struct shard shard = shard_range(n_items, block, n);

        b->starts[block] = shard.first;
        for (size_t i = shard.first; i < shard_end(&shard); i++) {
            b->block_of[b->items[i]] = block;
        }
    }
    b->starts[n] = n_items;
    return b;
}

void
blocking_destroy(struct blocking *b)
{
    if (b) {
        free(b->items);
        free(b->starts);
        free(b->block_of);
        free(b);
    }
}

/* Returns the distance between worker and block in a part; each distance
 * occurs once per epoch. */
static int
distance(const struct blocking *b, uint64_t epoch, int part)
{
    return seeded_permute(b->seed + epoch, part, b->n);
}

int
blocking_block(const struct blocking *b, uint64_t epoch, int part, int worker)
{
    return (worker + distance(b, epoch, part)) % b->n;
}

/* A rating and its position. */
struct place {
    uint32_t cell;              /* Worker * number of blocks + block. */
    struct rating rating;
};

static int
compare(const void *a_, const void *b_)
{
    const struct place *a = a_, *b = b_;

    if (a->cell != b->cell) {
        return a->cell < b->cell ? -1 : 1;
    }
    if (a->rating.row != b->rating.row) {
        return a->rating.row < b->rating.row ? -1 : 1;
    }
    return a->rating.column < b->rating.column
           ? -1 : a->rating.column > b->rating.column;
}

static void
sort(struct factorise_data *data, int n)
{
    struct ratings *r = data->ratings;
    struct place *places = allocate(r->n_train, sizeof *places);

    data->starts = allocate((size_t) n * n + 1, sizeof *data->starts);
    for (size_t i = 0; i < r->n_train; i++) {
        places[i].rating = r->all[i];
        places[i].cell = (uint32_t) data->rows->worker_of_sample[i] * n
                         + data->columns->block_of[r->all[i].column];
        data->starts[places[i].cell + 1]++;
    }
    qsort(places, r->n_train, sizeof *places, compare);
    for (size_t i = 0; i < r->n_train; i++) {
        r->all[i] = places[i].rating;
    }
    for (int i = 0; i < n * n; i++) {
        data->starts[i + 1] += data->starts[i];
    }
    free(places);
}

static void
subtract_mean(struct ratings *r)
{
    double sum = 0;
    float mean;

    for (size_t i = 0; i < r->n_train; i++) {
        sum += r->all[i].value;
    }
    mean = sum / r->n_train;
    for (size_t i = 0; i < r->n; i++) {
        r->all[i].value -= mean;
    }
}

/* 'shrink' for a vector in an epoch, so part of it for each rating. */
static void
divide(double shrink, uint32_t n, float *counts)
{
    for (uint32_t i = 0; i < n; i++) {
        counts[i] = counts[i] ? shrink / counts[i] : 0;
    }
}

static void
share_shrinking(struct factorise_data *data, double shrink)
{
    const struct ratings *r = data->ratings;

    data->shrink_row = allocate(r->n_rows, sizeof(float));
    data->shrink_column = allocate(r->n_columns, sizeof(float));
    for (size_t i = 0; i < r->n_train; i++) {
        data->shrink_row[r->all[i].row]++;
        data->shrink_column[r->all[i].column]++;
    }
    divide(shrink, r->n_rows, data->shrink_row);
    divide(shrink, r->n_columns, data->shrink_column);
}

char *
factorise_data_create(const struct options *o, int n_workers,
                      struct factorise_data **datap)
{
    struct factorise_data *data;
    struct ratings *r;
    char *error = ratings_open(o->data, &(struct ratings_config) {
        .n_rows = o->rows, .n_columns = o->columns, .n = o->samples,
        .n_held = o->validation, .seed = o->seed,
    }, &r);

    *datap = NULL;
    if (error) {
        return error;
    }
    data = *datap = allocate(1, sizeof *data);
    data->ratings = r;
    subtract_mean(r);
    share_shrinking(data, o->weight_decay);
    data->rows = clustering_create(&r->all->row, sizeof *r->all, r->n_train,
                                   r->n_rows, n_workers);
    data->columns = blocking_create(r->n_columns, n_workers, o->seed);
    sort(data, n_workers);
    return NULL;
}

void
factorise_data_destroy(struct factorise_data *data)
{
    if (data) {
        ratings_destroy(data->ratings);
        clustering_destroy(data->rows);
        blocking_destroy(data->columns);
        free(data->starts);
        free(data->shrink_row);
        free(data->shrink_column);
        free(data);
    }
}

size_t
factorise_data_first(const struct factorise_data *data, int worker, int block)
{
    return data->starts[worker * data->columns->n + block];
}

struct factorise_step
factorise_data_step(const struct factorise_data *data, size_t rank,
                    double rate, const struct rating *x)
{
    return (struct factorise_step) {
        .rank = rank, .rate = rate, .value = x->value,
        .shrink_w = data->shrink_row[x->row],
        .shrink_h = data->shrink_column[x->column],
    };
}

void
factorise_first_values(const struct options *o, uint64_t i, float *values)
{
    struct seeded rs;

    seeded_init(&rs, o->seed, STREAM_VALUES + i);
    for (int64_t k = 0; k < o->dimension; k++) {
        values[k] = seeded_normal(&rs) / sqrt(o->dimension);
    }
}

float
factorise_data_error(size_t rank, const struct rating *x, const float *w,
                     const float *h)
{
    return x->value - vector_dot(rank, w, h);
}

WIDE float
factorise_step(const struct factorise_step *step, float *restrict w,
               float *restrict h)
{
    float error = step->value - vector_dot(step->rank, w, h);
    float by = 2 * step->rate * error;
    float keep_w = 1 - 2 * step->rate * step->shrink_w;
    float keep_h = 1 - 2 * step->rate * step->shrink_h;

    for (size_t i = 0; i < step->rank; i++) {
        float x = w[i];

        w[i] = keep_w * x + by * h[i];
        h[i] = keep_h * h[i] + by * x;
    }
    return error;
}

WIDE float
factorise_delta(const struct factorise_step *step, const float *restrict w,
                const float *restrict h, float *restrict dw,
                float *restrict dh)
{
    float error = step->value - vector_dot(step->rank, w, h);
    float by = 2 * step->rate * error;
    float lose_w = 2 * step->rate * step->shrink_w;
    float lose_h = 2 * step->rate * step->shrink_h;

    for (size_t i = 0; i < step->rank; i++) {
        dw[i] = by * h[i] - lose_w * w[i];
        dh[i] = by * w[i] - lose_h * h[i];
    }
    return error;
}

void
bold_driver_run(struct bold_driver *driver, double loss)
{
    /* NaN does not count as a decrease. */
    driver->rate *= !driver->last || loss < driver->last ? LONGER : SHORTER;
    driver->last = loss;
}
