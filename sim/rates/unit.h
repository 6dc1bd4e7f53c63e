/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_UNIT_H
#define SIM_UNIT_H 1

/* Units that are ordered, and their remaining bytes on each port.
 *
 * Orders regard whole stages, jobs or single iterations as units, see 'enum
 * order_unit'; each flow belongs to a unit.  A decision needs the remaining
 * bytes of each unit on each port.  Summing all flows for each decision would
 * be slow, so a unit keeps the sums by port, and its flows subtract the bytes
 * sent when they stop, end or are settled.
 *
 *    struct unit_maker maker;
 *    unit_maker_init(&maker, n_ports);
 *    for (...each flow of the unit...) {
 *        unit_maker_add(&maker, path, bytes, times);
 *    }
 *    unit_maker_finish(&maker, &unit);
 *    for (...each flow...) {
 *        unit_maker_bind(&maker, path, flow);
 *    }
 *    unit_maker_clear(&maker);
 *
 * From then on flow_settle() and flow_finish() keep the unit up to date.
 *
 * A unit owns its table.  Part of the simulation, one thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/fabric/paths.h"
#include "sim/rates/node-heap.h"

struct group;
struct live_job;
struct live_stage;

/* A unit's bytes on one port. */
struct work {
    int port;
    double whole;               /* Bytes at the unit's begin. */
    double seconds;             /* That an iteration of its job takes here. */
    int64_t n_whole, n_left;    /* Number of flows at the begin, and now. */

    /* By water-filling.c, of the flows on an uplink. */
    int64_t n_waiting; /* Number of those without a rate. */
    double granted;    /* Rates of the others, bytes per second. */
};

struct unit {
    struct live_stage *stage;
    struct live_job *job;
    uint64_t id;                /* By begin, the oldest has the least. */
    double begin;               /* Seconds. */
    double initial;             /* Seconds that the busiest port needed. */
    double sent;                /* Bytes since 'begin'. */
    double left;                /* Bytes. */
    size_t n_work;
    struct work *work;          /* By port. */
    double *bytes;              /* Left of each; exactly 0 without flows,
                                 * whatever was rounded. */

    /* By the last decision. */
    int rank;                   /* The least is first; -1 before that. */
    bool moved;                 /* Its place among the others has changed. */
    int level;                  /* 0 is first. */
    double sent_limit;          /* As in struct order_result. */

    /* By a rate allocation that watches limits, see rates.h, or for
     * RATES_MLTCP. */
    double rate;                /* Rate of all its flows, bytes per second. */
    double since;               /* Time from which 'rate' applies, seconds. */
    double until;               /* Bytes sent at that time. */

    struct group *group; /* By rates-fill.c, which owns it, or NULL. */
};

/* Bytes on their way from one host to another. */
struct flow {
    struct live_job *job;       /* Job that waits for the flow. */
    struct unit *unit;          /* Unit that the flow belongs to. */
    uint32_t path;              /* Number in struct paths. */
    uint32_t work[2];           /* Indexes of its first and last port in the
                                 * unit's 'work'. */
    int shard;                  /* Part of the job's exchange. */
    double bytes;               /* At its begin. */
    double remaining;           /* Remaining bytes at 'since'. */
    double since;               /* Time from which 'rate' applies, seconds. */
    double rate;                /* Bytes per second. */

    /* For the rate allocation. */
    struct heap_node node;      /* 'key': end of the flow, seconds or a key
                                 * that sorts like it.  'seq': by begin. */
    uint32_t index;             /* Index in a list. */
};

static inline struct flow *
flow_of(const struct heap_node *node)
{
    return HEAP_NODE_OWNER(node, struct flow, node);
}

/* Adds up the work of a unit. */
struct unit_maker {
    int *place;                 /* Of each port in 'work', -1 if not there. */
    int n_ports;
    size_t n, allocated;
    struct work *work;
};

void unit_maker_init(struct unit_maker *, int n_ports);
void unit_maker_uninit(struct unit_maker *);
void unit_maker_add(struct unit_maker *, const struct path *, double bytes,
                    int64_t times);
void unit_maker_finish(struct unit_maker *, struct unit *);
void unit_maker_bind(const struct unit_maker *, const struct path *,
                     struct flow *);
void unit_maker_clear(struct unit_maker *);

/* Lets 'unit' begin with all of its work. */
void unit_begin(struct unit *, const struct sim_fabric *, double now);
void unit_uninit(struct unit *);

/* Returns the index in its unit's 'work' of port 'k' of the path of 'flow'. */
size_t flow_find_work(const struct flow *, const struct path *, int k);

/* Subtracts what 'flow' has sent until 'now' at its rate. */
void flow_settle(struct flow *, const struct path *, double now);

/* Subtracts what 'flow' has sent until 'now' if 'remaining' is left. */
void flow_settle_at(struct flow *, const struct path *, double now,
                    double remaining);

/* Subtracts what remains of 'flow', which has ended. */
void flow_finish(struct flow *, const struct path *);

/* Changes the rate of 'unit' by 'change' from 'now' on. */
void unit_change_rate(struct unit *, double now, double change);

/* When 'unit' will have sent as much as its limit, INFINITY if never. */
double unit_limit_time(const struct unit *);

/* Lets ranks follow the order of the 'n' units. */
void units_set_ranks(struct unit **, size_t n);

#endif /* sim/rates/unit.h */
