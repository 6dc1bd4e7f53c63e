/* SPDX-License-Identifier: Apache-2.0 */

/* RATES_MADD: a unit ends with its slowest flow, so its other flows need not
 * be faster: minimum allocation for desired duration (MADD) lets all flows of
 * a unit end together with those of its bottleneck, by rank, and leaves the
 * other bandwidth to the next unit.  A unit gets nothing if one of its ports
 * is full.  The remaining bandwidth is assigned flow after flow, by rank, by
 * begin inside a unit, so that none is wasted.  (Varys, SIGCOMM 2014.)
 *
 * All rates are computed when flows begin or ranks change.  When a flow ends,
 * its bandwidth goes to the best flow on its ports.  Only the first flow of
 * each path matters then, and most paths are left out because their other end
 * is full. */

#include "sim/rates/rates.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "order/problem/memory.h"
#include "sim/rates/node-heap.h"

/* What is left of a port below this share of its capacity is rounding. */
#define RESIDUE 1e-12

#define NONE UINT32_MAX

/* The flows 'begin' to 'end' - 1, which are all of one unit. */
struct run {
    const struct unit *unit;
    size_t begin, end;
};

/* A path, seen from one of its ports. */
struct hop {
    uint32_t path;
    int far; /* The port at its other end. */
};

struct port {
    size_t n, allocated;
    struct hop *hops; /* Paths that pass it. */
    double left;      /* Bytes per second. */
    double sum;       /* Bytes of one unit, while it is served. */
};

struct madd {
    struct rates up;
    bool changed; /* Rates are not valid. */
    size_t n, allocated;
    struct flow **flows;        /* By rank after an update; NULL if ended. */
    size_t allocated_sorted;
    struct flow **sorted;       /* The flows, while they are sorted. */
    size_t allocated_runs;
    struct run *runs;
    struct node_heap moving;    /* By end. */
    size_t n_freed, allocated_freed;
    int *freed; /* Ports that flows have left. */

    struct port *ports;
    int n_host_ports; /* The first ports are the hosts'. */
    int n_open[2];    /* Those up, down, that have something left. */

    size_t n_paths, allocated_paths, allocated_next;
    uint32_t *heads; /* Of each path: its best flow, or NONE. */
    uint32_t *next;  /* Of each flow: the next on its path. */
};

static struct madd *
madd_cast(const struct rates *r)
{
    return (struct madd *) r;
}

static struct rates *
madd_create(const struct paths *paths, enum rates_rule rule)
{
    struct madd *f = order_alloc(1, sizeof *f);

    f->ports = order_alloc(paths->fabric->n_ports, sizeof *f->ports);
    f->n_host_ports = 2 * paths->fabric->n_hosts;
    return &f->up;
}

static void
madd_destroy(struct rates *r)
{
    struct madd *f = madd_cast(r);

    for (int p = 0; p < r->paths->fabric->n_ports; p++) {
        free(f->ports[p].hops);
    }
    free(f->flows);
    free(f->sorted);
    free(f->runs);
    free(f->moving.nodes);
    free(f->freed);
    free(f->ports);
    free(f->heads);
    free(f->next);
    free(f);
}

static void
madd_add(struct rates *r, struct flow *flow, double now)
{
    struct madd *f = madd_cast(r);

    flow->rate = 0;
    flow->since = now;
    flow->index = f->n;
    f->flows = order_grow(f->flows, f->n + 1, &f->allocated, sizeof *f->flows);
    f->flows[f->n++] = flow;
    f->changed = true;
}

static void
madd_reorder(struct rates *r, double now)
{
    madd_cast(r)->changed = true;
}

static void
madd_settle(struct rates *r, double now)
{
    struct madd *f = madd_cast(r);

    for (size_t i = 0; i < f->moving.n; i++) {
        struct flow *flow = flow_of(f->moving.nodes[i]);

        flow_settle(flow, rates_path(r, flow), now);
    }
}

/* What is left of the ports of 'path'. */
static double
path_left(const struct madd *f, const struct path *path)
{
    double left = INFINITY;

    for (int k = 0; k < path->n_ports; k++) {
        left = fmin(left, f->ports[path->ports[k]].left);
    }
    return left;
}

/* Makes 'flow' faster by 'rate'. */
static void
give(struct madd *f, struct flow *flow, double rate)
{
    const struct path *path = rates_path(&f->up, flow);

    flow->rate += rate;
    for (int k = 0; k < path->n_ports; k++) {
        int p = path->ports[k];
        double *left = &f->ports[p].left;
        bool open = *left > 0;

        *left -= rate;
        if (*left < f->up.paths->fabric->capacity[p] * RESIDUE) {
            *left = 0;
            if (open && p < f->n_host_ports) {
                f->n_open[p % 2]--;
            }
        }
    }
}

