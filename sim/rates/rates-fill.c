/* SPDX-License-Identifier: Apache-2.0 */

/* Rates by groups: each gets what better ranks leave, and its flows share
 * that, see water-filling.h.
 *
 * RATES_FILL: a unit is finished when its last flow is, so its rates should
 * let all flows end together.  A group is a unit, and its flows count what
 * they have left.  No bandwidth is wasted, no rank slows down a better one,
 * and a unit that is limited by one port leaves its other ports to the units
 * behind it.  Within one unit this is MADD (Varys) made work-conserving.
 * Measured on the Facebook trace with all coflows at time 0 in the same order:
 * mean 42.39 s, 0.03 % above ports that are independent of each other; whole
 * ports to one flow at a time cost 1.7 %.
 *
 * RATES_SHARE: switches and shims serve levels strictly.  A group is a level;
 * its flows share as TCP does, with max-min fairness as the usual model: no
 * flow can get more without reducing a flow that has no more.  With all flows
 * on one level there is no order.
 *
 * RATES_TURNS: as shims serve jobs of equal rank.  On its host's uplink each
 * job with flows gets an equal share, which its flows there divide equally,
 * and what a job cannot use goes to the others.  On all other ports flows
 * share as TCP does.
 *
 * RATES_MLTCP: MLTCP, a congestion control of hosts without shims.  A flow
 * counts 0.25 + 1.75 r, r being the share of its iteration's bytes that its
 * job has sent, so that jobs that are about to end an exchange get more and
 * jobs drift apart.  The flow that gets least gets its rate first.
 *
 * An event changes few rates.  The remaining bytes of a unit's flows shrink in
 * proportion, so that computing their rates again gives the same rates, unless
 * a flow has ended or begun, or the bandwidth of a port has changed.  Each
 * port therefore lists its groups by rank, with the bandwidth that each found
 * there and left.  Groups with other flows are filled again, and after them,
 * by rank, those that would now find another bandwidth on a port that limits
 * them.  The result is the same as computing all rates, except for
 * rounding. */

#include "sim/rates/rates.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "order/problem/memory.h"
#include "sim/rates/bundle.h"
#include "sim/rates/water-filling.h"

/* Smaller differences, relative to a port's capacity, are rounding errors. */
#define SAME 1e-11

/* A job's r grows by at most this between two updates. */
#define MLTCP_STEP 0.05

/* The groups with flows on a port, by rank. */
struct port {
    struct lane *first, *last;
    double available; /* What the first one finds, bytes per
                       * second. */
    bool dirty;       /* Lanes must be checked. */
};

struct bundle_list {
    size_t n, allocated;
    struct bundle **bundles;
};

struct fill {
    struct rates up;
    struct bundles bundles;
    struct water_filling water;
    struct port *ports;
    size_t n_dirty;
    int *dirty;                 /* Ports. */
    bool reordered;             /* Ranks have changed since the last update. */
    size_t n_groups, allocated_groups;
    struct group **groups;
    size_t n_changed, allocated_changed;
    struct group **changed;
    struct node_heap updates;   /* Groups that are to be filled, by rank. */
    struct node_heap ends;      /* Groups with moving flows, by first end. */
    struct bundle_list moving;  /* With a rate now or since the last time that
                                 * flows were settled. */
    struct bundle_list emptied; /* That the last flow has left. */
    struct bundle_list undone;  /* That had a step before this update. */
    size_t allocated_moved;
    struct flow **moved; /* Flows that change their level. */
    double share;        /* Minimum share of each level of a port. */
    double next_weights; /* When flows of RATES_MLTCP count more. */
};

static struct fill *
fill_cast(const struct rates *r)
{
    return (struct fill *) r;
}

static void
push_bundle(struct bundle_list *list, struct bundle *b)
{
    list->bundles = order_grow(list->bundles, list->n + 1, &list->allocated,
                               sizeof *list->bundles);
    list->bundles[list->n++] = b;
}

static struct rates *
fill_create(const struct paths *paths, enum rates_rule rule)
{
    const struct sim_fabric *fabric = paths->fabric;
    struct fill *f = order_alloc(1, sizeof *f);

    f->bundles.paths = paths;
    f->water.rule = rule;
    f->water.capacity = fabric->capacity;
    f->water.n_host_ports = 2 * fabric->n_hosts;
    f->ports = order_alloc(fabric->n_ports, sizeof *f->ports);
    f->dirty = order_alloc(fabric->n_ports, sizeof *f->dirty);
    for (int p = 0; p < fabric->n_ports; p++) {
        f->ports[p].available = fabric->capacity[p];
    }
    f->next_weights = INFINITY;
    return &f->up;
}

