/* SPDX-License-Identifier: Apache-2.0 */

/* Rates strictly by rank.
 *
 * Flows are scanned by their unit's rank, and a flow whose two ends are free
 * gets both, whole.  What runs goes on for as long as no better rank wants one
 * of its ends.  The outcome keeps the order (no flow is slowed down by a worse
 * rank) and wastes nothing (no flow waits whose ends are both free).
 *
 * The scan is never made.  An event frees few ports, and only flows on those
 * can begin; a flow that begins may stop a worse one, which frees one port
 * more.  Taking always the best flow of all free ports leads where the scan
 * would.  Whether a flow may begin depends on its ports and its rank only, so
 * of all flows that wait for a path only the first matters: there are a
 * hundred paths at a port with ten thousand flows.
 *
 * Two flows of a unit are equals to the order.  The one whose ends have more
 * left to do goes first, so that the busiest port of the unit is not kept
 * waiting at the end. */

#include "sim/rates/rates.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "order/problem/memory.h"
#include "sim/fabric/paths.h"
#include "sim/rates/node-heap.h"
#include "sim/rates/unit.h"

#define FREE INT_MAX /* Value of 'held' for a free port. */

/* A flow that may begin. */
struct candidate {
    struct flow *flow; /* NULL if there is none. */
    int rank;
    double larger, smaller;     /* What its unit has left on its two ends,
                                 * seconds. */
    uint32_t tie_break;         /* Decides between flows with the same load on
                                 * both ends, such as those of a shuffle.  By
                                 * age, all senders would begin with the same
                                 * receiver. */
};

struct port {
    struct flow *flow;          /* That holds it, or NULL. */
    bool dirty;                 /* On the list of ports to look at. */
    bool stale;                 /* 'best' must be found again. */
    struct candidate best;      /* While it is dirty, of its flows. */
    size_t n, allocated;
    uint32_t *paths; /* Those that pass it. */
};

struct greedy {
    struct rates up;
    int n_ports;
    struct port *ports;
    int *held;                  /* Rank of each port's holder, or FREE. */
    double *slowness;           /* Of each port, seconds per byte. */
    size_t n_waiting, allocated_waiting;
    struct node_heap *waiting;  /* Of each path, the flows that do not run, by
                                 * rank, then by begin. */
    struct node_heap running;   /* By end. */
    size_t n_dirty;
    int *dirty; /* Ports that are free or have new flows. */
};

static struct greedy *
greedy_cast(const struct rates *r)
{
    return (struct greedy *) r;
}

static struct rates *
greedy_create(const struct paths *paths)
{
    struct greedy *g = order_alloc(1, sizeof *g);

    assert(paths->fabric->n_tiers == 1);
    g->n_ports = paths->fabric->n_ports;
    g->ports = order_alloc(g->n_ports, sizeof *g->ports);
    g->held = order_alloc(g->n_ports, sizeof *g->held);
    g->slowness = order_alloc(g->n_ports, sizeof *g->slowness);
    g->dirty = order_alloc(g->n_ports, sizeof *g->dirty);
    for (int p = 0; p < g->n_ports; p++) {
        g->held[p] = FREE;
        g->slowness[p] = 1 / paths->fabric->capacity[p];
    }
    return &g->up;
}

static void
greedy_destroy(struct rates *r)
{
    struct greedy *g = greedy_cast(r);

    for (int p = 0; p < g->n_ports; p++) {
        free(g->ports[p].paths);
    }
    for (size_t i = 0; i < g->n_waiting; i++) {
        free(g->waiting[i].nodes);
    }
    free(g->ports);
    free(g->held);
    free(g->slowness);
    free(g->waiting);
    free(g->running.nodes);
    free(g->dirty);
    free(g);
}

static void
mark_dirty(struct greedy *g, int p)
{
    g->ports[p].stale = true;
    if (!g->ports[p].dirty) {
        g->ports[p].dirty = true;
        g->dirty[g->n_dirty++] = p;
    }
}

