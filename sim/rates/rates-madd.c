/* SPDX-License-Identifier: Apache-2.0 */

/* Rates by rank, each unit just fast enough.
 *
 * A unit ends with its slowest flow, so its other flows need not be faster:
 * minimum allocation for desired duration (MADD) lets all flows of a unit end
 * together with those of its bottleneck, by rank, and leaves the other
 * bandwidth to the next unit.  A unit gets nothing if one of its ports is
 * full. The remaining bandwidth is assigned by rank as well: each flow takes
 * the bandwidth of its ports, so that none is wasted.  (Varys, SIGCOMM 2014.)
 *
 * All rates are computed when flows begin or ranks change.  When a flow ends,
 * its bandwidth goes to the flows on its ports, by rank.  The first flow of a
 * path takes all of it, so each path of a port is visited once. */

#include "sim/rates/rates.h"

#include <math.h>
#include <stdbool.h>

#include "order/problem/memory.h"
#include "sim/rates/node-heap.h"

/* What is left of a port below this share of its capacity is rounding. */
#define RESIDUE 1e-12

#define NONE SIZE_MAX

/* The flows 'begin' to 'end' - 1, which are all of one unit. */
struct run {
    const struct unit *unit;
    size_t begin, end;
};

struct madd {
    struct rates up;
    bool changed;               /* Rates are not valid. */
    size_t n, allocated;
    struct flow **flows;        /* By rank after an update; NULL if ended. */
    size_t allocated_sorted;
    struct flow **sorted;       /* The flows, while they are sorted. */
    size_t allocated_runs;
    struct run *runs;
    struct node_heap moving;    /* By end. */
    size_t n_freed, allocated_freed;
    int *freed;                 /* Ports that flows have left. */

    /* Of each port. */
    double *left;               /* Bytes per second. */
    double *sum;                /* Bytes of one unit. */
    size_t *first_hop;          /* Of the paths with flows that pass it: path
                                 * * SIM_FABRIC_MAX_PATH + place, or NONE. */
    int n_host_ports;           /* The first ports are the hosts'. */
    int n_open[2];              /* Those up, down, that have something left. */

    /* Of each path. */
    size_t allocated_first;
    size_t *first;              /* Best flow, may have ended, or NONE. */
    size_t allocated_next_hop;
    size_t *next_hop;           /* By path * SIM_FABRIC_MAX_PATH + place. */

    size_t allocated_next;
    size_t *next;               /* Of each flow: the next on its path. */
};

static struct madd *
madd_cast(const struct rates *r)
{
    return (struct madd *) r;
}

static struct rates *
madd_create(const struct paths *paths)
{
    struct madd *m = order_alloc(1, sizeof *m);
    int n = paths->fabric->n_ports;

    m->left = order_alloc(n, sizeof *m->left);
    m->sum = order_alloc(n, sizeof *m->sum);
    m->first_hop = order_alloc(n, sizeof *m->first_hop);
    m->n_host_ports = 2 * paths->fabric->n_hosts;
    return &m->up;
}

static void
madd_destroy(struct rates *r)
{
    struct madd *m = madd_cast(r);

    free(m->flows);
    free(m->sorted);
    free(m->runs);
    free(m->moving.nodes);
    free(m->freed);
    free(m->left);
    free(m->sum);
    free(m->first_hop);
    free(m->first);
    free(m->next_hop);
    free(m->next);
    free(m);
}

static void
madd_add(struct rates *r, struct flow *flow, double now)
{
    struct madd *m = madd_cast(r);

    flow->rate = 0;
    flow->since = now;
    flow->index = m->n;
    m->flows = order_grow(m->flows, m->n + 1, &m->allocated, sizeof *m->flows);
    m->flows[m->n++] = flow;
    m->changed = true;
}

static void
madd_reorder(struct rates *r, double now, bool kept)
{
    (void) now;
    (void) kept;
    madd_cast(r)->changed = true;
}

