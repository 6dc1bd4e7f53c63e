/* SPDX-License-Identifier: Apache-2.0 */

#include "order/lookahead/level-rates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "order/problem/memory.h"

/* What is left of a port below this share of its capacity is a rounding
 * error. */
#define RESIDUE 1e-11

/* Flows that end within this time end at once, seconds. */
#define TOGETHER 1e-9

/* The flows of one level.  What it found and took the last time tells whether
 * it must be computed again. */
struct level {
    size_t n;
    struct level_flow **flows;
    bool changed;     /* Flows came or went. */
    double end;       /* When the first flow ends, seconds. */
    double *found;    /* Bytes per second that the levels before it left of
                       * each port. */
    double *taken;    /* Bytes per second that it takes of that. */
    double *reserved; /* Its minimum share of each port. */
    int *n_at;        /* Flows that pass each port. */
    int n_used;
    int *used;  /* Ports that flows pass, and the place of each */
    int *place; /* port in 'used'. */
};

void
level_rates_init(struct level_rates *r, int n_ports, const double *capacity,
                 size_t n_levels, size_t n_flows, double min_share)
{
    *r = (struct level_rates){ .n_ports = n_ports,
                               .capacity = capacity,
                               .min_share = min_share,
                               .n_levels = n_levels };
    r->levels = order_alloc(n_levels, sizeof *r->levels);
    for (size_t l = 0; l < n_levels; l++) {
        struct level *level = &r->levels[l];

        level->flows = order_alloc(n_flows, sizeof *level->flows);
        level->found = order_alloc(n_ports, sizeof *level->found);
        level->taken = order_alloc(n_ports, sizeof *level->taken);
        level->reserved = order_alloc(n_ports, sizeof *level->reserved);
        level->n_at = order_alloc(n_ports, sizeof *level->n_at);
        level->used = order_alloc(n_ports, sizeof *level->used);
        level->place = order_alloc(n_ports, sizeof *level->place);
    }
    r->reserved = order_alloc(n_ports, sizeof *r->reserved);
    r->ports = order_alloc(n_ports, sizeof *r->ports);
    r->waiting = order_alloc(n_flows, sizeof *r->waiting);
}

void
level_rates_uninit(struct level_rates *r)
{
    for (size_t l = 0; l < r->n_levels; l++) {
        free(r->levels[l].flows);
        free(r->levels[l].found);
        free(r->levels[l].taken);
        free(r->levels[l].reserved);
        free(r->levels[l].n_at);
        free(r->levels[l].used);
        free(r->levels[l].place);
    }
    free(r->levels);
    free(r->reserved);
    free(r->ports);
    free(r->waiting);
}

void
level_rates_clear(struct level_rates *r)
{
    for (size_t l = 0; l < r->n_levels; l++) {
        struct level *level = &r->levels[l];

        for (size_t i = 0; i < level->n; i++) {
            level->flows[i]->moves = false;
        }
        level->n = 0;
        level->n_used = 0;
        level->changed = false;
        level->end = INFINITY;
        memset(level->reserved, 0, r->n_ports * sizeof *level->reserved);
        memset(level->n_at, 0, r->n_ports * sizeof *level->n_at);
    }
    memset(r->reserved, 0, r->n_ports * sizeof *r->reserved);
    r->changed = false;
}

/* Adds 'flow' to the ports that its level uses. */
static void
use_ports(struct level_rates *r, const struct level_flow *flow)
{
    struct level *level = &r->levels[flow->level];

    for (int k = 0; k < flow->n_ports; k++) {
        int port = flow->ports[k];

        if (!level->n_at[port]++) {
            level->place[port] = level->n_used;
            level->used[level->n_used++] = port;
        }
    }
    level->changed = r->changed = true;
}

