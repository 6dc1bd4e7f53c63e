/* SPDX-License-Identifier: Apache-2.0 */

/* Rates by rank, each unit as a whole.
 *
 * A unit is done when the last of its flows is, so what it gets should let all
 * of them end together: its flows grow in proportion to what they have left
 * until one of their ports is full.  Those on that port stay at that, the
 * others grow on, until every flow has a full port; what is left is for the
 * next rank.  Nothing is wasted, no rank slows down a better one, and a unit
 * that is held up at one port leaves the others to those behind it.
 *
 * Within one unit this is MADD (Varys) made work-conserving.  Measured on the
 * Facebook trace, all there at the beginning, the same order of coflows: mean
 * 42.39 s, 0.03 % above ports that are independent of each other; whole ports
 * to one flow at a time cost 1.7 %.
 *
 * An event changes little in principle and all rates in practice, so they are
 * computed anew, but only for as long as there are ports that are not full:
 * units far behind cost one look at each of their ports. */

#include "sim/rates.h"

#include <math.h>
#include <stdbool.h>

#include "sim/memory.h"

/* Below this share of its capacity a port is full; below this share of its
 * bytes a flow has ended. */
#define RESIDUE 1e-9

/* A sum of which so much has been taken away is added up anew. */
#define LOST 1e-3

/* A flow, and the port where it leaves the network. */
struct entry {
    struct flow *flow;
    int last;
};

/* The flows of a unit that begin at one port. */
struct row {
    int port;
    size_t n, allocated;
    struct entry *entries;
};

/* The flows of a unit. */
struct member {
    struct unit *unit;          /* NULL once it has none, as it may be gone. */
    size_t n_flows;
    size_t n_rows, allocated_rows;
    struct row *rows;           /* Those without flows stay. */
};

/* A flow that gets a rate, while its unit is being filled. */
struct grower {
    struct flow *flow;
    const struct path *path;
    double bytes;               /* Left. */
    bool stuck;                 /* One of its ports is full. */
    size_t next[SIM_FABRIC_MAX_PATH];   /* On the same port, or NONE. */
};

struct hop {
    double left;                /* Bytes per second nobody has been given. */
    double load;                /* Bytes of the growers on it, */
    double exact;               /* and when they were last added up. */
    size_t first;               /* Of them: index * SIM_FABRIC_MAX_PATH + its
                                 * place in the path, or NONE. */
};

#define NONE ((size_t) -1)

struct fill {
    struct rates up;
    const double *capacity;
    int n_ports;
    struct hop *hops;           /* Of each port. */
    int n_host_ports;           /* The first ports are the hosts'. */
    int n_open[2];              /* Hosts' ports up, down, that are not
                                 * full. */
    size_t n_members, allocated_members;
    struct member **members;    /* By rank once sorted. */
    bool unsorted;
    size_t n_growers, allocated_growers;
    struct grower *growers;
    int *used;                  /* Ports of growers. */
    int n_used;
    size_t n_moving, allocated_moving;
    struct flow **moving;       /* Flows with a rate. */
    double next;                /* When the first of them ends. */
    size_t n_looked_at;         /* The last so many do not end then. */
};

static struct fill *
fill_cast(const struct rates *r)
{
    return (struct fill *) r;
}

static struct rates *
fill_create(const struct paths *paths)
{
    struct fill *f = sim_calloc(1, sizeof *f);

    f->capacity = paths->fabric->capacity;
    f->n_ports = paths->fabric->n_ports;
    f->n_host_ports = 2 * paths->fabric->n_hosts;
    f->hops = sim_calloc(f->n_ports, sizeof *f->hops);
    f->used = sim_calloc(f->n_ports, sizeof *f->used);
    f->next = INFINITY;
    return &f->up;
}

static void
member_destroy(struct member *m)
{
    for (size_t i = 0; i < m->n_rows; i++) {
        free(m->rows[i].entries);
    }
    free(m->rows);
    free(m);
}

static void
fill_destroy(struct rates *r)
{
    struct fill *f = fill_cast(r);

    for (size_t i = 0; i < f->n_members; i++) {
        member_destroy(f->members[i]);
    }
    free(f->members);
    free(f->growers);
    free(f->moving);
    free(f->hops);
    free(f->used);
    free(f);
}

static struct member *
find_member(struct fill *f, struct unit *unit)
{
    struct member *m = unit->member;

    if (!m) {
        m = sim_calloc(1, sizeof *m);
        m->unit = unit;
        unit->member = m;
        f->members = sim_grow(f->members, f->n_members + 1,
                              &f->allocated_members, sizeof *f->members);
        f->members[f->n_members++] = m;
        f->unsorted = true;
    }
    return m;
}

/* Flows are added by their source for the most part, so the row is the last
 * or near it. */
