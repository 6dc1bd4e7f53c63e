/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/sync/sync-state.h"

struct stale {
    uint64_t bound;             /* Iterations ahead of the slowest worker. */
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

static char *
stale_push(struct sync *sync, int worker, uint64_t iteration,
           uint32_t n_samples, float loss)
{
    struct sync_worker *w = &sync->workers[worker];

    if (iteration != w->n_pushed) {
        return sync_state_refuse(iteration, w->n_pushed);
    }
    w->n_pushed++;
    w->n_samples = n_samples;
    w->loss = loss;
    if (n_samples) {
        sync_state_clear(sync);
        sync_state_add(sync, w->gradient, 1.0f / sync->config.n_workers);
        sync_state_update(sync);
    }
    sync->loss = sync_state_mean_loss(sync);
    return NULL;
}

/* A worker starts iteration c when all have pushed those before c - bound. */
static bool
stale_ready(const struct sync *sync, int worker, uint64_t *iteration,
            float *loss)
{
    const struct stale *stale = sync->own;
    uint64_t n_pushed = sync->workers[worker].n_pushed;

    *iteration = n_pushed;
    *loss = sync->loss;
    for (int i = 0; i < sync->config.n_workers; i++) {
        uint64_t other = sync->workers[i].n_pushed;

        if (n_pushed > other && n_pushed - other > stale->bound) {
            return false;
        }
    }
    return true;
}

const struct sync_class sync_asp = {
    .name = "asp",
    .help = "nobody waits",
    .create = asp_create,
    .destroy = sync_state_destroy,
    .weights = sync_state_weights,
    .inbox = sync_state_inbox,
    .push = stale_push,
    .ready = stale_ready,
};

const struct sync_class sync_ssp = {
    .name = "ssp",
    .help = "as asp, at most S iterations ahead of the slowest",
    .parameters = SYNC_STALENESS,
    .create = ssp_create,
    .destroy = sync_state_destroy,
    .weights = sync_state_weights,
    .inbox = sync_state_inbox,
    .push = stale_push,
    .ready = stale_ready,
};
