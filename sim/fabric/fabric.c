/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/fabric/fabric.h"

#include <assert.h>

#include "order/problem/memory.h"

struct sim_fabric *
sim_fabric_create(int n_hosts, double capacity)
{
    struct sim_fabric *f = order_alloc(1, sizeof *f);

    assert(n_hosts > 0 && capacity > 0);
    f->n_hosts = n_hosts;
    f->n_tiers = 1;
    f->n_ports = 2 * n_hosts;
    f->capacity = order_alloc(f->n_ports, sizeof *f->capacity);
    f->parent = order_alloc(n_hosts, sizeof *f->parent);
    for (int i = 0; i < n_hosts; i++) {
        f->capacity[2 * i] = f->capacity[2 * i + 1] = capacity;
        f->parent[i] = -1;
    }
    return f;
}

/* Puts 'n' switches above the nodes of the last tier: its node i hangs on
 * switch 'above[i]', which can send up what its nodes can, divided by
 * 'oversubscription'. */
void
sim_fabric_add_tier(struct sim_fabric *f, const int *above, int n,
                    double oversubscription)
{
    int end = f->n_ports / 2;
    int begin = end;

    assert(oversubscription > 0 && n > 0);
    assert(f->n_tiers < SIM_FABRIC_MAX_PATH / 2);
    while (begin > 0 && f->parent[begin - 1] < 0) {
        begin--;
    }
    f->n_tiers++;
    f->n_ports += 2 * n;
    f->capacity = order_must(reallocarray(f->capacity, f->n_ports,
                                        sizeof *f->capacity));
    f->parent = order_must(reallocarray(f->parent, end + n,
                                      sizeof *f->parent));
    for (int i = end; i < end + n; i++) {
        f->parent[i] = -1;
        f->capacity[2 * i] = f->capacity[2 * i + 1] = 0;
    }
    for (int i = begin; i < end; i++) {
        int up = end + above[i - begin];

        assert(up < end + n);
        f->parent[i] = up;
        f->capacity[2 * up] += f->capacity[2 * i] / oversubscription;
        f->capacity[2 * up + 1] += f->capacity[2 * i + 1] / oversubscription;
    }
}

struct sim_fabric *
sim_fabric_create_leaf_spine(int n_hosts, int hosts_per_leaf, double capacity,
                             double oversubscription)
{
    struct sim_fabric *f = sim_fabric_create(n_hosts, capacity);
    int *leaf = order_alloc(n_hosts, sizeof *leaf);

    assert(hosts_per_leaf > 0);
    for (int i = 0; i < n_hosts; i++) {
        leaf[i] = i / hosts_per_leaf;
    }
    sim_fabric_add_tier(f, leaf, leaf[n_hosts - 1] + 1, oversubscription);
    free(leaf);
    return f;
}

static void *
copy(const void *p, size_t size)
{
    return memcpy(order_alloc(1, size), p, size);
}

struct sim_fabric *
sim_fabric_scale(const struct sim_fabric *old, double factor)
{
    struct sim_fabric *f = copy(old, sizeof *f);

    f->capacity = copy(f->capacity, f->n_ports * sizeof *f->capacity);
    f->parent = copy(f->parent, f->n_ports / 2 * sizeof *f->parent);
    for (int p = 0; p < f->n_ports; p++) {
        f->capacity[p] *= factor;
    }
    return f;
}

void
sim_fabric_destroy(struct sim_fabric *f)
{
    if (f) {
        free(f->capacity);
        free(f->parent);
        free(f);
    }
}

int
sim_fabric_path(const struct sim_fabric *f, int src, int dst,
                int ports[SIM_FABRIC_MAX_PATH])
{
    int n_up = 1;
    int top;

    assert(src >= 0 && src < f->n_hosts && dst >= 0 && dst < f->n_hosts);
    for (int a = src, b = dst; f->parent[a] != f->parent[b]; n_up++) {
        a = f->parent[a];
        b = f->parent[b];
    }
    top = 2 * n_up;
    for (int k = 0; k < n_up; k++) {
        ports[k] = 2 * src;
        ports[top - 1 - k] = 2 * dst + 1;
        src = f->parent[src];
        dst = f->parent[dst];
    }
    return top;
}
