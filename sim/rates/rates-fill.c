/* SPDX-License-Identifier: Apache-2.0 */

/* Rates by rank, each unit as a whole.
 *
 * A unit is finished when its last flow is, so its rates should let all flows
 * end together.  The rates of its flows grow in proportion to their remaining
 * bytes until one port is full.  The flows on that port keep their rates, the
 * others grow further, until every flow has a full port.  The next unit gets
 * the remaining bandwidth.  No bandwidth is wasted, no rank slows down a
 * better one, and a unit that is limited by one port leaves its other ports to
 * the units behind it.
 *
 * Within one unit this is MADD (Varys) made work-conserving.  Measured on the
 * Facebook trace with all coflows at time 0 in the same order: mean 42.39 s,
 * 0.03 % above ports that are independent of each other; whole ports to one
 * flow at a time cost 1.7 %.
 *
 * An event changes few rates.  The remaining bytes of a unit's flows shrink in
 * proportion, so that computing their rates again gives the same rates, unless
 * a flow has ended or begun, or the bandwidth of a port has changed.  Each
 * port therefore lists its units by rank, with the bandwidth that each found
 * there and left.  Units whose flows changed get new rates, and after them, by
 * rank, those that would now find another bandwidth.  The result is the same
 * as computing all rates, except for rounding. */

#include "sim/rates/rates.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "order/problem/memory.h"
#include "sim/fabric/paths.h"
#include "sim/rates/node-heap.h"
#include "sim/rates/unit.h"

/* A flow with less than this share of its bytes has ended. */
#define RESIDUE 1e-9

/* Smaller differences, relative to a port's capacity, are rounding errors. */
#define SAME 1e-11

/* A port is full below this share of its capacity. */
#define FULL 1e-9

/* A sum that has shrunk to this share is computed again. */
#define RESUM 1e-3

#define NONE ((size_t) -1)

/* A flow, and the port where it leaves the network. */
struct entry {
    struct flow *flow;
    int last;
};

/* A port of a unit, in the order of the unit's 'work'. */
struct unit_port {
    int port;
    bool listed;                /* The member is on the list of the port. */
    size_t index;               /* Its index there, while it is served. */
    size_t n_flows;             /* Number of its flows that use the port. */
    size_t n, allocated;
    struct entry *entries;      /* Flows that begin at the port. */
};

/* The active flows of a unit.  Flows that begin at a full port need not be
 * visited, so flows are kept by their first port.  A member without flows
 * keeps its memory for the next unit. */
struct member {
    struct unit *unit;          /* NULL once there are no flows. */
    size_t n_flows;
    size_t n_ports, allocated_ports;
    struct unit_port *ports;
    size_t n_moving, allocated_moving;
    struct flow **moving;       /* Flows with a rate. */
    size_t n_checked;           /* The last ones of 'moving' that do not end
                                 * now. */
    int rank;                   /* Rank in the lists of ports. */
    uint64_t id;                /* The unit's id. */
    size_t index;               /* Index in 'members'. */
    bool changed;               /* Flows came or went since the last update. */
    struct heap_node update;    /* In 'updates', by rank. */
    struct heap_node end;       /* In 'ends', by the first end of 'moving'. */
};

/* A unit on a port. */
struct port_entry {
    struct member *member;
    int rank;                   /* Copy of the member's rank. */
    double found;               /* Bandwidth that better ranks left, bytes per
                                 * second. */
    double left;                /* Bandwidth after this unit. */
};

/* The units with flows on a port, by rank. */
struct port_list {
    size_t n, allocated;
    struct port_entry *entries;
    bool dirty;                 /* Entries were removed since the last
                                 * update. */
};

/* A flow that gets a rate, while its unit is served. */
struct grower {
    struct flow *flow;
    const struct path *path;
    double bytes;               /* Remaining bytes. */
    bool stuck;                 /* One of its ports is full. */
    size_t next[SIM_FABRIC_MAX_PATH];   /* On the same port, or NONE. */
};

