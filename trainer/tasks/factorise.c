/* SPDX-License-Identifier: Apache-2.0 */

/* Matrix factorisation by distributed stochastic gradient descent.
 *
 * A worker has the rows of its clusters for the whole training, and one block
 * of columns after the other. */

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "trainer/models/vector.h"
#include "trainer/process/options.h"
#include "trainer/process/report.h"
#include "trainer/tasks/factorise-data.h"
#include "trainer/tasks/gather.h"
#include "trainer/tasks/node-task.h"

/* Largest number of columns per step, besides a row. */
#define IN_PLACE (KEY_STORE_MAX_BORROWED - 1)
#define JUDGED_AT_ONCE 1024     /* Ratings that are validated at once. */

/* Ratings whose vectors are exchanged at once. */
struct rating_batch {
    struct gather *gather;
    const struct rating *ratings;
    size_t n;
    key_handle pull;
};

struct factorise {
    struct node_task task;
    struct factorise_data *data;
};

/* State of a worker. */
struct state {
    struct bold_driver driver;
    uint64_t *keys;             /* Scratch: keys of a block. */
    float *values, *deltas;     /* Scratch: a row and a column. */
    struct gather *gather;
    struct rating_batch batches[2];     /* One is trained, the other one
                                         * pulled. */
};

static struct factorise *
factorise_cast(const struct node_task *task)
{
    return (struct factorise *) task;
}

static char *
factorise_create(const struct options *o, int n_workers,
                 struct node_task **taskp)
{
    struct factorise *f = allocate(1, sizeof *f);

    f->task = (struct node_task) { &node_task_factorise, o };
    *taskp = &f->task;
    return factorise_data_create(o, n_workers, &f->data);
}

static void
factorise_destroy(struct node_task *task)
{
    struct factorise *f = factorise_cast(task);

    factorise_data_destroy(f->data);
    free(f);
}

static int
factorise_ranges(const struct node_task *task, struct key_range *ranges)
{
    const struct ratings *r = factorise_cast(task)->data->ratings;

    ranges[0] = (struct key_range) { r->n_rows, task->o->dimension };
    ranges[1] = (struct key_range) { r->n_columns, task->o->dimension };
    return 2;
}

static void
factorise_init(const struct node_task *task, uint64_t key, float *values)
{
    factorise_first_values(task->o, key, values);
}

static uint64_t
column_key(const struct factorise_data *data, uint32_t column)
{
    return data->ratings->n_rows + column;
}

/* Localizes the rows of the worker, for the whole training. */
static char *
localize_rows(struct node_worker *worker, struct state *state)
{
    const struct factorise_data *data = factorise_cast(worker->task)->data;
    size_t n = 0;

    for (uint32_t row = 0; row < data->ratings->n_rows; row++) {
        if (data->rows->home[row] == worker->index) {
            state->keys[n++] = row;
        }
    }
    return key_wait(worker->keys,
                    key_localize(worker->keys, state->keys, n));
}

static char *
factorise_begin(struct node_worker *worker, void **statep)
{
    const struct factorise_data *data = factorise_cast(worker->task)->data;
    const struct options *o = worker->task->o;
    struct state *state = *statep = allocate(1, sizeof *state);

    state->driver.rate = o->learning_rate;
    state->keys = allocate(data->ratings->n_rows + data->ratings->n_columns,
                           sizeof *state->keys);
    state->values = allocate(2 * o->dimension, sizeof *state->values);
    state->deltas = allocate(2 * o->dimension, sizeof *state->deltas);
    state->gather = gather_create(worker->keys, 2 * JUDGED_AT_ONCE,
                                  2 * JUDGED_AT_ONCE * o->dimension);
    for (int i = 0; i < 2; i++) {
        state->batches[i].gather = gather_create(
            worker->keys, 2 * o->exchange, 2 * o->exchange * o->dimension);
    }
    return localize_rows(worker, state);
}

static void
factorise_end(void *state_)
{
    struct state *state = state_;

    gather_destroy(state->gather);
    gather_destroy(state->batches[0].gather);
    gather_destroy(state->batches[1].gather);
    free(state->keys);
    free(state->values);
    free(state->deltas);
    free(state);
}

