/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/rates/growth.h"

#include <math.h>
#include <stdbool.h>

#include "order/problem/memory.h"

/* Below this share of its capacity a port is full. */
#define FULL 1e-9

/* A sum of which so much has been taken away is added up anew. */
#define LOST 1e-3

/* A flow that gets a rate, while its unit is being filled. */
struct grower {
    struct flow *flow;
    const struct path *path;
    double bytes;               /* Left. */
    bool stuck;                 /* One of its ports is full. */
    size_t next[SIM_FABRIC_MAX_PATH];   /* On the same port, or NONE. */
};

#define NONE ((size_t) -1)

void
growth_init(struct growth *f, const struct paths *paths)
{
    int n = paths->fabric->n_ports;

    *f = (struct growth) {
        .paths = paths, .capacity = paths->fabric->capacity,
        .hops = order_alloc(n, sizeof *f->hops),
        .used = order_alloc(n, sizeof *f->used),
    };
    for (int p = 0; p < n; p++) {
        f->hops[p].first = NONE;
    }
}

void
growth_uninit(struct growth *f)
{
    free(f->hops);
    free(f->growers);
    free(f->used);
}

/* Returns true if no port between the first and the last of 'path' is full. */
static bool
is_open(const struct growth *f, const struct path *path)
{
    for (int k = 1; k < path->n_ports - 1; k++) {
        if (f->hops[path->ports[k]].left <= 0) {
            return false;
        }
    }
    return true;
}

static void
add_grower(struct growth *f, struct flow *flow, const struct path *path)
{
    struct grower *g = &f->growers[f->n_growers];

    g->flow = flow;
    g->path = path;
    g->bytes = flow->remaining;
    g->stuck = false;
    for (int k = 0; k < path->n_ports; k++) {
        struct hop *hop = &f->hops[path->ports[k]];

        if (hop->first == NONE) {
            f->used[f->n_used++] = path->ports[k];
            hop->load = 0;
        }
        g->next[k] = hop->first;
        hop->first = f->n_growers * SIM_FABRIC_MAX_PATH + k;
        hop->load += g->bytes;
        hop->exact = hop->load;
    }
    f->n_growers++;
}

static void
find_growers_of_tie(struct growth *f, const struct tie *tie)
{
    for (size_t i = 0; i < tie->n; i++) {
        if (f->hops[tie->entries[i].last].left > 0) {
            struct flow *flow = tie->entries[i].flow;
            const struct path *path = &f->paths->paths[flow->path];

            if (is_open(f, path)) {
                add_grower(f, flow, path);
            }
        }
    }
}

/* Finds the flows of 'm' that can move. */
static void
find_growers(struct growth *f, const struct member *m)
{
    f->n_growers = 0;
    f->n_used = 0;
    f->growers = order_grow(f->growers, m->n_flows, &f->allocated_growers,
                          sizeof *f->growers);
    for (size_t i = 0; i < m->n_ties; i++) {
        const struct tie *tie = &m->ties[i];

        if (tie->n && f->hops[tie->port].left > 0) {
            find_growers_of_tie(f, tie);
        }
    }
}

/* 'g' of 'm' grows no more, on any of its ports. */
static void
stick(struct growth *f, struct member *m, struct grower *g, double growth)
{
    g->stuck = true;
    if (growth <= 0) {
        return;
    }
    g->flow->rate = growth * g->bytes;
    g->flow->key = 1 / growth;
    m->moving[m->n_moving++] = g->flow;
    for (int k = 0; k < g->path->n_ports; k++) {
        struct hop *hop = &f->hops[g->path->ports[k]];

        hop->load -= g->bytes;
        hop->left -= g->flow->rate;
    }
}

/* Closes 'port' for all that grow on it. */
static void
close_port(struct growth *f, struct member *m, int port, double growth)
{
    struct hop *hop = &f->hops[port];

    for (size_t i = hop->first; i != NONE; ) {
        struct grower *g = &f->growers[i / SIM_FABRIC_MAX_PATH];

        if (!g->stuck) {
            stick(f, m, g, growth);
        }
        i = g->next[i % SIM_FABRIC_MAX_PATH];
    }
    hop->first = NONE;
    hop->left = 0;
}

/* Adds up the load of 'hop' anew and forgets growers that are stuck. */
static void
add_up(struct growth *f, struct hop *hop)
{
    size_t *link = &hop->first;

    hop->load = 0;
    while (*link != NONE) {
        struct grower *g = &f->growers[*link / SIM_FABRIC_MAX_PATH];
        size_t *next = &g->next[*link % SIM_FABRIC_MAX_PATH];

        if (g->stuck) {
            *link = *next;
        } else {
            hop->load += g->bytes;
            link = next;
        }
    }
    hop->exact = hop->load;
}

/* What is left of a load by subtraction is rounding errors at some time. */
static void
tidy(struct growth *f, int port)
{
    struct hop *hop = &f->hops[port];

    if (hop->load < hop->exact * LOST) {
        add_up(f, hop);
    }
    if (hop->left < FULL * f->capacity[port]) {
        hop->left = 0;
    }
}

/* Returns the rate per byte at which the first port is full if all growers
 * grow alike, INFINITY if there are none.  Forgets ports without any. */
static double
find_growth(struct growth *f)
{
    double growth = INFINITY;
    int n = 0;

    for (int i = 0; i < f->n_used; i++) {
        int port = f->used[i];
        struct hop *hop = &f->hops[port];

        if (hop->first != NONE) {
            tidy(f, port);
        }
        if (hop->first != NONE) {
            f->used[n++] = port;
            growth = fmin(growth, hop->left / hop->load);
        }
    }
    f->n_used = n;
    return growth;
}

/* Gives the flows of 'm', none of which has a rate, rates from 'now' on. */
void
growth_run(struct growth *f, struct member *m, double now)
{
    double growth;

    m->n_moving = m->n_looked_at = 0;
    find_growers(f, m);
    m->moving = order_grow(m->moving, f->n_growers, &m->allocated_moving,
                         sizeof *m->moving);
    while ((growth = find_growth(f)) < INFINITY) {
        for (int i = 0; i < f->n_used; i++) {
            const struct hop *hop = &f->hops[f->used[i]];

            if (hop->left <= growth * hop->load * (1 + FULL)) {
                close_port(f, m, f->used[i], growth);
            }
        }
    }
    for (size_t i = 0; i < m->n_moving; i++) {
        m->moving[i]->since = now;
        m->moving[i]->key += now;
    }
}
