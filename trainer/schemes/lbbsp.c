/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdlib.h>

#include "trainer/balance/batch-size-manager.h"
#include "base/memory.h"
#include "trainer/schemes/sync-state.h"

#define SEED 1                  /* Of the predictors. */

struct lbbsp {
    enum batch_size_mode mode;
    char predictor[16];
    struct batch_size_manager *manager; /* NULL in the first iteration. */
    uint32_t *max;              /* Samples that each worker has memory for, as
                                 * of its first report; 0: no limit. */
    uint32_t batch;             /* Samples pushed in the first iteration. */
};

static void
give_roles(struct sync *sync)
{
    const struct lbbsp *lb = sync->own;

    sync_state_post_all(sync, &(struct sync_message) {
        .kind = SYNC_ROLE, .n = SYNC_ROLE_REPORTS
                                | (lb->mode == BATCH_SIZE_GPU
                                   ? SYNC_ROLE_TRANSFERS : 0),
    });
}

static struct sync *
lbbsp_create(const struct sync_config *config, enum batch_size_mode mode)
{
    struct sync *sync = sync_state_create(config, sizeof(struct lbbsp));
    struct lbbsp *lb = sync->own;

    lb->mode = mode;
    for (size_t i = 0; config->spec && i < sizeof lb->predictor; i++) {
        lb->predictor[i] = config->spec->predictor[i];
    }
    lb->max = allocate(config->n_workers, sizeof *lb->max);
    give_roles(sync);
    return sync;
}

static struct sync *
lbbsp_cpu_create(const struct sync_config *config)
{
    return lbbsp_create(config, BATCH_SIZE_CPU);
}

static struct sync *
lbbsp_gpu_create(const struct sync_config *config)
{
    return lbbsp_create(config, BATCH_SIZE_GPU);
}

static void
lbbsp_destroy(struct sync *sync)
{
    if (sync) {
        struct lbbsp *lb = sync->own;

        batch_size_manager_destroy(lb->manager);
        free(lb->max);
    }
    sync_state_destroy(sync);
}

/* 'x' came over the network: it may be any number, or none. */
static double
clamp_fraction(float x)
{
    return fmin(fmax(x, 0), 1);
}

/* Times of the first iteration, which determines the size of the batch, are
 * not used. */
static char *
lbbsp_message(struct sync *sync, int worker, const struct sync_message *m)
{
    struct lbbsp *lb = sync->own;

    if (m->kind != SYNC_REPORT) {
        return message("message of kind %u, reports are allowed", m->kind);
    }
    if (lb->manager) {
        batch_size_manager_report(lb->manager, worker, m->n, m->seconds,
                                  clamp_fraction(m->cpu),
                                  clamp_fraction(m->memory));
    } else {
        lb->max[worker] = m->total;
    }
    return NULL;
}

static char *
create_manager(struct sync *sync)
{
    struct lbbsp *lb = sync->own;

    return batch_size_manager_create(&(struct batch_size_config) {
        .mode = lb->mode, .n_workers = sync->config.n_workers,
        .batch = lb->batch, .max = lb->max,
        .predictor = *lb->predictor ? lb->predictor : NULL, .seed = SEED,
    }, &lb->manager);
}

static void
assign(struct sync *sync)
{
    const struct lbbsp *lb = sync->own;
    const uint32_t *sizes = batch_size_manager_next(lb->manager);
    uint32_t first = 0;

    for (int i = 0; i < sync->config.n_workers; i++) {
        sync_state_post(sync, i, &(struct sync_message) {
            .kind = SYNC_ASSIGN, .iteration = sync->iteration,
            .first = first, .n = sizes[i], .total = lb->batch,
        });
        first += sizes[i];
    }
}

static char *
lbbsp_push(struct sync *sync, int worker, uint64_t iteration,
           uint32_t n_samples, float loss)
{
    struct lbbsp *lb = sync->own;
    char *error = sync_bsp_push(sync, worker, iteration, n_samples, loss);

    if (error || sync->config.follows) {
        return error;
    }
    if (!lb->manager) {
        lb->batch += n_samples;
    }
    if (sync->iteration > iteration) {
        error = lb->manager ? NULL : create_manager(sync);
        if (!error) {
            assign(sync);
        }
    }
    return error;
}

/* Speeds are learned again: assigns equal shares for a start. */
static void
lbbsp_resume(struct sync *sync, uint64_t iteration)
{
    struct lbbsp *lb = sync->own;

    batch_size_manager_destroy(lb->manager);
    lb->manager = NULL;
    lb->batch = 0;
    sync_state_resume(sync, iteration);
    give_roles(sync);
    for (int i = 0; i < sync->config.n_workers; i++) {
        sync_state_post(sync, i, &(struct sync_message) {
            .kind = SYNC_ASSIGN, .iteration = iteration, .first = i, .n = 1,
            .total = sync->config.n_workers,
        });
    }
}

const struct sync_class sync_lbbsp_cpu = {
    .name = "lbbsp-cpu",
    .create = lbbsp_cpu_create,
    .destroy = lbbsp_destroy,
    .push = lbbsp_push,
    .part = sync_bsp_part,
    .fresh = sync_bsp_fresh,
    .ready = sync_bsp_ready,
    .message = lbbsp_message,
    .take = sync_state_take,
    .iteration = sync_bsp_iteration,
    .spans = sync_state_spans,
    .resume = lbbsp_resume,
};

const struct sync_class sync_lbbsp_gpu = {
    .name = "lbbsp-gpu",
    .create = lbbsp_gpu_create,
    .destroy = lbbsp_destroy,
    .push = lbbsp_push,
    .part = sync_bsp_part,
    .fresh = sync_bsp_fresh,
    .ready = sync_bsp_ready,
    .message = lbbsp_message,
    .take = sync_state_take,
    .iteration = sync_bsp_iteration,
    .spans = sync_state_spans,
    .resume = lbbsp_resume,
};