static struct row *
find_row(struct member *m, int port)
{
    for (size_t i = m->n_rows; i-- > 0; ) {
        if (m->rows[i].port == port) {
            return &m->rows[i];
        }
    }
    m->rows = sim_grow(m->rows, m->n_rows + 1, &m->allocated_rows,
                       sizeof *m->rows);
    m->rows[m->n_rows] = (struct row) { .port = port };
    return &m->rows[m->n_rows++];
}

static void
fill_add(struct rates *r, struct flow *flow, double now)
{
    const struct path *path = rates_path(r, flow);
    struct member *m = find_member(fill_cast(r), flow->unit);
    struct row *row = find_row(m, path->ports[0]);

    flow->rate = 0;
    flow->since = now;
    flow->key = INFINITY;
    flow->place = row->n;
    row->entries = sim_grow(row->entries, row->n + 1, &row->allocated,
                            sizeof *row->entries);
    row->entries[row->n++] = (struct entry) {
        flow, path->ports[path->n_ports - 1],
    };
    m->n_flows++;
}

static void
remove_flow(struct fill *f, struct flow *flow)
{
    struct member *m = flow->unit->member;
    struct row *row = find_row(m, rates_path(&f->up, flow)->ports[0]);

    row->entries[flow->place] = row->entries[--row->n];
    row->entries[flow->place].flow->place = flow->place;
    if (!--m->n_flows) {
        flow->unit->member = NULL;
        m->unit = NULL;
    }
}

static int
compare_members(const void *a_, const void *b_)
{
    const struct member *const *a = a_, *const *b = b_;

    if ((*a)->unit->rank != (*b)->unit->rank) {
        return (*a)->unit->rank < (*b)->unit->rank ? -1 : 1;
    }
    return ((*a)->unit->id > (*b)->unit->id)
           - ((*a)->unit->id < (*b)->unit->id);
}

/* Forgets units without flows and sorts the others by rank. */
static void
sort_members(struct fill *f)
{
    if (f->unsorted && f->n_members) {
        qsort(f->members, f->n_members, sizeof *f->members, compare_members);
    }
    f->unsorted = false;
}

static void
forget_empty(struct fill *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n_members; i++) {
        struct member *m = f->members[i];

        if (m->n_flows) {
            f->members[n++] = m;
        } else {
            member_destroy(m);
        }
    }
    f->n_members = n;
}

/* Returns true if no port between the first and the last of 'path' is full. */
static bool
is_open(const struct fill *f, const struct path *path)
{
    for (int k = 1; k < path->n_ports - 1; k++) {
        if (f->hops[path->ports[k]].left <= 0) {
            return false;
        }
    }
    return true;
}

static void
add_grower(struct fill *f, struct flow *flow, const struct path *path)
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
find_growers_of_row(struct fill *f, const struct row *row)
{
    for (size_t i = 0; i < row->n; i++) {
        if (f->hops[row->entries[i].last].left > 0) {
            struct flow *flow = row->entries[i].flow;
            const struct path *path = rates_path(&f->up, flow);

            if (is_open(f, path)) {
                add_grower(f, flow, path);
            }
        }
    }
}

/* Finds the flows of 'm' that can move. */
static void
find_growers(struct fill *f, const struct member *m)
{
    f->n_growers = 0;
    f->n_used = 0;
    f->growers = sim_grow(f->growers, m->n_flows, &f->allocated_growers,
                          sizeof *f->growers);
    for (size_t i = 0; i < m->n_rows; i++) {
        const struct row *row = &m->rows[i];

        if (row->n && f->hops[row->port].left > 0) {
            find_growers_of_row(f, row);
        }
    }
}

/* 'port' is full. */
static void
fill_up(struct fill *f, int port)
{
    struct hop *hop = &f->hops[port];

    if (hop->left > 0 && port < f->n_host_ports) {
        f->n_open[port % 2]--;
    }
    hop->left = 0;
}

/* 'g' grows no more, on any of its ports. */
static void
stick(struct fill *f, struct grower *g, double growth)
{
    g->stuck = true;
    if (growth <= 0) {
        return;
    }
    g->flow->rate = growth * g->bytes;
    g->flow->key = 1 / growth;
    f->moving[f->n_moving++] = g->flow;
    for (int k = 0; k < g->path->n_ports; k++) {
        struct hop *hop = &f->hops[g->path->ports[k]];

        hop->load -= g->bytes;
        hop->left -= g->flow->rate;
    }
}

/* Closes 'port' for all that grow on it. */
static void
close_port(struct fill *f, int port, double growth)
{
    struct hop *hop = &f->hops[port];

    for (size_t i = hop->first; i != NONE; ) {
        struct grower *g = &f->growers[i / SIM_FABRIC_MAX_PATH];

        if (!g->stuck) {
            stick(f, g, growth);
        }
        i = g->next[i % SIM_FABRIC_MAX_PATH];
    }
    hop->first = NONE;
    fill_up(f, port);
}

