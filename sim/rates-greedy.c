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
 * would.  Waiting flows are kept by path, and of each path only the first
 * matters: if it cannot go, those after it cannot either.
 *
 * Two flows of a unit are equals to the order.  The one whose ends have more
 * left to do goes first, so that the busiest port of the unit is not kept
 * waiting at the end. */

#include "sim/rates.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>

#include "sim/flow-heap.h"
#include "sim/memory.h"

#define FREE INT_MAX            /* Rank of whoever holds a free port. */

struct waiting {
    struct flow *flow;
    struct unit *unit;          /* The flow's. */
};

/* The flows that wait for a path, in no order but for the first. */
struct queue {
    size_t n, allocated;
    struct waiting *waiting;
    struct flow *first;         /* Best rank, then earliest begin. */
    uint32_t place[2];          /* In the lists of its two ports. */
};

/* A queue as one of its ports sees it. */
struct lane {
    const double *near;         /* Bytes that the unit of the queue's first
                                 * flow has left here, */
    const double *far;          /* and there. */
    int other;                  /* The port at the other end. */
    uint32_t path;
    uint32_t lot;               /* Of the flow. */
};

struct port {
    struct flow *flow;          /* That holds it, or NULL. */
    bool dirty;                 /* On the list of ports to look at. */
    bool early;                 /* Was there when the update began. */
    size_t n;
    size_t allocated_ranks, allocated_lanes;
    int *ranks;                 /* Of the first flow of each queue that is not
                                 * empty, apart since all are looked at. */
    struct lane *lanes;         /* The rest of the same. */
};

/* A flow that may begin, found at 'port'. */
struct candidate {
    struct flow *flow;
    int port;
    int rank;
    double larger, smaller;     /* What its unit has left on its two ends,
                                 * seconds. */
    uint32_t lot;
};

struct greedy {
    struct rates up;
    int n_ports;
    struct port *ports;
    int *held;                  /* Rank of each port's holder, or FREE. */
    double *slowness;           /* Of each port, seconds per byte. */
    size_t n_queues, allocated_queues;
    struct queue *queues;       /* By path. */
    struct flow_heap running;   /* By end. */
    size_t n_dirty;
    int *dirty;                 /* Ports that are free or have new flows. */
    size_t n_early;
    int *early;                 /* Those when the update began. */
    size_t n_candidates, allocated_candidates;
    struct candidate *candidates;       /* Heap, the best first. */
};

static struct greedy *
greedy_cast(const struct rates *r)
{
    return (struct greedy *) r;
}

static struct rates *
greedy_create(const struct paths *paths)
{
    struct greedy *g = sim_calloc(1, sizeof *g);

    assert(paths->fabric->n_tiers == 1);
    g->n_ports = paths->fabric->n_ports;
    g->ports = sim_calloc(g->n_ports, sizeof *g->ports);
    g->held = sim_calloc(g->n_ports, sizeof *g->held);
    g->slowness = sim_calloc(g->n_ports, sizeof *g->slowness);
    g->dirty = sim_calloc(g->n_ports, sizeof *g->dirty);
    g->early = sim_calloc(g->n_ports, sizeof *g->early);
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
        free(g->ports[p].ranks);
        free(g->ports[p].lanes);
    }
    for (size_t i = 0; i < g->n_queues; i++) {
        free(g->queues[i].waiting);
    }
    free(g->ports);
    free(g->held);
    free(g->queues);
    free(g->running.flows);
    free(g->slowness);
    free(g->dirty);
    free(g->early);
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

static bool
is_first(const struct flow *a, const struct flow *b)
{
    return a->unit->rank != b->unit->rank ? a->unit->rank < b->unit->rank
        : a->seq < b->seq;
}

/* Decides between flows that have the same to do on both ends, as those of a
 * shuffle do.  Were it their age, all senders would want to begin with the
 * same receiver. */
static uint32_t
draw_lot(const struct flow *flow)
{
    return flow->seq * 2654435761;
}

static void
set_first(struct greedy *g, uint32_t path, struct flow *flow)
{
    const int *ports = g->up.paths->paths[path].ports;
    struct queue *q = &g->queues[path];
    bool same = q->first == flow;

    q->first = flow;
    for (int k = 0; k < 2; k++) {
        struct port *port = &g->ports[ports[k]];
        struct lane *lane = &port->lanes[q->place[k]];

        port->ranks[q->place[k]] = flow->unit->rank;
        if (!same) {
            lane->near = &flow->unit->bytes[flow->work[k]];
            lane->far = &flow->unit->bytes[flow->work[!k]];
            lane->lot = draw_lot(flow);
        }
    }
}

/* Looks for the first flow of 'path' anew. */
static void
find_first(struct greedy *g, uint32_t path)
{
    const struct queue *q = &g->queues[path];
    size_t best = 0;
    int rank = q->waiting[0].unit->rank;

    for (size_t i = 1; i < q->n; i++) {
        int r = q->waiting[i].unit->rank;

        if (r < rank
            || (r == rank
                && q->waiting[i].flow->seq < q->waiting[best].flow->seq)) {
            best = i;
            rank = r;
        }
    }
    set_first(g, path, q->waiting[best].flow);
}

