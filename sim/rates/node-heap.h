/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NODE_HEAP_H
#define NODE_HEAP_H 1

/* Things that are part of several queues, each the one with the smallest key
 * first.
 *
 * A binary heap of nodes that are members of what is queued; among equal keys
 * the one with the smaller 'seq'.  A node knows its place, so that it can
 * leave from anywhere.  The heap does not own its nodes. */

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_node {
    double key;
    uint64_t seq;
    uint32_t place;             /* Counts from 1; 0 is in no heap. */
};

struct node_heap {
    size_t n, allocated;
    struct heap_node **nodes;   /* nodes[0] is the first. */
};

void node_heap_push(struct node_heap *, struct heap_node *);
void node_heap_remove(struct node_heap *, struct heap_node *);

/* Returns the smallest key, or INFINITY. */
static inline double
node_heap_next(const struct node_heap *h)
{
    return h->n ? h->nodes[0]->key : INFINITY;
}

/* Removes the first node. */
static inline struct heap_node *
node_heap_pop(struct node_heap *h)
{
    struct heap_node *first = h->nodes[0];

    node_heap_remove(h, first);
    return first;
}

static inline bool
heap_node_is_queued(const struct heap_node *node)
{
    return node->place != 0;
}

/* The structure that has 'NODE' as its member 'MEMBER'. */
#define HEAP_NODE_OWNER(NODE, TYPE, MEMBER) \
    ((TYPE *) ((char *) (NODE) - offsetof(TYPE, MEMBER)))

#endif /* sim/rates/node-heap.h */
