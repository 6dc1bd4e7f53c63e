/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/rates/unit.h"

#include <assert.h>
#include <limits.h>
#include <math.h>

#include "order/problem/memory.h"

/* As long as a flow has not ended some of it remains, at least that share. */
#define RESIDUE 1e-15

void
unit_maker_init(struct unit_maker *m, int n_ports)
{
    memset(m, 0, sizeof *m);
    m->n_ports = n_ports;
    m->place = order_alloc(n_ports, sizeof *m->place);
    for (int p = 0; p < n_ports; p++) {
        m->place[p] = -1;
    }
}

void
unit_maker_uninit(struct unit_maker *m)
{
    free(m->place);
    free(m->work);
}

/* Adds 'times' flows of 'bytes' each. */
void
unit_maker_add(struct unit_maker *m, const struct path *path, double bytes,
               int64_t times)
{
    for (int k = 0; k < path->n_ports; k++) {
        int p = path->ports[k];
        struct work *work;

        if (m->place[p] < 0) {
            m->place[p] = m->n;
            m->work = order_grow(m->work, m->n + 1, &m->allocated,
                                 sizeof *m->work);
            m->work[m->n++] = (struct work) { .port = p };
        }
        work = &m->work[m->place[p]];
        work->whole += times * bytes;
        work->n_whole += times;
    }
}

static int
compare_ports(const void *a_, const void *b_)
{
    const struct work *a = a_, *b = b_;

    return (a->port > b->port) - (a->port < b->port);
}

void
unit_maker_finish(struct unit_maker *m, struct unit *unit)
{
    if (m->n) {
        qsort(m->work, m->n, sizeof *m->work, compare_ports);
    }
    unit->n_work = m->n;
    unit->work = order_alloc(m->n, sizeof *unit->work);
    unit->bytes = order_alloc(m->n, sizeof *unit->bytes);
    for (size_t i = 0; i < m->n; i++) {
        unit->work[i] = m->work[i];
        m->place[m->work[i].port] = i;
    }
}

/* Lets 'flow', which takes 'path', know its places in the finished unit. */
void
unit_maker_bind(const struct unit_maker *m, const struct path *path,
                struct flow *flow)
{
    flow->work[0] = m->place[path->ports[0]];
    flow->work[1] = m->place[path->ports[path->n_ports - 1]];
}

void
unit_maker_clear(struct unit_maker *m)
{
    for (size_t i = 0; i < m->n; i++) {
        m->place[m->work[i].port] = -1;
    }
    m->n = 0;
}

void
unit_begin(struct unit *unit, const struct sim_fabric *fabric, double now)
{
    unit->begin = unit->since = now;
    unit->sent = unit->left = unit->initial = 0;
    unit->rate = unit->until = 0;
    unit->sent_limit = INFINITY;
    for (size_t i = 0; i < unit->n_work; i++) {
        struct work *work = &unit->work[i];

        unit->bytes[i] = work->whole;
        work->n_left = work->n_whole;
        unit->initial = fmax(unit->initial,
                             work->whole / fabric->capacity[work->port]);
        if (work->port < 2 * fabric->n_hosts && work->port % 2 == 0) {
            unit->left += work->whole;
        }
    }
}

void
unit_uninit(struct unit *unit)
{
    free(unit->work);
    free(unit->bytes);
}

/* Returns the index in 'work' of 'port', which 'unit' has. */
static size_t
find_work(const struct unit *unit, int port)
{
    size_t low = 0;
    size_t high = unit->n_work;

    while (high - low > 1) {
        size_t middle = (low + high) / 2;

        if (unit->work[middle].port <= port) {
            low = middle;
        } else {
            high = middle;
        }
    }
    assert(unit->work[low].port == port);
    return low;
}

size_t
flow_find_work(const struct flow *flow, const struct path *path, int k)
{
    return k == 0                   ? flow->work[0]
           : k == path->n_ports - 1 ? flow->work[1]
                                    : find_work(flow->unit, path->ports[k]);
}