static char *
localize_block(struct node_worker *worker, struct state *state, int block)
{
    const struct factorise_data *data = factorise_cast(worker->task)->data;
    const struct blocking *b = data->columns;
    size_t n = b->starts[block + 1] - b->starts[block];

    for (size_t i = 0; i < n; i++) {
        state->keys[i] = column_key(data, b->items[b->starts[block] + i]);
    }
    return key_wait(worker->keys,
                    key_localize(worker->keys, state->keys, n));
}

/* Returns the number of ratings from 'x' on with the same row and different
 * columns. */
static size_t
count_alike(const struct rating *x, size_t n)
{
    size_t i = 1;

    while (i < n && i < IN_PLACE && x[i].row == x[0].row
           && x[i].column != x[i - 1].column) {
        i++;
    }
    return i;
}

/* Makes steps on 'n' ratings of a row in place.  Returns false if some vectors
 * are not local. */
static bool
step_in_place(struct node_worker *worker, const struct state *state,
              const struct rating *x, size_t n, double *loss)
{
    const struct factorise_data *data = factorise_cast(worker->task)->data;
    float *vectors[1 + IN_PLACE];
    uint64_t keys[1 + IN_PLACE];

    keys[0] = x->row;
    for (size_t i = 0; i < n; i++) {
        keys[1 + i] = column_key(data, x[i].column);
    }
    if (!key_borrow(worker->keys, keys, 1 + n, vectors)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        struct factorise_step step = factorise_data_step(
            data, worker->task->o->dimension, state->driver.rate, &x[i]);
        float error = factorise_step(&step, vectors[0], vectors[1 + i]);

        *loss += error * error;
    }
    key_return(worker->keys, keys, 1 + n);
    return true;
}

/* Makes a step by a pull and a push. */
static char *
step_by_messages(struct node_worker *worker, struct state *state,
                 const struct rating *x, double *loss)
{
    const struct factorise_data *data = factorise_cast(worker->task)->data;
    const struct options *o = worker->task->o;
    uint64_t keys[2] = { x->row, column_key(data, x->column) };
    struct factorise_step step = factorise_data_step(data, o->dimension,
                                                     state->driver.rate, x);
    char *error = key_wait(worker->keys,
                           key_pull(worker->keys, keys, 2, state->values));
    float e;

    if (error) {
        return error;
    }
    e = factorise_delta(&step, state->values, state->values + o->dimension,
                        state->deltas, state->deltas + o->dimension);
    *loss += e * e;
    key_push(worker->keys, keys, 2, state->deltas);
    return NULL;
}

/* Requests the vectors of the next ones of 'n' ratings. */
static void
batch_request(struct node_worker *worker, struct rating_batch *b,
              const struct rating *x, size_t n)
{
    const struct factorise_data *data = factorise_cast(worker->task)->data;
    const struct options *o = worker->task->o;

    b->ratings = x;
    b->n = n < (size_t) o->exchange ? n : (size_t) o->exchange;
    gather_clear(b->gather);
    for (size_t i = 0; i < b->n; i++) {
        gather_add(b->gather, x[i].row, o->dimension);
        gather_add(b->gather, column_key(data, x[i].column), o->dimension);
    }
    b->pull = gather_request(b->gather);
}

/* Changes a vector of a batch, and notes the change. */
static void
batch_change(struct gather *g, size_t at, const float *delta, size_t n)
{
    vector_add(n, 1, delta, g->values + at);
    vector_add(n, 1, delta, g->deltas + at);
}

static char *
batch_train(struct node_worker *worker, struct state *state,
            struct rating_batch *b, double *loss)
{
    const struct factorise_data *data = factorise_cast(worker->task)->data;
    size_t rank = worker->task->o->dimension;
    struct gather *g = b->gather;
    char *error = key_wait(worker->keys, b->pull);

    for (size_t i = 0; i < b->n && !error; i++) {
        const struct rating *x = &b->ratings[i];
        size_t w = gather_add(g, x->row, rank);
        size_t h = gather_add(g, column_key(data, x->column), rank);
        struct factorise_step step = factorise_data_step(
            data, rank, state->driver.rate, x);
        float e = factorise_delta(&step, g->values + w, g->values + h,
                                  state->deltas, state->deltas + rank);

        batch_change(g, w, state->deltas, rank);
        batch_change(g, h, state->deltas + rank, rank);
        *loss += e * e;
    }
    if (!error) {
        gather_push(g);
    }
    return error;
}

/* Trains 'n' ratings, a batch at a time.  The vectors of the next batch are
 * requested before the changes of this one are sent, so they may lack them. */
