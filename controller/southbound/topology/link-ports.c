/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/topology/link-ports.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/fabric.h"
#include "controller/southbound/topology/routes.h"
#include "controller/southbound/topology/topology.h"
#include "openvswitch/dynamic-string.h"
#include "util.h"

/* Switches of one side of a port that its name lists. */
#define MAX_NAMED 2

/* One direction of a link. */
struct way {
    int from, to;               /* Switches. */
    double capacity;            /* Bits per second, 0 if unknown. */
    uint64_t hash;              /* Of the traffic of all pairs of leaves and
                                 * its times, 0 without traffic. */
    size_t first;               /* First way of the same port. */
    int port;                   /* Of the fabric, -1 if none. */
};

/* Use of a way by the traffic between two leaves. */
struct use {
    size_t way;
    double share;               /* Of the traffic, 0 to 1. */
};

struct link_ports {
    const struct topology *t;
    const struct routes *routes;
    struct way *ways;           /* 2 * link + index of the end where it
                                 * begins. */
    size_t n_ways;
    int *leaves;                /* Switches with hosts. */
    int n_leaves;

    /* Scratch memory of find_uses(). */
    double *shares;             /* By switch. */
    int *queue;                 /* Of switches. */
    struct use *uses;           /* At most all ways. */
};

static void
find_leaves(struct link_ports *lp)
{
    bool *has_hosts = xcalloc(lp->t->n_switches, sizeof *has_hosts);

    for (size_t i = 0; i < lp->t->n_hosts; i++) {
        has_hosts[lp->t->hosts[i].at.sw] = true;
    }
    for (size_t i = 0; i < lp->t->n_switches; i++) {
        if (has_hosts[i]) {
            lp->leaves[lp->n_leaves++] = i;
        }
    }
    free(has_hosts);
}

static void
link_ports_init(struct link_ports *lp, const struct topology *t,
                const struct routes *routes)
{
    *lp = (struct link_ports) {
        .t = t, .routes = routes, .n_ways = 2 * t->n_links,
        .ways = xcalloc(2 * t->n_links + 1, sizeof *lp->ways),
        .leaves = xcalloc(t->n_switches, sizeof *lp->leaves),
        .shares = xcalloc(t->n_switches, sizeof *lp->shares),
        .queue = xcalloc(t->n_switches, sizeof *lp->queue),
        .uses = xcalloc(2 * t->n_links + 1, sizeof *lp->uses),
    };
    for (size_t i = 0; i < lp->n_ways; i++) {
        const struct topology_link *link = &t->links[i / 2];

        lp->ways[i] = (struct way) {
            .from = link->ends[i % 2].sw, .to = link->ends[!(i % 2)].sw,
            .capacity = link->capacity, .first = i, .port = -1,
        };
    }
    find_leaves(lp);
}

static void
link_ports_uninit(struct link_ports *lp)
{
    free(lp->ways);
    free(lp->leaves);
    free(lp->shares);
    free(lp->queue);
    free(lp->uses);
}

/* Stores the ways that traffic from switch 'from' uses by 'next', the
 * hops of all switches, in 'lp->uses'.  Returns their number. */
static size_t
find_uses(struct link_ports *lp, const struct route_next *next, int from)
{
    size_t n = 0, head = 0, tail = 0;

    memset(lp->shares, 0, lp->t->n_switches * sizeof *lp->shares);
    lp->shares[from] = 1;
    lp->queue[tail++] = from;
    while (head < tail) {
        int at = lp->queue[head++];
        double share = next[at].n ? lp->shares[at] / next[at].n : 0;

        /* All paths have the same length, so each switch is reached from all
         * those before it before it is visited. */
        for (size_t i = 0; i < next[at].n; i++) {
            const struct route_hop *hop = &next[at].hops[i];
            size_t way = 2 * hop->link;

            way += lp->ways[way].from != at;
            lp->uses[n++] = (struct use) { way, share };
            if (!lp->shares[lp->ways[way].to]) {
                lp->queue[tail++] = lp->ways[way].to;
            }
            lp->shares[lp->ways[way].to] += share;
        }
    }
    return n;
}

static double
seconds_per_bit(const struct link_ports *lp, const struct use *use)
{
    return use->share / lp->ways[use->way].capacity;
}

/* Adds the use of a way by the traffic of 'pair' to the way's hash.  Times
 * that differ by less than a float can express are equal. */
static void
hash_use(struct way *way, uint64_t pair, float seconds)
{
    uint32_t bits;

    memcpy(&bits, &seconds, sizeof bits);
    way->hash = (way->hash ^ (pair << 32 | bits)) * 0x9e3779b97f4a7c15;
    way->hash ^= way->hash >> 29;
    way->hash |= 1;
}

