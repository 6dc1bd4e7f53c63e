/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/rates/bundle.h"

#include <assert.h>
#include <math.h>

#include "order/problem/memory.h"

struct group *
group_create(struct unit *unit, int n_ports)
{
    struct group *g = order_alloc(1, sizeof *g);

    g->unit = unit;
    g->n_lanes = unit ? unit->n_work : (size_t) n_ports;
    g->lanes = order_alloc(g->n_lanes, sizeof *g->lanes);
    for (size_t i = 0; i < g->n_lanes; i++) {
        g->lanes[i].port = unit ? unit->work[i].port : (int) i;
        g->lanes[i].group = g;
    }
    return g;
}

void
group_destroy(struct group *g)
{
    for (size_t i = 0; i < g->n_lanes; i++) {
        free(g->lanes[i].guests);
    }
    free(g->lanes);
    free(g->used);
    free(g->steps);
    free(g->filled);
    free(g);
}

static void
destroy(struct bundle *b)
{
    free(b->flows.nodes);
    free(b);
}

void
bundles_uninit(struct bundles *bs)
{
    for (size_t i = 0; i < bs->n; i++) {
        struct bundle *next;

        for (struct bundle *b = bs->first[i]; b; b = next) {
            next = b->next;
            destroy(b);
        }
    }
    free(bs->first);
}

static void
link_hop(struct bundle *b, int k, struct lane *lane, const struct lane *far)
{
    struct group *g = lane->group;

    if (!lane->n) {
        g->used = order_grow(g->used, g->n_used + 1, &g->allocated_used,
                             sizeof *g->used);
        lane->place = g->n_used;
        g->used[g->n_used++] = lane;
    }
    b->hops[k] = (struct hop){ lane, lane->n };
    lane->guests = order_grow(lane->guests, lane->n + 1, &lane->allocated,
                              sizeof *lane->guests);
    lane->guests[lane->n++] = (struct guest){ b, far };
}

static void
unlink_hop(const struct hop *hop)
{
    struct lane *lane = hop->lane;
    struct guest guest = lane->guests[--lane->n];
    struct bundle *last = guest.bundle;

    lane->guests[hop->place] = guest;
    for (int k = 0; k < last->n_hops; k++) {
        if (last->hops[k].lane == lane) {
            last->hops[k].place = hop->place;
        }
    }
    if (!lane->n) {
        struct group *g = lane->group;

        g->used[lane->place] = g->used[--g->n_used];
        g->used[lane->place]->place = lane->place;
    }
}

static struct lane *
find_lane(const struct group *g, const struct flow *flow,
          const struct path *path, int k)
{
    return &g->lanes[g->unit ? flow_find_work(flow, path, k)
                             : (size_t) path->ports[k]];
}

static struct bundle *
add_bundle(struct bundles *bs, struct group *group, struct unit *unit,
           const struct flow *flow, double now)
{
    const struct path *path = &bs->paths->paths[flow->path];
    int n = path->n_ports;
    struct bundle *b = order_alloc(1, sizeof *b + n * sizeof *b->hops);

    *b = (struct bundle){ .next = bs->first[flow->path],
                          .group = group,
                          .unit = unit,
                          .path = flow->path,
                          .since = now,
                          .end = INFINITY,
                          .step = NO_STEP,
                          .n_hops = n };
    bs->first[flow->path] = b;
    for (int k = 0; k < n; k++) {
        link_hop(b, k, find_lane(group, flow, path, k),
                 find_lane(group, flow, path, k == n - 1 ? 0 : n - 1));
    }
    return b;
}

struct bundle *
bundles_find(struct bundles *bs, struct group *group, struct unit *unit,
             const struct flow *flow, double now)
{
    bs->first = order_grow(bs->first, flow->path + 1, &bs->allocated,
                           sizeof *bs->first);
    while (bs->n <= flow->path) {
        bs->first[bs->n++] = NULL;
    }
    for (struct bundle *b = bs->first[flow->path]; b; b = b->next) {
        if (b->group == group && b->unit == unit) {
            return b;
        }
    }
    return add_bundle(bs, group, unit, flow, now);
}

void
bundles_remove(struct bundles *bs, struct bundle *b)
{
    struct bundle **link = &bs->first[b->path];

    assert(!b->flows.n);
    while (*link != b) {
        link = &(*link)->next;
    }
    *link = b->next;
    for (int k = 0; k < b->n_hops; k++) {
        unlink_hop(&b->hops[k]);
    }
    destroy(b);
}
