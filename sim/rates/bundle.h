/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_BUNDLE_H
#define SIM_BUNDLE_H 1

/* Flows that share one fate.
 *
 * Under levels that share inside, flows of one path and one level always have
 * the same rate.  So they are kept as one bundle, which counts the bytes that
 * each of its flows would have got had it been there from the start; a flow
 * ends when that count has grown by its size.  Changing a rate or ending a
 * flow then does not touch the other flows.
 *
 * A lane is what bundles of one level have in common on a port.
 *
 * Part of rates-share.c.  Numbers of bundles and lanes stay the same while
 * they have flows; pointers hold until the next flow is added. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/fabric/fabric.h"
#include "sim/fabric/paths.h"
#include "sim/rates/node-heap.h"

#define NO_BUNDLE UINT32_MAX

struct hop {
    uint32_t lane;
    uint32_t place;             /* In the lane's list. */
};

struct bundle {
    uint32_t path;
    uint32_t next;              /* Next bundle of the path, or next free. */
    int level;
    int n_hops;
    struct hop hops[SIM_FABRIC_MAX_PATH];
    struct node_heap flows;     /* By 'key', the count with which they end. */
    double rate;                /* Of each flow, bytes per second, */
    double since;               /* from then on, seconds, */
    double served;              /* when the count was that, bytes. */
    double end;                 /* When the first flow ends, seconds. */

    /* The water-filling's. */
    double floor;               /* Rate as a level that waits. */
    double share;               /* What came on top of that. */
    size_t step;                /* In which it came, NO_STEP if not yet. */
    bool emptied;               /* Waits to be removed. */
};

struct lane {
    int port;
    int level;
    uint32_t place;             /* In the level's list. */
    size_t n_waiting;           /* Flows of bundles without a step. */
    size_t n, allocated;
    uint32_t *bundles;
};

struct level {
    size_t n, allocated;
    uint32_t *lanes;            /* That have bundles. */
};

struct bundles {
    const struct paths *paths;
    size_t n_bundles, allocated_bundles;
    struct bundle *bundles;
    uint32_t free_bundle;
    size_t n_lanes, allocated_lanes;
    struct lane *lanes;
    size_t n_levels, allocated_levels;
    struct level *levels;       /* 0 is served first. */
    size_t n_first, allocated_first;
    uint32_t *first;            /* Bundle of each path. */
    struct level *ports;        /* Lanes of each port, in use or not. */
};

#define NO_STEP SIZE_MAX

void bundles_init(struct bundles *, const struct paths *);
void bundles_uninit(struct bundles *);

/* Returns the number of the bundle of 'path' and 'level', which is added
 * without flows and with a count of 0 from 'now' on if it is new. */
uint32_t bundles_find(struct bundles *, uint32_t path, int level, double now);

/* Removes a bundle without flows. */
void bundles_remove(struct bundles *, uint32_t bundle);

/* What the count of 'bundle' is at 'now'. */
static inline double
bundle_served(const struct bundle *bundle, double now)
{
    return bundle->served + bundle->rate * (now - bundle->since);
}

#endif /* sim/rates/bundle.h */
