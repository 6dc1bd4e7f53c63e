/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/sync/sync-state.h"

struct backup {
    int n_needed;               /* Gradients of an update. */
};

static struct sync *
backup_create(const struct sync_config *config)
{
    struct sync *sync = sync_state_create(config, sizeof(struct backup));
    struct backup *backup = sync->own;

    backup->n_needed = config->n_workers
                       - (config->spec ? config->spec->backups : 1);
    return sync;
}

/* A worker that comes too late has its gradient dropped, and goes on with the
 * iteration of the weights as all others do. */
static char *
backup_push(struct sync *sync, int worker, uint64_t iteration,
            uint32_t n_samples, float loss)
{
    const struct backup *backup = sync->own;
    struct sync_worker *w = &sync->workers[worker];

    if (iteration > sync->iteration || iteration < w->n_pushed) {
        return sync_state_refuse(iteration, sync->iteration);
    }
    if (iteration < sync->iteration) {
        w->n_pushed = sync->iteration;
        return NULL;
    }
    w->n_pushed = iteration + 1;
    w->n_samples = n_samples;
    w->loss = loss;
    if (++sync->n_arrived == backup->n_needed) {
        sync_bsp_update(sync);
    }
    return NULL;
}

const struct sync_class sync_backup = {
    .name = "backup",
    .help = "as bsp, without the last B gradients of each iteration",
    .create = backup_create,
    .destroy = sync_state_destroy,
    .weights = sync_state_weights,
    .inbox = sync_state_inbox,
    .push = backup_push,
    .ready = sync_bsp_ready,
    .iteration = sync_bsp_iteration,
    .spans = sync_state_spans,
    .resume = sync_state_resume,
};
