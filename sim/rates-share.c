/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/rates.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/memory.h"

/* What is left of a port below this share of its capacity is a rounding
 * error, not bandwidth for the next level. */
#define RESIDUE 1e-12

struct share {
    struct rates up;
    const struct sim_fabric *fabric;
    size_t n, allocated;
    struct flow **flows;

    /* Ports. */
    double *left;               /* Capacity that nobody has been given. */
    size_t *waiting;            /* Flows on it without a rate yet. */
    size_t *first;              /* First hop on it, NO_HOP if none. */
    int *used;                  /* Ports with waiting flows, 'n_used'. */
    int n_used;

    /* Hops: hop i * SIM_FABRIC_MAX_PATH + k is port k of flow i. */
    size_t *next;               /* Next hop on the same port. */
    size_t allocated_hops;

    /* Flows by level. */
    size_t *by_level;           /* Indexes of flows, level 0 first. */
    size_t allocated_flows;
    size_t *level_end;          /* One past the last of each level. */
    size_t allocated_levels;
};

#define NO_HOP SIZE_MAX
#define WAITING (-1.0)          /* A rate that is not known yet. */

static struct share *
share_cast(const struct rates *r)
{
    return (struct share *) r;
}

static struct rates *
share_create(const struct paths *paths)
{
    struct share *r = sim_calloc(1, sizeof *r);
    const struct sim_fabric *fabric = paths->fabric;

    r->fabric = fabric;
    r->left = sim_calloc(fabric->n_ports, sizeof *r->left);
    r->waiting = sim_calloc(fabric->n_ports, sizeof *r->waiting);
    r->first = sim_calloc(fabric->n_ports, sizeof *r->first);
    r->used = sim_calloc(fabric->n_ports, sizeof *r->used);
    return &r->up;
}

static void
share_destroy(struct rates *r_)
{
    struct share *r = share_cast(r_);

    free(r->flows);
    free(r->left);
    free(r->waiting);
    free(r->first);
    free(r->used);
    free(r->next);
    free(r->by_level);
    free(r->level_end);
    free(r);
}

/* Counting sort of flows by level into 'by_level'.  Returns the number of
 * levels. */
static int
sort_by_level(struct share *r, struct flow **flows, size_t n)
{
    int n_levels = 0;

    for (size_t i = 0; i < n; i++) {
        assert(flows[i]->unit->level >= 0);
        n_levels = flows[i]->unit->level >= n_levels ? flows[i]->unit->level + 1 : n_levels;
    }
    r->level_end = sim_grow(r->level_end, n_levels + 1, &r->allocated_levels,
                            sizeof *r->level_end);
    r->by_level = sim_grow(r->by_level, n, &r->allocated_flows,
                           sizeof *r->by_level);
    memset(r->level_end, 0, (n_levels + 1) * sizeof *r->level_end);
    for (size_t i = 0; i < n; i++) {
        r->level_end[flows[i]->unit->level + 1]++;
    }
    for (int l = 0; l < n_levels; l++) {
        r->level_end[l + 1] += r->level_end[l];
    }
    for (size_t i = 0; i < n; i++) {
        r->by_level[r->level_end[flows[i]->unit->level]++] = i;
    }
    return n_levels;
}

static bool
is_blocked(const struct share *r, const struct flow *f)
{
    const struct path *path = rates_path(&r->up, f);

    for (int k = 0; k < path->n_ports; k++) {
        if (r->left[path->ports[k]] <= 0) {
            return true;
        }
    }
    return false;
}

/* Puts flow 'i' on the lists of its ports. */
static void
enlist(struct share *r, struct flow *f, size_t i)
{
    const struct path *path = rates_path(&r->up, f);

    if (is_blocked(r, f)) {
        f->rate = 0;
        return;
    }
    f->rate = WAITING;
    for (int k = 0; k < path->n_ports; k++) {
        size_t hop = i * SIM_FABRIC_MAX_PATH + k;
        int p = path->ports[k];

        if (!r->waiting[p]++) {
            r->used[r->n_used++] = p;
            r->first[p] = NO_HOP;
        }
        r->next[hop] = r->first[p];
        r->first[p] = hop;
    }
}

/* Returns the place in 'used' of the port that can give its flows least, and
 * forgets ports that no flow waits for. */
static int
find_tightest(struct share *r, double *sharep)
{
    int best = -1;
    int n = 0;

    *sharep = INFINITY;
    for (int i = 0; i < r->n_used; i++) {
        int p = r->used[i];

        if (r->waiting[p]) {
            double share = r->left[p] / r->waiting[p];

            if (share < *sharep) {
                *sharep = share;
                best = n;
            }
            r->used[n++] = p;
        }
    }
    r->n_used = n;
    return best;
}

