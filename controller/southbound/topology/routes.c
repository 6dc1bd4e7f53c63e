/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/topology/routes.h"

#include <stdlib.h>
#include <string.h>

#include "util.h"

#define FAR INT16_MAX

/* An end of a link, at the switch that it belongs to. */
struct cable {
    int link, end; /* Indexes in the topology. */
};

struct routes {
    const struct topology *t;
    bool *up;                   /* By link. */
    struct cable *cables;       /* Two of each link, by switch and link. */
    size_t *first;              /* Of each switch, and their number. */
    int16_t *hops;              /* From switch i to j: [i * n_switches + j]. */
    bool stale;                 /* 'up' is newer than 'hops'. */
};

static void
measure_from(struct routes *r, int from, int *queue)
{
    int16_t *hops = &r->hops[from * r->t->n_switches];
    size_t head = 0, tail = 0;

    for (size_t i = 0; i < r->t->n_switches; i++) {
        hops[i] = FAR;
    }
    hops[from] = 0;
    queue[tail++] = from;
    while (head < tail) {
        int at = queue[head++];

        for (size_t i = r->first[at]; i < r->first[at + 1]; i++) {
            const struct cable *c = &r->cables[i];
            int other = r->t->links[c->link].ends[!c->end].sw;

            if (r->up[c->link] && hops[other] == FAR) {
                hops[other] = hops[at] + 1;
                queue[tail++] = other;
            }
        }
    }
}

static void
measure(struct routes *r)
{
    int *queue = xcalloc(r->t->n_switches, sizeof *queue);

    for (size_t i = 0; i < r->t->n_switches; i++) {
        measure_from(r, i, queue);
    }
    free(queue);
    r->stale = false;
}

/* Sorts the ends of the links by switch. */
static void
lay_cables(struct routes *r)
{
    size_t *next = xcalloc(r->t->n_switches + 1, sizeof *next);

    r->cables = xcalloc(2 * r->t->n_links + 1, sizeof *r->cables);
    r->first = xcalloc(r->t->n_switches + 1, sizeof *r->first);
    for (size_t i = 0; i < 2 * r->t->n_links; i++) {
        r->first[r->t->links[i / 2].ends[i % 2].sw + 1]++;
    }
    for (size_t i = 0; i < r->t->n_switches; i++) {
        next[i] = r->first[i];
        r->first[i + 1] += r->first[i];
    }
    for (size_t i = 0; i < 2 * r->t->n_links; i++) {
        r->cables[next[r->t->links[i / 2].ends[i % 2].sw]++] =
            (struct cable){ i / 2, i % 2 };
    }
    free(next);
}

struct routes *
routes_create(const struct topology *t)
{
    struct routes *r = xzalloc(sizeof *r);

    r->t = t;
    r->up = xcalloc(t->n_links + 1, sizeof *r->up);
    memset(r->up, true, t->n_links);
    r->hops = xcalloc(t->n_switches * t->n_switches, sizeof *r->hops);
    lay_cables(r);
    measure(r);
    return r;
}

void
routes_destroy(struct routes *r)
{
    if (r) {
        free(r->up);
        free(r->cables);
        free(r->first);
        free(r->hops);
        free(r);
    }
}

bool
routes_set_up(struct routes *r, size_t link, bool up)
{
    if (r->up[link] == up) {
        return false;
    }
    r->up[link] = up;
    r->stale = true;
    return true;
}

size_t
routes_n_down(const struct routes *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->t->n_links; i++) {
        n += !r->up[i];
    }
    return n;
}

/* Returns true if 'c', at 'from', is on a shortest path from there to 'to'. */
static bool
leads(const struct routes *r, const struct cable *c, int from, int to)
{
    int other = r->t->links[c->link].ends[!c->end].sw;
    int n = r->hops[from * r->t->n_switches + to];

    return (r->up[c->link] && n != FAR
            && r->hops[other * r->t->n_switches + to] == n - 1);
}

void
routes_next(const struct routes *r, int from, int to, struct route_next *next)
{
    if (r->stale) { /* A dead switch changes many links. */
        measure(CONST_CAST(struct routes *, r));
    }
    next->n = 0;
    for (size_t i = r->first[from];
         i < r->first[from + 1] && next->n < ROUTES_MAX_NEXT; i++) {
        const struct cable *c = &r->cables[i];

        if (leads(r, c, from, to)) {
            next->hops[next->n++] =
                (struct route_hop){ c->link,
                                    r->t->links[c->link].ends[c->end] };
        }
    }
}
