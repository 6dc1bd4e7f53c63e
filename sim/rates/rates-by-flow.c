/* SPDX-License-Identifier: Apache-2.0 */

/* Rates by rank, flow after flow.
 *
 * RATES_GREEDY: flows are scanned by their unit's rank, and a flow takes all
 * that its ports have left.  What runs goes on for as long as no better rank
 * wants one of its ends.  Two flows of a unit are equals to the order.  The
 * one whose ends have more left to do goes first, so that the unit's busiest
 * port does not wait at the end.
 *
 * RATES_MADD: a unit ends with its slowest flow, so its other flows need not
 * be faster: minimum allocation for desired duration (MADD) lets all flows of
 * a unit end together with those of its bottleneck, by rank, and leaves the
 * other bandwidth to the next unit.  A unit gets nothing if one of its ports
 * is full.  The remaining bandwidth is assigned by such a scan, by begin
 * inside a unit, so that none is wasted.  (Varys, SIGCOMM 2014.)
 *
 * All rates are computed when flows begin or ranks change.  When a flow ends,
 * its bandwidth goes to the best flow on its ports.  Only the first flow of
 * each path matters then, and most paths are left out because their other end
 * is full. */

#include "sim/rates/rates.h"

#include <assert.h>
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

/* The best flow of a path, or NONE, and copies of what decides about it: flows
 * are many and far away. */
struct head {
    uint32_t flow;
    uint32_t run; /* Of its unit. */
    uint32_t work[2];
    uint32_t tie_break;
};

/* A flow that may take what its ports have left. */
struct choice {
    uint32_t flow;          /* Its index, or NONE. */
    uint32_t run;           /* Of its unit. */
    double larger, smaller; /* Bytes that its unit has left on its two
                             * ends; only if greedy. */
    uint32_t tie_break;     /* Decides between paths with the same load on
                             * both ends, such as those of a shuffle.  By
                             * age, all senders would begin with the same
                             * receiver. */
};

/* A path, seen from one of its ports. */
struct hop {
    uint32_t path;
    int far; /* The port at its other end. */
};

struct port {
    struct flow *holder; /* Has all of it, if greedy, or NULL. */
    size_t n, allocated;
    struct hop *hops;   /* Paths that pass it. */
    double sum;         /* Bytes of one unit, while it is served. */
    struct choice best; /* While it is freed, of its flows. */
};

struct by_flow {
    struct rates up;
    bool changed; /* Rates are not valid. */
    size_t n, allocated;
    struct flow **flows; /* By rank after an update; NULL if ended. */
    size_t allocated_sorted;
    struct flow **sorted; /* The flows, while they are sorted. */
    size_t allocated_runs;
    struct run *runs;
    size_t allocated_choices;
    struct choice *choices;  /* Of one unit. */
    struct node_heap moving; /* By end. */
    size_t n_freed, allocated_freed;
    int *freed; /* Ports that flows have left. */

    struct port *ports;
    double *left;     /* Of each port, bytes per second. */
    uint32_t *limit;  /* Of each port: flows before this one may take
                       * what is left of it or is its holder's,
                       * which is of a worse unit. */
    int n_host_ports; /* The first ports are the hosts'. */
    int n_open[2];    /* Those up, down, that have something left. */

    size_t n_paths, allocated_paths, allocated_next, allocated_run;
    struct head *heads; /* Of each path. */
    uint32_t *next;     /* Of each flow: the next on its path, */
    uint32_t *run;      /* and its unit's in 'runs'. */
};

static struct by_flow *
by_flow_cast(const struct rates *r)
{
    return (struct by_flow *) r;
}

static struct rates *
by_flow_create(const struct paths *paths, enum rates_rule rule)
{
    struct by_flow *f = order_alloc(1, sizeof *f);
    int n = paths->fabric->n_ports;

    /* A greedy holder is found by bytes, so ports must be equal. */
    assert(rule != RATES_GREEDY || paths->fabric->n_tiers == 1);
    f->ports = order_alloc(n, sizeof *f->ports);
    f->left = order_alloc(n, sizeof *f->left);
    f->limit = order_alloc(n, sizeof *f->limit);
    f->n_host_ports = 2 * paths->fabric->n_hosts;
    return &f->up;
}

static void
by_flow_destroy(struct rates *r)
{
    struct by_flow *f = by_flow_cast(r);

    for (int p = 0; p < r->paths->fabric->n_ports; p++) {
        free(f->ports[p].hops);
    }
    free(f->flows);
    free(f->sorted);
    free(f->runs);
    free(f->choices);
    free(f->moving.nodes);
    free(f->freed);
    free(f->ports);
    free(f->left);
    free(f->limit);
    free(f->heads);
    free(f->next);
    free(f->run);
    free(f);
}

