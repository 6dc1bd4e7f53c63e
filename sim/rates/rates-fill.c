/* SPDX-License-Identifier: Apache-2.0 */

/* Rates by rank, each unit as a whole.
 *
 * A unit gets what growth.h says of what better ranks leave; what it leaves is
 * for the next.  Nothing is wasted, no rank slows down a better one, and a unit
 * that is held up at one port leaves the others to those behind it.
 *
 * Within one unit this is MADD (Varys) made work-conserving.  Measured on the
 * Facebook trace, all there at the beginning, the same order of coflows: mean
 * 42.39 s, 0.03 % above ports that are independent of each other; whole ports
 * to one flow at a time cost 1.7 %.
 *
 * An event changes few rates.  Flows of a unit shrink in proportion, so that
 * growing them again from what they have left by now gives the rates that they
 * have already, unless one has ended or begun or a port has more or less left.
 * So every port lists its units by rank with what each found there and what it
 * left; those whose flows changed get their rates anew, and after them, by
 * rank, those that would now find something else.  What comes out is what
 * computing all rates anew would give, but for rounding. */

#include "sim/rates/rates.h"

#include <math.h>
#include <stdbool.h>

#include "sim/rates/growth.h"
#include "sim/rates/guests.h"
#include "sim/rates/member.h"
#include "order/problem/memory.h"
#include "sim/rates/node-heap.h"

/* Below this share of its bytes a flow has ended. */
#define RESIDUE 1e-9

/* Differences below this share of a port's capacity are rounding. */
#define SAME 1e-11

struct fill {
    struct rates up;
    const double *capacity;
    int n_ports;
    struct guests *ports;
    size_t n_dirty;
    int *dirty;                 /* Ports. */
    bool reordered;             /* Ranks have changed since then. */
    size_t n_members, allocated_members;
    struct member **members;
    size_t n_spare, allocated_spare;
    struct member **spare;      /* Without flows, for the next units. */
    size_t n_changed, allocated_changed;
    struct member **changed;
    struct node_heap turns;     /* Members that get rates anew, by rank. */
    struct node_heap ends;      /* Those with moving flows, by first end. */
    struct growth growth;
};

static struct fill *
fill_cast(const struct rates *r)
{
    return (struct fill *) r;
}

static struct rates *
fill_create(const struct paths *paths)
{
    struct fill *f = order_alloc(1, sizeof *f);

    f->capacity = paths->fabric->capacity;
    f->n_ports = paths->fabric->n_ports;
    f->ports = order_alloc(f->n_ports, sizeof *f->ports);
    f->dirty = order_alloc(f->n_ports, sizeof *f->dirty);
    growth_init(&f->growth, paths);
    return &f->up;
}

static void
fill_destroy(struct rates *r)
{
    struct fill *f = fill_cast(r);

    for (size_t i = 0; i < f->n_members; i++) {
        member_destroy(f->members[i]);
    }
    for (size_t i = 0; i < f->n_spare; i++) {
        member_destroy(f->spare[i]);
    }
    for (int p = 0; p < f->n_ports; p++) {
        free(f->ports[p].guests);
    }
    free(f->members);
    free(f->spare);
    free(f->changed);
    free(f->ports);
    free(f->dirty);
    free(f->turns.nodes);
    free(f->ends.nodes);
    growth_uninit(&f->growth);
    free(f);
}

static void
mark_changed(struct fill *f, struct member *m)
{
    if (!m->changed) {
        m->changed = true;
        f->changed = order_grow(f->changed, f->n_changed + 1,
                              &f->allocated_changed, sizeof *f->changed);
        f->changed[f->n_changed++] = m;
    }
}

static struct member *
find_member(struct fill *f, struct unit *unit)
{
    struct member *m = unit->member;

    if (!m) {
        m = f->n_spare ? f->spare[--f->n_spare] : order_alloc(1, sizeof *m);
        member_begin(m, unit);
        unit->member = m;
        m->index = f->n_members;
        f->members = order_grow(f->members, f->n_members + 1,
                              &f->allocated_members, sizeof *f->members);
        f->members[f->n_members++] = m;
    }
    return m;
}

static void
fill_add(struct rates *r, struct flow *flow, double now)
{
    struct fill *f = fill_cast(r);
    struct member *m = find_member(f, flow->unit);

    flow->rate = 0;
    flow->since = now;
    flow->key = INFINITY;
    member_add(m, flow, rates_path(r, flow));
    mark_changed(f, m);
}

