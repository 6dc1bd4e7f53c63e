/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOOKAHEAD_LEVEL_RATES_H
#define LOOKAHEAD_LEVEL_RATES_H 1

/* Rates of flows that are served by levels.
 *
 * Each level gets its minimum share of each port, then what the levels before
 * it have left.  Inside a level flows share as TCP does, max-min fair.  A
 * level is computed again only if its flows changed, or if it finds other
 * bandwidth at a port of one of its flows.
 *
 *    level_rates_add(&r, flow, level, bytes, now);       // Any number.
 *    level_rates_update(&r, now);
 *    now = level_rates_next(&r);
 *    while ((flow = level_rates_pop(&r, now))) {
 *        ...flow has ended; maybe add one...
 *    }
 *    level_rates_update(&r, now);
 *
 * Unlike the rates of the simulator (sim/rates/), these are for few flows and
 * many simulations: nothing is allocated after the begin.  Flows are the
 * caller's.  Part of judge.c; one thread. */

#include <stdbool.h>
#include <stddef.h>

struct level;

struct level_flow {
    const int *ports; /* Set by the caller. */
    int n_ports;

    bool moves; /* The members below are valid only then. */
    size_t level;
    size_t place;       /* In the list of its level. */
    double left, since; /* Bytes left at a time in seconds, */
    double rate;        /* and bytes per second from then on. */
    double end;         /* When it ends at that rate, seconds. */
    double floor;       /* Rate by the minimum share of its level. */
    double granted;     /* While rates are computed. */
};

/* What a port has for the flows of a level. */
struct level_port {
    double left;   /* Bytes per second. */
    int n_waiting; /* Flows without a rate. */
};

struct level_rates {
    int n_ports;
    const double *capacity; /* Of each port, bytes per second. */
    double min_share;       /* Of each port for each level. */
    size_t n_levels;
    struct level *levels; /* 0 is served first. */
    double *reserved;     /* Minimum shares of all levels of each port, bytes
                           * per second. */
    bool changed;         /* Rates are not valid. */

    /* For one level. */
    struct level_port *ports;
    struct level_flow **waiting;
};

/* For at most 'n_flows' flows at a time. */
void level_rates_init(struct level_rates *, int n_ports,
                      const double *capacity, size_t n_levels, size_t n_flows,
                      double min_share);
void level_rates_uninit(struct level_rates *);

/* Removes all flows. */
void level_rates_clear(struct level_rates *);

/* Lets 'bytes' of 'flow', which does not move, move at 'level', or the last
 * one. */
void level_rates_add(struct level_rates *, struct level_flow *, size_t level,
                     double bytes, double now);

/* Changes the level of 'flow', which moves. */
void level_rates_move(struct level_rates *, struct level_flow *, size_t level);

/* Makes rates valid after any of the above and after pops. */
void level_rates_update(struct level_rates *, double now);

/* Returns the time of the next end of a flow, INFINITY if no flow has a
 * rate. */
double level_rates_next(const struct level_rates *);

/* Removes and returns a flow that has ended by 'now', or NULL. */
struct level_flow *level_rates_pop(struct level_rates *, double now);

#endif /* order/lookahead/level-rates.h */