/* Adds up the load of 'hop' anew and forgets growers that are stuck. */
static void
add_up(struct fill *f, struct hop *hop)
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

/* What is left of a load by subtraction is rounding errors at some time. */
static void
tidy(struct fill *f, int port)
{
    struct hop *hop = &f->hops[port];

    if (hop->load < hop->exact * LOST) {
        add_up(f, hop);
    }
    if (hop->left < RESIDUE * f->capacity[port]) {
        fill_up(f, port);
    }
}

/* Returns the rate per byte at which the first port is full if all growers
 * grow alike, INFINITY if there are none.  Forgets ports without any. */
static double
find_growth(struct fill *f)
{
    double growth = INFINITY;
    int n = 0;

    for (int i = 0; i < f->n_used; i++) {
        int port = f->used[i];
        struct hop *hop = &f->hops[port];

        if (hop->first != NONE) {
            tidy(f, port);
        }
        if (hop->first != NONE) {
            f->used[n++] = port;
            growth = fmin(growth, hop->left / hop->load);
        }
    }
    f->n_used = n;
    return growth;
}

static void
fill_member(struct fill *f, const struct member *m)
{
    double growth;

    find_growers(f, m);
    if (!f->n_growers) {
        return;
    }
    f->moving = sim_grow(f->moving, f->n_moving + f->n_growers,
                         &f->allocated_moving, sizeof *f->moving);
    while ((growth = find_growth(f)) < INFINITY) {
        for (int i = 0; i < f->n_used; i++) {
            const struct hop *hop = &f->hops[f->used[i]];

            if (hop->left <= growth * hop->load * (1 + RESIDUE)) {
                close_port(f, f->used[i], growth);
            }
        }
    }
}

static void
fill_settle(struct rates *r, double now)
{
    struct fill *f = fill_cast(r);

    for (size_t i = 0; i < f->n_moving; i++) {
        flow_settle(f->moving[i], rates_path(r, f->moving[i]), now);
    }
}

static void
fill_update(struct rates *r, double now)
{
    struct fill *f = fill_cast(r);

    fill_settle(r, now);
    for (size_t i = 0; i < f->n_moving; i++) {
        f->moving[i]->rate = 0;
    }
    f->n_moving = 0;
    forget_empty(f);
    sort_members(f);
    for (int p = 0; p < f->n_ports; p++) {
        f->hops[p] = (struct hop) { .left = f->capacity[p], .first = NONE };
    }
    f->n_open[0] = f->n_open[1] = f->n_host_ports / 2;
    for (size_t i = 0; i < f->n_members && f->n_open[0] && f->n_open[1];
         i++) {
        fill_member(f, f->members[i]);
    }

    f->next = INFINITY;
    f->n_looked_at = 0;
    for (size_t i = 0; i < f->n_moving; i++) {
        f->moving[i]->since = now;
        f->moving[i]->key += now;
        f->next = fmin(f->next, f->moving[i]->key);
    }
}

static void
fill_reorder(struct rates *r, double now, bool kept)
{
    (void) now;
    (void) kept;
    fill_cast(r)->unsorted = true;
}

static double
fill_next(const struct rates *r)
{
    return fill_cast(r)->next;
}

/* Returns true if 'flow' has nothing left by 'now', but for rounding. */
static bool
has_ended(const struct flow *flow, double now)
{
    return flow->key <= now + now * RATES_TOGETHER
           || flow->remaining - flow->rate * (now - flow->since)
              <= RESIDUE * flow->bytes;
}

static struct flow *
fill_pop(struct rates *r, double now)
{
    struct fill *f = fill_cast(r);

    if (f->next > now + now * RATES_TOGETHER) {
        return NULL;
    }
    while (f->n_looked_at < f->n_moving) {
        size_t i = f->n_moving - 1 - f->n_looked_at;
        struct flow *flow = f->moving[i];

        if (!has_ended(flow, now)) {
            f->n_looked_at++;
        } else {
            f->moving[i] = f->moving[--f->n_moving];
            remove_flow(f, flow);
            flow_finish(flow, rates_path(r, flow));
            return flow;
        }
    }
    f->next = INFINITY;
    return NULL;
}

static size_t
fill_list(const struct rates *r, struct sim_flow **flows, size_t *allocated)
{
    const struct fill *f = fill_cast(r);

    *flows = sim_grow(*flows, f->n_moving, allocated, sizeof **flows);
    for (size_t i = 0; i < f->n_moving; i++) {
        const struct path *path = rates_path(r, f->moving[i]);
        struct sim_flow *flow = &(*flows)[i];

        flow->n_ports = path->n_ports;
        memcpy(flow->ports, path->ports, sizeof flow->ports);
        flow->rate = f->moving[i]->rate;
    }
    return f->n_moving;
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
