/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/balance/batch-mode.h"
#include "trainer/balance/batch-size-manager.h"
#include "trainer/schemes/sync-state.h"

#define SEED 1                  /* Of the predictors. */

struct lbbsp {
    char predictor[16];
    struct batch_size_manager *manager; /* NULL in the first iteration, also
                                         * of a resumed job. */
    uint32_t batch;             /* Samples pushed in that iteration. */
    uint32_t *max;              /* Samples that each worker has memory for, as
                                 * of its first report; 0: no limit.  Behind
                                 * 'sizes'. */
    uint32_t sizes[];           /* Samples of each worker in the next
                                 * iteration; all 1 before the first
                                 * assignment.  In checkpoints. */
};

static void
lbbsp_init(struct sync *sync, const struct sync_spec *spec)
{
    struct lbbsp *lb = sync->own;

    memcpy(lb->predictor, spec->predictor, sizeof lb->predictor);
    lb->max = lb->sizes + sync->config.n_workers;
    for (int i = 0; i < sync->config.n_workers; i++) {
        lb->sizes[i] = 1;
    }
}

static void
lbbsp_uninit(struct sync *sync)
{
    struct lbbsp *lb = sync->own;

    batch_size_manager_destroy(lb->manager);
    lb->manager = NULL;
}

static void
lbbsp_start(struct sync *sync)
{
    sync_state_post_all(sync, &(struct sync_message) {
        .kind = SYNC_ROLE,
        .n = SYNC_ROLE_REPORTS | (sync->class == &sync_lbbsp_gpu
                                  ? SYNC_ROLE_TRANSFERS : 0),
    });
}

static struct sync_span
lbbsp_kept(struct sync *sync)
{
    struct lbbsp *lb = sync->own;

    return (struct sync_span){ lb->sizes,
                               sync->config.n_workers * sizeof *lb->sizes };
}

/* Assigns parts of the batch in proportion to the sizes. */
static void
assign(struct sync *sync)
{
    const struct lbbsp *lb = sync->own;
    uint32_t first = 0, total = 0;

    for (int i = 0; i < sync->config.n_workers; i++) {
        total += lb->sizes[i];
    }
    for (int i = 0; i < sync->config.n_workers; i++) {
        sync_state_post(sync, i, &(struct sync_message) {
            .kind = SYNC_ASSIGN, .iteration = sync->iteration,
            .first = first, .n = lb->sizes[i], .total = total,
        });
        first += lb->sizes[i];
    }
}

/* The next iteration has the sizes of the checkpoint.  The manager then begins
 * with these and learns speeds again, because the batch and the memory of
 * workers may have changed. */
static void
lbbsp_resumed(struct sync *sync)
{
    struct lbbsp *lb = sync->own;

    lbbsp_uninit(sync);
    lb->batch = 0;
    assign(sync);
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
        return message("message of kind %u; expected reports", m->kind);
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
    char *error = batch_size_manager_create(&(struct batch_size_config) {
        .mode = sync->class == &sync_lbbsp_gpu ? BATCH_SIZE_GPU
                                               : BATCH_SIZE_CPU,
        .n_workers = sync->config.n_workers, .batch = lb->batch,
        .max = lb->max, .predictor = lb->predictor, .seed = SEED,
    }, &lb->manager);

    if (!error) {
        batch_size_manager_divide(lb->manager, lb->sizes);
    }
    return error;
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
            memcpy(lb->sizes, batch_size_manager_next(lb->manager),
                   sync->config.n_workers * sizeof *lb->sizes);
            assign(sync);
        }
    }
    return error;
}

#define LBBSP_CLASS(NAME)                       \
    {                                           \
        .name = NAME,                           \
        .own_size = sizeof(struct lbbsp),       \
        .per_worker = 2 * sizeof(uint32_t),     \
        .needs_messages = true,                 \
        .uses_parts = true,                     \
        .init = lbbsp_init,                     \
        .start = lbbsp_start,                   \
        .resumed = lbbsp_resumed,               \
        .kept = lbbsp_kept,                     \
        .uninit = lbbsp_uninit,                 \
        .push = lbbsp_push,                     \
        .ready = sync_bsp_ready,                \
        .message = lbbsp_message,               \
    }

const struct sync_class sync_lbbsp_cpu = LBBSP_CLASS("lbbsp-cpu");
const struct sync_class sync_lbbsp_gpu = LBBSP_CLASS("lbbsp-gpu");