/* Puts the queue of 'path' on the lists of its ports, or takes it off. */
static void
link_queue(struct greedy *g, uint32_t path)
{
    const int *ports = g->up.paths->paths[path].ports;

    for (int k = 0; k < 2; k++) {
        struct port *port = &g->ports[ports[k]];

        port->ranks = sim_grow(port->ranks, port->n + 1,
                               &port->allocated_ranks, sizeof *port->ranks);
        port->lanes = sim_grow(port->lanes, port->n + 1,
                               &port->allocated_lanes, sizeof *port->lanes);
        g->queues[path].place[k] = port->n;
        port->lanes[port->n++] = (struct lane) {
            .other = ports[!k], .path = path,
        };
    }
}

static void
unlink_queue(struct greedy *g, uint32_t path)
{
    const int *ports = g->up.paths->paths[path].ports;

    for (int k = 0; k < 2; k++) {
        struct port *port = &g->ports[ports[k]];
        size_t place = g->queues[path].place[k];

        port->n--;
        port->ranks[place] = port->ranks[port->n];
        port->lanes[place] = port->lanes[port->n];
        g->queues[port->lanes[place].path].place[k] = place;
    }
}

/* Lets 'flow' wait. */
static void
enqueue(struct greedy *g, struct flow *flow)
{
    struct queue *q = &g->queues[flow->path];

    q->waiting = sim_grow(q->waiting, q->n + 1, &q->allocated,
                          sizeof *q->waiting);
    flow->place = q->n;
    q->waiting[q->n++] = (struct waiting) { flow, flow->unit };
    if (q->n == 1) {
        link_queue(g, flow->path);
        set_first(g, flow->path, flow);
    } else if (is_first(flow, q->first)) {
        set_first(g, flow->path, flow);
    }
}

static void
dequeue(struct greedy *g, struct flow *flow)
{
    struct queue *q = &g->queues[flow->path];

    q->waiting[flow->place] = q->waiting[--q->n];
    q->waiting[flow->place].flow->place = flow->place;
    if (!q->n) {
        q->first = NULL;
        unlink_queue(g, flow->path);
    } else if (q->first == flow) {
        find_first(g, flow->path);
    }
}

/* Makes room for the queues of paths that are new. */
static void
grow_queues(struct greedy *g)
{
    size_t n = g->up.paths->n;

    if (n > g->n_queues) {
        g->queues = sim_grow(g->queues, n, &g->allocated_queues,
                             sizeof *g->queues);
        memset(&g->queues[g->n_queues], 0,
               (n - g->n_queues) * sizeof *g->queues);
        g->n_queues = n;
    }
}

static void
greedy_add(struct rates *r, struct flow *flow, double now)
{
    struct greedy *g = greedy_cast(r);
    const struct path *path = rates_path(r, flow);

    grow_queues(g);
    flow->rate = 0;
    flow->since = now;
    enqueue(g, flow);
    mark_dirty(g, path->ports[0]);
    mark_dirty(g, path->ports[1]);
}

/* Takes the ports from 'flow', which runs. */
static void
stop(struct greedy *g, struct flow *flow)
{
    const struct path *path = rates_path(&g->up, flow);

    flow_heap_remove(&g->running, flow);
    flow->rate = 0;
    for (int k = 0; k < 2; k++) {
        g->ports[path->ports[k]].flow = NULL;
        g->held[path->ports[k]] = FREE;
        mark_dirty(g, path->ports[k]);
    }
}

/* Gives 'flow', which waits, both of its ports, whoever has them. */
static void
start(struct greedy *g, struct flow *flow, double now)
{
    const struct path *path = rates_path(&g->up, flow);
    const double *capacity = g->up.paths->fabric->capacity;

    dequeue(g, flow);
    for (int k = 0; k < 2; k++) {
        struct flow *holder = g->ports[path->ports[k]].flow;

        if (holder) {
            flow_settle(holder, rates_path(&g->up, holder), now);
            stop(g, holder);
            enqueue(g, holder);
        }
    }
    for (int k = 0; k < 2; k++) {
        g->ports[path->ports[k]].flow = flow;
        g->held[path->ports[k]] = flow->unit->rank;
    }
    flow->rate = fmin(capacity[path->ports[0]], capacity[path->ports[1]]);
    flow->since = now;
    flow->key = now + flow->remaining / flow->rate;
    flow_heap_push(&g->running, flow);
}

/* Which of two flows that may begin goes first.  Inside a unit: the one with
 * more to do on the busier of its ends. */
static bool
is_better(const struct candidate *a, const struct candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank
        : a->larger != b->larger ? a->larger > b->larger
        : a->smaller != b->smaller ? a->smaller > b->smaller
        : a->lot < b->lot;
}

/* Returns the best rank after 'rank' of a flow that may begin at port 'p',
 * FREE if there is none. */
