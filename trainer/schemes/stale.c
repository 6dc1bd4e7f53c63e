/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/schemes/sync-state.h"

struct stale {
    uint64_t bound;             /* Iterations ahead of the slowest worker. */
    uint64_t n_sent[];          /* "essp": weights sent to each worker. */
};

static void
stale_init(struct sync *sync, const struct sync_spec *spec)
{
    struct stale *stale = sync->own;

    stale->bound = sync->class == &sync_asp ? UINT64_MAX : spec->staleness;
}

/* All workers get the weights of the slowest, also after a checkpoint. */
static void
essp_start(struct sync *sync)
{
    struct stale *stale = sync->own;

    for (int i = 0; i < sync->config.n_workers; i++) {
        stale->n_sent[i] = sync->workers[i].next = sync->iteration;
        sync->workers[i].resumed = false;
    }
    sync_state_post_all(sync, &(struct sync_message) {
        .kind = SYNC_ROLE, .n = SYNC_ROLE_PIPELINE, .total = stale->bound,
    });
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
    uint64_t least = sync_iteration(sync);

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
    return stale->n_sent[worker] <= sync_iteration(sync);
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
    .own_size = sizeof(struct stale),
    .asynchronous = true,
    .init = stale_init,
    .push = stale_push,
    .ready = stale_ready,
};

const struct sync_class sync_ssp = {
    .name = "ssp",
    .own_size = sizeof(struct stale),
    .asynchronous = true,
    .init = stale_init,
    .push = stale_push,
    .ready = stale_ready,
};

const struct sync_class sync_essp = {
    .name = "essp",
    .own_size = sizeof(struct stale),
    .per_worker = sizeof(uint64_t),
    .asynchronous = true,
    .needs_messages = true,
    .init = stale_init,
    .start = essp_start,
    .push = stale_push,
    .ready = essp_ready,
    .max_in_flight = essp_max_in_flight,
    .sent = essp_sent,
};
