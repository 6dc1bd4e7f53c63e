/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_RANK_QUEUE_INTERNAL_H
#define SHIM_RANK_QUEUE_INTERNAL_H 1

/* What the files of rank-queue.h share: rank-queue.c pushes and takes,
 * rank-claim.c gives jobs what is theirs of what was nobody's.
 *
 * Only those two include this. */

#include "shim/clock/counter.h"
#include "shim/queue/job-queue.h"
#include "shim/queue/long-queue.h"
#include "shim/queue/pace.h"
#include "shim/queue/place-order.h"
#include "shim/queue/rank-queue.h"

struct rank_queues {
    struct job *control;
    uint64_t bps;               /* Of the uplink. */
    struct pace police;         /* Of control. */
    uint32_t n_packets, max_packets;
    uint64_t max_job_bytes;
    uint64_t control_bytes;     /* Above which only control joins control. */
    uint64_t bytes;             /* Of all queues. */
    uint64_t n_policed;         /* Packets of control beyond its share. */
    struct long_queues lengths;
    struct packet_pool pool;
    struct place_order order;
    struct job_queues jq;
};

/* Counts 'n' packets with 'bytes' that were removed from 'q'. */
static inline void
rank_queues_removed(struct rank_queues *rq, struct job_queue *q, uint32_t n,
                    uint64_t bytes)
{
    q->n_left += n;
    q->job->bytes -= bytes;
    if (long_queue_moves(q->fifo.n + n, q->fifo.n)) {
        long_queue_move(&rq->lengths, &q->length, q->fifo.n);
    }
}

/* Counts 'n' packets with 'bytes' that were appended to 'q'. */
static inline void
rank_queues_appended(struct rank_queues *rq, struct job_queue *q,
                     uint32_t n, uint64_t bytes)
{
    q->job->bytes += bytes;
    rq->n_packets += n;
    counter_add(&rq->bytes, bytes);
    if (long_queue_moves(q->fifo.n - n, q->fifo.n)) {
        long_queue_move(&rq->lengths, &q->length, q->fifo.n);
    }
    if (q->fifo.n == n) {
        job_queue_start(&rq->jq, q, true);
    }
}

#endif /* shim/queue/rank-queue-internal.h */
