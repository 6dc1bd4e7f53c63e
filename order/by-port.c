/* SPDX-License-Identifier: Apache-2.0 */

#include "order/by-port.h"

#include <string.h>

#include "order/scratch.h"


void
by_port_init(struct by_port *bp, const struct order_problem *op)
{
    size_t *next;

    bp->by_id = op->by_id;
    bp->scratch = op->scratch;
    bp->first = scratch_take(bp->scratch, (size_t) op->n_ports + 1,
                             sizeof *bp->first);
    for (size_t i = 0; i < op->n_stages; i++) {
        const struct order_stage *stage = &op->stages[i];

        for (size_t j = 0; j < stage->n_demands; j++) {
            bp->first[stage->demands[j].port + 1]++;
        }
    }
    for (int p = 0; p < op->n_ports; p++) {
        bp->first[p + 1] += bp->first[p];
    }

    bp->demands = scratch_take(bp->scratch, bp->first[op->n_ports],
                               sizeof *bp->demands);
    next = scratch_take(bp->scratch, op->n_ports, sizeof *next);
    memcpy(next, bp->first, op->n_ports * sizeof *next);
    for (size_t i = 0; i < op->n_stages; i++) {
        const struct order_stage *stage = &op->stages[bp->by_id[i]];

        for (size_t j = 0; j < stage->n_demands; j++) {
            const struct order_demand *d = &stage->demands[j];
            struct by_port_demand *entry = &bp->demands[next[d->port]++];

            entry->stage = bp->by_id[i];
            entry->seconds = d->seconds;
        }
    }
    scratch_give(bp->scratch, next);
}

void
by_port_uninit(struct by_port *bp)
{
    scratch_give(bp->scratch, bp->demands);
    scratch_give(bp->scratch, bp->first);
}