/* Adds the use of a way to the fabric: for the first of the ways that are one
 * port, because it is the same for the others. */
static void
add_use(const struct link_ports *lp, const struct use *use, int from, int to,
        struct fabric *f)
{
    const struct way *way = &lp->ways[use->way];

    if (way->first == use->way) {
        fabric_add_crossing(f, from, to, way->port, seconds_per_bit(lp, use));
    }
}

/* Visits the uses of all ways by the traffic between all leaves: adds them to
 * 'f' or, if that is NULL, to the hashes of the ways. */
static void
visit_uses(struct link_ports *lp, struct fabric *f)
{
    struct route_next *next = xcalloc(lp->t->n_switches, sizeof *next);

    for (int to = 0; to < lp->n_leaves; to++) {
        for (size_t sw = 0; sw < lp->t->n_switches; sw++) {
            routes_next(lp->routes, sw, lp->leaves[to], &next[sw]);
        }
        for (int from = 0; from < lp->n_leaves; from++) {
            size_t n = find_uses(lp, next, lp->leaves[from]);

            for (size_t i = 0; i < n; i++) {
                const struct use *use = &lp->uses[i];
                struct way *way = &lp->ways[use->way];

                if (way->capacity <= 0) {
                    continue;
                } else if (f) {
                    add_use(lp, use, from, to, f);
                } else {
                    hash_use(way, from * lp->n_leaves + to,
                             seconds_per_bit(lp, use));
                }
            }
        }
    }
    free(next);
}

/* Returns the first way of the port of way 'i'. */
static size_t
first_of(const struct link_ports *lp, size_t i)
{
    while (lp->ways[i].first != i) {
        i = lp->ways[i].first;
    }
    return i;
}

/* Makes one port of ways with the same use that begin or end at the same
 * switch. */
static void
merge_ways(struct link_ports *lp)
{
    for (size_t i = 0; i < lp->n_ways; i++) {
        const struct way *a = &lp->ways[i];

        for (size_t j = 0; a->hash && j < i; j++) {
            const struct way *b = &lp->ways[j];

            if (a->hash == b->hash && (a->from == b->from || a->to == b->to)) {
                size_t k = first_of(lp, i), l = first_of(lp, j);

                lp->ways[MAX(k, l)].first = MIN(k, l);
            }
        }
    }
    for (size_t i = 0; i < lp->n_ways; i++) {
        lp->ways[i].first = first_of(lp, i);
    }
}

/* Appends the names of the switches where the ways of the port with the first
 * way 'first' begin, or end if 'to' is true. */
static void
put_switches(const struct link_ports *lp, size_t first, bool to,
             struct ds *name)
{
    bool *named = xcalloc(lp->t->n_switches, sizeof *named);
    size_t n = 0;

    for (size_t i = first; i < lp->n_ways; i++) {
        const struct way *way = &lp->ways[i];
        int sw = to ? way->to : way->from;

        if (way->first == first && !named[sw]) {
            named[sw] = true;
            if (n < MAX_NAMED) {
                ds_put_format(name, "%s%s", n ? "+" : "",
                              lp->t->switches[sw].name);
            }
            n++;
        }
    }
    if (n > MAX_NAMED) {
        ds_put_format(name, "+%"PRIuSIZE, n - MAX_NAMED);
    }
    free(named);
}

static void
add_ports(struct link_ports *lp, struct fabric *f)
{
    for (size_t i = 0; i < lp->n_ways; i++) {
        if (lp->ways[i].hash && lp->ways[i].first == i) {
            struct ds name = DS_EMPTY_INITIALIZER;

            put_switches(lp, i, false, &name);
            ds_put_char(&name, '>');
            put_switches(lp, i, true, &name);
            lp->ways[i].port = fabric_add_port(f, ds_cstr(&name));
            ds_destroy(&name);
        }
    }
}

static void
add_hosts(const struct link_ports *lp, struct fabric *f)
{
    for (size_t i = 0; i < lp->t->n_hosts; i++) {
        const struct topology_host *host = &lp->t->hosts[i];
        int leaf = 0;

        while (lp->leaves[leaf] != host->at.sw) {
            leaf++;
        }
        fabric_add_host(f, host->name, host->ip, leaf);
    }
}

struct fabric *
link_ports_create(const struct topology *t, const struct routes *routes)
{
    struct link_ports lp;
    struct fabric *f;

    link_ports_init(&lp, t, routes);
    visit_uses(&lp, NULL);
    merge_ways(&lp);
    f = fabric_create(lp.n_leaves);
    add_ports(&lp, f);
    visit_uses(&lp, f);
    add_hosts(&lp, f);
    link_ports_uninit(&lp);
    return f;
}
