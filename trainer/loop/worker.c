/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/loop/worker.h"

#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/loop/assignment.h"
#include "trainer/backend/backend.h"
#include "trainer/process/control.h"
#include "base/memory.h"
#include "trainer/process/options.h"
#include "trainer/process/pace.h"
#include "trainer/loop/pieces.h"
#include "trainer/ps/client.h"
#include "trainer/schemes/shard.h"
#include "trainer/process/report.h"
#include "trainer/process/source.h"
#include "trainer/schemes/sync.h"
#include "trainer/data/dataset.h"
#include "trainer/models/model.h"

#define MIN_BUFFER 64           /* Samples: evaluation goes by so many. */

struct worker {
    const struct options *o;
    struct control *control;
    struct backend *backend;    /* Of the model. */
    struct backend *host;       /* Of the scheme: always the CPU. */
    struct dataset *data;
    struct model *model;
    struct report *report;
    struct pace *pace;
    struct pieces *pieces;      /* NULL unless the scheme wants it. */

    struct ps_client *client;   /* NULL in the role "local", */
    struct sync *sync;          /* which has this and 'host' instead. */

    struct batch *batch;        /* Samples of this worker's share. */
    struct shard share;         /* Which samples of each batch. */
    size_t n_parameters;

    struct report_progress progress;
    uint64_t evaluated;         /* Iteration of progress.loss. */
    uint32_t role;              /* Flags of SYNC_ROLE. */
};

static char *
open_parameters(struct worker *w)
{
    const struct options *o = w->o;

    if (o->role == ROLE_LOCAL) {
        if (backend_open(&backend_cpu, 0, o->n_threads, &w->host)) {
            return message("no memory for the host's backend");
        }
        w->sync = sync_bsp.create(&(struct sync_config) {
            .backend = w->host, .n_workers = 1, .n = w->n_parameters,
            .optimiser = optimiser_defaults(optimiser_find(o->optimiser),
                                            o->learning_rate, o->momentum),
        });
        return NULL;
    }
    return ps_client_create(&(struct ps_client_config) {
        .servers = o->servers, .n_servers = o->n_servers,
        .rank = o->rank, .n_workers = o->n_workers,
        .n_parameters = w->n_parameters, .seed = o->seed,
        .learning_rate = o->learning_rate, .momentum = o->momentum,
        .optimiser = optimiser_find(o->optimiser),
        .congestion = o->congestion, .control = w->control,
        .whole = !strcmp(o->overlap, "off"),
        .patience_us = o->patience * 1e6, .deadline_us = o->deadline * 1e6,
    }, &w->client);
}

static char *
worker_init(struct worker *w)
{
    const struct options *o = w->o;
    char *error;

    error = source_open_data(o, &w->data);
    if (error) {
        return error;
    }
    error = backend_open_named(o->backend, o->n_threads, &w->backend);
    if (error) {
        return error;
    }
    report_backend(w->backend->class->name);
    if (w->backend->class->set_tf32) {
        w->backend->class->set_tf32(w->backend, !strcmp(o->tf32, "on"));
    }
    error = pace_create(o, &w->pace);
    if (error) {
        return error;
    }
    w->share = shard_range(o->batch, o->rank, o->n_workers);
    w->batch = batch_create();
    error = source_open_model(
        o, w->data, w->backend,
        w->share.n > MIN_BUFFER ? w->share.n : MIN_BUFFER, &w->model);
    if (error) {
        return error;
    }
    w->n_parameters = w->model->n_parameters;
    w->report = report_create(!o->rank);
    w->progress.loss = w->progress.accuracy = w->progress.batch_loss = NAN;
    w->progress.step_s = NAN;
    w->evaluated = UINT64_MAX;
    return open_parameters(w);
}

static void
worker_uninit(struct worker *w)
{
    ps_client_destroy(w->client);
    if (w->sync) {
        sync_bsp.destroy(w->sync);
    }
    model_destroy(w->model);
    backend_close(w->backend);
    backend_close(w->host);
    dataset_destroy(w->data);
    pieces_destroy(w->pieces);
    pace_destroy(w->pace);
    report_destroy(w->report);
    batch_destroy(w->batch);
}

static void
take_role(struct worker *w, const struct sync_message *m)
{
    w->role = m->n;
    if (w->role & SYNC_ROLE_AHEAD) {
        ps_client_run_ahead(w->client, m->total);
    }

    /* A machine that listens only when it is done hears nothing in time. */
    if (!w->pieces && (w->role & SYNC_ROLE_STEALS
                       || (w->role & SYNC_ROLE_SKIPS
                           && (m->total > 1 || pace_emulates(w->pace))))) {
        w->pieces = pieces_create(&(struct pieces_in) {
            .o = w->o, .control = w->control, .client = w->client,
            .data = w->data, .model = w->model, .batch = w->batch,
            .pace = w->pace, .helps = w->role & SYNC_ROLE_STEALS,
        }, w->n_parameters, m->total);
    }
}

