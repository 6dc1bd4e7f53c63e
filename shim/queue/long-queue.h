/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_LONG_QUEUE_H
#define SHIM_LONG_QUEUE_H 1

/* Finds the longest queue, to within a factor of two.
 *
 * When there is no space for a packet, the longest queue loses one.  During a
 * flood that happens for each packet, so it must not search five thousand
 * queues.  Queues are in lists by the logarithm of their length, which changes
 * rarely; queues of less than LONG_QUEUE_MIN packets are in none.
 *
 *    if (long_queue_moves(before, n)) {  (n after pushes or pops)
 *        long_queue_move(&lengths, &queue->node, n);
 *    }
 *    node = long_queue_longest(&lengths);
 *
 * Nodes stay the caller's; nodes and lists are all zeros initially.  One
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

/* Returns true if a queue that had 'before' packets and now has 'n' belongs to
 * another list. */
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
