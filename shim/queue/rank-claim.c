/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/queue/rank-queue-internal.h"

/* Moves the first packets of 'q', at most 'max', to 'items'.  Returns how
 * many.  They count as not being there, but not as having left. */
static uint32_t
withdraw(struct rank_queues *rq, struct job_queue *q,
         struct queue_item *items, uint32_t max)
{
    uint32_t n = 0, n_left = q->n_left;
    uint64_t bytes = 0;

    while (n < max && q->fifo.n) {
        packet_fifo_pop(&q->fifo, &rq->pool, &items[n]);
        bytes += items[n++].length;
    }
    rank_queues_removed(rq, q, n, bytes);
    q->n_left = n_left;
    rq->n_packets -= n;
    counter_add(&rq->bytes, -bytes);
    if (!q->fifo.n) {
        job_queue_stop(&rq->jq, q);
    }
    return n;
}

/* Puts 'n' packets back to the end of 'q'. */
static void
put_back(struct rank_queues *rq, struct job_queue *q,
         const struct queue_item *items, uint32_t n)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < n; i++) {
        bytes += items[i].length;
    }
    packet_fifo_push_run(&q->fifo, &rq->pool, items, n);
    rank_queues_appended(rq, q, n, bytes);
}

/* Gives 'n' packets to their job. */
static void
hand_over(struct rank_queues *rq, const struct queue_item *items, uint32_t n,
          const struct rank_claim *claim)
{
    struct queue_item dropped[RANK_CLAIM_BURST];
    uint32_t n_dropped = rank_queues_push_run(rq, 0, false, items, n,
                                              dropped);

    for (uint32_t i = 0; i < n_dropped; i++) {
        claim->drop(claim->aux, &dropped[i]);
    }
}

/* All packets of the queue go round once, so that those that stay keep their
 * order.  There is room in the pool for each of them: see chunks_for(). */
uint32_t
rank_queues_claim(struct rank_queues *rq, const struct rank_claim *claim)
{
    struct job_queue *q = &rq->jq.queues[0];
    uint32_t n = q->fifo.n;

    for (uint32_t i = 0; i < n; ) {
        uint32_t left = n - i < RANK_CLAIM_BURST ? n - i : RANK_CLAIM_BURST;
        struct queue_item items[RANK_CLAIM_BURST];

        i += withdraw(rq, q, items, left);
        claim->find(claim->aux, items, left);
        for (uint32_t from = 0, to; from < left; from = to) {
            to = from + 1;
            while (to < left && items[to].slot == items[from].slot) {
                to++;
            }
            if (items[from].slot) {
                hand_over(rq, &items[from], to - from, claim);
                q->n_left += to - from;
            } else {
                put_back(rq, q, &items[from], to - from);
            }
        }
    }
    job_queues_release(&rq->jq, q->job);
    return n;
}
