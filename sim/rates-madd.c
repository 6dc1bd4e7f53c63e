/* SPDX-License-Identifier: Apache-2.0 */

/* Rates by rank, each unit just fast enough.
 *
 * A unit ends with its slowest flow, so the others need not be faster: minimum
 * allocation for desired duration (MADD) lets all flows of a unit end together
 * with those of its bottleneck, the first rank first, and leaves the rest to
 * the next.  A unit of which some port has nothing left gets nothing.  What
 * all of them leave is shared by all flows, max-min fairly, so that nothing is
 * wasted.  (Varys, SIGCOMM 2014.)
 *
 * Rates are computed anew when flows begin or ranks change.  When a flow ends,
 * what it leaves goes to the flows on its ports, by rank. */

#include "sim/rates.h"

#include <math.h>
#include <stdbool.h>

#include "sim/flow-heap.h"
#include "sim/memory.h"

/* What is left of a port below this share of its capacity is rounding. */
#define RESIDUE 1e-12

#define NO_HOP SIZE_MAX

struct madd {
    struct rates up;
    bool changed;               /* Rates are not valid. */
    size_t n, allocated;
    struct flow **flows;        /* By rank after an update; NULL if ended. */
    struct flow_heap moving;    /* By end. */
    size_t n_freed, allocated_freed;
    int *freed;                 /* Ports that flows have left. */

    /* Of each port. */
    double *left;               /* Bytes per second. */
    double *sum;                /* Bytes of one unit. */
    size_t *waiting;            /* Flows that can still get more. */
    size_t *first;              /* First hop, NO_HOP if none. */
    int *used;                  /* Those with waiting flows. */
    int n_used;

    size_t allocated_next;
    size_t *next;               /* Next hop on the same port of hop
                                 * i * SIM_FABRIC_MAX_PATH + k. */
    size_t allocated_full;
    bool *full;                 /* Of each flow: it cannot get more. */
};

static struct madd *
madd_cast(const struct rates *r)
{
    return (struct madd *) r;
}

static struct rates *
madd_create(const struct paths *paths)
{
    struct madd *m = sim_calloc(1, sizeof *m);
    int n = paths->fabric->n_ports;

    m->left = sim_calloc(n, sizeof *m->left);
    m->sum = sim_calloc(n, sizeof *m->sum);
    m->waiting = sim_calloc(n, sizeof *m->waiting);
    m->first = sim_calloc(n, sizeof *m->first);
    m->used = sim_calloc(n, sizeof *m->used);
    return &m->up;
}

static void
madd_destroy(struct rates *r)
{
    struct madd *m = madd_cast(r);

    free(m->flows);
    free(m->moving.flows);
    free(m->freed);
    free(m->left);
    free(m->sum);
    free(m->waiting);
    free(m->first);
    free(m->used);
    free(m->next);
    free(m->full);
    free(m);
}

static void
madd_add(struct rates *r, struct flow *flow, double now)
{
    struct madd *m = madd_cast(r);

    flow->rate = 0;
    flow->since = now;
    flow->index = m->n;
    m->flows = sim_grow(m->flows, m->n + 1, &m->allocated, sizeof *m->flows);
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
        struct flow *flow = m->moving.flows[i];

        flow_settle(flow, rates_path(r, flow), now);
    }
}

static int
compare_ranks(const void *a_, const void *b_)
{
    const struct flow *a = *(struct flow *const *) a_;
    const struct flow *b = *(struct flow *const *) b_;

    if (a->unit->rank != b->unit->rank) {
        return a->unit->rank < b->unit->rank ? -1 : 1;
    }
    return (a->seq > b->seq) - (a->seq < b->seq);
}