static void
fill_destroy(struct rates *r)
{
    struct fill *f = fill_cast(r);

    for (size_t i = 0; i < f->n_groups; i++) {
        group_destroy(f->groups[i]);
    }
    bundles_uninit(&f->bundles);
    free(f->water.tight);
    free(f->ports);
    free(f->dirty);
    free(f->groups);
    free(f->changed);
    free(f->updates.nodes);
    free(f->ends.nodes);
    free(f->moving.bundles);
    free(f->emptied.bundles);
    free(f->undone.bundles);
    free(f->moved);
    free(f);
}

/* Lets 'g' be filled from 'step' on. */
static void
restart(struct fill *f, struct group *g, size_t step)
{
    g->restart = step < g->restart ? step : g->restart;
    if (!g->changed) {
        g->changed = true;
        f->changed = order_grow(f->changed, f->n_changed + 1,
                                &f->allocated_changed, sizeof *f->changed);
        f->changed[f->n_changed++] = g;
    }
}

static struct group *
add_group(struct fill *f, struct unit *unit)
{
    struct group *g = group_create(unit, f->up.paths->fabric->n_ports);

    g->index = g->rank = f->n_groups;
    g->restart = NO_STEP;
    f->groups = order_grow(f->groups, f->n_groups + 1, &f->allocated_groups,
                           sizeof *f->groups);
    f->groups[f->n_groups++] = g;
    return g;
}

/* Returns the group to which flows of 'unit' belong. */
static struct group *
find_group(struct fill *f, struct unit *unit)
{
    size_t level = f->up.rule == RATES_SHARE ? unit->level : 0;

    if (f->up.rule == RATES_FILL) {
        if (!unit->group) {
            unit->group = add_group(f, unit);
            unit->group->id = unit->id;
        }
        return unit->group;
    }
    while (f->n_groups <= level) {
        add_group(f, NULL);
    }
    return f->groups[level];
}

/* Puts 'flow' on a bundle of its group. */
static void
attach(struct fill *f, struct flow *flow, double now)
{
    struct group *g = find_group(f, flow->unit);
    struct bundle *b =
        bundles_find(&f->bundles, g,
                     f->up.rule == RATES_SHARE ? NULL : flow->unit, flow, now);

    flow->node.key = bundle_served(b, now) + flow->remaining;
    node_heap_push(&b->flows, &flow->node);
    b->keys += flow->node.key;
    g->n_flows++;
    b->turn =
        f->up.rule == RATES_TURNS ? &flow->unit->work[flow->work[0]] : NULL;
    if (f->up.watches) {
        unit_change_rate(flow->unit, now, b->rate);
    }
    restart(f, g, 0);
}

/* Takes 'flow' off bundle 'b'. */
static void
detach(struct fill *f, struct flow *flow, struct bundle *b, double now)
{
    struct group *g = b->group;
    bool by_step = f->up.rule == RATES_SHARE || f->up.rule == RATES_FILL;

    node_heap_remove(&b->flows, &flow->node);
    if (f->up.watches) {
        unit_change_rate(flow->unit, now, -b->rate);
    }
    b->keys = b->flows.n ? b->keys - flow->node.key : 0;
    restart(f, g, by_step ? b->step : 0);
    if (!b->flows.n) {
        b->unit = NULL;
        if (!b->emptied) {
            b->emptied = true;
            push_bundle(&f->emptied, b);
        }
    }
    if (!--g->n_flows && g->unit) {
        g->unit->group = NULL;
        g->unit = NULL;
    }
}

static void
fill_add(struct rates *r, struct flow *flow, double now)
{
    flow->since = now;
    attach(fill_cast(r), flow, now);
}

/* Computes the first end of a flow of 'b'.  A single flow, which may be far
 * away, need not be looked at. */
static void
expect_end(struct bundle *b)
{
    double key = b->flows.n == 1 ? b->keys : node_heap_next(&b->flows);

    b->end = b->flows.n && b->rate > 0 ? b->since + (key - b->served) / b->rate
                                       : INFINITY;
}