/* Takes what the scheme said before it gave us weights. */
static enum ps_result
take_messages(struct worker *w, char **error)
{
    struct sync_message m;

    while (!*error && w->client && ps_client_receive(w->client, &m)) {
        if (m.kind == SYNC_ROLE) {
            take_role(w, &m);
        } else if (m.kind == SYNC_ASSIGN) {
            *error = assignment_take(&m, w->o->batch, &w->share);
        } else if (w->pieces) {
            pieces_take(w->pieces, &m);
        } else if (m.kind != SYNC_SKIP) {
            *error = message("message of kind %u: not expected", m.kind);
        }
    }
    return *error ? PS_FAILED : PS_OK;
}

/* Gets the first weights. */
static enum ps_result
begin(struct worker *w, char **error)
{
    float *weights = w->model->weights;
    enum ps_result result = PS_OK;

    model_init_weights(w->model, w->o->seed, weights);
    if (w->client) {
        result = ps_client_begin(w->client, weights, &w->progress.iteration,
                                 error);
    } else {
        memcpy(sync_bsp.weights(w->sync), weights,
               w->n_parameters * sizeof *weights);
    }
    model_weights_changed(w->model);
    return result == PS_OK ? take_messages(w, error) : result;
}

/* Tells the scheme how long the step took, if it wants to know.  Transfers
 * are those of the step before: this one's are to come. */
static void
tell_time(struct worker *w)
{
    struct sync_message m = {
        .kind = SYNC_REPORT, .worker = w->o->rank,
        .iteration = w->progress.iteration, .n = w->share.n,
        .total = pace_max_batch(w->pace), .seconds = pace_elapsed(w->pace),
    };
    double cpu, memory;

    w->progress.step_s = m.seconds;
    if (w->role & SYNC_ROLE_TRANSFERS) {
        m.seconds += ps_client_transfer_s(w->client);
    }
    if (w->role & SYNC_ROLE_REPORTS) {
        pace_use(w->pace, &cpu, &memory);
        m.cpu = cpu;
        m.memory = memory;
        ps_client_send(w->client, &m);
    }
}

/* Gives the gradient of 'n' samples for the next weights and moves on to their
 * iteration.  '*loss' is that of ours and becomes that of all. */
static enum ps_result
exchange(struct worker *w, uint32_t n, double *loss, char **error)
{
    const float *gradient = w->model->gradient;
    float *weights = w->model->weights;
    uint64_t *iteration = &w->progress.iteration;
    enum ps_result result = PS_OK;

    tell_time(w);
    if (w->client) {
        result = ps_client_exchange(w->client, iteration, gradient, n, loss,
                                    weights, error);
        w->progress.step_s += ps_client_transfer_s(w->client);
    } else {
        size_t bytes = w->n_parameters * sizeof *weights;

        memcpy(sync_bsp.inbox(w->sync, 0), gradient, bytes);
        *error = sync_bsp.push(w->sync, 0, (*iteration)++, n, *loss);
        memcpy(weights, sync_bsp.weights(w->sync), bytes);
        result = *error ? PS_FAILED : PS_OK;
    }
    model_weights_changed(w->model);
    return result == PS_OK ? take_messages(w, error) : result;
}

/* What the backend computed is not to be used if it has failed. */
static enum ps_result
check_backend(const struct worker *w, char **error)
{
    const char *failure = backend_failure(w->backend);

    if (failure) {
        *error = message("backend %s: %s", w->backend->class->name, failure);
        return PS_FAILED;
    }
    return PS_OK;
}

static enum ps_result
evaluate(struct worker *w, char **error)
{
    if (!w->o->rank && w->evaluated != w->progress.iteration) {
        model_evaluate(w->model, w->data, &w->progress.loss,
                       &w->progress.accuracy);
        w->evaluated = w->progress.iteration;
    }
    return check_backend(w, error);
}

/* Where nobody else trains, a model that can updates its own weights, and
 * nothing has to pass through the host. */
static bool
steps_alone(const struct worker *w)
{
    return !w->client && w->model->class->step
           && (!strcmp(w->o->optimiser, "momentum")
               || !strcmp(w->o->optimiser, "sgd"));
}

static void
part_is_final(void *w_, size_t first, size_t n)
{
    struct worker *w = w_;

    ps_client_part(w->client, first, n);
}

/* Computes the gradient.  Parts of it leave meanwhile, unless this stands for
 * a slower machine, where they would not be there yet. */