/* Lets the ports of new paths list them. */
static void
add_paths(struct greedy *g)
{
    const struct paths *paths = g->up.paths;

    g->waiting = order_grow(g->waiting, paths->n, &g->allocated_waiting,
                            sizeof *g->waiting);
    for (; g->n_waiting < paths->n; g->n_waiting++) {
        g->waiting[g->n_waiting] = (struct node_heap){ .n = 0 };
        for (int k = 0; k < 2; k++) {
            int p = paths->paths[g->n_waiting].ports[k];
            struct port *port = &g->ports[p];

            port->paths = order_grow(port->paths, port->n + 1,
                                     &port->allocated, sizeof *port->paths);
            port->paths[port->n++] = g->n_waiting;
        }
    }
}

/* Lets 'flow' wait for its path. */
static void
add_waiting(struct greedy *g, struct flow *flow)
{
    flow->node.key = flow->unit->rank;
    node_heap_push(&g->waiting[flow->path], &flow->node);
}

static void
greedy_add(struct rates *r, struct flow *flow, double now)
{
    struct greedy *g = greedy_cast(r);
    const struct path *path = rates_path(r, flow);

    flow->rate = 0;
    flow->since = now;
    add_paths(g);
    add_waiting(g, flow);
    mark_dirty(g, path->ports[0]);
    mark_dirty(g, path->ports[1]);
}

/* Takes the ports from 'flow', which runs. */
static void
stop(struct greedy *g, struct flow *flow)
{
    const struct path *path = rates_path(&g->up, flow);

    node_heap_remove(&g->running, &flow->node);
    flow->rate = 0;
    for (int k = 0; k < 2; k++) {
        g->ports[path->ports[k]].flow = NULL;
        g->held[path->ports[k]] = FREE;
        mark_dirty(g, path->ports[k]);
    }
}

/* Assigns both of its ports to 'flow', which waits, and stops the flows that
 * hold them. */
static void
start(struct greedy *g, struct flow *flow, double now)
{
    const struct path *path = rates_path(&g->up, flow);
    const double *capacity = g->up.paths->fabric->capacity;

    node_heap_remove(&g->waiting[flow->path], &flow->node);
    for (int k = 0; k < 2; k++) {
        struct flow *holder = g->ports[path->ports[k]].flow;

        if (holder) {
            flow_settle(holder, rates_path(&g->up, holder), now);
            stop(g, holder);
            add_waiting(g, holder);
        }
    }
    for (int k = 0; k < 2; k++) {
        g->ports[path->ports[k]].flow = flow;
        g->held[path->ports[k]] = flow->unit->rank;
    }
    flow->rate = fmin(capacity[path->ports[0]], capacity[path->ports[1]]);
    flow->since = now;
    flow->node.key = now + flow->remaining / flow->rate;
    node_heap_push(&g->running, &flow->node);
}

/* Which of two flows that may begin goes first.  Inside a unit: the one with
 * more to do on the busier of its ends. */
static bool
is_better(const struct candidate *a, const struct candidate *b)
{
    return !b->flow                   ? true
           : a->rank != b->rank       ? a->rank < b->rank
           : a->larger != b->larger   ? a->larger > b->larger
           : a->smaller != b->smaller ? a->smaller > b->smaller
                                      : a->tie_break < b->tie_break;
}

/* Returns true if 'flow', which waits, may take the ports of 'path'. */
static bool
may_begin(const struct greedy *g, const struct flow *flow,
          const struct path *path)
{
    return flow->unit->rank < g->held[path->ports[0]]
           && flow->unit->rank < g->held[path->ports[1]];
}

static struct candidate
make_candidate(const struct greedy *g, struct flow *flow,
               const struct path *path)
{
    const double *bytes = flow->unit->bytes;
    double up = bytes[flow->work[0]] * g->slowness[path->ports[0]];
    double down = bytes[flow->work[1]] * g->slowness[path->ports[1]];

    return (struct candidate){
        .flow = flow,
        .rank = flow->unit->rank,
        .larger = fmax(up, down),
        .smaller = fmin(up, down),
        .tie_break = flow->node.seq * 2654435761,
    };
}

