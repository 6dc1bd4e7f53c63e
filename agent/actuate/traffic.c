/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/traffic.h"

#include <stdlib.h>
#include <string.h>

#include "util.h"

/* Returns the increase of a counter from '*lastp' to 'now', and stores
 * 'now' in '*lastp'.  A counter that has decreased was reset to 0. */
static uint64_t
increase(uint64_t *lastp, uint64_t now)
{
    uint64_t delta = now >= *lastp ? now - *lastp : now;

    *lastp = now;
    return delta;
}

/* Adds the counters of a slot with a valid number. */
static void
add_slot(struct traffic *tr, const struct shim_slot_stats *slot,
         traffic_func *on_slot, void *aux)
{
    struct traffic_slot *last = &tr->slots[slot->slot];
    bool starting = tr->old && !last->seen;
    uint64_t tx = increase(&last->tx_bytes, slot->tx_bytes);
    uint64_t rx = increase(&last->rx_bytes, slot->rx_bytes);
    uint64_t dropped = increase(&last->dropped, slot->tx_dropped);
    unsigned int level = (slot->level < SHIM_N_LEVELS
                          ? slot->level : SHIM_LEVEL_DEFAULT);

    last->seen = true;
    if (!starting) {
        tr->total.level_bytes[level] += tx;
        tr->total.level_dropped[level] += dropped;
        if (tx || rx) {
            on_slot(slot->slot, tx, rx, aux);
        }
    }
}

/* Adds a reply to SHIM_STATS with 'n' slots.  Calls 'on_slot' with 'aux' for
 * each slot with traffic since the last reply. */
void
traffic_add_stats(struct traffic *tr, const struct shim_stats *stats,
                  const struct shim_slot_stats *slots, size_t n,
                  traffic_func *on_slot, void *aux)
{
    bool first = !tr->boot_id;
    struct traffic_totals total = tr->total;

    if (tr->boot_id != stats->boot_id) {
        tr->old = first;
        memset(tr->slots, 0, sizeof tr->slots);
        memset(&tr->last, 0, sizeof tr->last);
        tr->boot_id = stats->boot_id;
    }
    total.tx_bytes += increase(&tr->last.tx_bytes, stats->tx_bytes);
    total.rx_bytes += increase(&tr->last.rx_bytes, stats->rx_bytes);
    total.ip_bytes += increase(&tr->last.ip_bytes, stats->tx_ip_bytes);
    total.default_bytes += increase(&tr->last.default_bytes,
                                    stats->tx_default_bytes);
    if (!first) {
        tr->total = total;
    }
    for (size_t i = 0; i < n; i++) {
        if (slots[i].slot > 0 && slots[i].slot < SHIM_MAX_SLOTS) {
            add_slot(tr, &slots[i], on_slot, aux);
        }
    }
}
