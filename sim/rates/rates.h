/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RATES_H
#define RATES_H 1

/* Rate of each flow, and which flow ends next.
 *
 * Rates change only when a flow begins or ends or when the order changes, so a
 * simulation without time steps is exact.  Two allocators have the rules: one
 * serves flows that share together (rates-fill.c), the other units by MADD
 * (rates-madd.c).  Both update only the rates that an event changes, because
 * traces have a million flows.
 *
 *    struct rates *rates = rates_create(RATES_FILL, &paths);
 *    rates->class->add(rates, flow, now);        // Any number of flows.
 *    rates->class->reorder(rates, now);          // If units changed places.
 *    rates->class->update(rates, now);
 *    now = rates->class->next(rates);
 *    while ((flow = rates->class->pop(rates, now))) {
 *        ...flow has ended; maybe add() one...
 *    }
 *    rates->class->update(rates, now);
 *    rates_destroy(rates);
 *
 * Flows and paths are the caller's; a flow must stay where it is until it is
 * popped.  One thread. */

#include <stdbool.h>
#include <stddef.h>

#include "sim/fabric/paths.h"
#include "sim/rates/unit.h"

/* A flow with a rate, for observers of a simulation.  Flows with the same path
 * and rate may be shown as one. */
struct sim_flow {
    int n_ports;                /* 2 to SIM_FABRIC_MAX_PATH. */
    int ports[SIM_FABRIC_MAX_PATH];
    double rate;                /* Bytes per second, > 0. */
};

enum rates_rule {
    RATES_FILL,  /* By rank; the flows of a unit in proportion to what they
                  * have left. */
    RATES_SHARE, /* By level; flows share inside. */
    RATES_TURNS, /* Jobs take turns on uplinks; no ranks. */
    RATES_MLTCP, /* Flows share by weights; no ranks. */
    RATES_MADD,  /* By rank, each unit just fast enough, then flow after
                  * flow. */
};

struct rates {
    const struct rates_class *class;
    enum rates_rule rule;
    const struct paths *paths;
    double min_share;           /* See struct sim_options; 0 to 1. */
    bool watches;               /* Units have limits, so their 'rate' must be
                                 * updated, from the first reorder() on. */
};

/* A rate allocation.  'now' is in seconds and never falls. */
struct rates_class {
    struct rates *(*create)(const struct paths *, enum rates_rule);
    void (*destroy)(struct rates *);

    /* 'flow' begins, all members set but 'rate', 'key' and 'place'. */
    void (*add)(struct rates *, struct flow *, double now);

    /* The ranks, levels or limits of some units have changed; at most once
     * between two updates.  Units whose 'moved' is false have kept their
     * order. */
    void (*reorder)(struct rates *, double now);

    /* Makes rates valid after any of the above and after pops. */
    void (*update)(struct rates *, double now);

    /* Returns the time of the next end of a flow, INFINITY if no flow has a
     * rate. */
    double (*next)(const struct rates *);

    /* Returns a flow that has ended by 'now', settled, or NULL. */
    struct flow *(*pop)(struct rates *, double now);

    /* Brings 'remaining' of all flows and the work of their units up to
     * 'now'. */
    void (*settle)(struct rates *, double now);

    /* Stores the flows with a rate in '*flows', an array with space for
     * '*allocated' that grows, and returns their number. */
    size_t (*list)(const struct rates *, struct sim_flow **flows,
                   size_t *allocated);
};

extern const struct rates_class rates_fill, rates_madd;

/* Flows that would end within this share of the clock after 'now' end now: the
 * difference is a rounding error. */
#define RATES_TOGETHER 1e-12

/* A flow with less than this share of its bytes has ended. */
#define RATES_RESIDUE 1e-9

struct rates *rates_create(enum rates_rule, const struct paths *);
void rates_destroy(struct rates *);

/* Helpers of the classes. */

/* Stores a flow of 'path'. */
void rates_show(const struct path *, double rate, struct sim_flow *);

static inline const struct path *
rates_path(const struct rates *r, const struct flow *flow)
{
    return &r->paths->paths[flow->path];
}

#endif /* sim/rates/rates.h */