static void
set_rate(struct fill *f, struct bundle *b, double rate, double now)
{
    if (rate != b->rate) {
        b->served = bundle_served(b, now);
        b->since = now;
        for (size_t i = 0; f->up.watches && i < b->flows.n; i++) {
            unit_change_rate(flow_of(b->flows.nodes[i])->unit, now,
                             rate - b->rate);
        }
        b->rate = rate;
        if (!b->moving) {
            push_bundle(&f->moving, b);
            b->moving = f->moving.n;
        }
    }
    expect_end(b);
}

/* Takes 'b' off the list of those that have moved. */
static void
forget_moving(struct fill *f, struct bundle *b)
{
    struct bundle *last = f->moving.bundles[--f->moving.n];

    f->moving.bundles[b->moving - 1] = last;
    last->moving = b->moving;
    b->moving = 0;
}

static void
mark_dirty(struct fill *f, int p)
{
    if (!f->ports[p].dirty) {
        f->ports[p].dirty = true;
        f->dirty[f->n_dirty++] = p;
    }
}

static void
remove_lane(struct port *port, struct lane *lane)
{
    *(lane->prev ? &lane->prev->next : &port->first) = lane->next;
    *(lane->next ? &lane->next->prev : &port->last) = lane->prev;
    lane->listed = false;
}

static bool
is_before(const struct lane *a, const struct lane *b)
{
    return a->group->rank != b->group->rank ? a->group->rank < b->group->rank
                                            : a->group->id < b->group->id;
}

/* Lists 'lane' by its rank, which is probably next to that of 'prev'. */
static void
insert_lane(struct port *port, struct lane *lane, struct lane *prev)
{
    struct lane *next;

    while (prev && is_before(lane, prev)) {
        prev = prev->prev;
    }
    next = prev ? prev->next : port->first;
    for (; next && is_before(next, lane); next = next->next) {
        prev = next;
    }
    lane->prev = prev;
    lane->next = next;
    *(prev ? &prev->next : &port->first) = lane;
    *(lane->next ? &lane->next->prev : &port->last) = lane;
    lane->listed = true;
}

/* Forgets the steps of 'g' from 'first' on.  Without any, 'left' of its lanes
 * has no meaning. */
static void
undo(struct fill *f, struct group *g, size_t first)
{
    if (first >= g->n_steps) {
        return;
    }
    for (size_t i = g->steps[first].first; i < g->n_filled; i++) {
        struct bundle *b = g->filled[i];

        for (int k = 0; first && k < b->n_hops; k++) {
            b->hops[k].lane->left += b->granted;
        }
        b->step = NO_STEP;
        if (b->flows.n) {
            push_bundle(&f->undone, b);
        }
    }
    g->n_filled = g->steps[first].first;
    g->n_steps = first;
}

/* Removes the bundles that have no flows any more, which have no step, and
 * takes their lanes off the ports if they were the last ones. */
static void
remove_emptied(struct fill *f)
{
    for (size_t i = 0; i < f->emptied.n; i++) {
        struct bundle *b = f->emptied.bundles[i];

        b->emptied = false;
        if (b->flows.n) {
            continue;
        }
        for (int k = 0; k < b->n_hops; k++) {
            struct lane *lane = b->hops[k].lane;

            if (lane->n == 1 && lane->listed) {
                remove_lane(&f->ports[lane->port], lane);
                f->ports[lane->port].available += lane->reserved;
                lane->reserved = 0;
                mark_dirty(f, lane->port);
            }
        }
        if (b->moving) {
            forget_moving(f, b);
        }
        bundles_remove(&f->bundles, b);
    }
    f->emptied.n = 0;
}

/* Takes the lanes of 'g' off their ports, or lists them near where they
 * were. */
static void
move_lanes(struct fill *f, struct group *g, bool back)
{
    for (size_t i = 0; i < g->n_used; i++) {
        struct lane *lane = g->used[i], *prev = lane->prev;
        struct port *port = &f->ports[lane->port];

        if (back) {
            while (prev && !prev->listed) {
                prev = prev->prev;
            }
            insert_lane(port, lane, prev);
        } else if (lane->listed) {
            remove_lane(port, lane);
            mark_dirty(f, lane->port);
        } else {
            lane->prev = port->last;
        }
    }
}

/* Lets ports follow the ranks of units. */
static void
follow_ranks(struct fill *f)
{
    for (int back = 0; back < 2; back++) {
        for (size_t i = 0; i < f->n_groups; i++) {
            struct group *g = f->groups[i];

            if (g->unit) {
                g->rank = g->unit->rank;
                if (g->unit->moved) {
                    move_lanes(f, g, back);
                }
            }
        }
    }
    f->reordered = false;
}