static void
by_flow_add(struct rates *r, struct flow *flow, double now)
{
    struct by_flow *f = by_flow_cast(r);

    flow->rate = 0;
    flow->since = now;
    flow->index = f->n;
    f->flows = order_grow(f->flows, f->n + 1, &f->allocated, sizeof *f->flows);
    f->flows[f->n++] = flow;
    f->changed = true;
}

static void
by_flow_reorder(struct rates *r, double now, bool kept)
{
    (void) now;
    by_flow_cast(r)->changed |= !kept || r->rule == RATES_MADD;
}

static void
by_flow_settle(struct rates *r, double now)
{
    struct by_flow *f = by_flow_cast(r);

    for (size_t i = 0; i < f->moving.n; i++) {
        struct flow *flow = flow_of(f->moving.nodes[i]);

        flow_settle(flow, rates_path(r, flow), now);
    }
}

/* What is left of the ports of 'path'. */
static double
path_left(const struct by_flow *f, const struct path *path)
{
    double left = INFINITY;

    for (int k = 0; k < path->n_ports; k++) {
        left = fmin(left, f->left[path->ports[k]]);
    }
    return left;
}

static void
take(struct by_flow *f, int port, struct flow *flow, double rate)
{
    bool open = f->left[port] > 0;

    f->left[port] -= rate;
    if (f->left[port] < f->up.paths->fabric->capacity[port] * RESIDUE) {
        bool greedy = f->up.rule == RATES_GREEDY;

        f->left[port] = 0;
        f->ports[port].holder = greedy ? flow : NULL;
        f->limit[port] = greedy ? f->runs[f->run[flow->index]].begin : 0;
        if (open && port < f->n_host_ports) {
            f->n_open[port % 2]--;
        }
    }
}

/* Makes 'flow' faster by 'rate'. */
static void
give(struct by_flow *f, struct flow *flow, double rate)
{
    const struct path *path = rates_path(&f->up, flow);

    flow->rate += rate;
    for (int k = 0; k < path->n_ports; k++) {
        take(f, path->ports[k], flow, rate);
    }
}

/* Takes all from 'flow', which does not move any more. */
static void
release(struct by_flow *f, struct flow *flow)
{
    const struct path *path = rates_path(&f->up, flow);

    f->freed = order_grow(f->freed, f->n_freed + path->n_ports,
                          &f->allocated_freed, sizeof *f->freed);
    for (int k = 0; k < path->n_ports; k++) {
        int p = path->ports[k];

        f->left[p] += flow->rate;
        f->limit[p] = NONE;
        f->ports[p].holder = NULL;
        f->freed[f->n_freed++] = p;
    }
    flow->rate = 0;
}

/* Makes 'flow' as fast as its ports allow. */
static void
give_all(struct by_flow *f, struct flow *flow)
{
    double left = path_left(f, rates_path(&f->up, flow));

    if (left > 0) {
        give(f, flow, left);
    }
}

/* Returns true if no flow can be faster. */
static bool
is_exhausted(const struct by_flow *f)
{
    return !f->n_open[0] || !f->n_open[1];
}

static struct head
make_head(const struct by_flow *f, uint32_t i)
{
    const struct flow *flow = f->flows[i];

    return (struct head){ i,
                          f->run[i],
                          { flow->work[0], flow->work[1] },
                          flow->node.seq * 2654435761 };
}

static struct choice
make_choice(const struct by_flow *f, const struct head *head)
{
    const double *bytes = f->runs[head->run].unit->bytes;
    double up = bytes[head->work[0]], down = bytes[head->work[1]];

    if (f->up.rule == RATES_MADD) {
        return (struct choice){ .flow = head->flow, .run = head->run };
    }
    return (struct choice){ .flow = head->flow,
                            .run = head->run,
                            .larger = fmax(up, down),
                            .smaller = fmin(up, down),
                            .tie_break = head->tie_break };
}

/* Sorts the better of two choices first. */
static int
compare_choices(const void *a_, const void *b_)
{
    const struct choice *a = a_, *b = b_;

    if (a->run == b->run) {
        if (a->larger != b->larger) {
            return a->larger > b->larger ? -1 : 1;
        } else if (a->smaller != b->smaller) {
            return a->smaller > b->smaller ? -1 : 1;
        } else if (a->tie_break != b->tie_break) {
            return a->tie_break < b->tie_break ? -1 : 1;
        }
    }
    return (a->flow > b->flow) - (a->flow < b->flow);
}

/* Lets the flows of 'run', those of one unit, take what is left: first those
 * that have a rate, then those with more to do. */
