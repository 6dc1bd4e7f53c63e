/* SPDX-License-Identifier: Apache-2.0 */

#include "controller/order/by-port.h"

#include "controller/order/memory.h"

void
by_port_init(struct by_port *bp, const struct order_problem *op)
{
    size_t *next = order_alloc(op->n_ports, sizeof *next);

    bp->by_id = op->by_id;
    bp->first = order_alloc((size_t) op->n_ports + 1, sizeof *bp->first);
    for (size_t i = 0; i < op->n_stages; i++) {
        const struct order_stage *stage = &op->stages[i];

        for (size_t j = 0; j < stage->n_demands; j++) {
            bp->first[stage->demands[j].port + 1]++;
        }
    }
    for (int p = 0; p < op->n_ports; p++) {
        next[p] = bp->first[p];
        bp->first[p + 1] += bp->first[p];
    }

    bp->demands = order_alloc(bp->first[op->n_ports], sizeof *bp->demands);
    for (size_t i = 0; i < op->n_stages; i++) {
        const struct order_stage *stage = &op->stages[bp->by_id[i]];

        for (size_t j = 0; j < stage->n_demands; j++) {
            const struct order_demand *d = &stage->demands[j];
            struct by_port_demand *entry = &bp->demands[next[d->port]++];

            entry->stage = bp->by_id[i];
            entry->seconds = d->seconds;
        }
    }
    free(next);
}

void
by_port_uninit(struct by_port *bp)
{
    free(bp->first);
    free(bp->demands);
}