static char *
train_batches(struct node_worker *worker, struct state *state,
              const struct rating *x, size_t n, struct node_task_sums *sums)
{
    char *error = NULL;
    size_t done = 0;
    int k = 0;

    batch_request(worker, &state->batches[0], x, n);
    while (done < n && !error && !node_worker_late(worker)) {
        struct rating_batch *b = &state->batches[k];
        size_t next = done + b->n;

        k = !k;
        if (next < n) {
            batch_request(worker, &state->batches[k], x + next, n - next);
        }
        error = batch_train(worker, state, b, &sums->loss);
        done = next;
    }
    sums->updates += done;
    node_worker_pace(worker, done);
    return error ? error : key_wait_all(worker->keys);
}

static char *
train_block(struct node_worker *worker, struct state *state, int block,
            struct node_task_sums *sums)
{
    const struct factorise_data *data = factorise_cast(worker->task)->data;
    size_t i = factorise_data_first(data, worker->index, block);
    size_t end = factorise_data_first(data, worker->index, block + 1);
    size_t first = i;
    char *error = NULL;

    if (worker->task->o->exchange > 1 && i < end) {
        return train_batches(worker, state, &data->ratings->all[i], end - i,
                             sums);
    }
    while (i < end && !error && !node_worker_late(worker)) {
        const struct rating *x = &data->ratings->all[i];
        size_t n = count_alike(x, end - i);

        if (!step_in_place(worker, state, x, n, &sums->loss)) {
            n = 1;
            error = step_by_messages(worker, state, x, &sums->loss);
        }
        i += n;
    }
    sums->updates += i - first;
    node_worker_pace(worker, i - first);
    return error;
}

static char *
factorise_epoch(struct node_worker *worker, void *state,
                struct node_task_sums *sums)
{
    const struct blocking *b = factorise_cast(worker->task)->data->columns;
    char *error = NULL;

    for (int part = 0; part < b->n && !error; part++) {
        int block = blocking_block(b, worker->epoch, part, worker->index);

        node_worker_begin_part(worker, b->n, 1);
        error = localize_block(worker, state, block);
        error = error ? error : train_block(worker, state, block, sums);
        error = error ? error : node_worker_end_part(worker);
    }
    return error;
}

/* Adds the squared errors of 'n' validation ratings. */
static char *
judge_some(struct node_worker *worker, struct gather *g,
           const struct rating *x, size_t n, struct node_task_sums *sums)
{
    const struct factorise_data *data = factorise_cast(worker->task)->data;
    size_t rank = worker->task->o->dimension;
    char *error;

    gather_clear(g);
    for (size_t i = 0; i < n; i++) {
        gather_add(g, x[i].row, rank);
        gather_add(g, column_key(data, x[i].column), rank);
    }
    error = gather_pull(g);
    for (size_t i = 0; i < n && !error; i++) {
        float e = factorise_data_error(
            rank, &x[i], g->values + gather_add(g, x[i].row, rank),
            g->values + gather_add(g, column_key(data, x[i].column), rank));

        sums->quality[0] += e * e;
        sums->n_judged++;
    }
    return error;
}

static char *
factorise_judge(struct node_worker *worker, void *state_,
                struct node_task_sums *sums)
{
    const struct ratings *r = factorise_cast(worker->task)->data->ratings;
    struct shard share = shard_range(r->n - r->n_train, worker->index,
                                     worker->n);
    struct state *state = state_;
    char *error = NULL;

    for (size_t i = 0; i < share.n && !error; i += JUDGED_AT_ONCE) {
        size_t n = share.n - i < JUDGED_AT_ONCE ? share.n - i
                                                : JUDGED_AT_ONCE;

        error = judge_some(worker, state->gather,
                           &r->all[r->n_train + share.first + i], n, sums);
    }
    return error;
}

static void
factorise_conclude(void *state_, struct report_epoch *e)
{
    struct state *state = state_;

    bold_driver_run(&state->driver, e->loss);
    e->qualities[0] = sqrt(e->qualities[0]);
}

const struct node_task_class node_task_factorise = {
    .name = "factorise",
    .qualities = { "rmse" },
    .create = factorise_create,
    .destroy = factorise_destroy,
    .ranges = factorise_ranges,
    .init = factorise_init,
    .begin = factorise_begin,
    .end = factorise_end,
    .epoch = factorise_epoch,
    .judge = factorise_judge,
    .conclude = factorise_conclude,
};
