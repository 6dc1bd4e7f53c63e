/* SPDX-License-Identifier: Apache-2.0 */

#ifndef FLOW_HEAP_H
#define FLOW_HEAP_H 1

/* Flows, the one with the smallest key first.
 *
 * A binary heap; among equal keys the flow that began first.  A flow in it
 * knows its place, so that it can leave from anywhere.  The heap does not own
 * its flows. */

#include <stddef.h>

struct flow;

struct flow_heap {
    size_t n, allocated;
    struct flow **flows;        /* flows[0] is the first. */
};

void flow_heap_push(struct flow_heap *, struct flow *);
void flow_heap_remove(struct flow_heap *, struct flow *);

#endif /* sim/rates/flow-heap.h */