static void
take(struct madd *m, int port, double rate)
{
    m->left[port] -= rate;
    if (m->left[port] < m->up.paths->fabric->capacity[port] * RESIDUE) {
        m->left[port] = 0;
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

/* Returns the seconds that the flows 'begin' to 'end' - 1 of one unit need of
 * what is left, INFINITY if they cannot all move. */
static double
unit_seconds(struct madd *m, size_t begin, size_t end)
{
    double seconds = 0;

    for (size_t i = begin; i < end; i++) {
        const struct path *path = rates_path(&m->up, m->flows[i]);

        for (int k = 0; k < path->n_ports; k++) {
            int p = path->ports[k];

            m->sum[p] += m->flows[i]->remaining;
            seconds = fmax(seconds, m->left[p] > 0
                           ? m->sum[p] / m->left[p] : INFINITY);
        }
    }
    for (size_t i = begin; i < end; i++) {
        const struct path *path = rates_path(&m->up, m->flows[i]);

        for (int k = 0; k < path->n_ports; k++) {
            m->sum[path->ports[k]] = 0;
        }
    }
    return seconds;
}

/* Lets the flows 'begin' to 'end' - 1, those of one unit, end together. */
static void
serve_unit(struct madd *m, size_t begin, size_t end)
{
    double seconds = unit_seconds(m, begin, end);

    for (size_t i = begin; i < end; i++) {
        const struct path *path = rates_path(&m->up, m->flows[i]);

        m->flows[i]->rate = m->flows[i]->remaining / seconds;
        for (int k = 0; k < path->n_ports; k++) {
            take(m, path->ports[k], m->flows[i]->rate);
        }
    }
}

/* Lists the flows of each port, by rank, and counts those that can get
 * more. */
static void
list_hops(struct madd *m)
{
    const struct sim_fabric *fabric = m->up.paths->fabric;

    m->next = sim_grow(m->next, m->n * SIM_FABRIC_MAX_PATH,
                       &m->allocated_next, sizeof *m->next);
    m->full = sim_grow(m->full, m->n, &m->allocated_full, sizeof *m->full);
    m->n_used = 0;
    for (int p = 0; p < fabric->n_ports; p++) {
        m->first[p] = NO_HOP;
        m->waiting[p] = 0;
    }
    for (size_t i = m->n; i-- > 0; ) {
        const struct path *path = rates_path(&m->up, m->flows[i]);

        m->full[i] = path_left(m, path) <= 0;
        for (int k = 0; k < path->n_ports; k++) {
            size_t hop = i * SIM_FABRIC_MAX_PATH + k;
            int p = path->ports[k];

            m->next[hop] = m->first[p];
            m->first[p] = hop;
            if (!m->full[i] && !m->waiting[p]++) {
                m->used[m->n_used++] = p;
            }
        }
    }
}

/* Returns the port that can give its waiting flows least, -1 if no flow
 * waits, and forgets ports that none waits for. */
static int
find_tightest(struct madd *m, double *share)
{
    int best = -1;
    int n = 0;

    *share = INFINITY;
    for (int i = 0; i < m->n_used; i++) {
        int p = m->used[i];

        if (m->waiting[p]) {
            if (m->left[p] / m->waiting[p] < *share) {
                *share = m->left[p] / m->waiting[p];
                best = p;
            }
            m->used[n++] = p;
        }
    }
    m->n_used = n;
    return best;
}

/* Shares what is left of all ports. */
static void
backfill(struct madd *m)
{
    double share;
    int port;

    list_hops(m);
    while ((port = find_tightest(m, &share)) >= 0) {
        for (size_t h = m->first[port]; h != NO_HOP; h = m->next[h]) {
            size_t i = h / SIM_FABRIC_MAX_PATH;
            const struct path *path = rates_path(&m->up, m->flows[i]);

            for (int k = 0; !m->full[i] && k < path->n_ports; k++) {
                take(m, path->ports[k], share);
                m->waiting[path->ports[k]]--;
            }
            m->flows[i]->rate += m->full[i] ? 0 : share;
            m->full[i] = true;
        }
        m->left[port] = 0;
    }
}

/* Lists the flows that have not ended by rank. */
static void
sort_flows(struct madd *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++) {
        if (m->flows[i]) {
            m->flows[n++] = m->flows[i];
        }
    }
    m->n = n;
    if (n) {
        qsort(m->flows, n, sizeof *m->flows, compare_ranks);
    }
    for (size_t i = 0; i < n; i++) {
        m->flows[i]->index = i;
    }
}

static void
compute(struct madd *m, double now)
{
    const struct sim_fabric *fabric = m->up.paths->fabric;
    size_t end;

    madd_settle(&m->up, now);
    sort_flows(m);
    memcpy(m->left, fabric->capacity, fabric->n_ports * sizeof *m->left);
    for (size_t i = 0; i < m->n; i = end) {
        end = i + 1;
        while (end < m->n && m->flows[end]->unit == m->flows[i]->unit) {
            end++;
        }
        serve_unit(m, i, end);
    }
    backfill(m);
    m->moving.n = 0;
    for (size_t i = 0; i < m->n; i++) {
        struct flow *flow = m->flows[i];

        flow->since = now;
        if (flow->rate > 0) {
            flow->key = now + flow->remaining / flow->rate;
            flow_heap_push(&m->moving, flow);
        }
    }
}

/* Gives what is left of 'port' to the flows on it. */
static void
top_up(struct madd *m, int port, double now)
{
    for (size_t h = m->first[port]; h != NO_HOP && m->left[port] > 0;
         h = m->next[h]) {
        struct flow *flow = m->flows[h / SIM_FABRIC_MAX_PATH];
        const struct path *path = flow ? rates_path(&m->up, flow) : NULL;
        double more = flow ? path_left(m, path) : 0;

        if (more > 0) {
            if (flow->rate > 0) {
                flow_heap_remove(&m->moving, flow);
            }
            flow_settle(flow, path, now);
            flow->rate += more;
            flow->key = now + flow->remaining / flow->rate;
            flow_heap_push(&m->moving, flow);
            for (int k = 0; k < path->n_ports; k++) {
                take(m, path->ports[k], more);
            }
        }
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

    return m->moving.n ? m->moving.flows[0]->key : INFINITY;
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
    flow = m->moving.flows[0];
    path = rates_path(r, flow);
    flow_heap_remove(&m->moving, flow);
    m->flows[flow->index] = NULL;
    for (int k = 0; k < path->n_ports; k++) {
        m->left[path->ports[k]] += flow->rate;
        m->freed = sim_grow(m->freed, m->n_freed + 1, &m->allocated_freed,
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
