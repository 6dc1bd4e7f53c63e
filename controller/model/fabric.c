/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/fabric.h"

#include <stdlib.h>

#include "hash.h"
#include "util.h"

/* The address of a host. */
struct fabric_address {
    struct hmap_node node;      /* In struct fabric's 'addresses', by 'ip'. */
    uint32_t ip;
    char *name;
};

struct fabric *
fabric_create(int n_leaves)
{
    struct fabric *f = xzalloc(sizeof *f);

    f->n_leaves = n_leaves;
    f->pairs = xcalloc((size_t) n_leaves * n_leaves + 1, sizeof *f->pairs);
    simap_init(&f->hosts);
    hmap_init(&f->addresses);
    return f;
}

void
fabric_destroy(struct fabric *f)
{
    struct fabric_address *a;

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
        HMAP_FOR_EACH_POP (a, node, &f->addresses) {
            free(a->name);
            free(a);
        }
        hmap_destroy(&f->addresses);
        free(f);
    }
}

/* Adds the port 'name' and returns its number, from 0. */
int
fabric_add_port(struct fabric *f, const char *name)
{
    if (f->n_ports >= f->allocated_ports) {
        f->ports = x2nrealloc(f->ports, &f->allocated_ports, sizeof *f->ports);
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
fabric_add_host(struct fabric *f, const char *name, uint32_t ip, int leaf)
{
    struct fabric_address *a = xmalloc(sizeof *a);

    simap_put(&f->hosts, name, leaf);
    a->ip = ip;
    a->name = xstrdup(name);
    hmap_insert(&f->addresses, &a->node, hash_int(ip, 0));
}

const char *
fabric_find_address(const struct fabric *f, uint32_t ip)
{
    const struct fabric_address *a;

    HMAP_FOR_EACH_WITH_HASH (a, node, hash_int(ip, 0), &f->addresses) {
        if (a->ip == ip) {
            return a->name;
        }
    }
    return NULL;
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
