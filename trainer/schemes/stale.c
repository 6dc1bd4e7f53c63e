/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>

#include "base/memory.h"
#include "trainer/schemes/sync-state.h"

struct stale {
    uint64_t bound;             /* Iterations ahead of the slowest worker. */
    uint64_t *n_sent;           /* "essp": weights sent to each worker. */
};

static struct sync *
stale_create(const struct sync_config *config, uint64_t bound)
{
    struct sync *sync = sync_state_create(config, sizeof(struct stale));
    struct stale *stale = sync->own;

    stale->bound = bound;
    return sync;
}

static struct sync *
asp_create(const struct sync_config *config)
{
    return stale_create(config, UINT64_MAX);
}

static struct sync *
ssp_create(const struct sync_config *config)
{
    return stale_create(config, config->spec ? config->spec->staleness : 3);
}

static void
give_roles(struct sync *sync)
{
    const struct stale *stale = sync->own;

    sync_state_post_all(sync, &(struct sync_message) {
        .kind = SYNC_ROLE, .n = SYNC_ROLE_PIPELINE, .total = stale->bound,
    });
}

static struct sync *
essp_create(const struct sync_config *config)
{
    struct sync *sync = ssp_create(config);
    struct stale *stale = sync->own;

    stale->n_sent = allocate(config->n_workers, sizeof *stale->n_sent);
    give_roles(sync);
    return sync;
}

/* All workers get the weights of the slowest, as without a checkpoint. */
static void
essp_resume(struct sync *sync, uint64_t iteration)
{
    struct stale *stale = sync->own;

    sync_state_resume_counts(sync, iteration);
    for (int i = 0; i < sync->config.n_workers; i++) {
        stale->n_sent[i] = sync->workers[i].next = iteration;
        sync->workers[i].resumed = false;
    }
    give_roles(sync);
}

static void
essp_destroy(struct sync *sync)
{
    if (sync) {
        struct stale *stale = sync->own;

        free(stale->n_sent);
    }
    sync_state_destroy(sync);
}

/* A push that was counted before a checkpoint may be repeated after it. */
static char *
stale_push(struct sync *sync, int worker, uint64_t iteration,
           uint32_t n_samples, float loss)
{
    struct sync_worker *w = &sync->workers[worker];

    if (w->resumed && iteration <= w->n_pushed) {
        w->next = iteration;
    }
    w->resumed = false;
    if (iteration != w->next) {
        return sync_state_refuse(iteration, w->next);
    }
    w->next++;
    if (iteration < w->n_pushed) {
        return NULL;
    }
    w->n_pushed++;
    w->n_samples = n_samples;
    w->loss = loss;
    if (n_samples) {
        sync_state_apply(sync, w->gradient, 1.0f / sync->config.n_workers);
    }
    sync->loss = sync_state_mean_loss(sync);
    return NULL;
}

/* A worker starts iteration c once all have pushed those before c - bound. */
static bool
stale_ready(const struct sync *sync, int worker, uint64_t *iteration,
            float *loss)
{
    const struct stale *stale = sync->own;
    uint64_t next = sync->workers[worker].next;
    uint64_t least = sync_state_least_pushed(sync);

    *iteration = next;
    *loss = sync->loss;
    return next < least || next - least <= stale->bound;
}

/* Weights number n are sent to a worker as soon as all workers have pushed n
 * times, even while it computes. */
static bool
essp_ready(const struct sync *sync, int worker, uint64_t *iteration,
           float *loss)
{
    const struct stale *stale = sync->own;

    *iteration = stale->n_sent[worker];
    *loss = sync->loss;
    return stale->n_sent[worker] <= sync_state_least_pushed(sync);
}

static uint32_t
essp_max_in_flight(const struct sync *sync)
{
    const struct stale *stale = sync->own;

    return stale->bound;
}

static void
essp_sent(struct sync *sync, int worker)
{
    struct stale *stale = sync->own;

    stale->n_sent[worker]++;
}

const struct sync_class sync_asp = {
    .name = "asp",
    .create = asp_create,
    .destroy = sync_state_destroy,
    .push = stale_push,
    .ready = stale_ready,
    .iteration = sync_state_least_pushed,
    .spans = sync_state_count_spans,
    .resume = sync_state_resume_counts,
};

const struct sync_class sync_ssp = {
    .name = "ssp",
    .create = ssp_create,
    .destroy = sync_state_destroy,
    .push = stale_push,
    .ready = stale_ready,
    .iteration = sync_state_least_pushed,
    .spans = sync_state_count_spans,
    .resume = sync_state_resume_counts,
};

const struct sync_class sync_essp = {
    .name = "essp",
    .create = essp_create,
    .destroy = essp_destroy,
    .push = stale_push,
    .ready = essp_ready,
    .max_in_flight = essp_max_in_flight,
    .sent = essp_sent,
    .take = sync_state_take,
    .iteration = sync_state_least_pushed,
    .spans = sync_state_count_spans,
    .resume = essp_resume,
};
