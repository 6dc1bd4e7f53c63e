/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/actuate/traffic.h"

#include <string.h>

void
traffic_init(struct traffic *tr)
{
    memset(tr, 0, sizeof *tr);
}

/* Returns by how much a counter grew that was '*lastp' and is 'now', and sets
 * '*lastp'.  A counter that fell has begun again at 0. */
static uint64_t
grew(uint64_t *lastp, uint64_t now)
{
    uint64_t delta = now >= *lastp ? now - *lastp : now;

    *lastp = now;
    return delta;
}

/* Takes a reply to SHIM_STATS with 'n' slots.  Calls 'slot_grew' with 'aux'
 * for each slot that moved a byte since the last reply. */
void
traffic_take(struct traffic *tr, const struct shim_stats *stats,
             const struct shim_slot_stats *slots, size_t n,
             traffic_func *slot_grew, void *aux)
{
    bool first = !tr->boot_id;
    struct traffic_totals delta;

    if (tr->boot_id != stats->boot_id) {
        tr->old = first;
        memset(tr->slots, 0, sizeof tr->slots);
        memset(&tr->last, 0, sizeof tr->last);
        tr->boot_id = stats->boot_id;
    }
    delta.tx_bytes = grew(&tr->last.tx_bytes, stats->tx_bytes);
    delta.rx_bytes = grew(&tr->last.rx_bytes, stats->rx_bytes);
    delta.ip_bytes = grew(&tr->last.ip_bytes, stats->tx_ip_bytes);
    delta.default_bytes = grew(&tr->last.default_bytes,
                               stats->tx_default_bytes);
    if (!first) {
        tr->total.tx_bytes += delta.tx_bytes;
        tr->total.rx_bytes += delta.rx_bytes;
        tr->total.ip_bytes += delta.ip_bytes;
        tr->total.default_bytes += delta.default_bytes;
    }
    for (size_t i = 0; i < n; i++) {
        uint16_t slot = slots[i].slot;

        if (slot > 0 && slot < SHIM_MAX_SLOTS) {
            bool mark = tr->old && !tr->slots[slot].seen;
            uint64_t tx = grew(&tr->slots[slot].tx_bytes, slots[i].tx_bytes);
            uint64_t rx = grew(&tr->slots[slot].rx_bytes, slots[i].rx_bytes);

            uint64_t dropped = grew(&tr->slots[slot].dropped,
                                    slots[i].tx_dropped);
            unsigned int level = (slots[i].level < SHIM_N_LEVELS
                                  ? slots[i].level : SHIM_LEVEL_DEFAULT);

            tr->slots[slot].seen = true;
            if (!mark) {
                tr->total.level_bytes[level] += tx;
                tr->total.level_dropped[level] += dropped;
            }
            if (!mark && (tx || rx)) {
                slot_grew(slot, tx, rx, aux);
            }
        }
    }
}
