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
 * would.
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
#include <string.h>

#include "order/problem/memory.h"
#include "sim/fabric/paths.h"
#include "sim/rates/node-heap.h"
#include "sim/rates/unit.h"

/* Flows that wait for their two ports.  Whether a flow may begin depends on
 * its ports and its rank only, so of all flows that wait for a path only the
 * first matters.  There are a hundred paths at a port with ten thousand flows.
 * */

/* A flow, and a copy of its unit pointer. */
struct waiting_flow {
    struct flow *flow;
    struct unit *unit;
};

/* The flows that wait for a path, unordered except for the first. */
struct waiting_queue {
    size_t n, allocated;
    struct waiting_flow *flows;
    struct flow *first;         /* Best rank, then earliest begin. */
    uint32_t index[2];          /* In the lists of its two ports. */
};

/* A queue in the list of a port: frequently read members. */
struct waiting_head {
    int rank;                   /* Rank of the queue's first flow. */
    int other;                  /* The port at the other end. */
};

/* A queue in the list of a port: other members. */
struct waiting_end {
    const double *near;         /* Remaining bytes of the first flow's unit at
                                 * this port. */
    const double *far;          /* The same at the other port. */
    uint32_t path;
    uint32_t tie_break;         /* Decides between flows with the same load on
                                 * both ends, such as those of a shuffle.  By
                                 * age, all senders would begin with the same
                                 * receiver. */
};

/* The nonempty queues of a port. */
struct waiting_port {
    size_t n;
    size_t allocated_heads, allocated_ends;
    struct waiting_head *heads;
    struct waiting_end *ends;
};

struct waiting {
    const struct paths *paths;
    size_t n_queues, allocated_queues;
    struct waiting_queue *queues;       /* By path. */
    struct waiting_port *ports;
};

#define FREE INT_MAX            /* Value of 'held' for a free port. */

struct port {
    struct flow *flow;          /* That holds it, or NULL. */
    bool dirty;                 /* On the list of ports to look at. */
    bool early;                 /* Was there when the update began. */
};

/* A flow that may begin, found at 'port'. */
struct candidate {
    struct flow *flow;
    int port;
    int rank;
    double larger, smaller;     /* What its unit has left on its two ends,
                                 * seconds. */
    uint32_t tie_break;
};

struct greedy {
    struct rates up;
    int n_ports;
    struct port *ports;
    int *held;                  /* Rank of each port's holder, or FREE. */
    double *slowness;           /* Of each port, seconds per byte. */
    struct waiting waiting;     /* All flows that do not run. */
    struct node_heap running;   /* By end. */
    size_t n_dirty;
    int *dirty;                 /* Ports that are free or have new flows. */
    size_t n_early;
    int *early;                 /* Those when the update began. */
    uint32_t *matches;          /* For match_queues(). */
    size_t n_candidates, allocated_candidates;
    struct candidate *candidates;       /* Heap, the best first. */
};

static void
waiting_init(struct waiting *w, const struct paths *paths)
{
    memset(w, 0, sizeof *w);
    w->paths = paths;
    w->ports = order_alloc(paths->fabric->n_ports, sizeof *w->ports);
}

static void
waiting_uninit(struct waiting *w)
{
    for (int p = 0; p < w->paths->fabric->n_ports; p++) {
        free(w->ports[p].heads);
        free(w->ports[p].ends);
    }
    for (size_t i = 0; i < w->n_queues; i++) {
        free(w->queues[i].flows);
    }
    free(w->ports);
    free(w->queues);
}

static bool
precedes(const struct flow *a, const struct flow *b)
{
    return a->unit->rank != b->unit->rank ? a->unit->rank < b->unit->rank
        : a->node.seq < b->node.seq;
}