static void
remove_flow(struct fill *f, struct flow *flow)
{
    struct member *m = flow->unit->member;

    member_remove(m, flow, rates_path(&f->up, flow));
    mark_changed(f, m);
    if (!m->n_flows) {
        flow->unit->member = NULL;
        m->unit = NULL;
    }
}

static void
leave(struct fill *f, struct member *m, struct tie *tie)
{
    struct guests *port = &f->ports[tie->port];

    guests_remove(port, m);
    tie->listed = false;
    if (!port->dirty) {
        port->dirty = true;
        f->dirty[f->n_dirty++] = tie->port;
    }
}

/* Takes members off the lists of ports where they have no flows any more. */
static void
leave_ports(struct fill *f)
{
    for (size_t i = 0; i < f->n_changed; i++) {
        struct member *m = f->changed[i];

        for (size_t j = 0; j < m->n_ties; j++) {
            if (m->ties[j].listed && !m->ties[j].n_flows) {
                leave(f, m, &m->ties[j]);
            }
        }
    }
}

static void
follow_ranks(struct fill *f)
{
    for (size_t i = 0; i < f->n_members; i++) {
        if (f->members[i]->unit) {
            f->members[i]->rank = f->members[i]->unit->rank;
        }
    }
    for (int p = 0; p < f->n_ports; p++) {
        guests_sort(&f->ports[p]);
    }
}

/* It is the turn of 'm' to get its rates anew. */
static void
push_turn(struct fill *f, struct member *m)
{
    if (!heap_node_is_queued(&m->turn)) {
        m->turn.key = m->rank;
        m->turn.seq = m->id;
        node_heap_push(&f->turns, &m->turn);
    }
}

/* What those before place 'i' leave of port 'p'. */
static double
left_before(const struct fill *f, int p, size_t i)
{
    return i ? f->ports[p].guests[i - 1].left : f->capacity[p];
}

/* If there is a member at place 'i' of port 'p' that would now find something
 * else than it did, it is its turn. */
static void
check_place(struct fill *f, int p, size_t i)
{
    const struct guests *port = &f->ports[p];

    if (i < port->n
        && fabs(port->guests[i].found - left_before(f, p, i))
           > SAME * f->capacity[p]) {
        push_turn(f, port->guests[i].member);
    }
}

static void
check_port(struct fill *f, int p)
{
    for (size_t i = 0; i < f->ports[p].n; i++) {
        check_place(f, p, i);
    }
}

static void
check_ports(struct fill *f)
{
    for (size_t i = 0; i < f->n_dirty; i++) {
        f->ports[f->dirty[i]].dirty = false;
        if (!f->reordered) {
            check_port(f, f->dirty[i]);
        }
    }
    for (int p = 0; f->reordered && p < f->n_ports; p++) {
        check_port(f, p);
    }
    f->n_dirty = 0;
    f->reordered = false;
}

/* Forgets 'm', which has no flows. */
static void
retire(struct fill *f, struct member *m)
{
    struct member *last = f->members[--f->n_members];

    f->members[m->index] = last;
    last->index = m->index;
    f->spare = order_grow(f->spare, f->n_spare + 1, &f->allocated_spare,
                        sizeof *f->spare);
    f->spare[f->n_spare++] = m;
}

/* Puts members on the lists of ports where they have flows. */
static void
enter_ports(struct fill *f)
{
    for (size_t i = 0; i < f->n_changed; i++) {
        struct member *m = f->changed[i];

        m->changed = false;
        if (!m->n_flows) {
            retire(f, m);
            continue;
        }
        m->rank = m->unit->rank;
        for (size_t j = 0; j < m->n_ties; j++) {
            if (!m->ties[j].listed && m->ties[j].n_flows) {
                guests_add(&f->ports[m->ties[j].port], m);
                m->ties[j].listed = true;
            }
        }
        push_turn(f, m);
    }
    f->n_changed = 0;
}

static void
settle_member(struct fill *f, struct member *m, double now)
{
    for (size_t i = 0; i < m->n_moving; i++) {
        flow_settle(m->moving[i], rates_path(&f->up, m->moving[i]), now);
    }
}