/* Takes 'bytes' and 'n' flows off what remains on the ports of 'path'. */
static void
subtract(struct flow *flow, const struct path *path, double bytes, int n)
{
    struct unit *unit = flow->unit;

    for (int k = 0; k < path->n_ports; k++) {
        size_t i = flow_find_work(flow, path, k);

        unit->work[i].n_left -= n;
        unit->bytes[i] = unit->work[i].n_left
            ? fmax(unit->bytes[i] - bytes, 0) : 0;
    }
    unit->left = fmax(unit->left - bytes, 0);
}

void
flow_settle_at(struct flow *flow, const struct path *path, double now,
               double remaining)
{
    double bytes = flow->remaining - fmax(remaining, flow->bytes * RESIDUE);

    flow->since = now;
    if (bytes > 0) {
        flow->remaining -= bytes;
        subtract(flow, path, bytes, 0);
        flow->unit->sent += bytes;
    }
}

void
flow_settle(struct flow *flow, const struct path *path, double now)
{
    flow_settle_at(flow, path, now,
                   flow->remaining - flow->rate * (now - flow->since));
}

void
flow_finish(struct flow *flow, const struct path *path)
{
    subtract(flow, path, flow->remaining, 1);
    flow->unit->sent += flow->remaining;
    flow->remaining = 0;
}

void
unit_change_rate(struct unit *unit, double now, double change)
{
    unit->until += unit->rate * (now - unit->since);
    unit->since = now;
    unit->rate = fmax(unit->rate + change, 0);
}

double
unit_limit_time(const struct unit *unit)
{
    if (!isfinite(unit->sent_limit) || unit->rate <= 0) {
        return INFINITY;
    }
    return unit->since + (unit->sent_limit - unit->until) / unit->rate;
}

/* Gives the 'n' 'units' ranks between 'low' and 'high', evenly.  Returns false
 * if there is no room. */
static bool
spread_ranks(struct unit **units, size_t n, int low, int high)
{
    for (size_t i = 0; i < n; i++) {
        units[i]->rank = low + (int64_t) (high - low) * (i + 1) / (n + 1);
    }
    return (size_t) (high - low) > n;
}

/* Sets 'moved' of all 'n' 'units' but those of a longest subsequence whose
 * ranks rise: these stay where they are, and others move around them. */
static void
find_moved(struct unit **units, size_t n)
{
    size_t *last = order_alloc(n, sizeof *last); /* Of the subsequence of each
                                                  * length, the least. */
    size_t *before = order_alloc(n, sizeof *before);
    size_t longest = 0;

    for (size_t k = 0; k < n; k++) {
        int rank = units[k]->rank;
        size_t high = longest;
        size_t low = high && units[last[high - 1]]->rank < rank ? high : 0;

        while (low < high) {
            size_t middle = (low + high) / 2;

            if (units[last[middle]]->rank < rank) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        units[k]->moved = true;
        if (rank >= 0) {
            before[k] = low ? last[low - 1] : n;
            last[low] = k;
            longest = low == longest ? longest + 1 : longest;
        }
    }
    for (size_t k = longest ? last[longest - 1] : n; k < n; k = before[k]) {
        units[k]->moved = false;
    }
    free(before);
    free(last);
}

/* Lets ranks follow the order of the 'n' 'units'.  Ranks have gaps, so that
 * most orders change few of them: looking at the flows of a unit again is what
 * costs. */
void
units_set_ranks(struct unit **units, size_t n)
{
    int low = 0;
    size_t n_moved = 0;
    bool fits = true;

    find_moved(units, n);
    for (size_t k = 0; k < n && fits; k++) {
        if (units[k]->moved) {
            n_moved++;
        } else {
            fits = spread_ranks(&units[k - n_moved], n_moved, low,
                                units[k]->rank);
            low = units[k]->rank;
            n_moved = 0;
        }
    }
    if (!fits || !spread_ranks(&units[n - n_moved], n_moved, low, INT_MAX)) {
        spread_ranks(units, n, 0, INT_MAX);
    }
}