static void
serve_greedily(struct by_flow *f, const struct run *run)
{
    size_t n = 0;

    for (size_t i = run->begin; i < run->end; i++) {
        if (f->flows[i]->rate > 0) {
            f->flows[i]->rate = 0;
            give_all(f, f->flows[i]);
        }
    }
    for (size_t i = run->begin; i < run->end && !is_exhausted(f); i++) {
        struct head *head = &f->heads[f->flows[i]->path];

        if ((head->flow == NONE || head->run != f->run[i])
            && path_left(f, rates_path(&f->up, f->flows[i])) > 0) {
            *head = make_head(f, i);
            f->choices = order_grow(f->choices, n + 1, &f->allocated_choices,
                                    sizeof *f->choices);
            f->choices[n++] = make_choice(f, head);
        }
    }
    if (n) {
        qsort(f->choices, n, sizeof *f->choices, compare_choices);
    }
    for (size_t i = 0; i < n; i++) {
        give_all(f, f->flows[f->choices[i].flow]);
    }
}

/* Returns the seconds that the flows of 'run' need of what is left, INFINITY
 * if one of their ports is full. */
static double
run_seconds(struct by_flow *f, const struct run *run)
{
    double seconds = 0;
    size_t i;

    for (i = run->begin; i < run->end && seconds < INFINITY; i++) {
        const struct path *path = rates_path(&f->up, f->flows[i]);

        for (int k = 0; k < path->n_ports; k++) {
            int p = path->ports[k];

            f->ports[p].sum += f->flows[i]->remaining;
            seconds = fmax(seconds, f->ports[p].sum / f->left[p]);
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
serve_together(struct by_flow *f, const struct run *run)
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
find_runs(struct by_flow *f)
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
sort_flows(struct by_flow *f)
{
    size_t n_runs = find_runs(f);
    size_t n_units = 0;
    size_t n = 0;
    struct flow **flows = f->flows;
    size_t allocated = f->allocated;

    f->sorted =
        order_grow(f->sorted, f->n, &f->allocated_sorted, sizeof *f->sorted);
    f->run = order_grow(f->run, f->n, &f->allocated_run, sizeof *f->run);
    for (size_t r = 0; r < n_runs; r++) {
        struct run run = f->runs[r];

        if (!n_units || f->runs[n_units - 1].unit != run.unit) {
            f->runs[n_units++] = (struct run){ run.unit, n, n };
        }
        for (size_t i = run.begin; i < run.end; i++) {
            flows[i]->index = n;
            f->run[n] = n_units - 1;
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
add_paths(struct by_flow *f)
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

static void
clear_heads(struct by_flow *f)
{
    for (size_t i = 0; i < f->n_paths; i++) {
        f->heads[i].flow = NONE;
    }
}

/* Lists the flows of each path, by rank. */
static void
list_paths(struct by_flow *f)
{
    f->next = order_grow(f->next, f->n, &f->allocated_next, sizeof *f->next);
    clear_heads(f);
    for (size_t i = f->n; i-- > 0;) {
        struct head *head = &f->heads[f->flows[i]->path];

        f->next[i] = head->flow;
        *head = make_head(f, i);
    }
}

static void
set_end(struct by_flow *f, struct flow *flow)
{
    flow->node.key = flow->since + flow->remaining / flow->rate;
    node_heap_push(&f->moving, &flow->node);
}

static void
compute(struct by_flow *f, double now)
{
    const struct sim_fabric *fabric = f->up.paths->fabric;
    bool together = f->up.rule == RATES_MADD;
    size_t n_runs;

    by_flow_settle(&f->up, now);
    n_runs = sort_flows(f);
    add_paths(f);
    clear_heads(f);
    for (int p = 0; p < fabric->n_ports; p++) {
        f->left[p] = fabric->capacity[p];
        f->limit[p] = NONE;
        f->ports[p].holder = NULL;
    }
    f->n_open[0] = f->n_open[1] = f->n_host_ports / 2;
    for (size_t r = 0; r < n_runs; r++) {
        (together ? serve_together : serve_greedily)(f, &f->runs[r]);
    }
    for (size_t i = 0; together && i < f->n && !is_exhausted(f); i++) {
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

/* Returns true if 'flow' may take the ports of 'path': none is full, or it is
 * held by a flow of a worse unit. */
static bool
may_take(const struct by_flow *f, uint32_t flow, uint32_t path)
{
    const struct path *p = &f->up.paths->paths[path];

    for (int k = 0; k < p->n_ports; k++) {
        if (flow >= f->limit[p->ports[k]]) {
            return false;
        }
    }
    return true;
}

/* Finds the best flow on port 'p' that can be faster. */
static void
find_best(struct by_flow *f, int p)
{
    struct choice best = { .flow = NONE, .run = UINT32_MAX };
    const struct port *port = &f->ports[p];

    for (size_t i = 0; i < port->n; i++) {
        uint32_t path = port->hops[i].path;
        const struct head *head = &f->heads[path];

        if (head->flow < f->limit[p]
            && head->flow < f->limit[port->hops[i].far]
            && head->run <= best.run && may_take(f, head->flow, path)) {
            struct choice choice = make_choice(f, head);

            if (best.flow == NONE || compare_choices(&choice, &best) < 0) {
                best = choice;
            }
        }
    }
    f->ports[p].best = best;
}

/* Returns the best flow on the freed ports that can be faster, or NULL; for
 * RATES_MADD the best one on the first port that has any.  The best flow of a
 * port stays that until another one takes its other end.  One that takes the
 * port is at least as good as all others on it. */
static struct flow *
find_faster(struct by_flow *f)
{
    const struct choice *best = NULL;
    bool all = f->up.rule == RATES_GREEDY;

    for (size_t i = 0; i < f->n_freed && (all || !best); i++) {
        struct choice *choice = &f->ports[f->freed[i]].best;

        if (f->limit[f->freed[i]] != NONE) {
            choice->flow = NONE;
        } else if (choice->flow != NONE
                   && !may_take(f, choice->flow,
                                f->flows[choice->flow]->path)) {
            find_best(f, f->freed[i]);
        }
        if (choice->flow != NONE
            && (!best || compare_choices(choice, best) < 0)) {
            best = choice;
        }
    }
    return best ? f->flows[best->flow] : NULL;
}

/* Stops the flows that hold ports of 'path'. */
static void
stop_holders(struct by_flow *f, const struct path *path, double now)
{
    for (int k = 0; k < path->n_ports; k++) {
        struct flow *holder = f->ports[path->ports[k]].holder;

        if (holder) {
            flow_settle(holder, rates_path(&f->up, holder), now);
            node_heap_remove(&f->moving, &holder->node);
            release(f, holder);
        }
    }
}

/* Gives what is left of freed ports to the flows on them. */
static void
top_up(struct by_flow *f, double now)
{
    struct flow *flow;
    size_t n = 0;

    do {
        for (; n < f->n_freed; n++) {
            find_best(f, f->freed[n]);
        }
        flow = find_faster(f);
        if (flow) {
            const struct path *path = rates_path(&f->up, flow);

            if (flow->rate > 0) {
                node_heap_remove(&f->moving, &flow->node);
            }
            flow_settle(flow, path, now);
            stop_holders(f, path, now);
            give_all(f, flow);
            set_end(f, flow);
        }
    } while (flow);
}

static void
by_flow_update(struct rates *r, double now)
{
    struct by_flow *f = by_flow_cast(r);

    if (f->changed) {
        compute(f, now);
    } else {
        top_up(f, now);
    }
    f->changed = false;
    f->n_freed = 0;
}

static double
by_flow_next(const struct rates *r)
{
    return node_heap_next(&by_flow_cast(r)->moving);
}

static struct flow *
by_flow_pop(struct rates *r, double now)
{
    struct by_flow *f = by_flow_cast(r);
    struct flow *flow;
    struct head *head;
    uint32_t next;

    if (by_flow_next(r) > now + now * RATES_TOGETHER) {
        return NULL;
    }
    flow = flow_of(node_heap_pop(&f->moving));
    f->flows[flow->index] = NULL;
    head = &f->heads[flow->path];
    next = head->flow;
    while (next != NONE && !f->flows[next]) {
        next = f->next[next];
    }
    if (next == NONE) {
        head->flow = NONE;
    } else if (next != head->flow) {
        *head = make_head(f, next);
    }
    release(f, flow);
    flow_finish(flow, rates_path(r, flow));
    return flow;
}

static size_t
by_flow_list(const struct rates *r, struct sim_flow **flows, size_t *allocated)
{
    const struct node_heap *moving = &by_flow_cast(r)->moving;

    *flows = order_grow(*flows, moving->n, allocated, sizeof **flows);
    for (size_t i = 0; i < moving->n; i++) {
        const struct flow *flow = flow_of(moving->nodes[i]);

        rates_show(rates_path(r, flow), flow->rate, &(*flows)[i]);
    }
    return moving->n;
}

const struct rates_class rates_by_flow = {
    .create = by_flow_create,
    .destroy = by_flow_destroy,
    .add = by_flow_add,
    .reorder = by_flow_reorder,
    .update = by_flow_update,
    .next = by_flow_next,
    .pop = by_flow_pop,
    .settle = by_flow_settle,
    .list = by_flow_list,
};
