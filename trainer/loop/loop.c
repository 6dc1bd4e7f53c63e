/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/loop/loop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/backend/backend.h"
#include "trainer/data/dataset.h"
#include "trainer/net/address.h"
#include "trainer/process/control.h"
#include "trainer/process/machine-use.h"
#include "trainer/process/options.h"
#include "trainer/process/pace.h"

#define MIN_BUFFER 64           /* Samples of a step of an evaluation. */
#define USABLE 0.9              /* Part of the memory; libraries need some. */

char *
loop_open_data(const struct options *o, struct dataset **datap)
{
    const struct model_class *class = model_class_find(o->model);
    struct dataset_config config = {
        .n_inputs = options_n_inputs(o), .n_classes = options_n_classes(o),
        .image = o->image, .n_train = o->samples, .n_held = o->validation,
        .seed = o->seed,
    };

    if (o->read_data) {
        return o->read_data(&config, o->data_path, datap);
    }
    *datap = class->sparse ? dataset_generate_sparse(&config)
             : class->images ? dataset_generate_images(&config)
             : dataset_generate(&config);
    return NULL;
}

/* Under --shards by-label, gives this process its own samples. */
static char *
divide_data(struct loop *loop)
{
    const struct options *o = loop->o;

    if (!options_by_label(o)) {
        return NULL;
    }
    if (loop->data->n_train < 2 * (size_t) loop->n_workers) {
        return message("--shards: \"by-label\" divides %zu samples, at least "
                       "%d are needed", loop->data->n_train,
                       2 * loop->n_workers);
    }
    dataset_shard_by_label(loop->data, o->seed, o->rank, loop->n_workers);
    return NULL;
}

char *
loop_open_model(const struct options *o, struct backend *backend,
                struct model **modelp)
{
    const struct model_class *class = model_class_find(o->model);
    struct model_config config = {
        .backend = backend,
        .max_batch = MIN_BUFFER,
        .shape = o->shape,
        .image = o->image,
        .n_inputs = options_n_inputs(o),
        .n_classes = options_n_classes(o),
        .sparse = class->sparse,
        .hinge = o->loss && !strcmp(o->loss, "hinge"),
    };

    return model_create(class, &config, modelp);
}

/* Returns the samples for which this machine, or the emulated one, has memory;
 * 0 for any number.  The model has little memory yet. */
static uint32_t
find_max_batch(const struct loop *loop)
{
    const struct model *model = loop->model;
    const struct backend_class *device = loop->backend->class;
    double left;

    if (loop->o->max_batch || pace_emulates(loop->pace)
        || !model->sample_bytes) {
        return loop->o->max_batch ? loop->o->max_batch
                                  : pace_max_batch(loop->pace);
    }
    left =
        device->left ? device->left(loop->backend) : machine_memory_left("");
    left = model->max_batch + USABLE * left / model->sample_bytes;
    return left < UINT32_MAX ? left : 0;
}

char *
loop_check_share(const struct loop *loop)
{
    bool emulated = !loop->o->max_batch && pace_emulates(loop->pace);

    return !emulated && loop->max_batch && loop->share.n > loop->max_batch
               ? message(
                   "--batch: %zu samples for this process, --max-batch or "
                   "its memory allow %u",
                   loop->share.n, loop->max_batch)
               : NULL;
}

static char *
loop_init(struct loop *loop)
{
    const struct options *o = loop->o;
    char *error = NULL;

    loop->progress.loss = loop->progress.accuracy = NAN;
    loop->progress.batch_loss = loop->progress.step_s = NAN;
    loop->evaluated = UINT64_MAX;
    loop->n_workers = o->n_workers;
    loop->exchange = allocate(1, loop->class->size);
    if (loop->class->init) {
        error = loop->class->init(loop);
    }
    error = error ? error : loop_open_data(o, &loop->data);
    error = error ? error : divide_data(loop);
    error = error ? error : backend_open_named(o->backend, o->n_threads,
                                               &loop->backend);
    error = error ? error : pace_create(o, &loop->pace);
    if (error) {
        return error;
    }
    report_backend(loop->backend->class->name);
    if (loop->backend->class->set_tf32) {
        bool all = !strcmp(o->tf32, "on");

        loop->backend->class->set_tf32(
            loop->backend, all || !strcmp(o->tf32, "convolutions"), all);
    }
    loop->report = reporter_create(!o->rank);
    loop->share = shard_range(o->batch, o->rank, loop->n_workers);
    loop->batch = model_batch_create(loop->backend);
    error = loop_open_model(o, loop->backend, &loop->model);
    if (!error) {
        loop->max_batch = find_max_batch(loop);
        error = loop_check_share(loop);
    }
    return error;
}

static void
loop_uninit(struct loop *loop)
{
    loop->class->uninit(loop->exchange);
    free(loop->exchange);
    model_destroy(loop->model);
    batch_destroy(loop->batch);
    backend_close(loop->backend);
    dataset_destroy(loop->data);
    reporter_destroy(loop->report);
    pace_destroy(loop->pace);
}

void
loop_fill_batch(struct loop *loop)
{
    const struct options *o = loop->o;
    uint64_t iteration = loop->progress.iteration;

    /* All draw from the same sequence, or each from one of its own. */
    dataset_fill(loop->data, o->seed,
                 loop->data->shard ? iteration * loop->share.n
                                   : iteration * o->batch + loop->share.first,
                 loop->share.n, loop->batch);
}

