/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>

#include "trainer/sync/sync-state.h"

#define TOTAL (1 << 20)         /* Ratios are whole parts of this. */

static struct sync *
static_create(const struct sync_config *config)
{
    const struct sync_spec *spec = config->spec;
    struct sync *sync = sync_state_create(config, 0);
    double sum = 0, before = 0;

    for (int i = 0; i < config->n_workers; i++) {
        sum += spec->ratios[i];
    }
    for (int i = 0; i < config->n_workers; i++) {
        uint32_t first = lround(before / sum * TOTAL), end;

        before += spec->ratios[i];
        end = lround(before / sum * TOTAL);
        sync_state_post(sync, i, &(struct sync_message) {
            .kind = SYNC_ASSIGN, .first = first, .n = end - first,
            .total = TOTAL,
        });
    }
    return sync;
}

const struct sync_class sync_static = {
    .name = "static",
    .help = "as bsp, batches are divided as RATIOS say",
    .create = static_create,
    .destroy = sync_state_destroy,
    .weights = sync_state_weights,
    .inbox = sync_state_inbox,
    .push = sync_bsp_push,
    .part = sync_bsp_part,
    .fresh = sync_bsp_fresh,
    .ready = sync_bsp_ready,
    .take = sync_state_take,
};
