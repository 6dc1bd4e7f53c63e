/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_LONG_QUEUE_H
#define SHIM_LONG_QUEUE_H 1

/* Which queue is the longest, to within a factor of two.
 *
 *
 * Motivation
 * ==========
 *
 * When there is no room for a packet, the longest queue shall lose one, and
 * not whoever comes.  Nobody looks through five thousand queues for each
 * packet of a flood: queues are in lists by the logarithm of their length,
 * which changes rarely, and those below LONG_QUEUE_MIN packets are in none.
 *
 *
 * Usage
 * =====
 *
 *    if (long_queue_moves(before, n)) {  (n after pushes or pops)
 *        long_queue_move(&lengths, &queue->node, n);
 *    }
 *    node = long_queue_longest(&lengths);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Nodes stay the caller's; zeros are a good one, and good lists.  One
 * thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LONG_QUEUE_SHIFT 6
#define LONG_QUEUE_MIN (1u << LONG_QUEUE_SHIFT)

struct long_queue_node {
    struct long_queue_node *next, *prev;
    uint32_t list;              /* Index of its list + 1, 0 if in none. */
};

struct long_queues {
    uint32_t used;              /* Bit N: lists[N] is not empty. */
    struct long_queue_node *lists[32 - LONG_QUEUE_SHIFT];
};

void long_queue_move(struct long_queues *, struct long_queue_node *,
                     uint32_t n);

/* Does a queue that had 'before' packets and now has 'n' belong to another
 * list? */
static inline bool
long_queue_moves(uint32_t before, uint32_t n)
{
    return ((before | n) >= LONG_QUEUE_MIN
            && __builtin_clz(before | 1) != __builtin_clz(n | 1));
}

/* Returns one of the longest queues, or NULL if all are short. */
static inline struct long_queue_node *
long_queue_longest(const struct long_queues *lq)
{
    return lq->used ? lq->lists[31 - __builtin_clz(lq->used)] : NULL;
}

#endif /* shim/queue/long-queue.h */