static void
leave_ports(struct level_rates *r, const struct level_flow *flow)
{
    struct level *level = &r->levels[flow->level];

    for (int k = 0; k < flow->n_ports; k++) {
        int port = flow->ports[k];

        if (!--level->n_at[port]) {
            int last = level->used[--level->n_used];

            level->used[level->place[port]] = last;
            level->place[last] = level->place[port];
            r->reserved[port] -= level->reserved[port];
            level->reserved[port] = 0;
        }
    }
    level->changed = r->changed = true;
}

/* Puts 'flow' on the list of 'level', or of the last one. */
static void
list_flow(struct level_rates *r, struct level_flow *flow, size_t level)
{
    struct level *l;

    flow->level = level < r->n_levels ? level : r->n_levels - 1;
    l = &r->levels[flow->level];
    flow->place = l->n;
    l->flows[l->n++] = flow;
    use_ports(r, flow);
}

static void
unlist_flow(struct level_rates *r, struct level_flow *flow)
{
    struct level *l = &r->levels[flow->level];
    struct level_flow *last = l->flows[--l->n];

    l->flows[flow->place] = last;
    last->place = flow->place;
    leave_ports(r, flow);
}

void
level_rates_add(struct level_rates *r, struct level_flow *flow, size_t level,
                double bytes, double now)
{
    flow->moves = true;
    flow->left = bytes;
    flow->since = now;
    flow->rate = flow->floor = 0;
    flow->end = INFINITY;
    list_flow(r, flow, level);
}

void
level_rates_move(struct level_rates *r, struct level_flow *flow, size_t level)
{
    unlist_flow(r, flow);
    list_flow(r, flow, level);
}

static bool
passes(const struct level_flow *flow, int port)
{
    for (int k = 0; k < flow->n_ports; k++) {
        if (flow->ports[k] == port) {
            return true;
        }
    }
    return false;
}

static void
grant(struct level_rates *r, struct level_flow *flow, double rate)
{
    flow->granted = rate;
    for (int k = 0; k < flow->n_ports; k++) {
        struct level_port *port = &r->ports[flow->ports[k]];

        port->n_waiting--;
        port->left -= rate;
        if (port->left < RESIDUE * r->capacity[flow->ports[k]]) {
            port->left = 0;
        }
    }
}

static bool
meets_full_port(const struct level_rates *r, const struct level_flow *flow)
{
    for (int k = 0; k < flow->n_ports; k++) {
        if (r->ports[flow->ports[k]].left <= 0) {
            return true;
        }
    }
    return false;
}

/* Lists the flows of 'level' that wait for a rate; no others get one.  Returns
 * their number. */
static size_t
list_waiting(struct level_rates *r, const struct level *level)
{
    size_t n = 0;

    for (size_t i = 0; i < level->n; i++) {
        struct level_flow *flow = level->flows[i];

        flow->granted = 0;
        if (meets_full_port(r, flow)) {
            continue;
        }
        r->waiting[n++] = flow;
        for (int k = 0; k < flow->n_ports; k++) {
            r->ports[flow->ports[k]].n_waiting++;
        }
    }
    return n;
}

/* Returns the port that can give the flows of 'level' least, which it stores
 * in '*least'. */
static int
find_tightest(const struct level_rates *r, const struct level *level,
              double *least)
{
    int tightest = -1;

    *least = INFINITY;
    for (int i = 0; i < level->n_used; i++) {
        const struct level_port *port = &r->ports[level->used[i]];

        if (port->n_waiting && port->left < *least * port->n_waiting) {
            *least = port->left / port->n_waiting;
            tightest = level->used[i];
        }
    }
    return tightest;
}

/* Shares what is left of the ports among the flows of a level: the port that
 * can give its flows least gives them that, then the next. */
static void
share(struct level_rates *r, const struct level *level)
{
    size_t n = list_waiting(r, level);

    while (n) {
        double least;
        int tightest = find_tightest(r, level, &least);
        size_t n_left = 0;

        for (size_t i = 0; i < n; i++) {
            if (passes(r->waiting[i], tightest)) {
                grant(r, r->waiting[i], least);
            } else {
                r->waiting[n_left++] = r->waiting[i];
            }
        }
        n = n_left;
    }
}