/* Queues 'g' to be filled, by rank, unless it is queued. */
static void
queue_update(struct fill *f, struct group *g)
{
    if (!heap_node_is_queued(&g->update)) {
        g->update.key = g->rank;
        g->update.seq = g->id;
        node_heap_push(&f->updates, &g->update);
    }
}

/* Removes 'g', which has no flows. */
static void
retire(struct fill *f, struct group *g)
{
    struct group *last = f->groups[--f->n_groups];

    f->groups[g->index] = last;
    last->index = g->index;
    if (heap_node_is_queued(&g->end)) {
        node_heap_remove(&f->ends, &g->end);
    }
    group_destroy(g);
}

/* Sets what each flow of 'g', a level, gets by the minimum share that its
 * level has of each port, before any level gets the rest, so that no level
 * starves. */
static void
reserve(struct fill *f, struct group *g, double now)
{
    undo(f, g, 0);
    g->restart = 0;
    for (size_t i = 0; i < g->n_used; i++) {
        g->used[i]->left = f->share * f->water.capacity[g->used[i]->port];
    }
    water_filling_fill(&f->water, g, now);
    for (size_t i = 0; i < g->n_filled; i++) {
        g->filled[i]->floor = g->filled[i]->granted / g->filled[i]->flows.n;
    }
    for (size_t i = 0; i < g->n_used; i++) {
        struct lane *lane = g->used[i];
        double whole = f->share * f->water.capacity[lane->port];

        f->ports[lane->port].available += lane->reserved;
        lane->reserved = whole - lane->left;
        f->ports[lane->port].available -= lane->reserved;
        mark_dirty(f, lane->port);
    }
    undo(f, g, 0);
}

/* If the number of levels has changed what each has of a port, lets all be
 * filled. */
static void
find_share(struct fill *f)
{
    double share = fmin(f->up.min_share, 1.0 / f->n_groups);

    for (size_t i = 0; share != f->share && i < f->n_groups; i++) {
        restart(f, f->groups[i], 0);
    }
    f->share = share;
    f->water.fills_all = true;
}

/* Queues the groups with other flows, and adds their lanes to the
 * ports on which they have flows now. */
static void
queue_changed(struct fill *f, double now)
{
    for (size_t i = 0; i < f->n_changed; i++) {
        struct group *g = f->changed[i];

        g->changed = false;
        if (f->up.rule == RATES_FILL) {
            if (!g->n_flows) {
                retire(f, g);
                continue;
            }
            g->rank = g->unit->rank;
        }
        for (size_t j = 0; j < g->n_used; j++) {
            struct port *port = &f->ports[g->used[j]->port];

            if (!g->used[j]->listed) {
                insert_lane(port, g->used[j], port->last);
            }
        }
        if (f->share > 0) {
            reserve(f, g, now);
        }
        queue_update(f, g);
    }
    f->n_changed = 0;
}

/* Returns the bandwidth that better ranks leave 'lane'. */
static double
left_before(const struct fill *f, const struct lane *lane)
{
    return lane->prev ? lane->prev->left
                      : fmax(f->ports[lane->port].available, 0);
}

/* Returns true if 'lane' would now find another bandwidth. */
static bool
finds_other(const struct fill *f, const struct lane *lane)
{
    return fabs(lane->found - left_before(f, lane))
           > SAME * f->water.capacity[lane->port];
}

/* Lets 'lane' find what better ranks leave now.  That changes no rate of its
 * unit if the lane had and has something left: each flow keeps the full port
 * that limits it.  Otherwise its group is queued, and so is a level, of which
 * a port has few. */
static void
follow_lane(struct fill *f, struct lane *lane)
{
    double found = left_before(f, lane);
    double left = lane->left + found - lane->found;

    if (f->up.rule != RATES_FILL || lane->left <= 0
        || left < WATER_RESIDUE * f->water.capacity[lane->port]) {
        queue_update(f, lane->group);
    } else if (!heap_node_is_queued(&lane->group->update)) {
        lane->found = found;
        lane->left = left;
    }
}

static void
check_ports(struct fill *f)
{
    for (size_t i = 0; i < f->n_dirty; i++) {
        struct port *port = &f->ports[f->dirty[i]];

        port->dirty = false;
        for (struct lane *lane = port->first; lane; lane = lane->next) {
            if (finds_other(f, lane)) {
                follow_lane(f, lane);
            }
        }
    }
    f->n_dirty = 0;
}