static void
set_first(struct waiting *w, uint32_t path, struct flow *flow)
{
    const int *ports = w->paths->paths[path].ports;
    struct waiting_queue *q = &w->queues[path];
    bool same = q->first == flow;

    q->first = flow;
    for (int k = 0; k < 2; k++) {
        struct waiting_port *port = &w->ports[ports[k]];
        struct waiting_end *end = &port->ends[q->index[k]];

        port->heads[q->index[k]].rank = flow->unit->rank;
        if (!same) {
            end->near = &flow->unit->bytes[flow->work[k]];
            end->far = &flow->unit->bytes[flow->work[!k]];
            end->tie_break = flow->node.seq * 2654435761;
        }
    }
}

/* Finds the first flow of 'path'. */
static void
find_first(struct waiting *w, uint32_t path)
{
    const struct waiting_queue *q = &w->queues[path];
    size_t best = 0;
    int rank = q->flows[0].unit->rank;

    for (size_t i = 1; i < q->n; i++) {
        int r = q->flows[i].unit->rank;

        if (r < rank || (r == rank && q->flows[i].flow->node.seq
                                      < q->flows[best].flow->node.seq)) {
            best = i;
            rank = r;
        }
    }
    set_first(w, path, q->flows[best].flow);
}

/* Adds the queue of 'path' to the lists of its ports. */
static void
link_queue(struct waiting *w, uint32_t path)
{
    const int *ports = w->paths->paths[path].ports;

    for (int k = 0; k < 2; k++) {
        struct waiting_port *port = &w->ports[ports[k]];

        port->heads = order_grow(port->heads, port->n + 1,
                                 &port->allocated_heads, sizeof *port->heads);
        port->ends = order_grow(port->ends, port->n + 1,
                                &port->allocated_ends, sizeof *port->ends);
        w->queues[path].index[k] = port->n;
        port->heads[port->n].other = ports[!k];
        port->ends[port->n++].path = path;
    }
}

static void
unlink_queue(struct waiting *w, uint32_t path)
{
    const int *ports = w->paths->paths[path].ports;

    for (int k = 0; k < 2; k++) {
        struct waiting_port *port = &w->ports[ports[k]];
        size_t index = w->queues[path].index[k];

        port->n--;
        port->heads[index] = port->heads[port->n];
        port->ends[index] = port->ends[port->n];
        w->queues[port->ends[index].path].index[k] = index;
    }
}

/* Allocates the queues of new paths. */
static void
grow_queues(struct waiting *w)
{
    size_t n = w->paths->n;

    if (n > w->n_queues) {
        w->queues = order_grow(w->queues, n, &w->allocated_queues,
                               sizeof *w->queues);
        memset(&w->queues[w->n_queues], 0,
               (n - w->n_queues) * sizeof *w->queues);
        w->n_queues = n;
    }
}

static void
waiting_add(struct waiting *w, struct flow *flow)
{
    struct waiting_queue *q;

    grow_queues(w);
    q = &w->queues[flow->path];
    q->flows = order_grow(q->flows, q->n + 1, &q->allocated, sizeof *q->flows);
    flow->node.place = q->n;
    q->flows[q->n++] = (struct waiting_flow) { flow, flow->unit };
    if (q->n == 1) {
        link_queue(w, flow->path);
        set_first(w, flow->path, flow);
    } else if (precedes(flow, q->first)) {
        set_first(w, flow->path, flow);
    }
}

static void
waiting_remove(struct waiting *w, struct flow *flow)
{
    struct waiting_queue *q = &w->queues[flow->path];

    q->flows[flow->node.place] = q->flows[--q->n];
    q->flows[flow->node.place].flow->node.place = flow->node.place;
    if (!q->n) {
        q->first = NULL;
        unlink_queue(w, flow->path);
    } else if (q->first == flow) {
        find_first(w, flow->path);
    }
}

