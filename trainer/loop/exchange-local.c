/* SPDX-License-Identifier: Apache-2.0 */

/* The exchange of a process that trains alone: scheme bsp with one worker. */

#include <string.h>

#include "trainer/backend/backend.h"
#include "trainer/data/dataset.h"
#include "trainer/loop/loop.h"
#include "trainer/process/control.h"
#include "trainer/process/options.h"
#include "trainer/process/pace.h"
#include "trainer/schemes/sync.h"

struct exchange {
    struct backend *host;       /* Of the scheme: always the CPU. */
    struct sync *sync;
};

static void
local_uninit(struct exchange *e)
{
    sync_destroy(e->sync);
    backend_close(e->host);
}

static enum loop_result
local_start(struct loop *loop)
{
    const struct options *o = loop->o;
    struct exchange *e = loop->exchange;
    struct model *model = loop->model;
    struct sync_config config = {
        .n_workers = 1,
        .n = model->n_parameters,
        .optimiser = optimiser_defaults(optimiser_find(o->optimiser),
                                        o->learning_rate, o->momentum),
    };

    config.optimiser.schedule = o->schedule;
    backend_open(&backend_cpu, 0, o->n_threads, &e->host);
    config.backend = e->host;
    e->sync = sync_create(&sync_bsp, &config);
    model_init_weights(model, o->seed, model->weights);
    memcpy(sync_weights(e->sync), model->weights,
           model->n_parameters * sizeof *model->weights);
    model_weights_changed(model);
    return LOOP_OK;
}

/* Returns true if the model can update its weights itself, at one rate, so
 * that gradients stay on its device. */
static bool
model_steps(const struct loop *loop)
{
    return loop->model->class->step && !loop->o->schedule.kind
           && !loop->o->schedule.warm_up
           && (!strcmp(loop->o->optimiser, "momentum")
               || !strcmp(loop->o->optimiser, "sgd"));
}

static enum loop_result
local_compute(struct loop *loop, struct loop_step *step)
{
    const struct options *o = loop->o;

    if (!model_steps(loop)) {
        loop_compute(loop, NULL, NULL, step);
        return LOOP_OK;
    }
    loop_fill_batch(loop);
    step->n = loop->share.n;
    loop->model->class->step(loop->model, loop->batch, o->learning_rate,
                             strcmp(o->optimiser, "sgd") ? o->momentum : 0,
                             &step->loss);
    pace_wait(loop->pace, step->n, loop->control);
    return LOOP_OK;
}

static enum loop_result
local_finish(struct loop *loop, const struct loop_step *step)
{
    struct sync *sync = loop->exchange->sync;
    struct report_progress *p = &loop->progress;
    struct model *model = loop->model;
    size_t bytes = model->n_parameters * sizeof *model->weights;

    p->batch_loss = step->n ? step->loss / step->n : 0;
    if (model_steps(loop)) {
        p->iteration++;
        return LOOP_OK;
    }
    p->step_s = pace_elapsed(loop->pace);
    memcpy(sync_inbox(sync, 0), model->gradient, bytes);
    loop->error = sync_bsp.push(sync, 0, p->iteration++, step->n,
                                p->batch_loss);
    memcpy(model->weights, sync_weights(sync), bytes);
    model_weights_changed(model);
    return loop->error ? LOOP_FAILED : LOOP_OK;
}

static enum loop_result
local_idle(struct loop *loop)
{
    if (control_input_closed(loop->control)) {
        return LOOP_ENDED;
    }
    control_wait(loop->control);
    return LOOP_OK;
}

const struct exchange_class exchange_local = {
    .size = sizeof(struct exchange), .uninit = local_uninit,
    .start = local_start, .compute = local_compute,
    .finish = local_finish, .idle = local_idle,
};