/* Finds what better ranks leave 'g'.  If that has changed, or all of its flows
 * must be filled, it begins with that. */
static void
begin_filling(struct fill *f, struct group *g)
{
    bool anew = !g->restart;

    for (size_t i = 0; i < g->n_used && !anew; i++) {
        anew = finds_other(f, g->used[i]);
    }
    if (anew) {
        undo(f, g, 0);
    }
    for (size_t i = 0; i < g->n_used && anew; i++) {
        g->used[i]->found = left_before(f, g->used[i]);
        g->used[i]->left = g->used[i]->found;
    }
    g->restart = NO_STEP;
}

/* Sets the rates of what has been filled from step 'first' of 'g' on, and when
 * its first flow ends. */
static void
set_rates(struct fill *f, struct group *g, size_t first, double now)
{
    double end = INFINITY;

    for (size_t i = first; i < g->n_steps; i++) {
        struct step *step = &g->steps[i];

        step->end = INFINITY;
        for (size_t j = step->first; j < group_step_end(g, i); j++) {
            struct bundle *b = g->filled[j];

            set_rate(f, b, b->floor + b->granted / b->flows.n, now);
            step->end = b->end < step->end ? b->end : step->end;
        }
    }
    for (size_t i = 0; i < g->n_steps; i++) {
        end = g->steps[i].end < end ? g->steps[i].end : end;
    }
    if (heap_node_is_queued(&g->end)) {
        node_heap_remove(&f->ends, &g->end);
    }
    if (end < INFINITY) {
        g->end.key = end;
        g->end.seq = g->id;
        node_heap_push(&f->ends, &g->end);
    }
    g->at_step = g->at = 0;
}

/* Fills 'g' and queues the groups that find another bandwidth after it. */
static void
serve(struct fill *f, struct group *g, double now)
{
    size_t first;

    begin_filling(f, g);
    first = g->n_steps;
    water_filling_fill(&f->water, g, now);
    set_rates(f, g, first, now);
    for (size_t i = 0; i < g->n_used; i++) {
        struct lane *next = g->used[i]->next;

        for (; next && finds_other(f, next); next = next->next) {
            follow_lane(f, next);
        }
    }
}

static void
fill_settle(struct rates *r, double now)
{
    struct fill *f = fill_cast(r);

    for (size_t i = f->moving.n; i-- > 0;) {
        struct bundle *b = f->moving.bundles[i];
        double served = bundle_served(b, now);

        for (size_t j = 0; j < b->flows.n; j++) {
            struct flow *flow = flow_of(b->flows.nodes[j]);

            flow_settle_at(flow, rates_path(r, flow), now,
                           flow->node.key - served);
        }
        if (b->rate <= 0) {
            forget_moving(f, b);
        }
    }
}

/* Sets when flows of RATES_MLTCP count more. */
static void
expect_weights(struct fill *f, double now)
{
    f->next_weights = INFINITY;
    for (size_t i = 0; i < f->moving.n; i++) {
        f->moving.bundles[i]->unit->rate = 0;
    }
    for (size_t i = 0; i < f->moving.n; i++) {
        const struct bundle *b = f->moving.bundles[i];

        b->unit->rate += b->flows.n * b->rate;
    }
    for (size_t i = 0; i < f->moving.n; i++) {
        const struct unit *unit = f->moving.bundles[i]->unit;
        double step = MLTCP_STEP * (unit->sent + unit->left) / unit->rate;

        f->next_weights = fmin(f->next_weights, now + step);
    }
}

static void
fill_update(struct rates *r, double now)
{
    struct fill *f = fill_cast(r);
    bool weighs =
        r->rule == RATES_MLTCP && (f->n_changed || now >= f->next_weights);

    if (weighs) {
        fill_settle(r, now);
        restart(f, f->groups[0], 0);
    }
    if (r->min_share > 0 && f->n_groups) {
        find_share(f);
    }
    f->undone.n = 0;
    for (size_t i = 0; i < f->n_changed; i++) {
        undo(f, f->changed[i], f->changed[i]->restart);
    }
    remove_emptied(f);
    if (f->reordered) {
        follow_ranks(f);
    }
    queue_changed(f, now);
    check_ports(f);
    while (f->updates.n) {
        struct heap_node *node = node_heap_pop(&f->updates);

        serve(f, HEAP_NODE_OWNER(node, struct group, update), now);
    }
    for (size_t i = 0; i < f->undone.n; i++) {
        struct bundle *b = f->undone.bundles[i];

        if (b->step == NO_STEP) {
            set_rate(f, b, 0, now);
        }
    }
    if (weighs) {
        expect_weights(f, now);
    }
}

