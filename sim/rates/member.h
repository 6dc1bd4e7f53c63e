/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_MEMBER_H
#define SIM_MEMBER_H 1

/* The flows of a unit that are on their way.
 *
 *
 * Motivation
 * ==========
 *
 * Where a unit gets its rates as a whole, its flows are looked at together, and
 * those that begin at a full port not at all.  So they are kept by the port
 * where they begin, one row for each that the unit has.
 *
 *
 * Usage
 * =====
 *
 *    member_begin(m, unit);
 *    member_add(m, flow, path);          // Uses the flow's 'index'.
 *    member_remove(m, flow, path);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Part of rates-fill.c, with growth.h and guests.h.  A member without flows keeps its memory for the next
 * unit; the unit may be gone by then. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/rates/node-heap.h"
#include "sim/fabric/paths.h"
#include "sim/rates/unit.h"

/* A flow, and the port where it leaves the network. */
struct entry {
    struct flow *flow;
    int last;
};

/* A port that the unit has, in the order of the unit's 'work'. */
struct tie {
    int port;
    bool listed;                /* The member is on the port's list, */
    size_t place;               /* there, while the member is served. */
    size_t n_flows;             /* That pass it. */
    size_t n, allocated;
    struct entry *entries;      /* Those that begin at it. */
};

struct member {
    struct unit *unit;          /* NULL once there are no flows. */
    size_t n_flows;
    size_t n_ties, allocated_ties;
    struct tie *ties;
    size_t n_moving, allocated_moving;
    struct flow **moving;       /* Flows with a rate. */
    size_t n_looked_at;         /* The last so many of them do not end now. */

    /* By rates-fill.c. */
    int rank;                   /* As the ports' lists have it. */
    uint64_t id;                /* The unit's. */
    size_t index;               /* Among all members. */
    bool changed;               /* Flows came or went since the last update. */
    struct heap_node turn;      /* To get rates anew, by rank. */
    struct heap_node end;       /* When the first of 'moving' ends. */
};

void member_begin(struct member *, struct unit *);
void member_destroy(struct member *);

void member_add(struct member *, struct flow *, const struct path *);
void member_remove(struct member *, struct flow *, const struct path *);

#endif /* sim/rates/member.h */