static void
take(struct share *r, int p, double rate)
{
    r->left[p] -= rate;
    if (r->left[p] < r->fabric->capacity[p] * RESIDUE) {
        r->left[p] = 0;
    }
    r->waiting[p]--;
}

/* Gives every flow that waits for 'port' its 'share'. */
static void
fill_port(struct share *r, struct flow **flows, int port, double share)
{
    for (size_t hop = r->first[port]; hop != NO_HOP; hop = r->next[hop]) {
        struct flow *f = flows[hop / SIM_FABRIC_MAX_PATH];

        if (f->rate == WAITING) {
            const struct path *path = rates_path(&r->up, f);

            f->rate = share;
            for (int k = 0; k < path->n_ports; k++) {
                take(r, path->ports[k], share);
            }
        }
    }
    r->left[port] = 0;
}

static void
compute(struct share *r, struct flow **flows, size_t n)
{
    int n_levels = sort_by_level(r, flows, n);
    size_t i = 0;

    r->next = sim_grow(r->next, n * SIM_FABRIC_MAX_PATH, &r->allocated_hops,
                       sizeof *r->next);
    memcpy(r->left, r->fabric->capacity,
           r->fabric->n_ports * sizeof *r->left);
    for (int l = 0; l < n_levels; l++) {
        double share;
        int tightest;

        for (; i < r->level_end[l]; i++) {
            enlist(r, flows[r->by_level[i]], r->by_level[i]);
        }
        while ((tightest = find_tightest(r, &share)) >= 0) {
            fill_port(r, flows, r->used[tightest], share);
        }
    }
}

static void
share_add(struct rates *r_, struct flow *flow, double now)
{
    struct share *r = share_cast(r_);

    flow->rate = 0;
    flow->key = INFINITY;
    flow->since = now;
    r->flows = sim_grow(r->flows, r->n + 1, &r->allocated,
                        sizeof *r->flows);
    flow->place = r->n;
    r->flows[r->n++] = flow;
}

static void
share_settle(struct rates *r_, double now)
{
    struct share *r = share_cast(r_);

    for (size_t i = 0; i < r->n; i++) {
        flow_settle(r->flows[i], rates_path(r_, r->flows[i]), now);
    }
}

static void
share_reorder(struct rates *r, double now)
{
    (void) r;
    (void) now;
}

static void
share_update(struct rates *r_, double now)
{
    struct share *r = share_cast(r_);

    share_settle(r_, now);
    compute(r, r->flows, r->n);
    for (size_t i = 0; i < r->n; i++) {
        struct flow *f = r->flows[i];

        f->key = f->rate > 0 ? now + f->remaining / f->rate : INFINITY;
    }
}

static double
share_next(const struct rates *r_)
{
    struct share *r = share_cast(r_);
    double next = INFINITY;

    for (size_t i = 0; i < r->n; i++) {
        next = r->flows[i]->key < next ? r->flows[i]->key : next;
    }
    return next;
}

static struct flow *
share_pop(struct rates *r_, double now)
{
    struct share *r = share_cast(r_);

    for (size_t i = 0; i < r->n; i++) {
        struct flow *f = r->flows[i];

        if (f->key <= now + now * RATES_TOGETHER) {
            r->flows[i] = r->flows[--r->n];
            flow_finish(f, rates_path(r_, f));
            return f;
        }
    }
    return NULL;
}

static size_t
share_list(const struct rates *r_, struct sim_flow **flows,
            size_t *allocated)
{
    const struct share *r = share_cast(r_);
    size_t n = 0;

    *flows = sim_grow(*flows, r->n, allocated, sizeof **flows);
    for (size_t i = 0; i < r->n; i++) {
        const struct path *path = rates_path(r_, r->flows[i]);
        struct sim_flow *f = &(*flows)[n];

        if (r->flows[i]->rate > 0) {
            f->n_ports = path->n_ports;
            memcpy(f->ports, path->ports, sizeof f->ports);
            f->rate = r->flows[i]->rate;
            n++;
        }
    }
    return n;
}

const struct rates_class rates_share = {
    .create = share_create,
    .destroy = share_destroy,
    .add = share_add,
    .reorder = share_reorder,
    .update = share_update,
    .next = share_next,
    .pop = share_pop,
    .settle = share_settle,
    .list = share_list,
};
