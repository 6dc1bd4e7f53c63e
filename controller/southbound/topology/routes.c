/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/southbound/topology/routes.h"

#include <stdlib.h>
#include <string.h>

#include "util.h"

#define FAR INT16_MAX

struct routes {
    const struct topology *t;
    bool *up;                   /* By link. */
    int16_t *hops;              /* From switch i to j: [i * n_switches + j]. */
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

        for (size_t i = 0; i < r->t->n_links; i++) {
            const struct topology_link *link = &r->t->links[i];

            for (int end = 0; r->up[i] && end < 2; end++) {
                int other = link->ends[!end].sw;

                if (link->ends[end].sw == at && hops[other] == FAR) {
                    hops[other] = hops[at] + 1;
                    queue[tail++] = other;
                }
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
}

struct routes *
routes_create(const struct topology *t)
{
    struct routes *r = xzalloc(sizeof *r);

    r->t = t;
    r->up = xcalloc(t->n_links + 1, sizeof *r->up);
    memset(r->up, true, t->n_links);
    r->hops = xcalloc(t->n_switches * t->n_switches, sizeof *r->hops);
    measure(r);
    return r;
}

void
routes_destroy(struct routes *r)
{
    if (r) {
        free(r->up);
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
    measure(r);
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

static int
hops(const struct routes *r, int from, int to)
{
    return r->hops[from * r->t->n_switches + to];
}

/* Returns the end of 'link' at which a shortest path from 'from' to 'to'
 * enters it, or -1 if no shortest path uses it. */
static int
end_towards(const struct routes *r, size_t link, int from, int to)
{
    const struct topology_link *l = &r->t->links[link];

    for (int end = 0; r->up[link] && end < 2; end++) {
        if (l->ends[end].sw == from && hops(r, from, to) != FAR
            && hops(r, l->ends[!end].sw, to) == hops(r, from, to) - 1) {
            return end;
        }
    }
    return -1;
}

size_t
routes_next(const struct routes *r, int from, int to, uint32_t *ports,
            size_t max)
{
    size_t n = 0;

    for (size_t i = 0; from != to && n < max && i < r->t->n_links; i++) {
        int end = end_towards(r, i, from, to);

        if (end >= 0) {
            ports[n++] = r->t->links[i].ends[end].port;
        }
    }
    return n;
}

void
routes_next_to(const struct routes *r, int to, struct route_next *next)
{
    for (size_t i = 0; i < r->t->n_switches; i++) {
        next[i].n = 0;
    }
    for (size_t i = 0; i < r->t->n_links; i++) {
        const struct topology_link *link = &r->t->links[i];

        for (int end = 0; end < 2; end++) {
            struct route_next *from = &next[link->ends[end].sw];

            if (from->n < ROUTES_MAX_NEXT
                && end_towards(r, i, link->ends[end].sw, to) == end) {
                from->hops[from->n++] =
                    (struct route_hop){ i, link->ends[end] };
            }
        }
    }
}
