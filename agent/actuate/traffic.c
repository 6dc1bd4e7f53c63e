/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/actuate/traffic.h"

#include <string.h>

void
traffic_init(struct traffic *tr)
{
    memset(tr, 0, sizeof *tr);
}

/* Returns the increase of a counter from '*lastp' to 'now', and stores
 * 'now' in '*lastp'.  A counter that has decreased was reset to 0. */
static uint64_t
increase(uint64_t *lastp, uint64_t now)
{
    uint64_t delta = now >= *lastp ? now - *lastp : now;

    *lastp = now;
    return delta;
}

/* Adds a reply to SHIM_STATS with 'n' slots.  Calls 'on_slot' with 'aux' for
 * each slot with traffic since the last reply. */
void
traffic_add_stats(struct traffic *tr, const struct shim_stats *stats,
             const struct shim_slot_stats *slots, size_t n,
             traffic_func *on_slot, void *aux)
{
    bool first = !tr->boot_id;
    struct traffic_totals delta;

    if (tr->boot_id != stats->boot_id) {
        tr->old = first;
        memset(tr->slots, 0, sizeof tr->slots);
        memset(&tr->last, 0, sizeof tr->last);
        tr->boot_id = stats->boot_id;
    }
    delta.tx_bytes = increase(&tr->last.tx_bytes, stats->tx_bytes);
    delta.rx_bytes = increase(&tr->last.rx_bytes, stats->rx_bytes);
    delta.ip_bytes = increase(&tr->last.ip_bytes, stats->tx_ip_bytes);
    delta.default_bytes = increase(&tr->last.default_bytes,
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
            bool starting = tr->old && !tr->slots[slot].seen;
            uint64_t tx =
                increase(&tr->slots[slot].tx_bytes, slots[i].tx_bytes);
            uint64_t rx =
                increase(&tr->slots[slot].rx_bytes, slots[i].rx_bytes);

            uint64_t dropped = increase(&tr->slots[slot].dropped,
                                    slots[i].tx_dropped);
            unsigned int level = (slots[i].level < SHIM_N_LEVELS
                                  ? slots[i].level : SHIM_LEVEL_DEFAULT);

            tr->slots[slot].seen = true;
            if (!starting) {
                tr->total.level_bytes[level] += tx;
                tr->total.level_dropped[level] += dropped;
            }
            if (!starting && (tx || rx)) {
                on_slot(slot, tx, rx, aux);
            }
        }
    }
}
