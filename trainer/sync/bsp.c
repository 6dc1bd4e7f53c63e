/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/sync/sync-state.h"

static struct sync *
bsp_create(const struct sync_config *config)
{
    return sync_state_create(config, 0);
}

void
sync_bsp_update(struct sync *sync)
{
    uint64_t n_samples = 0;
    double loss = 0;

    for (int i = 0; i < sync->config.n_workers; i++) {
        const struct sync_worker *w = &sync->workers[i];

        n_samples += w->n_pushed > sync->iteration ? w->n_samples : 0;
    }
    sync_state_clear(sync);
    for (int i = 0; i < sync->config.n_workers; i++) {
        const struct sync_worker *w = &sync->workers[i];

        if (w->n_pushed > sync->iteration && w->n_samples) {
            float share = (double) w->n_samples / n_samples;

            sync_state_add(sync, w->gradient, share);
            loss += (double) share * w->loss;
        }
    }
    sync_state_update(sync);
    sync->loss = loss;
    sync->n_arrived = 0;
    sync->iteration++;
}

char *
sync_bsp_push(struct sync *sync, int worker, uint64_t iteration,
              uint32_t n_samples, float loss)
{
    struct sync_worker *w = &sync->workers[worker];

    if (iteration != w->n_pushed || iteration != sync->iteration) {
        return sync_state_refuse(iteration, sync->iteration);
    }
    w->n_pushed++;
    w->n_samples = n_samples;
    w->loss = loss;
    if (++sync->n_arrived == sync->config.n_workers) {
        sync_bsp_update(sync);
    }
    return NULL;
}

bool
sync_bsp_ready(const struct sync *sync, int worker, uint64_t *iteration,
               float *loss)
{
    *iteration = sync->iteration;
    *loss = sync->loss;
    return sync->workers[worker].n_pushed == sync->iteration;
}

static uint64_t
bsp_iteration(const struct sync *sync)
{
    return sync->iteration;
}

static void
bsp_resume(struct sync *sync, uint64_t iteration)
{
    sync->iteration = iteration;
    sync->n_arrived = 0;
    for (int i = 0; i < sync->config.n_workers; i++) {
        sync->workers[i].n_pushed = iteration;
    }
}

const struct sync_class sync_bsp = {
    .name = "bsp",
    .help = "all wait for all",
    .create = bsp_create,
    .destroy = sync_state_destroy,
    .weights = sync_state_weights,
    .inbox = sync_state_inbox,
    .push = sync_bsp_push,
    .ready = sync_bsp_ready,
    .iteration = bsp_iteration,
    .spans = sync_state_spans,
    .resume = bsp_resume,
};