/* Takes all from 'flow', which does not move any more. */
static void
release(struct madd *f, struct flow *flow)
{
    const struct path *path = rates_path(&f->up, flow);

    f->freed = order_grow(f->freed, f->n_freed + path->n_ports,
                          &f->allocated_freed, sizeof *f->freed);
    for (int k = 0; k < path->n_ports; k++) {
        int p = path->ports[k];

        f->ports[p].left += flow->rate;
        f->freed[f->n_freed++] = p;
    }
    flow->rate = 0;
}

/* Makes 'flow' as fast as its ports allow. */
static void
give_all(struct madd *f, struct flow *flow)
{
    double left = path_left(f, rates_path(&f->up, flow));

    if (left > 0) {
        give(f, flow, left);
    }
}

/* Returns true if no flow can be faster. */
static bool
is_exhausted(const struct madd *f)
{
    return !f->n_open[0] || !f->n_open[1];
}

/* Returns the seconds that the flows of 'run' need of what is left, INFINITY
 * if one of their ports is full. */
static double
run_seconds(struct madd *f, const struct run *run)
{
    double seconds = 0;
    size_t i;

    for (i = run->begin; i < run->end && seconds < INFINITY; i++) {
        const struct path *path = rates_path(&f->up, f->flows[i]);

        for (int k = 0; k < path->n_ports; k++) {
            int p = path->ports[k];

            f->ports[p].sum += f->flows[i]->remaining;
            seconds = fmax(seconds, f->ports[p].sum / f->ports[p].left);
        }
    }
    while (i-- > run->begin) {
        const struct path *path = rates_path(&f->up, f->flows[i]);

        for (int k = 0; k < path->n_ports; k++) {
            f->ports[path->ports[k]].sum = 0;
        }
    }
    return seconds;
}

/* Lets the flows of 'run' end together. */
static void
serve_together(struct madd *f, const struct run *run)
{
    double seconds = is_exhausted(f) ? INFINITY : run_seconds(f, run);

    for (size_t i = run->begin; i < run->end; i++) {
        f->flows[i]->rate = 0;
        if (seconds < INFINITY) {
            give(f, f->flows[i], f->flows[i]->remaining / seconds);
        }
    }
}