static void
madd_settle(struct rates *r, double now)
{
    struct madd *m = madd_cast(r);

    for (size_t i = 0; i < m->moving.n; i++) {
        struct flow *flow = flow_of(m->moving.nodes[i]);

        flow_settle(flow, rates_path(r, flow), now);
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

static void
take(struct madd *m, int port, double rate)
{
    bool open = m->left[port] > 0;

    m->left[port] -= rate;
    if (m->left[port] < m->up.paths->fabric->capacity[port] * RESIDUE) {
        m->left[port] = 0;
        if (open && port < m->n_host_ports) {
            m->n_open[port % 2]--;
        }
    }
}

/* What is left of the ports of 'path'. */
static double
path_left(const struct madd *m, const struct path *path)
{
    double left = INFINITY;

    for (int k = 0; k < path->n_ports; k++) {
        left = fmin(left, m->left[path->ports[k]]);
    }
    return left;
}

/* Makes 'flow' faster by 'rate'. */
static void
give(struct madd *m, struct flow *flow, double rate)
{
    const struct path *path = rates_path(&m->up, flow);

    flow->rate += rate;
    for (int k = 0; k < path->n_ports; k++) {
        take(m, path->ports[k], rate);
    }
}

static bool
can_move(const struct madd *m, const struct run *run)
{
    for (size_t i = run->begin; i < run->end; i++) {
        if (path_left(m, rates_path(&m->up, m->flows[i])) <= 0) {
            return false;
        }
    }
    return true;
}

/* Returns the seconds that the flows of 'run' need of what is left, which is
 * something on each of their ports. */
static double
run_seconds(struct madd *m, const struct run *run)
{
    double seconds = 0;

    for (size_t i = run->begin; i < run->end; i++) {
        const struct path *path = rates_path(&m->up, m->flows[i]);

        for (int k = 0; k < path->n_ports; k++) {
            int p = path->ports[k];

            m->sum[p] += m->flows[i]->remaining;
            seconds = fmax(seconds, m->sum[p] / m->left[p]);
        }
    }
    for (size_t i = run->begin; i < run->end; i++) {
        const struct path *path = rates_path(&m->up, m->flows[i]);

        for (int k = 0; k < path->n_ports; k++) {
            m->sum[path->ports[k]] = 0;
        }
    }
    return seconds;
}

/* Lets the flows of 'run', those of one unit, end together. */
static void
serve_run(struct madd *m, const struct run *run)
{
    double seconds;

    if (can_move(m, run)) {
        seconds = run_seconds(m, run);
        for (size_t i = run->begin; i < run->end; i++) {
            give(m, m->flows[i], m->flows[i]->remaining / seconds);
        }
    }
}

/* Lets flows, by rank, take what their ports still have. */
static void
backfill(struct madd *m)
{
    for (size_t i = 0; i < m->n && m->n_open[0] && m->n_open[1]; i++) {
        double left = path_left(m, rates_path(&m->up, m->flows[i]));

        if (left > 0) {
            give(m, m->flows[i], left);
        }
    }
}

/* Lists the flows of each path, by rank, and the paths of each port. */
static void
list_paths(struct madd *m)
{
    const struct paths *paths = m->up.paths;

    m->next = order_grow(m->next, m->n, &m->allocated_next, sizeof *m->next);
    m->first = order_grow(m->first, paths->n, &m->allocated_first,
                          sizeof *m->first);
    m->next_hop = order_grow(m->next_hop, paths->n * SIM_FABRIC_MAX_PATH,
                             &m->allocated_next_hop, sizeof *m->next_hop);
    for (int p = 0; p < paths->fabric->n_ports; p++) {
        m->first_hop[p] = NONE;
    }
    for (size_t i = 0; i < paths->n; i++) {
        m->first[i] = NONE;
    }
    for (size_t i = m->n; i-- > 0; ) {
        uint32_t number = m->flows[i]->path;
        const struct path *path = &paths->paths[number];

        for (int k = 0; m->first[number] == NONE && k < path->n_ports; k++) {
            size_t hop = (size_t) number * SIM_FABRIC_MAX_PATH + k;

            m->next_hop[hop] = m->first_hop[path->ports[k]];
            m->first_hop[path->ports[k]] = hop;
        }
        m->next[i] = m->first[number];
        m->first[number] = i;
    }
}

/* Lists the runs of flows of one unit that have not ended, by rank.  Returns
 * their number. */
static size_t
find_runs(struct madd *m)
{
    size_t n = 0;
    size_t n_runs = 0;

    for (size_t i = 0; i < m->n; i++) {
        if (!m->flows[i]) {
            continue;
        }
        if (!n || m->flows[n - 1]->unit != m->flows[i]->unit) {
            m->runs = order_grow(m->runs, n_runs + 1, &m->allocated_runs,
                                 sizeof *m->runs);
            m->runs[n_runs++] = (struct run) { m->flows[i]->unit, n, n };
        }
        m->flows[n++] = m->flows[i];
        m->runs[n_runs - 1].end = n;
    }
    m->n = n;
    if (n_runs) {
        qsort(m->runs, n_runs, sizeof *m->runs, compare_runs);
    }
    return n_runs;
}

/* Forgets flows that have ended and sorts the others by rank, so that each
 * unit has one run.  Returns the number of runs. */
static size_t
sort_flows(struct madd *m)
{
    size_t n_runs = find_runs(m);
    size_t n_units = 0;
    size_t n = 0;
    struct flow **flows = m->flows;
    size_t allocated = m->allocated;

    m->sorted = order_grow(m->sorted, m->n, &m->allocated_sorted,
                           sizeof *m->sorted);
    for (size_t r = 0; r < n_runs; r++) {
        struct run run = m->runs[r];

        if (!n_units || m->runs[n_units - 1].unit != run.unit) {
            m->runs[n_units++] = (struct run) { run.unit, n, n };
        }
        for (size_t i = run.begin; i < run.end; i++) {
            flows[i]->index = n;
            flows[i]->rate = 0;
            m->sorted[n++] = flows[i];
        }
        m->runs[n_units - 1].end = n;
    }
    m->flows = m->sorted;
    m->allocated = m->allocated_sorted;
    m->sorted = flows;
    m->allocated_sorted = allocated;
    return n_units;
}

static void
compute(struct madd *m, double now)
{
    const struct sim_fabric *fabric = m->up.paths->fabric;
    size_t n_runs;

    madd_settle(&m->up, now);
    n_runs = sort_flows(m);
    memcpy(m->left, fabric->capacity, fabric->n_ports * sizeof *m->left);
    m->n_open[0] = m->n_open[1] = m->n_host_ports / 2;
    for (size_t r = 0; r < n_runs && m->n_open[0] && m->n_open[1]; r++) {
        serve_run(m, &m->runs[r]);
    }
    backfill(m);
    list_paths(m);
    m->moving.n = 0;
    for (size_t i = 0; i < m->n; i++) {
        struct flow *flow = m->flows[i];

        flow->since = now;
        if (flow->rate > 0) {
            flow->node.key = now + flow->remaining / flow->rate;
            node_heap_push(&m->moving, &flow->node);
        }
    }
}

/* Returns the first flow of 'path' that has not ended, or NONE. */
static size_t
first_flow(struct madd *m, size_t path)
{
    size_t i = m->first[path];

    while (i != NONE && !m->flows[i]) {
        i = m->next[i];
    }
    m->first[path] = i;
    return i;
}

/* Returns the best flow on 'port' that can be faster, or NONE. */
static size_t
find_faster(struct madd *m, int port)
{
    size_t best = NONE;

    for (size_t h = m->first_hop[port]; h != NONE; h = m->next_hop[h]) {
        size_t path = h / SIM_FABRIC_MAX_PATH;

        if (path_left(m, &m->up.paths->paths[path]) > 0) {
            size_t i = first_flow(m, path);

            best = i < best ? i : best;
        }
    }
    return best;
}

/* Gives what is left of 'port' to the flows on it. */
static void
top_up(struct madd *m, int port, double now)
{
    while (m->left[port] > 0) {
        size_t i = find_faster(m, port);
        const struct path *path;
        struct flow *flow;

        if (i == NONE) {
            return;
        }
        flow = m->flows[i];
        path = rates_path(&m->up, flow);
        if (flow->rate > 0) {
            node_heap_remove(&m->moving, &flow->node);
        }
        flow_settle(flow, path, now);
        give(m, flow, path_left(m, path));
        flow->node.key = now + flow->remaining / flow->rate;
        node_heap_push(&m->moving, &flow->node);
    }
}

static void
madd_update(struct rates *r, double now)
{
    struct madd *m = madd_cast(r);

    if (m->changed) {
        compute(m, now);
    } else {
        for (size_t i = 0; i < m->n_freed; i++) {
            top_up(m, m->freed[i], now);
        }
    }
    m->changed = false;
    m->n_freed = 0;
}

static double
madd_next(const struct rates *r)
{
    const struct madd *m = madd_cast(r);

    return m->moving.n ? m->moving.nodes[0]->key : INFINITY;
}

static struct flow *
madd_pop(struct rates *r, double now)
{
    struct madd *m = madd_cast(r);
    const struct path *path;
    struct flow *flow;

    if (madd_next(r) > now + now * RATES_TOGETHER) {
        return NULL;
    }
    flow = flow_of(m->moving.nodes[0]);
    path = rates_path(r, flow);
    node_heap_remove(&m->moving, &flow->node);
    m->flows[flow->index] = NULL;
    for (int k = 0; k < path->n_ports; k++) {
        m->left[path->ports[k]] += flow->rate;
        m->freed = order_grow(m->freed, m->n_freed + 1, &m->allocated_freed,
                              sizeof *m->freed);
        m->freed[m->n_freed++] = path->ports[k];
    }
    flow_finish(flow, path);
    return flow;
}

static size_t
madd_list(const struct rates *r, struct sim_flow **flows, size_t *allocated)
{
    return rates_list(r, &madd_cast(r)->moving, flows, allocated);
}

const struct rates_class rates_madd = {
    .create = madd_create, .destroy = madd_destroy, .add = madd_add,
    .reorder = madd_reorder, .update = madd_update, .next = madd_next,
    .pop = madd_pop, .settle = madd_settle, .list = madd_list
};
