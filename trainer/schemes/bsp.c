/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/schemes/sync-state.h"

#include "base/memory.h"

/* Returns the number of samples of 'w' in the next update. */
static uint32_t
samples_of(const struct sync *sync, const struct sync_worker *w)
{
    return w->n_pushed > sync->iteration || w->from < sync->config.n
           ? w->n_samples : 0;
}

static uint64_t
all_samples(const struct sync *sync)
{
    uint64_t n = 0;

    for (int i = 0; i < sync->config.n_workers; i++) {
        n += samples_of(sync, &sync->workers[i]);
    }
    return n;
}

/* Makes all weights from 'first' on the next ones. */
static void
update_from(struct sync *sync, size_t first)
{
    size_t n = sync->fresh - first;
    uint64_t n_samples = all_samples(sync);

    for (int i = 0; i < sync->config.n_workers; i++) {
        const struct sync_worker *w = &sync->workers[i];
        uint32_t own = samples_of(sync, w);

        if (own) {
            sync_state_add(sync, w->gradient, (double) own / n_samples);
        }
    }
    sync_state_update(sync, first, n);
    sync->fresh = first;
}

void
sync_bsp_update(struct sync *sync)
{
    uint64_t n_samples = all_samples(sync);
    double loss = 0;

    for (int i = 0; i < sync->config.n_workers; i++) {
        const struct sync_worker *w = &sync->workers[i];
        uint32_t own = samples_of(sync, w);

        if (own) {
            float share = (double) own / n_samples;

            loss += (double) share * w->loss;
        }
    }
    update_from(sync, 0);
    sync_state_await_parts(sync);
    sync->loss = loss;
    sync->n_arrived = 0;
    sync->iteration++;
}

/* Updates the weights for which the gradients of all workers have arrived. */
static void
update_arrived_parts(struct sync *sync)
{
    size_t first = 0;

    for (int i = 0; i < sync->config.n_workers; i++) {
        size_t from = sync->workers[i].from;

        first = from > first ? from : first;
    }
    if (first < sync->fresh) {
        update_from(sync, first);
    }
}

/* Returns NULL, or a message if 'worker' may not push 'n_samples' samples of
 * 'iteration', or a part of that, now. */
static char *
check_push(const struct sync *sync, int worker, uint64_t iteration,
           uint32_t n_samples)
{
    const struct sync_worker *w = &sync->workers[worker];

    if (iteration != w->n_pushed || iteration != sync->iteration) {
        return sync_state_refuse(iteration, sync->iteration);
    }
    if (w->from < sync->config.n && n_samples != w->n_samples) {
        return message("gradient of %u samples, part of it was of %u",
                       n_samples, w->n_samples);
    }
    return NULL;
}

char *
sync_part(struct sync *sync, int worker, uint64_t iteration,
          uint32_t n_samples, size_t first)
{
    struct sync_worker *w = &sync->workers[worker];
    char *error = check_push(sync, worker, iteration, n_samples);

    if (!error) {
        w->from = first;
        w->n_samples = n_samples;
        update_arrived_parts(sync);
    }
    return error;
}

size_t
sync_fresh(const struct sync *sync, uint64_t *iteration)
{
    *iteration = sync->iteration + 1;
    return sync->fresh;
}

char *
sync_bsp_push(struct sync *sync, int worker, uint64_t iteration,
              uint32_t n_samples, float loss)
{
    struct sync_worker *w = &sync->workers[worker];
    char *error = check_push(sync, worker, iteration, n_samples);

    if (error) {
        return error;
    }
    w->n_pushed++;
    w->from = 0;
    w->n_samples = n_samples;
    w->loss = loss;
    if (++sync->n_arrived == sync->config.n_workers) {
        sync_bsp_update(sync);
    } else {
        update_arrived_parts(sync);
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

const struct sync_class sync_bsp = {
    .name = "bsp",
    .uses_parts = true,
    .push = sync_bsp_push,
    .ready = sync_bsp_ready,
};
