/* SPDX-License-Identifier: Apache-2.0 */

/* Matrix factorisation by distributed stochastic gradient descent.
 *
 * A worker has the rows of its clusters for the whole training, and one block
 * of columns after the other. */

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "trainer/process/options.h"
#include "trainer/process/report.h"
#include "trainer/tasks/batches.h"
#include "trainer/tasks/factorise-data.h"
#include "trainer/tasks/gather.h"
#include "trainer/tasks/node-task.h"

/* Largest number of columns per step, besides a row. */
#define IN_PLACE (KEY_STORE_MAX_BORROWED - 1)
#define JUDGED_AT_ONCE 1024     /* Ratings that are validated at once. */

struct factorise {
    struct node_task task;
    struct factorise_data *data;
};

/* State of a worker. */
struct state {
    struct bold_driver driver;
    uint64_t *keys; /* Scratch: keys of a block. */
    struct gather *gather;
    struct batches *batches;    /* Ratings that are exchanged at once. */
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
    return key_wait(worker->keys, key_localize(worker->keys, state->keys, n));
}

static char *
factorise_begin(struct node_worker *worker, void **statep)
{
    const struct factorise_data *data = factorise_cast(worker->task)->data;
    const struct options *o = worker->task->o;
    struct state *state = *statep = allocate(1, sizeof *state);
    size_t n_keys = data->ratings->n_rows + data->ratings->n_columns;

    state->driver.rate = o->learning_rate;
    state->keys = allocate(n_keys, sizeof *state->keys);
    state->gather = gather_create(worker->keys, 2 * JUDGED_AT_ONCE,
                                  2 * JUDGED_AT_ONCE * o->dimension, false);
    state->batches = batches_create(worker->keys, &(struct batches_size) {
        .n = o->exchange, .n_places = 3, .keys = 2,
        .values = 2 * o->dimension, .all_keys = n_keys,
        .all_values = n_keys * o->dimension,
    });
    return localize_rows(worker, state);
}

static void
factorise_end(void *state_)
{
    struct state *state = state_;

    gather_destroy(state->gather);
    batches_destroy(state->batches);
    free(state->keys);
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
    return key_wait(worker->keys, key_localize(worker->keys, state->keys, n));
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

/* Ratings that are trained by pulls and pushes. */
struct rest {
    struct node_worker *worker;
    struct state *state;
    const struct rating *next, *end;
    double *loss;
};

/* The indices of a rating are those of its row and its column, and its number
 * among all. */
static bool
add_rating(void *rest_, struct gather *g, size_t places[])
{
    struct rest *rest = rest_;
    const struct factorise_data *data
        = factorise_cast(rest->worker->task)->data;
    size_t rank = rest->worker->task->o->dimension;

    if (rest->next == rest->end) {
        return false;
    }
    places[0] = gather_add(g, rest->next->row, rank);
    places[1] = gather_add(g, column_key(data, rest->next->column), rank);
    places[2] = rest->next++ - data->ratings->all;
    return true;
}

static void
step_rating(void *rest_, struct gather *g, const size_t places[])
{
    struct rest *rest = rest_;
    const struct factorise_data *data
        = factorise_cast(rest->worker->task)->data;
    size_t rank = rest->worker->task->o->dimension;
    struct factorise_step step = factorise_data_step(
        data, rank, rest->state->driver.rate, &data->ratings->all[places[2]]);
    float *changes = gather_gradients(g);
    float e = factorise_delta(&step, g->values + places[0],
                              g->values + places[1], changes + places[0],
                              changes + places[1]);

    gather_change(g, places[0], rank);
    gather_change(g, places[1], rank);
    *rest->loss += e * e;
}

static const struct batches_ops rating_ops = { add_rating, step_rating };

static char *
train_batches(struct node_worker *worker, struct state *state,
              const struct rating *x, size_t n, struct node_task_sums *sums)
{
    struct rest rest = { worker, state, x, x + n, &sums->loss };
    size_t n_done = 0, n_batch = 1;
    char *error = NULL;

    while (!error && n_batch && !node_worker_late(worker)) {
        error = batches_train(state->batches, &rating_ops, &rest, &n_batch);
        n_done += n_batch;
    }
    batches_drop(state->batches);
    sums->updates += n_done;
    node_worker_pace(worker, n_done);
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
            struct rest one = { worker, state, x, x + 1, &sums->loss };

            error = batches_train(state->batches, &rating_ops, &one, &n);
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
        size_t n = share.n - i < JUDGED_AT_ONCE ? share.n - i : JUDGED_AT_ONCE;

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