/* Says when the first flow of 'm' ends. */
static void
set_end(struct fill *f, struct member *m)
{
    double end = INFINITY;

    for (size_t i = 0; i < m->n_moving; i++) {
        end = fmin(end, m->moving[i]->key);
    }
    if (heap_node_is_queued(&m->end)) {
        node_heap_remove(&f->ends, &m->end);
    }
    if (m->n_moving) {
        m->end.key = end;
        m->end.seq = m->id;
        node_heap_push(&f->ends, &m->end);
    }
}

/* Gives 'm' its rates anew, and their turns to those that find something else
 * after it. */
static void
serve(struct fill *f, struct member *m, double now)
{
    settle_member(f, m, now);
    for (size_t i = 0; i < m->n_moving; i++) {
        m->moving[i]->rate = 0;
    }
    for (size_t i = 0; i < m->n_ties; i++) {
        struct tie *tie = &m->ties[i];

        if (tie->listed) {
            tie->place = guests_find(&f->ports[tie->port], m);
            growth_set_left(&f->growth, tie->port,
                            left_before(f, tie->port, tie->place));
        }
    }
    growth_run(&f->growth, m, now);
    for (size_t i = 0; i < m->n_ties; i++) {
        const struct tie *tie = &m->ties[i];
        struct guest *guest;

        if (tie->listed) {
            guest = &f->ports[tie->port].guests[tie->place];
            guest->found = left_before(f, tie->port, tie->place);
            guest->left = growth_left(&f->growth, tie->port);
            check_place(f, tie->port, tie->place + 1);
        }
    }
    set_end(f, m);
}

static void
fill_update(struct rates *r, double now)
{
    struct fill *f = fill_cast(r);

    leave_ports(f);
    if (f->reordered) {
        follow_ranks(f);
    }
    enter_ports(f);
    check_ports(f);
    while (f->turns.n) {
        struct heap_node *turn = f->turns.nodes[0];

        node_heap_remove(&f->turns, turn);
        serve(f, HEAP_NODE_OWNER(turn, struct member, turn), now);
    }
}

static void
fill_reorder(struct rates *r, double now, bool kept)
{
    (void) now;
    fill_cast(r)->reordered |= !kept;
}

static void
fill_settle(struct rates *r, double now)
{
    struct fill *f = fill_cast(r);

    for (size_t i = 0; i < f->n_members; i++) {
        settle_member(f, f->members[i], now);
    }
}

static double
fill_next(const struct rates *r)
{
    const struct fill *f = fill_cast(r);

    return f->ends.n ? f->ends.nodes[0]->key : INFINITY;
}

/* Returns true if 'flow' has nothing left by 'now', but for rounding. */
static bool
has_ended(const struct flow *flow, double now)
{
    return flow->key <= now + now * RATES_TOGETHER
           || flow->remaining - flow->rate * (now - flow->since)
              <= RESIDUE * flow->bytes;
}

/* Returns a moving flow of 'm' that has ended, or NULL. */
static struct flow *
pop_flow(struct member *m, double now)
{
    while (m->n_looked_at < m->n_moving) {
        size_t i = m->n_moving - 1 - m->n_looked_at;
        struct flow *flow = m->moving[i];

        if (has_ended(flow, now)) {
            m->moving[i] = m->moving[--m->n_moving];
            return flow;
        }
        m->n_looked_at++;
    }
    return NULL;
}

static struct flow *
fill_pop(struct rates *r, double now)
{
    struct fill *f = fill_cast(r);

    while (fill_next(r) <= now + now * RATES_TOGETHER) {
        struct member *m = HEAP_NODE_OWNER(f->ends.nodes[0], struct member,
                                           end);
        struct flow *flow = pop_flow(m, now);

        if (flow) {
            remove_flow(f, flow);
            flow_finish(flow, rates_path(r, flow));
            return flow;
        }
        node_heap_remove(&f->ends, &m->end);
    }
    return NULL;
}

static size_t
fill_list(const struct rates *r, struct sim_flow **flows, size_t *allocated)
{
    const struct fill *f = fill_cast(r);
    size_t n = 0;

    for (size_t i = 0; i < f->n_members; i++) {
        const struct member *m = f->members[i];

        *flows = order_grow(*flows, n + m->n_moving, allocated, sizeof **flows);
        for (size_t j = 0; j < m->n_moving; j++) {
            rates_show(rates_path(r, m->moving[j]), m->moving[j]->rate,
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
