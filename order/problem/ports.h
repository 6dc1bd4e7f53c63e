/* SPDX-License-Identifier: Apache-2.0 */

#ifndef PORTS_H
#define PORTS_H 1

/* A problem by port: the stages on each port, and the schedule of one port.
 *
 * A problem lists the ports of each stage.  A bottleneck needs the stages of
 * each port.  Most stages touch few ports, so the cost of an algorithm should
 * follow the stages on a port, not all stages.
 *
 * Stages are listed by rising id, not in the order in which they were added.
 * Sums are then the same to the last bit, and ties are broken in the same way,
 * whatever the order of the caller's tables.
 *
 * One of the lower bounds regards each port alone: a machine that serves one
 * stage at a time, may interrupt it, and is never idle while a stage waits.
 *
 * The index keeps its arrays in the problem's scratch until by_port_uninit().
 * It does not follow changes of the problem.  one_port_serve() sorts the
 * caller's array. */

#include <stddef.h>

struct order_problem;
struct scratch;

/* Demand of one stage for the port that lists it. */
struct by_port_demand {
    int stage;
    double seconds;
};

struct by_port {
    const int *by_id;           /* The problem's 'by_id'. */
    size_t *first;              /* Index in 'demands' of each port's first
                                 * demand; one more element for the end. */
    struct by_port_demand *demands;     /* By port, then by stage id. */
    struct scratch *scratch;
};

void by_port_init(struct by_port *, const struct order_problem *);
void by_port_uninit(struct by_port *);

/* Returns the demands for 'port' and stores their number in '*n'. */
static inline const struct by_port_demand *
by_port_demands(const struct by_port *bp, int port, size_t *n)
{
    *n = bp->first[port + 1] - bp->first[port];
    return &bp->demands[bp->first[port]];
}

struct one_port_job {
    int stage;                  /* For the caller. */
    int rank;                   /* Breaks all ties. */
    double release;             /* Not served before; seconds, >= 0. */
    double seconds;             /* Service time, > 0. */
    double end;                 /* Result: completion time, seconds. */
};

/* Serves the job with the least remaining time, which minimizes the sum of
 * completion times (Schrage 1968).  Sets 'end' of the 'n' jobs and sorts them
 * by release. */
void one_port_serve(struct one_port_job *, size_t n, struct scratch *);

#endif /* order/problem/ports.h */
