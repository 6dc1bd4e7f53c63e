/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/run/port-use.h"

#include <math.h>

#include "order/problem/memory.h"
#include "sim/rates/rates.h"

#define FIRST_WIDTH 1e-6        /* Seconds. */

void
port_use_init(struct port_use *use, int n_ports)
{
    use->n_ports = n_ports;
    use->now = 0;
    use->width = FIRST_WIDTH;
    use->bytes = order_alloc((size_t) PORT_USE_SLOTS * n_ports,
                             sizeof *use->bytes);
}

void
port_use_uninit(struct port_use *use)
{
    free(use->bytes);
    use->bytes = NULL;
}

static double *
row(const struct port_use *use, int slot)
{
    return &use->bytes[(size_t) slot * use->n_ports];
}

/* Makes each two slots one. */
static void
widen(struct port_use *use)
{
    for (int slot = 0; slot < PORT_USE_SLOTS; slot++) {
        double *from = row(use, slot);
        double *to = row(use, slot / 2);

        for (int p = 0; p < use->n_ports; p++) {
            double bytes = from[p];

            from[p] = 0;
            to[p] += bytes;
        }
    }
    use->width *= 2;
}

static void
add_slot(double *bytes, double seconds, const struct sim_flow *flows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct sim_flow *f = &flows[i];

        for (int k = 0; k < f->n_ports; k++) {
            bytes[f->ports[k]] += f->rate * seconds;
        }
    }
}

void
port_use_add(struct port_use *use, double seconds,
             const struct sim_flow *flows, size_t n)
{
    double end = use->now + seconds;

    while (end > use->width * PORT_USE_SLOTS) {
        widen(use);
    }
    for (int slot = use->now / use->width;
         n && slot < PORT_USE_SLOTS && slot * use->width < end; slot++) {
        double from = fmax(use->now, slot * use->width);
        double to = fmin(end, (slot + 1) * use->width);

        add_slot(row(use, slot), to - from, flows, n);
    }
    use->now = end;
}

double
port_use_bytes(const struct port_use *use, int slot, int port)
{
    return row(use, slot)[port];
}
