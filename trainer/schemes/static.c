/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>

#include "trainer/schemes/sync-state.h"

#define TOTAL (1 << 20)         /* Ratios are whole parts of this. */

static void
static_init(struct sync *sync, const struct sync_spec *spec)
{
    uint32_t *ends = sync->own;         /* End of each worker's part. */
    double sum = 0, before = 0;

    for (int i = 0; i < sync->config.n_workers; i++) {
        sum += spec->ratios[i];
    }
    for (int i = 0; i < sync->config.n_workers; i++) {
        before += spec->ratios[i];
        ends[i] = lround(before / sum * TOTAL);
    }
}

static void
static_start(struct sync *sync)
{
    const uint32_t *ends = sync->own;
    uint32_t first = 0;

    for (int i = 0; i < sync->config.n_workers; i++) {
        sync_state_post(sync, i, &(struct sync_message) {
            .kind = SYNC_ASSIGN, .first = first, .n = ends[i] - first,
            .total = TOTAL,
        });
        first = ends[i];
    }
}

const struct sync_class sync_static = {
    .name = "static",
    .per_worker = sizeof(uint32_t),
    .needs_messages = true,
    .uses_parts = true,
    .init = static_init,
    .start = static_start,
    .push = sync_bsp_push,
    .ready = sync_bsp_ready,
};