/* A port, while a unit is served. */
struct hop {
    double left;                /* Remaining bandwidth, bytes per second. */
    double load;                /* Sum of the bytes of its growers. */
    double exact;               /* 'load' when it was last computed. */
    size_t first;               /* First grower and port of its path: index
                                 * times SIM_FABRIC_MAX_PATH plus port. */
};

struct growth {
    const struct paths *paths;
    const double *capacity;
    struct hop *hops;           /* By port. */
    size_t n_growers, allocated_growers;
    struct grower *growers;
    int *used;                  /* Ports of growers. */
    int n_used;
};

struct fill {
    struct rates up;
    const double *capacity;
    int n_ports;
    struct port_list *ports;
    size_t n_dirty;
    int *dirty;                 /* Ports. */
    bool reordered;             /* Ranks have changed since the last update. */
    size_t n_members, allocated_members;
    struct member **members;
    size_t n_spare, allocated_spare;
    struct member **spare;      /* Members without flows, for later units. */
    size_t n_changed, allocated_changed;
    struct member **changed;
    struct node_heap updates;   /* Members that need new rates, by rank. */
    struct node_heap ends;      /* Members with moving flows, by first end. */
    struct growth growth;
};

static bool
is_before(const struct port_entry *guest, const struct member *m)
{
    return guest->rank != m->rank ? guest->rank < m->rank
           : guest->member->id < m->id;
}