void
loop_compute(struct loop *loop, model_part_func *part, void *aux,
             struct loop_step *step)
{
    loop_fill_batch(loop);
    step->n = loop->share.n;
    model_gradient(loop->model, loop->batch, part, aux, &step->loss);
    pace_wait(loop->pace, step->n, loop->control);
}

static enum loop_result
check_backend(struct loop *loop)
{
    const char *failure = backend_failure(loop->backend);

    if (failure) {
        loop->error = message("backend %s: %s", loop->backend->class->name,
                              failure);
        return LOOP_FAILED;
    }
    return LOOP_OK;
}

static enum loop_result
evaluate(struct loop *loop)
{
    struct report_progress *p = &loop->progress;

    if ((loop->class->own_weights || !loop->o->rank)
        && loop->evaluated != p->iteration) {
        enum loop_result result = loop->class->load
                                  ? loop->class->load(loop) : LOOP_OK;

        if (result != LOOP_OK) {
            return result;
        }
        model_evaluate(loop->model, loop->data, &p->loss, &p->accuracy);
        loop->evaluated = p->iteration;
    }
    return check_backend(loop);
}

static enum loop_result
iterate(struct loop *loop)
{
    const struct exchange_class *class = loop->class;
    uint64_t every = loop->o->eval_every, before = loop->progress.iteration;
    enum loop_result result = LOOP_OK;
    struct loop_step step;
    bool evaluates;

    if (class->begin) {
        class->begin(loop);
    }
    if (class->compute) {
        result = class->compute(loop, &step);
    } else {
        loop_compute(loop, NULL, NULL, &step);
    }
    result = result == LOOP_OK ? check_backend(loop) : result;
    if (result == LOOP_OK && control_stopped(loop->control)) {
        result = LOOP_ENDED;
    }
    if (result == LOOP_OK) {
        int64_t begin_us = clock_monotonic_us();

        result = class->finish(loop, &step);
        loop->exchange_s += (clock_monotonic_us() - begin_us) / 1e6;
    }
    if (result != LOOP_OK) {
        return result;
    }
    pace_step(loop->pace);
    evaluates = before / every != loop->progress.iteration / every;
    result = evaluates ? evaluate(loop) : LOOP_OK;
    if (!pace_emulates(loop->pace)) {
        pace_step(loop->pace);  /* An emulated machine evaluates during its
                                 * next step, a real one before it. */
    }
    if (result == LOOP_OK) {
        reporter_progress(loop->report, &loop->progress,
                          evaluates && class->own_weights);
    }
    return result;
}

/* Waits for a new target, or for the end. */
static enum loop_result
pause_at_target(struct loop *loop)
{
    const struct exchange_class *class = loop->class;
    enum loop_result result = LOOP_OK;

    reporter_progress(loop->report, &loop->progress, true);
    report_paused(loop->progress.iteration);
    if (class->pause) {
        class->pause(loop);
    }
    while (result == LOOP_OK) {
        control_run(loop->control);
        if (control_stopped(loop->control)) {
            return LOOP_ENDED;
        }
        if (control_target(loop->control) > loop->progress.iteration) {
            result = class->resume ? class->resume(loop) : LOOP_OK;
            pace_step(loop->pace);
            return result;
        }
        result = class->idle(loop);
    }
    return result;
}

static enum loop_result
train(struct loop *loop)
{
    enum loop_result result = loop->class->start(loop);

    pace_begin(loop->pace);
    while (result == LOOP_OK) {
        int n_targets;
        bool reached;

        control_run(loop->control);
        if (control_stopped(loop->control)) {
            return LOOP_ENDED;
        }
        n_targets = control_n_targets(loop->control);
        loop->progress.stage = n_targets > 0 ? n_targets - 1 : 0;
        reached = loop->progress.iteration >= control_target(loop->control);
        if (reached || !loop->progress.iteration) {
            result = evaluate(loop);
        }
        if (result == LOOP_OK) {
            result = reached ? pause_at_target(loop) : iterate(loop);
        }
    }
    return result;
}

char *
loop_run(const struct options *o, struct control *control,
         const struct exchange_class *class)
{
    struct loop loop = { .o = o, .control = control, .class = class };
    uint64_t sent = 0, received = 0;

    loop.error = loop_init(&loop);
    if (!loop.error && train(&loop) != LOOP_FAILED) {
        if (class->end) {
            class->end(&loop, &sent, &received);
        }
        report_done(&loop.progress, sent, received, loop.exchange_s);
    }
    loop_uninit(&loop);
    if (loop.error && control_stopped(control)) {
        free(loop.error);       /* A consequence of being stopped. */
        loop.error = NULL;
    }
    return loop.error;
}

char *
loop_parse_names(const struct options *o, const char *option,
                 const char *list, int max, char *names[], int *n)
{
    char *why = address_list(list, o->port, max, names, n);

    if (why) {
        char *error = message("--%s: %s", option, why);

        free(why);
        return error;
    }
    return o->rank < *n ? NULL
           : message("--rank: %lld is not 0 to %d, one of --%s",
                     (long long) o->rank, *n - 1, option);
}

int
loop_own_port(const struct options *o, char *const names[])
{
    return o->port ? o->port : address_port(names[o->rank]);
}
