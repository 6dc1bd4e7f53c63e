/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include "trainer/schemes/sync-state.h"

struct backup {
    int n_backups;              /* Gradients that are not waited for. */
    int n_empty;                /* Pushes of this iteration without samples. */
    uint32_t n_pieces;          /* Of a worker's share. */
    bool informed[];            /* Per worker: SYNC_SKIP was sent for the
                                 * gradient that it computes. */
};

static void
backup_init(struct sync *sync, const struct sync_spec *spec)
{
    struct backup *backup = sync->own;

    backup->n_backups = spec->backups;
    backup->n_pieces = spec->pieces;
}

static void
backup_start(struct sync *sync)
{
    struct backup *backup = sync->own;

    memset(backup->informed, 0,
           sync->config.n_workers * sizeof *backup->informed);
    backup->n_empty = 0;
    if (backup->n_backups) {
        sync_state_post_all(sync, &(struct sync_message) {
            .kind = SYNC_ROLE, .n = SYNC_ROLE_SKIPS, .total = backup->n_pieces
        });
    }
}

/* Makes the update if enough gradients have arrived, and informs the workers
 * that still compute one for it.  A worker that was informed by another server
 * pushes no samples: that push does not count as arrived, unless no other can
 * come. */
static void
update_if_complete(struct sync *sync)
{
    struct backup *backup = sync->own;
    int n = sync->config.n_workers;

    if (sync->n_arrived < n - backup->n_backups
        && sync->n_arrived + backup->n_empty < n) {
        return;
    }
    sync_bsp_update(sync);
    backup->n_empty = 0;
    for (int i = 0; i < n; i++) {
        if (sync->workers[i].n_pushed < sync->iteration
            && !backup->informed[i]) {
            backup->informed[i] = true;
            sync_state_post(sync, i, &(struct sync_message) {
                .kind = SYNC_SKIP, .iteration = sync->iteration,
            });
        }
    }
}

/* A gradient that arrives too late is dropped; its worker continues with the
 * iteration of the weights, as all others do. */
static char *
backup_push(struct sync *sync, int worker, uint64_t iteration,
            uint32_t n_samples, float loss)
{
    struct backup *backup = sync->own;
    struct sync_worker *w = &sync->workers[worker];

    if (iteration > sync->iteration || iteration < w->n_pushed) {
        return sync_state_refuse(iteration, sync->iteration);
    }
    backup->informed[worker] = false;
    if (iteration < sync->iteration) {
        w->n_pushed = sync->iteration;
        return NULL;
    }
    w->n_pushed = iteration + 1;
    w->n_samples = n_samples;
    w->loss = loss;
    sync->n_arrived += n_samples > 0;
    backup->n_empty += !n_samples;
    update_if_complete(sync);
    return NULL;
}

const struct sync_class sync_backup = {
    .name = "backup",
    .own_size = sizeof(struct backup),
    .per_worker = sizeof(bool),
    .init = backup_init,
    .start = backup_start,
    .push = backup_push,
    .ready = sync_bsp_ready,
};
