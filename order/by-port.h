/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BY_PORT_H
#define BY_PORT_H 1

/* A problem seen from its ports.
 *
 *
 * Motivation
 * ==========
 *
 * A problem lists the ports of each stage; a bottleneck wants the stages of a
 * port.  Most stages touch few ports, so what an algorithm does for a port
 * should cost the stages on it, not all stages.
 *
 * Stages are listed by rising id, not in the order in which they were added,
 * so that sums come out the same to the last bit, and ties are broken alike,
 * whatever way the caller's tables happen to be walked.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The index has its arrays but 'by_id' from the problem's scratch, to which
 * by_port_uninit() gives them back.  It does not change with the problem. */

#include "order/order.h"

/* What one stage needs of the port that lists it. */
struct by_port_demand {
    int stage;
    double seconds;
};

struct by_port {
    const int *by_id;           /* The problem's. */
    size_t *first;              /* Where each port's demands begin; one more
                                 * for the end. */
    struct by_port_demand *demands;     /* By port, then by stage's id. */
    struct scratch *scratch;
};

void by_port_init(struct by_port *, const struct order_problem *);
void by_port_uninit(struct by_port *);

/* The demands on a port, and how many. */
static inline const struct by_port_demand *
by_port_demands(const struct by_port *bp, int port, size_t *n)
{
    *n = bp->first[port + 1] - bp->first[port];
    return &bp->demands[bp->first[port]];
}

#endif /* order/by-port.h */
