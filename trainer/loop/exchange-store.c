/* SPDX-License-Identifier: Apache-2.0 */

/* The exchange of a linear model with a sharded store of keys: --push sparse.
 *
 * A batch of sparse samples has few of the model's features.  The worker pulls
 * the weights of those features, and pushes the gradient of the same keys:
 * the bytes of an iteration depend on the batch and not on the model.  Updates
 * take effect when they arrive, as under the scheme asp, and count with one
 * n-th of n workers.
 *
 * A key is a feature's number; the bias is the last one.  A push is awaited
 * together with the next pull, so that an iteration waits for one round
 * trip. */

#include <stdlib.h>

#include "base/clock.h"
#include "base/compare.h"
#include "base/memory.h"
#include "trainer/loop/loop.h"
#include "trainer/process/control.h"
#include "trainer/process/options.h"
#include "trainer/process/pace.h"
#include "trainer/ps/store-client.h"
#include "trainer/schemes/optimiser.h"

/* Ascending keys, and one value for each: weights or a gradient. */
struct key_values {
    uint64_t *keys;
    float *values;
    size_t n, max;
};

struct exchange {
    struct store_client *client;
    struct key_values batch;    /* Weights that the batch needs. */
    struct key_values pushed;   /* Gradient that may still be sent. */
    struct key_values held;     /* Weights that an evaluation needs. */
    bool *is_key;               /* For each parameter, while keys are being
                                 * collected; otherwise all false. */
};

static void
key_values_uninit(struct key_values *kv)
{
    free(kv->keys);
    free(kv->values);
}

/* Makes 'kv' the keys of rows 0 to 'n' - 1 of 'samples', and those of the
 * parameters that belong to no feature. */
static void
collect_keys(struct loop *loop, const struct sparse *samples, size_t n,
             struct key_values *kv)
{
    size_t n_features = loop->data->n_inputs;
    size_t n_parameters = loop->model->n_parameters;
    size_t max = samples->starts[n] - samples->starts[0] + n_parameters
                 - n_features;
    bool *is_key = loop->exchange->is_key;

    if (max > kv->max) {
        key_values_uninit(kv);
        kv->keys = allocate(max, sizeof *kv->keys);
        kv->values = allocate(max, sizeof *kv->values);
        kv->max = max;
    }
    kv->n = 0;
    for (size_t i = samples->starts[0]; i < samples->starts[n]; i++) {
        uint32_t key = samples->keys[i];

        if (!is_key[key]) {
            is_key[key] = true;
            kv->keys[kv->n++] = key;
        }
    }
    for (size_t i = 0; i < kv->n; i++) {
        is_key[kv->keys[i]] = false;
    }
    qsort(kv->keys, kv->n, sizeof *kv->keys, compare_u64);
    for (size_t key = n_features; key < n_parameters; key++) {
        kv->keys[kv->n++] = key;
    }
}

/* 'error' is of an operation of the store, or NULL. */
static enum loop_result
result_of_store(struct loop *loop, char *error)
{
    if (error && control_stopped(loop->control)) {
        free(error);
        return LOOP_ENDED;
    }
    loop->error = error;
    return error ? LOOP_FAILED : LOOP_OK;
}

/* Gives the model the current weights of the keys of 'kv'.  Also waits for
 * what was pushed. */
static enum loop_result
pull(struct loop *loop, struct key_values *kv)
{
    struct store_client *client = loop->exchange->client;
    ps_handle handle = store_pull_keys(client, kv->keys, kv->n, kv->values);
    double begin = clock_monotonic_s();
    enum loop_result result = result_of_store(loop,
                                              store_wait(client, handle));

    loop->exchange_s += clock_monotonic_s() - begin;
    if (result == LOOP_OK) {
        for (size_t i = 0; i < kv->n; i++) {
            loop->model->weights[kv->keys[i]] = kv->values[i];
        }
        model_weights_changed(loop->model);
    }
    return result;
}

static void
store_exchange_uninit(struct exchange *e)
{
    store_client_destroy(e->client);
    key_values_uninit(&e->batch);
    key_values_uninit(&e->pushed);
    key_values_uninit(&e->held);
    free(e->is_key);
}

/* A key that was never pushed has weight 0, the first weight of a linear
 * model. */
static enum loop_result
store_exchange_start(struct loop *loop)
{
    const struct options *o = loop->o;
    struct exchange *e = loop->exchange;
    struct model *model = loop->model;

    e->is_key = allocate(model->n_parameters, sizeof *e->is_key);
    model_init_weights(model, o->seed, model->weights);
    if (!o->rank) {
        collect_keys(loop, &loop->data->held, loop->data->n_held, &e->held);
    }
    return result_of_store(loop, store_client_create(
        &(struct ps_client_config) {
            .servers = o->servers, .n_servers = o->n_servers,
            .rank = o->rank, .n_workers = o->n_workers,
            .key_space = model->n_parameters, .width = 1,
            .optimiser = optimiser_find(o->optimiser),
            .learning_rate = o->learning_rate, .momentum = o->momentum,
            .congestion = o->congestion,
            .reconnect_timeout_us = o->reconnect_timeout * 1e6,
            .heartbeat_timeout_us = o->heartbeat_timeout * 1e6,
            .control = loop->control,
        }, &e->client));
}

static enum loop_result
store_exchange_compute(struct loop *loop, struct loop_step *step)
{
    struct exchange *e = loop->exchange;
    enum loop_result result;

    loop_fill_batch(loop);
    collect_keys(loop, &loop->batch->sparse, loop->batch->n, &e->batch);
    result = pull(loop, &e->batch);
    if (result == LOOP_OK) {
        step->n = loop->share.n;
        model_gradient(loop->model, loop->batch, NULL, NULL, &step->loss);
        pace_wait(loop->pace, step->n, loop->control);
    }
    return result;
}

static enum loop_result
store_exchange_finish(struct loop *loop, const struct loop_step *step)
{
    struct exchange *e = loop->exchange;
    struct report_progress *p = &loop->progress;
    struct key_values last = e->pushed;

    e->pushed = e->batch;
    e->batch = last;
    for (size_t i = 0; i < e->pushed.n; i++) {
        e->pushed.values[i] = loop->model->gradient[e->pushed.keys[i]]
                              * (1.0f / loop->n_workers);
    }
    if (step->n) {
        store_push_keys(e->client, e->pushed.keys, e->pushed.n,
                        e->pushed.values);
        store_flush(e->client);
    }
    p->iteration++;
    p->batch_loss = step->n ? step->loss / step->n : 0;
    p->step_s = pace_elapsed(loop->pace);
    return LOOP_OK;
}

static enum loop_result
store_exchange_load(struct loop *loop)
{
    return pull(loop, &loop->exchange->held);
}

static enum loop_result
store_exchange_idle(struct loop *loop)
{
    return control_input_closed(loop->control) ? LOOP_ENDED
           : result_of_store(loop, store_idle(loop->exchange->client));
}

static void
store_exchange_end(struct loop *loop, uint64_t *sent, uint64_t *received)
{
    struct store_client *client = loop->exchange->client;

    free(store_wait(client, UINT64_MAX));
    store_client_bytes(client, sent, received);
}

const struct exchange_class exchange_store = {
    .size = sizeof(struct exchange), .uninit = store_exchange_uninit,
    .start = store_exchange_start, .compute = store_exchange_compute,
    .finish = store_exchange_finish, .load = store_exchange_load,
    .idle = store_exchange_idle, .end = store_exchange_end,
};