static void
waiting_reorder(struct waiting *w, int port)
{
    for (size_t i = 0; i < w->ports[port].n; i++) {
        find_first(w, w->ports[port].ends[i].path);
    }
}

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
    waiting_init(&g->waiting, paths);
    g->ports = order_alloc(g->n_ports, sizeof *g->ports);
    g->held = order_alloc(g->n_ports, sizeof *g->held);
    g->slowness = order_alloc(g->n_ports, sizeof *g->slowness);
    g->dirty = order_alloc(g->n_ports, sizeof *g->dirty);
    g->early = order_alloc(g->n_ports, sizeof *g->early);
    g->matches = order_alloc(g->n_ports, sizeof *g->matches);
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

    waiting_uninit(&g->waiting);
    free(g->ports);
    free(g->held);
    free(g->running.nodes);
    free(g->slowness);
    free(g->dirty);
    free(g->early);
    free(g->matches);
    free(g->candidates);
    free(g);
}

static void
mark_dirty(struct greedy *g, int p)
{
    if (!g->ports[p].dirty) {
        g->ports[p].dirty = true;
        g->dirty[g->n_dirty++] = p;
    }
}

static void
greedy_add(struct rates *r, struct flow *flow, double now)
{
    struct greedy *g = greedy_cast(r);
    const struct path *path = rates_path(r, flow);

    flow->rate = 0;
    flow->since = now;
    waiting_add(&g->waiting, flow);
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

    waiting_remove(&g->waiting, flow);
    for (int k = 0; k < 2; k++) {
        struct flow *holder = g->ports[path->ports[k]].flow;

        if (holder) {
            flow_settle(holder, rates_path(&g->up, holder), now);
            stop(g, holder);
            waiting_add(&g->waiting, holder);
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
    return a->rank != b->rank ? a->rank < b->rank
        : a->larger != b->larger ? a->larger > b->larger
        : a->smaller != b->smaller ? a->smaller > b->smaller
        : a->tie_break < b->tie_break;
}

/* Finds the best rank from '*rank' on of a flow that may begin at port 'p',
 * and lists the queues of such flows in 'g->matches'.  Returns their number.
 * All queues are looked at, without branches, which could not be foreseen. */
static size_t
match_queues(const struct greedy *g, int p, int *rank)
{
    const struct waiting_head *heads = g->waiting.ports[p].heads;
    const int *held = g->held;
    uint32_t *matches = g->matches;
    size_t n_queues = g->waiting.ports[p].n;
    int least = *rank;
    int best = held[p] - 1;
    size_t n = 0;

    for (size_t i = 0; i < n_queues; i++) {
        int r = heads[i].rank;
        bool may = (r >= least) & (r <= best) & (r < held[heads[i].other]);

        n = may & (r < best) ? 0 : n;
        best = may ? r : best;
        matches[n] = i;
        n += may;
    }
    *rank = best;
    return n;
}

/* Returns true if port 'p' must search for a flow to port 'other'.  'near' and
 * 'far' are the remaining seconds of the flow's unit on both ports.  If both
 * ports were free when the update began, the busier one searches: the others
 * would find the flow of the busiest port after it has begun. */
static bool
is_ours(const struct greedy *g, int p, int other, double near, double far)
{
    return far < near || (far == near && p % 2 == 0) || !g->ports[p].early
           || !g->ports[other].early;
}

/* Returns the queue of the best flow of the 'n' matches of port 'p', NULL if
 * none is for it to find.  They are all of one unit, which has as much left
 * here for each of them, so that what it has left at the far end decides. */
static const struct waiting_end *
best_match(const struct greedy *g, int p, size_t n)
{
    const struct waiting_port *port = &g->waiting.ports[p];
    const struct waiting_end *best = NULL;
    double near = *port->ends[g->matches[0]].near * g->slowness[p];
    double most = -1;

    for (size_t i = 0; i < n; i++) {
        const struct waiting_end *end = &port->ends[g->matches[i]];
        int other = port->heads[g->matches[i]].other;
        double far = *end->far * g->slowness[other];

        if (far >= most && is_ours(g, p, other, near, far)
            && (far > most || end->tie_break < best->tie_break)) {
            best = end;
            most = far;
        }
    }
    return best;
}

/* Finds the best flow of 'rank' or a worse one that may begin at port 'p'.
 * Returns false if there is none. */
static bool
find_candidate(const struct greedy *g, int p, int rank, struct candidate *c)
{
    const struct waiting_port *port = &g->waiting.ports[p];
    const struct waiting_end *end = NULL;
    double near, far;

    for (; !end; rank++) {
        size_t n = match_queues(g, p, &rank);

        if (!n) {
            return false;
        }
        end = best_match(g, p, n);
    }
    near = *end->near * g->slowness[p];
    far = *end->far * g->slowness[port->heads[end - port->ends].other];
    *c = (struct candidate) {
        .flow = g->waiting.queues[end->path].first,
        .port = p, .rank = rank - 1,
        .larger = fmax(near, far), .smaller = fmin(near, far),
        .tie_break = end->tie_break,
    };
    return true;
}

/* Lets the best flow of 'rank' or a worse one at 'port' be a candidate. */
static void
push_candidate(struct greedy *g, int port, int rank)
{
    struct candidate new;
    size_t i = g->n_candidates;

    if (!find_candidate(g, port, rank, &new)) {
        return;
    }
    g->candidates = order_grow(g->candidates, i + 1, &g->allocated_candidates,
                               sizeof *g->candidates);
    g->n_candidates++;
    while (i && is_better(&new, &g->candidates[(i - 1) / 2])) {
        g->candidates[i] = g->candidates[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    g->candidates[i] = new;
}

static struct candidate
pop_candidate(struct greedy *g)
{
    struct candidate first = g->candidates[0];
    struct candidate last = g->candidates[--g->n_candidates];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;

        if (child + 1 < g->n_candidates
            && is_better(&g->candidates[child + 1], &g->candidates[child])) {
            child++;
        }
        if (child >= g->n_candidates
            || !is_better(&g->candidates[child], &last)) {
            break;
        }
        g->candidates[i] = g->candidates[child];
        i = child;
    }
    g->candidates[i] = last;
    return first;
}

/* Returns true if the candidate is still valid: its flow is not running, and
 * no flow of the same or a better rank has taken one of its ports. */
static bool
is_possible(const struct greedy *g, const struct candidate *c)
{
    const struct path *path = rates_path(&g->up, c->flow);

    return !c->flow->rate && c->rank < g->held[path->ports[0]]
        && c->rank < g->held[path->ports[1]];
}

/* Looks at the ports that stopped flows have left. */
static void
push_dirty(struct greedy *g)
{
    while (g->n_dirty) {
        int p = g->dirty[--g->n_dirty];

        g->ports[p].dirty = false;
        if (g->held[p] == FREE) {
            g->ports[p].early = false;
            push_candidate(g, p, 0);
        }
    }
}

static void
push_early(struct greedy *g)
{
    memcpy(g->early, g->dirty, g->n_dirty * sizeof *g->early);
    g->n_early = g->n_dirty;
    g->n_dirty = 0;
    for (size_t i = 0; i < g->n_early; i++) {
        g->ports[g->early[i]].dirty = false;
        g->ports[g->early[i]].early = true;
    }
    for (size_t i = 0; i < g->n_early; i++) {
        push_candidate(g, g->early[i], 0);
    }
}

static void
greedy_update(struct rates *r, double now)
{
    struct greedy *g = greedy_cast(r);

    push_early(g);
    while (g->n_candidates) {
        struct candidate c = pop_candidate(g);

        if (is_possible(g, &c)) {
            start(g, c.flow, now);
            push_dirty(g);
        } else {
            push_candidate(g, c.port, c.rank);
        }
    }
    for (size_t i = 0; i < g->n_early; i++) {
        g->ports[g->early[i]].early = false;
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
        if (g->waiting.ports[p].n) {
            mark_dirty(g, p);
        }
    }
    for (size_t i = 0; i < g->n_dirty; i++) {
        if (g->dirty[i] % 2 == 0) {
            waiting_reorder(&g->waiting, g->dirty[i]);
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