static int
next_rank(const struct greedy *g, int p, int rank)
{
    const struct lane *lanes = g->ports[p].lanes;
    const int *ranks = g->ports[p].ranks;
    const int *held = g->held;
    size_t n = g->ports[p].n;
    int best = held[p];

    for (size_t i = 0; i < n; i++) {
        if (ranks[i] < best && ranks[i] > rank
            && ranks[i] < held[lanes[i].other]) {
            best = ranks[i];
        }
    }
    return best < held[p] ? best : FREE;
}

/* Returns true if it is for 'lane' of port 'p' to find its flow, which has
 * 'near' seconds left here and 'far' at the other end.  If both ends were
 * there when the update began, that is the busier one's: all others would find
 * the flow of the busiest only to see it gone. */
static bool
is_ours(const struct greedy *g, int p, const struct lane *lane, double near,
        double far)
{
    return far < near || (far == near && p % 2 == 0) || !g->ports[p].early
           || !g->ports[lane->other].early;
}

/* Returns the lane of the best flow of 'rank' that may begin at port 'p', NULL
 * if there is none.  They are all of one unit, which has as much left here for
 * each of them, so that what it has left at the far end decides. */
static const struct lane *
find_lane(const struct greedy *g, int p, int rank)
{
    const struct lane *lanes = g->ports[p].lanes;
    const int *ranks = g->ports[p].ranks;
    const int *held = g->held;
    size_t n = rank < held[p] ? g->ports[p].n : 0;
    const struct lane *best = NULL;
    double most = -1;

    for (size_t i = 0; i < n; i++) {
        const struct lane *lane = &lanes[i];

        if (ranks[i] == rank && rank < held[lane->other]) {
            double near = *lane->near * g->slowness[p];
            double far = *lane->far * g->slowness[lane->other];

            if (far >= most && is_ours(g, p, lane, near, far)
                && (far > most || lane->lot < best->lot)) {
                best = lane;
                most = far;
            }
        }
    }
    return best;
}

/* Finds the best flow of 'rank' or a worse one that may begin at port 'p'.
 * Returns false if there is none. */
static bool
find_candidate(const struct greedy *g, int p, int rank, struct candidate *c)
{
    const struct lane *lane;
    double near, far;

    while (!(lane = find_lane(g, p, rank))) {
        rank = next_rank(g, p, rank);
        if (rank == FREE) {
            return false;
        }
    }
    near = *lane->near * g->slowness[p];
    far = *lane->far * g->slowness[lane->other];
    *c = (struct candidate) {
        .flow = g->queues[lane->path].first, .port = p, .rank = rank,
        .larger = fmax(near, far), .smaller = fmin(near, far),
        .lot = lane->lot,
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
    g->candidates = sim_grow(g->candidates, i + 1, &g->allocated_candidates,
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

/* Returns true if nobody with the same or a better rank has begun on the ends
 * of the candidate since it was found. */
static bool
is_possible(const struct greedy *g, const struct candidate *c)
{
    const struct path *path = rates_path(&g->up, c->flow);

    return !c->flow->rate && c->rank < g->held[path->ports[0]]
        && c->rank < g->held[path->ports[1]];
}

static void
push_any(struct greedy *g, int port)
{
    int rank = next_rank(g, port, -1);

    if (rank != FREE) {
        push_candidate(g, port, rank);
    }
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
            push_any(g, p);
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
        push_any(g, g->early[i]);
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
greedy_reorder(struct rates *r, double now)
{
    struct greedy *g = greedy_cast(r);

    (void) now;
    for (int p = 0; p < g->n_ports; p++) {
        const struct port *port = &g->ports[p];

        if (port->flow) {
            g->held[p] = port->flow->unit->rank;
        }
        if (port->n) {
            mark_dirty(g, p);
        }
        for (size_t i = 0; p % 2 == 0 && i < port->n; i++) {
            find_first(g, port->lanes[i].path);
        }
    }
}

static double
greedy_next(const struct rates *r)
{
    const struct greedy *g = greedy_cast(r);

    return g->running.n ? g->running.flows[0]->key : INFINITY;
}

static struct flow *
greedy_pop(struct rates *r, double now)
{
    struct greedy *g = greedy_cast(r);
    struct flow *flow;

    if (greedy_next(r) > now + now * RATES_TOGETHER) {
        return NULL;
    }
    flow = g->running.flows[0];
    stop(g, flow);
    flow_finish(flow, rates_path(r, flow));
    return flow;
}

static void
greedy_settle(struct rates *r, double now)
{
    struct greedy *g = greedy_cast(r);

    for (size_t i = 0; i < g->running.n; i++) {
        struct flow *flow = g->running.flows[i];

        flow_settle(flow, rates_path(r, flow), now);
    }
}

static size_t
greedy_list(const struct rates *r, struct sim_flow **flows,
            size_t *allocated)
{
    return rates_list(r, &greedy_cast(r)->running, flows, allocated);
}

const struct rates_class rates_greedy = {
    .create = greedy_create,
    .destroy = greedy_destroy,
    .add = greedy_add,
    .reorder = greedy_reorder,
    .update = greedy_update,
    .next = greedy_next,
    .pop = greedy_pop,
    .settle = greedy_settle,
    .list = greedy_list,
};
