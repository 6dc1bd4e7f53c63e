/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/fabric.h"

#include <stdlib.h>

#include "util.h"

struct fabric *
fabric_create(int n_leaves)
{
    struct fabric *f = xzalloc(sizeof *f);

    f->n_leaves = n_leaves;
    f->pairs = xcalloc((size_t) n_leaves * n_leaves + 1, sizeof *f->pairs);
    simap_init(&f->hosts);
    return f;
}

void
fabric_destroy(struct fabric *f)
{
    if (f) {
        for (int i = 0; i < f->n_leaves * f->n_leaves; i++) {
            free(f->pairs[i].crossings);
        }
        for (int i = 0; i < f->n_ports; i++) {
            free(f->ports[i]);
        }
        free(f->pairs);
        free(f->ports);
        simap_destroy(&f->hosts);
        free(f);
    }
}

/* Adds the port 'name' and returns its number, from 0. */
int
fabric_add_port(struct fabric *f, const char *name)
{
    if (f->n_ports >= f->allocated_ports) {
        f->ports = x2nrealloc(f->ports, &f->allocated_ports,
                              sizeof *f->ports);
    }
    f->ports[f->n_ports] = xstrdup(name);
    return f->n_ports++;
}

void
fabric_add_crossing(struct fabric *f, int from, int to, int port,
                    double seconds_per_bit)
{
    struct fabric_pair *pair = &f->pairs[from * f->n_leaves + to];

    if (pair->n >= pair->allocated) {
        pair->crossings = x2nrealloc(pair->crossings, &pair->allocated,
                                     sizeof *pair->crossings);
    }
    pair->crossings[pair->n++] = (struct fabric_crossing) {
        .port = port, .seconds_per_bit = seconds_per_bit,
    };
}

void
fabric_add_host(struct fabric *f, const char *name, int leaf)
{
    simap_put(&f->hosts, name, leaf);
}

int
fabric_find_host(const struct fabric *f, const char *name)
{
    const struct simap_node *node = simap_find(&f->hosts, name);

    return node ? node->data : -1;
}

const struct fabric_pair *
fabric_get_pair(const struct fabric *f, int from, int to)
{
    return &f->pairs[from * f->n_leaves + to];
}
