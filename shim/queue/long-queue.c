/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/queue/long-queue.h"

static void
leave_list(struct long_queues *lq, struct long_queue_node *node)
{
    uint32_t i = node->list - 1;

    if (node->prev) {
        node->prev->next = node->next;
    } else {
        lq->lists[i] = node->next;
    }
    if (node->next) {
        node->next->prev = node->prev;
    }
    if (!lq->lists[i]) {
        lq->used &= ~(1u << i);
    }
    node->list = 0;
}

static void
enter_list(struct long_queues *lq, struct long_queue_node *node, uint32_t i)
{
    node->list = i + 1;
    node->prev = NULL;
    node->next = lq->lists[i];
    if (node->next) {
        node->next->prev = node;
    }
    lq->lists[i] = node;
    lq->used |= 1u << i;
}

/* Moves 'node' to the list of queues of 'n' packets. */
void
long_queue_move(struct long_queues *lq, struct long_queue_node *node,
                uint32_t n)
{
    if (node->list) {
        leave_list(lq, node);
    }
    if (n >= LONG_QUEUE_MIN) {
        enter_list(lq, node, 31 - __builtin_clz(n) - LONG_QUEUE_SHIFT);
    }
}
