/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_WAITING_H
#define SIM_WAITING_H 1

/* Flows that wait for their two ports.
 *
 *
 * Motivation
 * ==========
 *
 * Whether a flow may begin depends on its ports and its rank alone.  So of all
 * flows that wait for a path only the first matters: if it may not begin,
 * those after it may not either.  There are a hundred paths at a port where
 * there are ten thousand flows.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Part of rates-greedy.c, which reads all of it. */

#include <stddef.h>
#include <stdint.h>

#include "sim/fabric/paths.h"
#include "sim/rates/unit.h"

/* A flow and, to be looked at without it, its unit. */
struct waiting_flow {
    struct flow *flow;
    struct unit *unit;
};

/* The flows that wait for a path, in no order but for the first. */
struct waiting_queue {
    size_t n, allocated;
    struct waiting_flow *flows;
    struct flow *first;         /* Best rank, then earliest begin. */
    uint32_t place[2];          /* In the lists of its two ports. */
};

/* A queue as one of its ports sees it: what is looked at of all, */
struct waiting_head {
    int rank;                   /* Of the queue's first flow. */
    int other;                  /* The port at the other end. */
};

/* and the rest. */
struct waiting_lane {
    const double *near;         /* Bytes that the unit of the queue's first
                                 * flow has left here, */
    const double *far;          /* and there. */
    uint32_t path;
    uint32_t lot;               /* Decides between flows that have as much to
                                 * do on both ends, as those of a shuffle.
                                 * Were it their age, all senders would want
                                 * to begin with the same receiver. */
};

/* The queues of a port that are not empty. */
struct waiting_port {
    size_t n;
    size_t allocated_heads, allocated_lanes;
    struct waiting_head *heads;
    struct waiting_lane *lanes;
};

struct waiting {
    const struct paths *paths;
    size_t n_queues, allocated_queues;
    struct waiting_queue *queues;       /* By path. */
    struct waiting_port *ports;
};

void waiting_init(struct waiting *, const struct paths *);
void waiting_uninit(struct waiting *);

/* Lets 'flow' wait, or no longer; uses its 'place'. */
void waiting_add(struct waiting *, struct flow *);
void waiting_remove(struct waiting *, struct flow *);

/* Looks for the first flow of each queue of 'port' anew, after ranks have
 * changed. */
void waiting_reorder(struct waiting *, int port);

#endif /* sim/rates/waiting.h */
