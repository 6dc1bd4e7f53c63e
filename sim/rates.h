/* SPDX-License-Identifier: Apache-2.0 */

#ifndef RATES_H
#define RATES_H 1

/* How fast each flow goes at a moment.
 *
 *
 * Motivation
 * ==========
 *
 * Switches and shims serve levels strictly: a level gets what those before it
 * leave.  Inside a level TCP shares, of which max-min fairness is the usual
 * idealisation: no flow can be given more without taking from one that has no
 * more than it.  Rates change only when a flow begins or ends or changes its
 * level, which is what makes a simulation without time steps exact.
 *
 *
 * Usage
 * =====
 *
 *    struct rates *rates = rates_create(fabric);
 *    rates_compute(rates, flows, n);
 *    ...flows[i].rate...
 *    rates_destroy(rates);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A 'struct rates' is scratch space that grows with the flows and belongs to
 * one thread.  It keeps a reference to the fabric. */

#include <stddef.h>

#include "sim/fabric.h"

struct rates;

/* A flow on its way. */
struct sim_flow {
    int n_ports;                /* 1 to SIM_FABRIC_MAX_PATH. */
    int ports[SIM_FABRIC_MAX_PATH];
    int level;                  /* 0 is served first. */
    double rate;                /* Bytes per second, by rates_compute(). */
    double remaining;           /* Bytes; the simulation's, like the rest. */
    double bytes;               /* At the beginning. */
    void *owner;                /* Who waits for it, */
    int shard;                  /* and what part of the owner. */
};

struct rates *rates_create(const struct sim_fabric *);
void rates_destroy(struct rates *);

/* Sets 'rate' of all 'n' flows by water-filling, level by level. */
void rates_compute(struct rates *, struct sim_flow *, size_t n);

#endif /* sim/rates.h */
