/* SPDX-License-Identifier: Apache-2.0 */

/* Linear models of sparse samples.
 *
 * A batch of sparse samples has few of the model's features.  A worker pulls
 * what belongs to those features, computes the gradient of its part of the
 * batch, and pushes the changes: the bytes of an iteration depend on the batch
 * and not on the model.  A gradient counts with one n-th of n workers.
 *
 * A key is a feature's number; the bias is the last one.  Its vector is the
 * weight, and then the states of the optimiser, which advance only with the
 * key.  All are zeros at first.  Keys are not localized, because all workers
 * use the frequent features. */

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/backend/backend.h"
#include "trainer/models/model.h"
#include "trainer/process/options.h"
#include "trainer/schemes/optimiser.h"
#include "trainer/schemes/shard.h"
#include "trainer/tasks/gather.h"
#include "trainer/tasks/node-task.h"

#define JUDGED_AT_ONCE 64 /* Samples that are validated at once. */

struct linear {
    struct node_task task;
    struct dataset *data;
    struct optimiser_config optimiser;
    size_t width;   /* Values of a key. */
    size_t longest; /* Features of a sample, at most. */
};

/* State of a worker. */
struct state {
    struct backend *backend;
    struct model *model;
    struct batch *batch;
    struct gather *gather; /* What belongs to the features of a batch. */
    float *gradient;       /* Of these, in the same order, */
    float *vectors[1 + OPTIMISER_MAX_STATES]; /* and likewise. */
};

static struct linear *
linear_cast(const struct node_task *task)
{
    return (struct linear *) task;
}

static size_t
longest_of(const struct sparse *samples, size_t n)
{
    size_t longest = 0;

    for (size_t i = 0; i < n; i++) {
        size_t length = samples->starts[i + 1] - samples->starts[i];

        longest = length > longest ? length : longest;
    }
    return longest;
}

static char *
linear_create(const struct options *o, int n_workers, struct node_task **taskp)
{
    struct linear *l = allocate(1, sizeof *l);
    struct dataset_config config = {
        .n_inputs = o->features,
        .n_classes = 2,
        .n_train = o->samples,
        .n_held = o->validation,
        .seed = o->seed,
    };
    char *error = NULL;
    size_t of_held;

    l->task = (struct node_task){ &node_task_linear, o };
    *taskp = &l->task;
    l->optimiser = optimiser_defaults(optimiser_find(o->optimiser),
                                      o->learning_rate, o->momentum);
    l->width = 1 + l->optimiser.class->n_states;
    if (!strcmp(o->data, "generated")) {
        l->data = dataset_generate_sparse(&config);
    } else {
        error = dataset_libsvm(&config, o->data, &l->data);
    }
    if (!error) {
        l->longest = longest_of(&l->data->train, l->data->n_train);
        of_held = longest_of(&l->data->held, l->data->n_held);
        l->longest = of_held > l->longest ? of_held : l->longest;
    }
    return error;
}

static void
linear_destroy(struct node_task *task)
{
    struct linear *l = linear_cast(task);

    dataset_destroy(l->data);
    free(l);
}

static int
linear_ranges(const struct node_task *task, struct key_range *ranges)
{
    const struct linear *l = linear_cast(task);

    ranges[0] = (struct key_range){ l->data->n_inputs + 1, l->width };
    return 1;
}

static char *
linear_begin(struct node_worker *worker, void **statep)
{
    const struct linear *l = linear_cast(worker->task);
    const struct options *o = worker->task->o;
    size_t n = shard_range(o->batch, worker->index, worker->n).n;
    size_t n_most = n > JUDGED_AT_ONCE ? n : JUDGED_AT_ONCE;
    size_t n_inputs = l->data->n_inputs;
    size_t n_keys =
        1 + (n_most * l->longest < n_inputs ? n_most * l->longest : n_inputs);
    struct state *state = *statep = allocate(1, sizeof *state);

    backend_open(&backend_cpu, 0, 1, &state->backend);
    state->batch = batch_create();
    state->gather =
        gather_create(worker->keys, n_keys, n_keys * l->width, false);
    state->gradient = allocate(n_keys, sizeof *state->gradient);
    for (size_t v = 0; v < l->width; v++) {
        state->vectors[v] = allocate(n_keys, sizeof *state->vectors[v]);
    }
    return model_create(&model_linear,
                        &(struct model_config){
                            .backend = state->backend,
                            .max_batch = JUDGED_AT_ONCE,
                            .n_inputs = n_inputs,
                            .n_classes = 2,
                            .sparse = true,
                            .hinge = !strcmp(o->loss, "hinge"),
                        },
                        &state->model);
}

