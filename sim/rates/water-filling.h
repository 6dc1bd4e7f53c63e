/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WATER_FILLING_H
#define WATER_FILLING_H 1

/* Shares of what the flows of a group have in common.
 *
 * All flows of a group grow at once, each by what it counts, until a port is
 * full; its flows keep their rates and the others grow on, until every flow
 * has a full port.  So the port that can give its flows least is a bottleneck
 * and gives them that, then the next.  Each such step only takes what earlier
 * ones have left, so when a flow ends, the steps before the one that gave it
 * its rate stay as they are: it had not been looked at then.  Filling goes on
 * from there.  Flows that begin may change all steps of their group.
 *
 * Where jobs take turns on uplinks, an uplink is shared by jobs, and what a
 * job gets there by its flows.
 *
 *    ...'left' of each lane of 'group' is what better ranks left, less what
 * the steps take that are kept; other bundles have no step...
 *    water_filling_fill(&w, &group, now);
 *    ...'granted' of all bundles in group.filled is right...
 *
 * Part of rates-fill.c.  One thread. */

#include <stdbool.h>
#include <stddef.h>

#include "sim/rates/bundle.h"
#include "sim/rates/rates.h"

/* What is left of a port below this share of its capacity is a rounding
 * error, not bandwidth for the next rank. */
#define WATER_RESIDUE 1e-10

/* What waits for its step: a lane, or a job on an uplink. */
struct tight {
    struct lane *lane;
    struct work *turn;          /* The job's, or NULL. */
    double share;               /* It can give its flows that, or more. */
};

struct water_filling {
    enum rates_rule rule;
    const double *capacity; /* Of each port, bytes per second. */
    int n_host_ports;       /* The first ports are the hosts'. */
    bool fills_all;         /* Flows that find a full port get a step
                             * too. */
    size_t n, allocated;
    struct tight *tight;        /* Heap, the smallest share first. */
};

/* Gives the flows of the group that have no step what its lanes have left. */
void water_filling_fill(struct water_filling *, struct group *, double now);

#endif /* sim/rates/water-filling.h */