/* Returns the index at which 'm' is or belongs. */
static size_t
port_list_find(const struct port_list *port, const struct member *m)
{
    size_t low = 0;
    size_t high = port->n;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (is_before(&port->entries[middle], m)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void
port_list_add(struct port_list *port, struct member *m)
{
    size_t i = port_list_find(port, m);

    port->entries = order_grow(port->entries, port->n + 1, &port->allocated,
                            sizeof *port->entries);
    memmove(&port->entries[i + 1], &port->entries[i],
            (port->n - i) * sizeof *port->entries);
    port->entries[i] = (struct port_entry) { .member = m, .rank = m->rank };
    port->n++;
}

static void
port_list_remove(struct port_list *port, const struct member *m)
{
    size_t i = port_list_find(port, m);

    assert(i < port->n && port->entries[i].member == m);
    port->n--;
    memmove(&port->entries[i], &port->entries[i + 1],
            (port->n - i) * sizeof *port->entries);
}

/* Sorts the list after ranks have changed; usually it is nearly sorted. */
static void
port_list_sort(struct port_list *port)
{
    for (size_t i = 0; i < port->n; i++) {
        struct port_entry guest = port->entries[i];
        size_t j = i;

        guest.rank = guest.member->rank;
        for (; j && !is_before(&port->entries[j - 1], guest.member); j--) {
            port->entries[j] = port->entries[j - 1];
        }
        port->entries[j] = guest;
    }
}

/* Assigns 'm', which is zeroed or has no flows, to 'unit'. */
static void
member_begin(struct member *m, struct unit *unit)
{
    size_t before = m->allocated_ports;

    m->ports = order_grow(m->ports, unit->n_work, &m->allocated_ports,
                       sizeof *m->ports);
    for (size_t i = before; i < m->allocated_ports; i++) {
        m->ports[i] = (struct unit_port) { .entries = NULL };
    }
    m->n_ports = unit->n_work;
    for (size_t i = 0; i < m->n_ports; i++) {
        m->ports[i].port = unit->work[i].port;
    }
    m->unit = unit;
    m->rank = unit->rank;
    m->id = unit->id;
}

static void
member_destroy(struct member *m)
{
    for (size_t i = 0; i < m->allocated_ports; i++) {
        free(m->ports[i].entries);
    }
    free(m->ports);
    free(m->moving);
    free(m);
}

/* Adds 'change', 1 or -1, to the flows of each port of 'flow'. */
static void
count_flow(struct member *m, const struct flow *flow, const struct path *path,
           int change)
{
    int last = path->n_ports - 1;

    for (int k = 0; k <= last; k++) {
        size_t i = k == 0 ? flow->work[0] : k == last ? flow->work[1]
            : unit_find_work(m->unit, path->ports[k]);

        m->ports[i].n_flows += change;
    }
}

static void
member_add(struct member *m, struct flow *flow, const struct path *path)
{
    struct unit_port *up = &m->ports[flow->work[0]];

    up->entries = order_grow(up->entries, up->n + 1, &up->allocated,
                             sizeof *up->entries);
    flow->index = up->n;
    up->entries[up->n++] =
        (struct entry){ flow, path->ports[path->n_ports - 1] };
    m->n_flows++;
    count_flow(m, flow, path, 1);
}

static void
member_remove(struct member *m, struct flow *flow, const struct path *path)
{
    struct unit_port *up = &m->ports[flow->work[0]];

    up->entries[flow->index] = up->entries[--up->n];
    up->entries[flow->index].flow->index = flow->index;
    m->n_flows--;
    count_flow(m, flow, path, -1);
}

static void
growth_init(struct growth *f, const struct paths *paths)
{
    int n = paths->fabric->n_ports;

    *f = (struct growth){ .paths = paths,
                          .capacity = paths->fabric->capacity,
                          .hops = order_alloc(n, sizeof *f->hops),
                          .used = order_alloc(n, sizeof *f->used) };
    for (int p = 0; p < n; p++) {
        f->hops[p].first = NONE;
    }
}

static void
growth_uninit(struct growth *f)
{
    free(f->hops);
    free(f->growers);
    free(f->used);
}

/* Returns true if no port between the first and the last of 'path' is full. */
static bool
is_open(const struct growth *f, const struct path *path)
{
    for (int k = 1; k < path->n_ports - 1; k++) {
        if (f->hops[path->ports[k]].left <= 0) {
            return false;
        }
    }
    return true;
}

static void
add_grower(struct growth *f, struct flow *flow, const struct path *path)
{
    struct grower *g = &f->growers[f->n_growers];

    g->flow = flow;
    g->path = path;
    g->bytes = flow->remaining;
    g->stuck = false;
    for (int k = 0; k < path->n_ports; k++) {
        struct hop *hop = &f->hops[path->ports[k]];

        if (hop->first == NONE) {
            f->used[f->n_used++] = path->ports[k];
            hop->load = 0;
        }
        g->next[k] = hop->first;
        hop->first = f->n_growers * SIM_FABRIC_MAX_PATH + k;
        hop->load += g->bytes;
        hop->exact = hop->load;
    }
    f->n_growers++;
}

static void
add_growers_of_port(struct growth *f, const struct unit_port *up)
{
    for (size_t i = 0; i < up->n; i++) {
        if (f->hops[up->entries[i].last].left > 0) {
            struct flow *flow = up->entries[i].flow;
            const struct path *path = &f->paths->paths[flow->path];

            if (is_open(f, path)) {
                add_grower(f, flow, path);
            }
        }
    }
}

/* Finds the flows of 'm' whose ports have bandwidth. */
static void
find_growers(struct growth *f, const struct member *m)
{
    f->n_growers = 0;
    f->n_used = 0;
    f->growers = order_grow(f->growers, m->n_flows, &f->allocated_growers,
                            sizeof *f->growers);
    for (size_t i = 0; i < m->n_ports; i++) {
        const struct unit_port *up = &m->ports[i];

        if (up->n && f->hops[up->port].left > 0) {
            add_growers_of_port(f, up);
        }
    }
}

/* Fixes the rate of 'g' of 'm' and removes it from the load of its ports. */
static void
fix_rate(struct growth *f, struct member *m, struct grower *g, double growth)
{
    g->stuck = true;
    if (growth <= 0) {
        return;
    }
    g->flow->rate = growth * g->bytes;
    g->flow->node.key = 1 / growth;
    m->moving[m->n_moving++] = g->flow;
    for (int k = 0; k < g->path->n_ports; k++) {
        struct hop *hop = &f->hops[g->path->ports[k]];

        hop->load -= g->bytes;
        hop->left -= g->flow->rate;
    }
}

/* Fixes the rates of all growers on 'port'. */
static void
close_port(struct growth *f, struct member *m, int port, double growth)
{
    struct hop *hop = &f->hops[port];

    for (size_t i = hop->first; i != NONE; ) {
        struct grower *g = &f->growers[i / SIM_FABRIC_MAX_PATH];

        if (!g->stuck) {
            fix_rate(f, m, g, growth);
        }
        i = g->next[i % SIM_FABRIC_MAX_PATH];
    }
    hop->first = NONE;
    hop->left = 0;
}

/* Computes the load of 'hop' again and removes the growers that are stuck. */
static void
sum_load(struct growth *f, struct hop *hop)
{
    size_t *link = &hop->first;

    hop->load = 0;
    while (*link != NONE) {
        struct grower *g = &f->growers[*link / SIM_FABRIC_MAX_PATH];
        size_t *next = &g->next[*link % SIM_FABRIC_MAX_PATH];

        if (g->stuck) {
            *link = *next;
        } else {
            hop->load += g->bytes;
            link = next;
        }
    }
    hop->exact = hop->load;
}

/* Removes rounding errors, which dominate a load after many subtractions. */
static void
clean_up_port(struct growth *f, int port)
{
    struct hop *hop = &f->hops[port];

    if (hop->load < hop->exact * RESUM) {
        sum_load(f, hop);
    }
    if (hop->left < FULL * f->capacity[port]) {
        hop->left = 0;
    }
}

/* Returns the rate per byte at which the first port is full if all growers
 * grow in proportion, INFINITY if there are none.  Removes ports without
 * growers. */
static double
find_growth(struct growth *f)
{
    double growth = INFINITY;
    int n = 0;

    for (int i = 0; i < f->n_used; i++) {
        int port = f->used[i];
        struct hop *hop = &f->hops[port];

        if (hop->first != NONE) {
            clean_up_port(f, port);
        }
        if (hop->first != NONE) {
            f->used[n++] = port;
            growth = fmin(growth, hop->left / hop->load);
        }
    }
    f->n_used = n;
    return growth;
}

/* Sets the rates of the flows of 'm', none of which has a rate, from 'now'
 * on. */
static void
growth_run(struct growth *f, struct member *m, double now)
{
    double growth;

    m->n_moving = m->n_checked = 0;
    find_growers(f, m);
    m->moving = order_grow(m->moving, f->n_growers, &m->allocated_moving,
                           sizeof *m->moving);
    while ((growth = find_growth(f)) < INFINITY) {
        for (int i = 0; i < f->n_used; i++) {
            const struct hop *hop = &f->hops[f->used[i]];

            if (hop->left <= growth * hop->load * (1 + FULL)) {
                close_port(f, m, f->used[i], growth);
            }
        }
    }
    for (size_t i = 0; i < m->n_moving; i++) {
        m->moving[i]->since = now;
        m->moving[i]->node.key += now;
    }
}

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
        free(f->ports[p].entries);
    }
    free(f->members);
    free(f->spare);
    free(f->changed);
    free(f->ports);
    free(f->dirty);
    free(f->updates.nodes);
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
    flow->node.key = INFINITY;
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
leave_port(struct fill *f, struct member *m, struct unit_port *up)
{
    struct port_list *port = &f->ports[up->port];

    port_list_remove(port, m);
    up->listed = false;
    if (!port->dirty) {
        port->dirty = true;
        f->dirty[f->n_dirty++] = up->port;
    }
}

/* Removes members from the lists of ports on which they have no flows. */
static void
leave_ports(struct fill *f)
{
    for (size_t i = 0; i < f->n_changed; i++) {
        struct member *m = f->changed[i];

        for (size_t j = 0; j < m->n_ports; j++) {
            if (m->ports[j].listed && !m->ports[j].n_flows) {
                leave_port(f, m, &m->ports[j]);
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
        port_list_sort(&f->ports[p]);
    }
}

/* Queues 'm' for an update of its rates, by rank, unless it is queued. */
static void
queue_update(struct fill *f, struct member *m)
{
    if (!heap_node_is_queued(&m->update)) {
        m->update.key = m->rank;
        m->update.seq = m->id;
        node_heap_push(&f->updates, &m->update);
    }
}

/* Returns the bandwidth of port 'p' that the entries before 'i' leave. */
static double
left_before(const struct fill *f, int p, size_t i)
{
    return i ? f->ports[p].entries[i - 1].left : f->capacity[p];
}

/* Queues an update of entry 'i' of port 'p', if there is one, if it would now
 * find another bandwidth. */
static void
check_entry(struct fill *f, int p, size_t i)
{
    const struct port_list *port = &f->ports[p];

    if (i < port->n
        && fabs(port->entries[i].found - left_before(f, p, i))
           > SAME * f->capacity[p]) {
        queue_update(f, port->entries[i].member);
    }
}

static void
check_port(struct fill *f, int p)
{
    for (size_t i = 0; i < f->ports[p].n; i++) {
        check_entry(f, p, i);
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

/* Moves 'm', which has no flows, to 'spare'. */
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

/* Adds members to the lists of ports on which they have flows. */
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
        for (size_t j = 0; j < m->n_ports; j++) {
            if (!m->ports[j].listed && m->ports[j].n_flows) {
                port_list_add(&f->ports[m->ports[j].port], m);
                m->ports[j].listed = true;
            }
        }
        queue_update(f, m);
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

/* Updates the node of 'm' in 'ends'. */
static void
set_end(struct fill *f, struct member *m)
{
    double end = INFINITY;

    for (size_t i = 0; i < m->n_moving; i++) {
        end = fmin(end, m->moving[i]->node.key);
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

/* Computes the rates of 'm' and queues the members that find another bandwidth
 * after it. */
static void
serve_member(struct fill *f, struct member *m, double now)
{
    settle_member(f, m, now);
    for (size_t i = 0; i < m->n_moving; i++) {
        m->moving[i]->rate = 0;
    }
    for (size_t i = 0; i < m->n_ports; i++) {
        struct unit_port *up = &m->ports[i];

        if (up->listed) {
            up->index = port_list_find(&f->ports[up->port], m);
            f->growth.hops[up->port].left = left_before(f, up->port,
                                                        up->index);
        }
    }
    growth_run(&f->growth, m, now);
    for (size_t i = 0; i < m->n_ports; i++) {
        const struct unit_port *up = &m->ports[i];
        struct port_entry *guest;

        if (up->listed) {
            guest = &f->ports[up->port].entries[up->index];
            guest->found = left_before(f, up->port, up->index);
            guest->left = f->growth.hops[up->port].left;
            check_entry(f, up->port, up->index + 1);
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
    while (f->updates.n) {
        struct heap_node *node = f->updates.nodes[0];

        node_heap_remove(&f->updates, node);
        serve_member(f, HEAP_NODE_OWNER(node, struct member, update), now);
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

/* Returns true if 'flow' has ended by 'now', regardless of rounding errors. */
static bool
has_ended(const struct flow *flow, double now)
{
    return flow->node.key <= now + now * RATES_TOGETHER
           || flow->remaining - flow->rate * (now - flow->since)
              <= RESIDUE * flow->bytes;
}

/* Returns a moving flow of 'm' that has ended, or NULL. */
static struct flow *
pop_flow(struct member *m, double now)
{
    while (m->n_checked < m->n_moving) {
        size_t i = m->n_moving - 1 - m->n_checked;
        struct flow *flow = m->moving[i];

        if (has_ended(flow, now)) {
            m->moving[i] = m->moving[--m->n_moving];
            return flow;
        }
        m->n_checked++;
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

        *flows = order_grow(*flows, n + m->n_moving, allocated,
                            sizeof **flows);
        for (size_t j = 0; j < m->n_moving; j++) {
            rates_show(rates_path(r, m->moving[j]), m->moving[j]->rate,
                       &(*flows)[n++]);
        }
    }
    return n;
}

const struct rates_class rates_fill = {
    .create = fill_create, .destroy = fill_destroy, .add = fill_add,
    .reorder = fill_reorder, .update = fill_update, .next = fill_next,
    .pop = fill_pop, .settle = fill_settle, .list = fill_list
};