static void
linear_end(void *state_)
{
    struct state *state = state_;

    model_destroy(state->model);
    batch_destroy(state->batch);
    backend_close(state->backend);
    gather_destroy(state->gather);
    free(state->gradient);
    for (int v = 0; v <= OPTIMISER_MAX_STATES; v++) {
        free(state->vectors[v]);
    }
    free(state);
}

/* Gives the model the current weights of the features of 'batch'. */
static char *
pull(const struct linear *l, struct state *state, const struct batch *batch)
{
    const struct sparse *samples = &batch->sparse;
    struct gather *g = state->gather;
    char *error;

    gather_clear(g);
    for (size_t i = samples->starts[0]; i < samples->starts[batch->n]; i++) {
        gather_add(g, samples->keys[i], l->width);
    }
    gather_add(g, l->data->n_inputs, l->width);
    error = gather_pull(g);
    for (size_t i = 0; i < g->n && !error; i++) {
        state->model->weights[g->keys[i]] = g->values[i * l->width];
    }
    model_weights_changed(state->model);
    return error;
}

/* Pushes what the optimiser makes of the model's gradient. */
static void
push(const struct linear *l, struct state *state, float factor)
{
    struct gather *g = state->gather;

    for (size_t i = 0; i < g->n; i++) {
        state->gradient[i] = state->model->gradient[g->keys[i]] * factor;
        for (size_t v = 0; v < l->width; v++) {
            state->vectors[v][i] = g->values[i * l->width + v];
        }
    }
    l->optimiser.class->step(&l->optimiser, g->n, state->gradient,
                             state->vectors + 1, state->vectors[0]);
    for (size_t i = 0; i < g->n; i++) {
        for (size_t v = 0; v < l->width; v++) {
            size_t at = i * l->width + v;

            g->deltas[at] = state->vectors[v][i] - g->values[at];
        }
    }
    gather_push(g);
}

/* Iteration k of all workers uses the same samples as with servers. */
static char *
linear_epoch(struct node_worker *worker, void *state_,
             struct node_task_sums *sums)
{
    const struct linear *l = linear_cast(worker->task);
    const struct options *o = worker->task->o;
    struct shard share = shard_range(o->batch, worker->index, worker->n);
    uint64_t n = (l->data->n_train + o->batch - 1) / o->batch;
    struct state *state = state_;
    size_t n_trained = 0;
    char *error = NULL;

    node_worker_begin_part(worker, 1, n);
    for (uint64_t i = 0; i < n && !error && !node_worker_late(worker); i++) {
        uint64_t iteration = worker->epoch * n + i;
        double loss = 0;

        if (share.n) {
            dataset_fill(l->data, o->seed, iteration * o->batch + share.first,
                         share.n, state->batch);
            error = pull(l, state, state->batch);
            model_gradient(state->model, state->batch, NULL, NULL, &loss);
            push(l, state, 1.0f / worker->n);
        }
        sums->loss += loss;
        n_trained += share.n;
        node_worker_pace(worker, n_trained);
        error = error ? error : node_worker_clock(worker);
    }
    sums->updates += n_trained;
    return error ? error : node_worker_end_part(worker);
}

static char *
linear_judge(struct node_worker *worker, void *state_,
             struct node_task_sums *sums)
{
    const struct linear *l = linear_cast(worker->task);
    struct shard share =
        shard_range(l->data->n_held, worker->index, worker->n);
    struct state *state = state_;
    char *error = NULL;

    for (size_t i = 0; i < share.n && !error; i += JUDGED_AT_ONCE) {
        size_t left = share.n - i;
        struct batch batch =
            dataset_held(l->data, share.first + i,
                         left < JUDGED_AT_ONCE ? left : JUDGED_AT_ONCE);
        double loss;
        int n_correct;

        error = pull(l, state, &batch);
        model_linear.evaluate(state->model, &batch, &loss, &n_correct);
        sums->quality[0] += loss;
        sums->quality[1] += n_correct;
        sums->n_judged += batch.n;
    }
    return error;
}

const struct node_task_class node_task_linear = {
    .name = "linear",
    .qualities = { "held_out_loss", "accuracy" },
    .create = linear_create,
    .destroy = linear_destroy,
    .ranges = linear_ranges,
    .begin = linear_begin,
    .end = linear_end,
    .epoch = linear_epoch,
    .judge = linear_judge,
};