/* Finds the best flow that may begin at port 'p'. */
static void
find_best(struct greedy *g, int p)
{
    struct port *port = &g->ports[p];
    double least = g->held[p] - 1;

    port->stale = false;
    port->best.flow = NULL;
    for (size_t i = 0; i < port->n; i++) {
        const struct node_heap *waiting = &g->waiting[port->paths[i]];

        /* Most paths are left out by the rank of their first flow. */
        if (waiting->n && waiting->nodes[0]->key <= least) {
            const struct path *path = &g->up.paths->paths[port->paths[i]];
            struct flow *flow = flow_of(waiting->nodes[0]);

            if (may_begin(g, flow, path)) {
                struct candidate c = make_candidate(g, flow, path);

                port->best = is_better(&c, &port->best) ? c : port->best;
                least = port->best.rank;
            }
        }
    }
}

/* Returns the dirty port that has the best flow, NULL if none has one. */
static struct port *
best_port(struct greedy *g)
{
    struct port *best = NULL;

    for (size_t i = 0; i < g->n_dirty; i++) {
        struct port *port = &g->ports[g->dirty[i]];

        if (port->stale) {
            find_best(g, g->dirty[i]);
        }
        if (port->best.flow
            && (!best || is_better(&port->best, &best->best))) {
            best = port;
        }
    }
    return best;
}

static void
greedy_update(struct rates *r, double now)
{
    struct greedy *g = greedy_cast(r);
    struct port *port;

    while ((port = best_port(g))) {
        struct flow *flow = port->best.flow;

        /* Another port may have started it, or a better one. */
        port->stale = true;
        if (!flow->rate && may_begin(g, flow, rates_path(r, flow))) {
            start(g, flow, now);
        }
    }
    while (g->n_dirty) {
        g->ports[g->dirty[--g->n_dirty]].dirty = false;
    }
}

/* Sorts the flows that wait for 'path' after ranks have changed. */
static void
sort_waiting(struct greedy *g, uint32_t path)
{
    struct node_heap *waiting = &g->waiting[path];
    size_t n = waiting->n;

    waiting->n = 0;
    for (size_t i = 0; i < n; i++) {
        add_waiting(g, flow_of(waiting->nodes[i]));
    }
}

static void
greedy_reorder(struct rates *r, double now, bool kept)
{
    struct greedy *g = greedy_cast(r);

    (void) now;
    for (int p = 0; !kept && p < g->n_ports; p++) {
        if (g->ports[p].flow) {
            g->held[p] = g->ports[p].flow->unit->rank;
        }
        mark_dirty(g, p);
    }
    for (size_t i = 0; i < g->n_dirty; i++) {
        int p = g->dirty[i];

        /* Each path begins at a port with an even number. */
        for (size_t j = 0; p % 2 == 0 && j < g->ports[p].n; j++) {
            sort_waiting(g, g->ports[p].paths[j]);
        }
    }
}

static double
greedy_next(const struct rates *r)
{
    const struct greedy *g = greedy_cast(r);

    return g->running.n ? g->running.nodes[0]->key : INFINITY;
}

static struct flow *
greedy_pop(struct rates *r, double now)
{
    struct greedy *g = greedy_cast(r);
    struct flow *flow;

    if (greedy_next(r) > now + now * RATES_TOGETHER) {
        return NULL;
    }
    flow = flow_of(g->running.nodes[0]);
    stop(g, flow);
    flow_finish(flow, rates_path(r, flow));
    return flow;
}

static void
greedy_settle(struct rates *r, double now)
{
    struct greedy *g = greedy_cast(r);

    for (size_t i = 0; i < g->running.n; i++) {
        struct flow *flow = flow_of(g->running.nodes[i]);

        flow_settle(flow, rates_path(r, flow), now);
    }
}

static size_t
greedy_list(const struct rates *r, struct sim_flow **flows, size_t *allocated)
{
    return rates_list(r, &greedy_cast(r)->running, flows, allocated);
}

const struct rates_class rates_greedy = {
    .create = greedy_create, .destroy = greedy_destroy, .add = greedy_add,
    .reorder = greedy_reorder, .update = greedy_update, .next = greedy_next,
    .pop = greedy_pop, .settle = greedy_settle, .list = greedy_list
};
