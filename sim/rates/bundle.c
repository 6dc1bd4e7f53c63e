/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/rates/bundle.h"

#include <assert.h>
#include <math.h>

#include "order/problem/memory.h"

void
bundles_init(struct bundles *bs, const struct paths *paths)
{
    *bs = (struct bundles) {
        .paths = paths, .free_bundle = NO_BUNDLE,
        .ports = order_alloc(paths->fabric->n_ports, sizeof *bs->ports),
    };
}

void
bundles_uninit(struct bundles *bs)
{
    for (size_t i = 0; i < bs->n_bundles; i++) {
        free(bs->bundles[i].flows.nodes);
    }
    for (size_t i = 0; i < bs->n_lanes; i++) {
        free(bs->lanes[i].bundles);
    }
    for (size_t i = 0; i < bs->n_levels; i++) {
        free(bs->levels[i].lanes);
    }
    for (int p = 0; p < bs->paths->fabric->n_ports; p++) {
        free(bs->ports[p].lanes);
    }
    free(bs->bundles);
    free(bs->lanes);
    free(bs->levels);
    free(bs->first);
    free(bs->ports);
}

static void
add_lane(struct level *level, uint32_t lane)
{
    level->lanes = order_grow(level->lanes, level->n + 1, &level->allocated,
                              sizeof *level->lanes);
    level->lanes[level->n++] = lane;
}

/* Returns the lane of 'port' and 'level', which is added if it is new. */
static uint32_t
find_lane(struct bundles *bs, int port, int level)
{
    const struct level *lanes = &bs->ports[port];

    for (size_t i = 0; i < lanes->n; i++) {
        if (bs->lanes[lanes->lanes[i]].level == level) {
            return lanes->lanes[i];
        }
    }
    bs->lanes = order_grow(bs->lanes, bs->n_lanes + 1, &bs->allocated_lanes,
                           sizeof *bs->lanes);
    bs->lanes[bs->n_lanes] = (struct lane) { .port = port, .level = level };
    add_lane(&bs->ports[port], bs->n_lanes);
    return bs->n_lanes++;
}

/* Puts hop 'k' of 'bundle' on its lane. */
static void
link_hop(struct bundles *bs, uint32_t bundle, int k)
{
    struct bundle *b = &bs->bundles[bundle];
    int port = bs->paths->paths[b->path].ports[k];
    struct hop *hop = &b->hops[k];
    struct lane *lane;

    hop->lane = find_lane(bs, port, b->level);
    lane = &bs->lanes[hop->lane];
    if (!lane->n) {
        lane->place = bs->levels[b->level].n;
        add_lane(&bs->levels[b->level], hop->lane);
    }
    lane->bundles = order_grow(lane->bundles, lane->n + 1, &lane->allocated,
                               sizeof *lane->bundles);
    hop->place = lane->n;
    lane->bundles[lane->n++] = bundle;
}

/* Lets 'lane' know that it now lists 'bundle' at 'place'. */
static void
move_hop(struct bundles *bs, uint32_t lane, uint32_t bundle, uint32_t place)
{
    struct bundle *b = &bs->bundles[bundle];

    bs->lanes[lane].bundles[place] = bundle;
    for (int k = 0; k < b->n_hops; k++) {
        if (b->hops[k].lane == lane) {
            b->hops[k].place = place;
        }
    }
}

static void
unlink_hop(struct bundles *bs, const struct hop *hop)
{
    struct lane *lane = &bs->lanes[hop->lane];

    lane->n--;
    if (hop->place < lane->n) {
        move_hop(bs, hop->lane, lane->bundles[lane->n], hop->place);
    }
    if (!lane->n) {
        struct level *level = &bs->levels[lane->level];
        uint32_t last = level->lanes[--level->n];

        level->lanes[lane->place] = last;
        bs->lanes[last].place = lane->place;
    }
}

static uint32_t
new_bundle(struct bundles *bs)
{
    uint32_t i = bs->free_bundle;

    if (i != NO_BUNDLE) {
        bs->free_bundle = bs->bundles[i].next;
        return i;
    }
    bs->bundles = order_grow(bs->bundles, bs->n_bundles + 1,
                             &bs->allocated_bundles, sizeof *bs->bundles);
    memset(&bs->bundles[bs->n_bundles], 0, sizeof *bs->bundles);
    return bs->n_bundles++;
}

/* Makes room for 'path' and 'level'. */
static void
grow(struct bundles *bs, uint32_t path, int level)
{
    bs->first = order_grow(bs->first, path + 1, &bs->allocated_first,
                           sizeof *bs->first);
    while (bs->n_first <= path) {
        bs->first[bs->n_first++] = NO_BUNDLE;
    }
    bs->levels = order_grow(bs->levels, level + 1, &bs->allocated_levels,
                            sizeof *bs->levels);
    while (bs->n_levels <= (size_t) level) {
        memset(&bs->levels[bs->n_levels++], 0, sizeof *bs->levels);
    }
}

uint32_t
bundles_find(struct bundles *bs, uint32_t path, int level, double now)
{
    struct bundle *b;
    uint32_t i;

    assert(level >= 0);
    grow(bs, path, level);
    for (i = bs->first[path]; i != NO_BUNDLE; i = bs->bundles[i].next) {
        if (bs->bundles[i].level == level) {
            return i;
        }
    }
    i = new_bundle(bs);
    b = &bs->bundles[i];
    *b = (struct bundle) {
        .path = path, .next = bs->first[path], .level = level,
        .n_hops = bs->paths->paths[path].n_ports, .flows = b->flows,
        .since = now, .end = INFINITY, .step = NO_STEP,
    };
    bs->first[path] = i;
    for (int k = 0; k < b->n_hops; k++) {
        link_hop(bs, i, k);
    }
    return i;
}

void
bundles_remove(struct bundles *bs, uint32_t bundle)
{
    struct bundle *b = &bs->bundles[bundle];
    uint32_t *link = &bs->first[b->path];

    assert(!b->flows.n);
    while (*link != bundle) {
        link = &bs->bundles[*link].next;
    }
    *link = b->next;
    for (int k = 0; k < b->n_hops; k++) {
        unlink_hop(bs, &b->hops[k]);
    }
    b->next = bs->free_bundle;
    bs->free_bundle = bundle;
}