/* Adds the flows of 'b' with units on another level now to the 'n' that
 * have moved, and takes them off 'b'.  Returns how many there are then. */
static size_t
take_moved(struct fill *f, struct bundle *b, size_t n, double now)
{
    size_t begin = n;
    double served = bundle_served(b, now);

    for (size_t i = b->flows.n; i-- > 0;) {
        struct flow *flow = flow_of(b->flows.nodes[i]);

        if (flow->unit->level != b->group->rank) {
            flow_settle_at(flow, rates_path(&f->up, flow), now,
                           flow->node.key - served);
            f->moved = order_grow(f->moved, n + 1, &f->allocated_moved,
                                  sizeof *f->moved);
            f->moved[n++] = flow;
        }
    }
    for (; begin < n; begin++) {
        detach(f, f->moved[begin], b, now);
    }
    return n;
}

static void
fill_reorder(struct rates *r, double now)
{
    struct fill *f = fill_cast(r);
    size_t n = 0;

    f->reordered |= r->rule == RATES_FILL;
    for (size_t i = 0; r->rule == RATES_SHARE && i < f->bundles.n; i++) {
        for (struct bundle *b = f->bundles.first[i]; b; b = b->next) {
            for (size_t j = 0; r->watches && j < b->flows.n; j++) {
                unit_change_rate(flow_of(b->flows.nodes[j])->unit, now,
                                 b->rate);
            }
            n = take_moved(f, b, n, now);
        }
    }
    for (size_t i = 0; i < n; i++) {
        attach(f, f->moved[i], now);
    }
}

static double
fill_next(const struct rates *r)
{
    const struct fill *f = fill_cast(r);

    return fmin(node_heap_next(&f->ends), f->next_weights);
}

/* Returns true if the first flow of 'b' has ended by 'now', regardless of
 * rounding errors. */
static bool
has_ended(const struct bundle *b, double now)
{
    const struct flow *flow;

    if (!b->flows.n) {
        return false;
    }
    flow = flow_of(b->flows.nodes[0]);
    return b->end <= now + now * RATES_TOGETHER
           || flow->node.key - bundle_served(b, now)
                  <= flow->bytes * RATES_RESIDUE;
}

/* Returns a bundle of 'g' with a flow that has ended, or NULL. */
static struct bundle *
find_ended(struct group *g, double now)
{
    for (; g->at_step < g->n_steps; g->at_step++) {
        size_t end = group_step_end(g, g->at_step);
        bool ends = g->steps[g->at_step].end <= now + now * RATES_TOGETHER;

        for (; ends && g->at < end; g->at++) {
            if (has_ended(g->filled[g->at], now)) {
                return g->filled[g->at];
            }
        }
        g->at = end;
    }
    return NULL;
}

static struct flow *
fill_pop(struct rates *r, double now)
{
    struct fill *f = fill_cast(r);

    while (node_heap_next(&f->ends) <= now + now * RATES_TOGETHER) {
        struct group *g = HEAP_NODE_OWNER(f->ends.nodes[0], struct group, end);
        struct bundle *b = find_ended(g, now);

        if (b) {
            struct flow *flow = flow_of(b->flows.nodes[0]);

            detach(f, flow, b, now);
            expect_end(b);
            flow_finish(flow, rates_path(r, flow));
            return flow;
        }
        node_heap_remove(&f->ends, &g->end);
    }
    return NULL;
}

static size_t
fill_list(const struct rates *r, struct sim_flow **flows, size_t *allocated)
{
    const struct fill *f = fill_cast(r);
    size_t n = 0;

    *flows = order_grow(*flows, f->moving.n, allocated, sizeof **flows);
    for (size_t i = 0; i < f->moving.n; i++) {
        const struct bundle *b = f->moving.bundles[i];

        if (b->flows.n && b->rate > 0) {
            rates_show(&r->paths->paths[b->path], b->flows.n * b->rate,
                       &(*flows)[n++]);
        }
    }
    return n;
}

const struct rates_class rates_fill = {
    .create = fill_create,
    .destroy = fill_destroy,
    .add = fill_add,
    .reorder = fill_reorder,
    .update = fill_update,
    .next = fill_next,
    .pop = fill_pop,
    .settle = fill_settle,
    .list = fill_list,
};
