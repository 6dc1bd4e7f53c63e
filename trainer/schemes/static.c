/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>

#include "trainer/schemes/sync-state.h"

#define TOTAL (1 << 20)         /* Ratios are whole parts of this. */

struct fixed {
    uint32_t ends[SYNC_MAX_RATIOS];     /* End of each worker's part. */
};

static void
assign_shares(struct sync *sync)
{
    const struct fixed *fixed = sync->own;
    uint32_t first = 0;

    for (int i = 0; i < sync->config.n_workers; i++) {
        sync_state_post(sync, i, &(struct sync_message) {
            .kind = SYNC_ASSIGN, .first = first, .n = fixed->ends[i] - first,
            .total = TOTAL,
        });
        first = fixed->ends[i];
    }
}

static struct sync *
static_create(const struct sync_config *config)
{
    const struct sync_spec *spec = config->spec;
    struct sync *sync = sync_state_create(config, sizeof(struct fixed));
    struct fixed *fixed = sync->own;
    double sum = 0, before = 0;

    for (int i = 0; i < config->n_workers; i++) {
        sum += spec->ratios[i];
    }
    for (int i = 0; i < config->n_workers; i++) {
        before += spec->ratios[i];
        fixed->ends[i] = lround(before / sum * TOTAL);
    }
    assign_shares(sync);
    return sync;
}

static void
static_resume(struct sync *sync, uint64_t iteration)
{
    sync_state_resume(sync, iteration);
    assign_shares(sync);
}

const struct sync_class sync_static = {
    .name = "static",
    .create = static_create,
    .destroy = sync_state_destroy,
    .push = sync_bsp_push,
    .part = sync_bsp_part,
    .fresh = sync_bsp_fresh,
    .ready = sync_bsp_ready,
    .take = sync_state_take,
    .iteration = sync_bsp_iteration,
    .spans = sync_state_spans,
    .resume = static_resume,
};