static int
compare_runs(const void *a_, const void *b_)
{
    const struct run *a = a_, *b = b_;

    if (a->unit->rank != b->unit->rank) {
        return a->unit->rank < b->unit->rank ? -1 : 1;
    }
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* Lists the runs of flows of one unit that have not ended, by rank.  Returns
 * their number. */
static size_t
find_runs(struct madd *f)
{
    size_t n = 0;
    size_t n_runs = 0;

    for (size_t i = 0; i < f->n; i++) {
        if (!f->flows[i]) {
            continue;
        }
        if (!n || f->flows[n - 1]->unit != f->flows[i]->unit) {
            f->runs = order_grow(f->runs, n_runs + 1, &f->allocated_runs,
                                 sizeof *f->runs);
            f->runs[n_runs++] = (struct run){ f->flows[i]->unit, n, n };
        }
        f->flows[n++] = f->flows[i];
        f->runs[n_runs - 1].end = n;
    }
    f->n = n;
    if (n_runs) {
        qsort(f->runs, n_runs, sizeof *f->runs, compare_runs);
    }
    return n_runs;
}

/* Forgets flows that have ended and sorts the others by rank, so that each
 * unit has one run.  Returns the number of runs. */
static size_t
sort_flows(struct madd *f)
{
    size_t n_runs = find_runs(f);
    size_t n_units = 0;
    size_t n = 0;
    struct flow **flows = f->flows;
    size_t allocated = f->allocated;

    f->sorted =
        order_grow(f->sorted, f->n, &f->allocated_sorted, sizeof *f->sorted);
    for (size_t r = 0; r < n_runs; r++) {
        struct run run = f->runs[r];

        if (!n_units || f->runs[n_units - 1].unit != run.unit) {
            f->runs[n_units++] = (struct run){ run.unit, n, n };
        }
        for (size_t i = run.begin; i < run.end; i++) {
            flows[i]->index = n;
            f->sorted[n++] = flows[i];
        }
        f->runs[n_units - 1].end = n;
    }
    f->flows = f->sorted;
    f->allocated = f->allocated_sorted;
    f->sorted = flows;
    f->allocated_sorted = allocated;
    return n_units;
}

/* Lets the ports of new paths list them. */
static void
add_paths(struct madd *f)
{
    f->heads = order_grow(f->heads, f->up.paths->n, &f->allocated_paths,
                          sizeof *f->heads);
    for (; f->n_paths < f->up.paths->n; f->n_paths++) {
        const struct path *path = &f->up.paths->paths[f->n_paths];
        int last = path->n_ports - 1;

        for (int k = 0; k <= last; k++) {
            struct port *port = &f->ports[path->ports[k]];

            port->hops = order_grow(port->hops, port->n + 1, &port->allocated,
                                    sizeof *port->hops);
            port->hops[port->n++] =
                (struct hop){ f->n_paths, path->ports[k == last ? 0 : last] };
        }
    }
}

/* Lists the flows of each path, by rank. */
static void
list_paths(struct madd *f)
{
    f->next = order_grow(f->next, f->n, &f->allocated_next, sizeof *f->next);
    for (size_t i = 0; i < f->n_paths; i++) {
        f->heads[i] = NONE;
    }
    for (size_t i = f->n; i-- > 0;) {
        uint32_t *head = &f->heads[f->flows[i]->path];

        f->next[i] = *head;
        *head = i;
    }
}

static void
set_end(struct madd *f, struct flow *flow)
{
    flow->node.key = flow->since + flow->remaining / flow->rate;
    node_heap_push(&f->moving, &flow->node);
}

static void
compute(struct madd *f, double now)
{
    const struct sim_fabric *fabric = f->up.paths->fabric;
    size_t n_runs;

    madd_settle(&f->up, now);
    n_runs = sort_flows(f);
    add_paths(f);
    for (int p = 0; p < fabric->n_ports; p++) {
        f->ports[p].left = fabric->capacity[p];
    }
    f->n_open[0] = f->n_open[1] = f->n_host_ports / 2;
    for (size_t r = 0; r < n_runs; r++) {
        serve_together(f, &f->runs[r]);
    }
    for (size_t i = 0; i < f->n && !is_exhausted(f); i++) {
        give_all(f, f->flows[i]);
    }
    list_paths(f);
    f->moving.n = 0;
    for (size_t i = 0; i < f->n; i++) {
        f->flows[i]->since = now;
        if (f->flows[i]->rate > 0) {
            set_end(f, f->flows[i]);
        }
    }
}

/* Returns the index of the best flow on port 'p' that can be faster, or
 * NONE. */
static uint32_t
find_best(const struct madd *f, int p)
{
    const struct port *port = &f->ports[p];
    uint32_t best = NONE;

    for (size_t i = 0; i < port->n && port->left > 0; i++) {
        const struct hop *hop = &port->hops[i];
        uint32_t head = f->heads[hop->path];

        if (head < best && f->ports[hop->far].left > 0
            && path_left(f, &f->up.paths->paths[hop->path]) > 0) {
            best = head;
        }
    }
    return best;
}

/* Gives what is left of freed ports to the flows on them. */
static void
top_up(struct madd *f, double now)
{
    for (size_t i = 0; i < f->n_freed; i++) {
        uint32_t best;

        while ((best = find_best(f, f->freed[i])) != NONE) {
            struct flow *flow = f->flows[best];

            if (flow->rate > 0) {
                node_heap_remove(&f->moving, &flow->node);
            }
            flow_settle(flow, rates_path(&f->up, flow), now);
            give_all(f, flow);
            set_end(f, flow);
        }
    }
}

static void
madd_update(struct rates *r, double now)
{
    struct madd *f = madd_cast(r);

    if (f->changed) {
        compute(f, now);
    } else {
        top_up(f, now);
    }
    f->changed = false;
    f->n_freed = 0;
}

static double
madd_next(const struct rates *r)
{
    return node_heap_next(&madd_cast(r)->moving);
}

static struct flow *
madd_pop(struct rates *r, double now)
{
    struct madd *f = madd_cast(r);
    struct flow *flow;
    uint32_t *head;

    if (madd_next(r) > now + now * RATES_TOGETHER) {
        return NULL;
    }
    flow = flow_of(node_heap_pop(&f->moving));
    f->flows[flow->index] = NULL;
    head = &f->heads[flow->path];
    while (*head != NONE && !f->flows[*head]) {
        *head = f->next[*head];
    }
    release(f, flow);
    flow_finish(flow, rates_path(r, flow));
    return flow;
}

static size_t
madd_list(const struct rates *r, struct sim_flow **flows, size_t *allocated)
{
    const struct node_heap *moving = &madd_cast(r)->moving;

    *flows = order_grow(*flows, moving->n, allocated, sizeof **flows);
    for (size_t i = 0; i < moving->n; i++) {
        const struct flow *flow = flow_of(moving->nodes[i]);

        rates_show(rates_path(r, flow), flow->rate, &(*flows)[i]);
    }
    return moving->n;
}

const struct rates_class rates_madd = {
    .create = madd_create,
    .destroy = madd_destroy,
    .add = madd_add,
    .reorder = madd_reorder,
    .update = madd_update,
    .next = madd_next,
    .pop = madd_pop,
    .settle = madd_settle,
    .list = madd_list,
};