/* Gives the flows of 'level' its minimum share of each port. */
static void
reserve(struct level_rates *r, struct level *level)
{
    for (int i = 0; i < level->n_used; i++) {
        int p = level->used[i];

        r->ports[p].left = r->min_share * r->capacity[p];
    }
    share(r, level);
    for (int i = 0; i < level->n_used; i++) {
        int p = level->used[i];

        r->reserved[p] -= level->reserved[p];
        level->reserved[p] = r->min_share * r->capacity[p] - r->ports[p].left;
        r->reserved[p] += level->reserved[p];
    }
    for (size_t i = 0; i < level->n; i++) {
        level->flows[i]->floor = level->flows[i]->granted;
    }
}

static void
set_rate(struct level_flow *flow, double rate, double now)
{
    if (rate != flow->rate) {
        flow->left -= flow->rate * (now - flow->since);
        flow->since = now;
        flow->rate = rate;
        flow->end = rate > 0 ? now + fmax(flow->left, 0) / rate : INFINITY;
    }
}

/* Gives the flows of 'level' what is left of the ports. */
static void
fill(struct level_rates *r, struct level *level, double now)
{
    for (int i = 0; i < level->n_used; i++) {
        level->found[level->used[i]] = r->ports[level->used[i]].left;
    }
    share(r, level);
    for (int i = 0; i < level->n_used; i++) {
        int p = level->used[i];

        level->taken[p] = level->found[p] - r->ports[p].left;
    }
    level->end = INFINITY;
    for (size_t i = 0; i < level->n; i++) {
        struct level_flow *flow = level->flows[i];

        set_rate(flow, flow->floor + flow->granted, now);
        level->end = flow->end < level->end ? flow->end : level->end;
    }
    level->changed = false;
}

/* Returns true if the flows of 'level' find what they found the last time. */
static bool
finds_same(const struct level_rates *r, const struct level *level)
{
    for (int i = 0; i < level->n_used; i++) {
        if (r->ports[level->used[i]].left != level->found[level->used[i]]) {
            return false;
        }
    }
    return true;
}

void
level_rates_update(struct level_rates *r, double now)
{
    if (!r->changed) {
        return;
    }
    for (size_t l = 0; l < r->n_levels && r->min_share > 0; l++) {
        if (r->levels[l].changed) {
            reserve(r, &r->levels[l]);
        }
    }
    for (int p = 0; p < r->n_ports; p++) {
        double left = r->capacity[p] - r->reserved[p];

        r->ports[p].left = left > 0 ? left : 0;
    }
    for (size_t l = 0; l < r->n_levels; l++) {
        struct level *level = &r->levels[l];

        if (level->changed || (level->n && !finds_same(r, level))) {
            fill(r, level, now);
        } else {
            for (int i = 0; i < level->n_used; i++) {
                r->ports[level->used[i]].left -= level->taken[level->used[i]];
            }
        }
    }
    r->changed = false;
}

double
level_rates_next(const struct level_rates *r)
{
    double next = INFINITY;

    for (size_t l = 0; l < r->n_levels; l++) {
        next = r->levels[l].end < next ? r->levels[l].end : next;
    }
    return next;
}

struct level_flow *
level_rates_pop(struct level_rates *r, double now)
{
    double until = now + TOGETHER;

    for (size_t l = 0; l < r->n_levels; l++) {
        const struct level *level = &r->levels[l];

        for (size_t i = 0; level->end <= until && i < level->n; i++) {
            struct level_flow *flow = level->flows[i];

            if (flow->end <= until) {
                unlist_flow(r, flow);
                flow->moves = false;
                return flow;
            }
        }
    }
    return NULL;
}
