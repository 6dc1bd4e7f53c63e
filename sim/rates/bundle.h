/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_BUNDLE_H
#define SIM_BUNDLE_H 1

/* Flows that share one fate.
 *
 * A group is what is served as a whole before other groups: the flows of a
 * unit, those of a level, or all.  Flows of one path and one group, and where
 * units count differently also of one unit, have the same rate.  So they are
 * kept as one bundle, which counts the bytes that each of its flows would have
 * got had it been there from the start; a flow ends when that count has grown
 * by its size.  Changing a rate or ending a flow then does not touch the other
 * flows.
 *
 * A lane is what bundles of one group have in common on a port.
 *
 * Part of rates-fill.c, which lists the lanes of each port by rank and decides
 * when a group is filled; water-filling.h does that.  Groups own their lanes.
 * One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/fabric/paths.h"
#include "sim/rates/node-heap.h"
#include "sim/rates/unit.h"

#define NO_STEP SIZE_MAX

struct hop {
    struct lane *lane;
    size_t place; /* In the lane's list. */
};

struct bundle {
    struct bundle *next; /* Of the path. */
    struct group *group;
    struct unit *unit; /* Of all its flows; NULL if they are of several, or
                        * have ended. */
    struct work *turn; /* On its uplink, if jobs take turns there. */
    size_t moving;     /* Place in rates-fill.c's list of bundles that have
                        * moved, from 1 on, or 0. */
    uint32_t path;
    bool emptied; /* Waits to be removed. */

    struct node_heap flows; /* By 'key', the count with which they end. */
    double keys;            /* Sum of these. */
    double rate;            /* Of each flow, bytes per second, */
    double since;           /* from then on, seconds, */
    double served;          /* when the count was that, bytes. */
    double end;             /* When the first flow ends, seconds. */

    /* The water-filling's. */
    double floor;   /* Of each flow by the minimum share of its level,
                     * bytes per second. */
    double each;    /* What each flow counts. */
    double granted; /* To all flows on top of 'floor'. */
    size_t step;    /* Step in which 'granted' was set, or NO_STEP. */
    bool waits;     /* For its step, while the group is filled. */

    int n_hops;
    struct hop hops[];
};

/* A bundle on a lane. */
struct guest {
    struct bundle *bundle;
    const struct lane *far; /* At the other end of its path; most bundles
                             * are left out by that alone. */
};

struct lane {
    int port;
    struct group *group;
    size_t place;             /* In the group's 'used', if it has bundles. */
    bool listed;              /* On the port, between the lanes */
    struct lane *prev, *next; /* of better and of worse ranks. */
    double found;             /* Bytes per second that better ranks left, */
    double left;              /* and that this group leaves. */
    double reserved;          /* Minimum share that flows of it use. */
    size_t n, allocated;
    struct guest *guests;

    /* While the group is filled. */
    size_t n_waiting; /* Bundles that wait, or jobs that wait for
                       * their turns. */
    double load;      /* What these count... */
    double exact;     /* ...when it was last added up. */
};

/* A lane gave its waiting bundles what it could. */
struct step {
    size_t first; /* Of its bundles in 'filled'. */
    double end;   /* When the first flow of them ends. */
};

struct group {
    struct unit *unit; /* Of all its flows; NULL if they are of
                        * several, or have ended. */
    int rank;          /* The least is first, */
    uint64_t id;       /* then the least of these. */
    size_t index;      /* In rates-fill.c's 'groups'. */
    size_t n_flows;
    size_t n_lanes;
    struct lane *lanes; /* By the unit's work, or by port. */
    size_t n_used, allocated_used;
    struct lane **used; /* Those that have bundles. */
    size_t n_steps, allocated_steps;
    struct step *steps;
    size_t n_filled, allocated_filled;
    struct bundle **filled;  /* By step. */
    bool changed;            /* Flows came or went since the last update. */
    size_t restart;          /* First step to compute, or NO_STEP. */
    size_t at_step, at;      /* No flow of a step or a bundle before that
                              * ends now. */
    struct heap_node update; /* In 'updates', by rank. */
    struct heap_node end;    /* In 'ends', by the first end of a flow. */
};

/* Makes a group of 'unit', or one that has 'n_ports' lanes. */
struct group *group_create(struct unit *unit, int n_ports);
void group_destroy(struct group *);

/* Behind the last of the bundles of 'step' in 'filled'. */
static inline size_t
group_step_end(const struct group *g, size_t step)
{
    return step + 1 < g->n_steps ? g->steps[step + 1].first : g->n_filled;
}

/* The bundles of each path. */
struct bundles {
    const struct paths *paths;
    size_t n, allocated;
    struct bundle **first;
};

void bundles_uninit(struct bundles *);

/* Returns the bundle of 'group' and 'unit', which may be NULL, on the path of
 * 'flow'.  It is added without flows and with a count of 0 from 'now' on if it
 * is new. */
struct bundle *bundles_find(struct bundles *, struct group *group,
                            struct unit *unit, const struct flow *flow,
                            double now);

/* Removes a bundle without flows. */
void bundles_remove(struct bundles *, struct bundle *);

/* What the count of 'bundle' is at 'now'. */
static inline double
bundle_served(const struct bundle *bundle, double now)
{
    return bundle->served + bundle->rate * (now - bundle->since);
}

#endif /* sim/rates/bundle.h */