static void
compute_gradient(struct worker *w, double *loss)
{
    struct model *model = w->model;
    bool leaves = w->client && !strcmp(w->o->overlap, "on")
                  && !pace_emulates(w->pace);

    if (leaves) {
        ps_client_offer(w->client, w->progress.iteration, model->gradient,
                        w->share.n, model->weights);
    }
    model_gradient(model, w->batch, leaves ? part_is_final : NULL, w, loss);
}

/* Computes the mean loss of our share, and the gradient or, alone, a step. */
static void
compute(struct worker *w, double *loss)
{
    const struct options *o = w->o;
    uint64_t position = w->progress.iteration * o->batch + w->share.first;

    dataset_fill(w->data, o->seed, position, w->share.n, w->batch);
    if (steps_alone(w)) {
        w->model->class->step(w->model, w->batch, o->learning_rate,
                              strcmp(o->optimiser, "sgd") ? o->momentum : 0,
                              loss);
        w->progress.iteration++;
    } else {
        compute_gradient(w, loss);
    }
    *loss = w->share.n ? *loss / w->share.n : 0;
    pace_wait(w->pace, w->share.n, w->control);
}

static enum ps_result
iterate(struct worker *w, char **error)
{
    uint64_t iteration = w->progress.iteration;
    uint32_t n = w->share.n;
    enum ps_result result = PS_OK;
    double loss;

    if (w->pieces) {
        result = pieces_compute(w->pieces, iteration, w->share, &n, &loss,
                                error);
    } else {
        compute(w, &loss);
    }
    if (result == PS_OK) {
        result = check_backend(w, error);
    }
    if (result != PS_OK) {
        return result;
    }
    if (control_stopped(w->control)) {
        return PS_ENDED;
    }
    if (!steps_alone(w)) {
        result = exchange(w, n, &loss, error);
    }
    if (result == PS_OK) {
        uint64_t every = w->o->eval_every;

        pace_step(w->pace);
        w->progress.batch_loss = loss;
        if (iteration / every != w->progress.iteration / every) {
            result = evaluate(w, error);
        }
    }
    return result;
}

/* Takes part again after a pause. */
static enum ps_result
resume(struct worker *w, char **error)
{
    enum ps_result result;

    if (!w->client) {
        return PS_OK;
    }
    result = ps_client_resume(w->client, w->model->weights,
                              &w->progress.iteration, error);
    model_weights_changed(w->model);
    return result == PS_OK ? take_messages(w, error) : result;
}

/* Waits for a new target, or for the end. */
static enum ps_result
pause_for_orders(struct worker *w, char **error)
{
    struct control *control = w->control;

    w->progress.stage = control_n_targets(control) > 0
                        ? control_n_targets(control) - 1 : 0;
    report_progress(w->report, &w->progress, true);
    report_paused(w->progress.iteration);
    for (;;) {
        enum ps_result result = PS_OK;

        control_run(control);
        if (control_stopped(control)) {
            return PS_ENDED;
        }
        if (control_target(control) > w->progress.iteration) {
            result = resume(w, error);
            pace_step(w->pace);
            return result;
        }
        if (control_silent(control)) {
            return PS_ENDED;
        }
        if (w->client) {
            result = ps_client_idle(w->client, w->model->weights,
                                    &w->progress.iteration, error);
            model_weights_changed(w->model);
        } else {
            struct pollfd fds[2] = {
                { .fd = control_signal_fd(control), .events = POLLIN },
                { .fd = control_input_fd(control), .events = POLLIN },
            };

            poll(fds, 2, -1);
        }
        if (result != PS_OK) {
            return result;
        }
    }
}

static enum ps_result
train(struct worker *w, char **error)
{
    enum ps_result result = begin(w, error);

    pace_begin(w->pace);
    while (result == PS_OK) {
        control_run(w->control);
        if (control_stopped(w->control)) {
            return PS_ENDED;
        }
        if (w->progress.iteration >= control_target(w->control)) {
            result = evaluate(w, error);
            if (result == PS_OK) {
                result = pause_for_orders(w, error);
            }
            continue;
        }
        if (!w->progress.iteration) {
            result = evaluate(w, error);
        }
        w->progress.stage = control_n_targets(w->control) - 1;
        if (result == PS_OK) {
            result = iterate(w, error);
        }
        if (result == PS_OK) {
            report_progress(w->report, &w->progress, false);
        }
    }
    return result;
}

char *
worker_run(const struct options *o, struct control *control)
{
    struct worker w = { .o = o, .control = control };
    char *error = worker_init(&w);

    if (!error && train(&w, &error) != PS_FAILED) {
        report_done(&w.progress,
                    w.client ? ps_client_bytes_sent(w.client) : 0,
                    w.client ? ps_client_bytes_received(w.client) : 0);
    }
    worker_uninit(&w);
    if (error && control_stopped(control)) {
        free(error);            /* Not a failure: we were told to end. */
        error = NULL;
    }
    return error;
}
