/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/fabric.h"

#include <assert.h>

#include "sim/memory.h"

struct sim_fabric *
sim_fabric_create(int n_hosts, double capacity)
{
    struct sim_fabric *f = sim_calloc(1, sizeof *f);

    assert(n_hosts > 0 && capacity > 0);
    f->n_hosts = n_hosts;
    f->n_ports = 2 * n_hosts;
    f->capacity = sim_calloc(f->n_ports, sizeof *f->capacity);
    for (int p = 0; p < f->n_ports; p++) {
        f->capacity[p] = capacity;
    }
    return f;
}

void
sim_fabric_destroy(struct sim_fabric *f)
{
    if (f) {
        free(f->capacity);
        free(f);
    }
}

int
sim_fabric_path(const struct sim_fabric *f, int src, int dst,
                int ports[SIM_FABRIC_MAX_PATH])
{
    assert(src >= 0 && src < f->n_hosts && dst >= 0 && dst < f->n_hosts);
    ports[0] = 2 * src;
    ports[1] = 2 * dst + 1;
    return 2;
}
