/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_JOB_QUEUE_H
#define SHIM_JOB_QUEUE_H 1

/* The queues of each job: a common one, and those of its paced flows.
 *
 *
 * Motivation
 * ==========
 *
 * A job is one member of the order, however many queues it has; in its turn
 * they share by bytes.  A flow that is paced has a queue of its own, so that
 * it holds nobody up while it is not due.
 *
 * A flow keeps its order when it is given a queue or loses it: a new one is
 * held until what was in the job's common queue has left, and what is in one
 * that was freed leaves before all else of its job.
 *
 *
 * Usage
 * =====
 *
 *    packet_fifo_push(&q->fifo, ...);
 *    job_queue_start(jq, q, true);           (if it was empty)
 *
 *    job_queues_wake(jq, now);
 *    ...job->head is whose turn it is...
 *    packet_fifo_pop(&q->fifo, ...);
 *    job_queue_end(jq, q, now, length);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The order that jobs enter stays the caller's.  One thread.  Nothing is
 * allocated after the start. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/shim-protocol.h"
#include "shim/queue/due-heap.h"
#include "shim/queue/long-queue.h"
#include "shim/queue/pace.h"
#include "shim/queue/packet-fifo.h"
#include "shim/queue/place-order.h"

#define JOB_QUEUES_CONTROL SHIM_MAX_SLOTS       /* A job behind all slots. */
#define JOB_QUEUES_JOBS (SHIM_MAX_SLOTS + 1)
#define JOB_QUEUES_FLOWS 4096
#define JOB_QUEUES_N (JOB_QUEUES_JOBS + JOB_QUEUES_FLOWS)
#define JOB_QUEUES_MIN_PACE UINT64_C(10000)     /* Bits per second. */
#define JOB_QUEUES_START_PACE UINT64_C(100000)

enum job_queue_state {
    JOB_QUEUE_IDLE,             /* Empty, or held. */
    JOB_QUEUE_PACED,            /* In the heap until it is due. */
    JOB_QUEUE_READY,            /* In its job's ring. */
};

struct job_queue {
    struct packet_fifo fifo;
    struct job *job;
    struct job_queue *next, *prev;      /* In its job's ring.  'next' also in
                                         * 'held' and 'free'. */
    int32_t deficit;            /* Bytes that it may send in its turn. */
    uint32_t n_left;            /* Packets, ever; runs over. */
    uint8_t state;              /* enum job_queue_state. */
    bool fresh;                 /* It was empty before it became paced. */
    bool starts;                /* See job_queues_flow_start(). */
    bool held;                  /* Until 'n_left' of the common queue is
                                 * 'after'. */
    bool freed;                 /* Its flow has gone. */
    uint32_t after;
    struct pace pace;           /* 'bps' 0: not paced. */
    struct long_queue_node length;
};

struct job {
    struct place_member member; /* It must be the first. */
    struct job_queue *head;     /* Ring of the queues that may send. */
    struct job_queue *held;     /* In the order in which they are let go. */
    uint64_t bytes;             /* In all its queues. */
    uint32_t n_control;         /* Its packets in the queue of control. */
};

struct job_queues {
    struct place_order *order;
    struct job_queue *free;     /* Of flows. */
    uint64_t late;              /* See pace_forget(). */
    struct due_heap heap;
    struct job jobs[JOB_QUEUES_JOBS];
    struct job_queue queues[JOB_QUEUES_N];      /* [SLOT]: the common ones. */
};

bool job_queues_init(struct job_queues *, struct place_order *);
void job_queues_uninit(struct job_queues *);

void job_queue_start(struct job_queues *, struct job_queue *, bool fresh);
void job_queue_stop(struct job_queues *, struct job_queue *);
void job_queues_wake_due(struct job_queues *, uint64_t now);
void job_queues_release(struct job_queues *, struct job *);
void job_queue_end_other(struct job_queues *, struct job_queue *,
                         uint64_t now, uint32_t length);

/* Flows' queues have numbers from 1 on. */
uint16_t job_queues_flow_new(struct job_queues *, uint16_t slot);
void job_queues_flow_free(struct job_queues *, uint16_t flow_queue);
void job_queues_flow_rate(struct job_queues *, uint64_t now,
                          uint16_t flow_queue, uint64_t bps, uint32_t depth);
void job_queues_flow_start(struct job_queues *, uint64_t now,
                           uint16_t flow_queue, uint32_t bytes);
bool job_queues_flow_started(const struct job_queues *, uint64_t now,
                             uint16_t flow_queue);
bool job_queues_flow_empty(const struct job_queues *, uint16_t flow_queue);

static inline struct job_queue *
job_queues_flow(struct job_queues *jq, uint16_t flow_queue)
{
    return &jq->queues[JOB_QUEUES_JOBS - 1 + flow_queue];
}

static inline struct job *
job_of_member(const struct place_member *member)
{
    return (struct job *) member;
}

/* Makes those ready that are due at 'now'. */
static inline void
job_queues_wake(struct job_queues *jq, uint64_t now)
{
    if (jq->heap.n && due_heap_first(&jq->heap) <= now) {
        job_queues_wake_due(jq, now);
    }
}

/* Returns after how many bytes it may be the turn of another queue of the job
 * than of 'q', its head. */
static inline uint64_t
job_queue_run(const struct job_queue *q)
{
    if (q->pace.bps || q->job->held) {
        return 0;
    }
    return q->next == q || q->freed ? UINT64_MAX
           : q->deficit > 0 ? q->deficit : 0;
}

/* Ends the turn of 'q', the head of its job, after packets of 'length' bytes,
 * job_queue_run() but for the last, have left it. */
static inline void
job_queue_end(struct job_queues *jq, struct job_queue *q, uint64_t now,
              uint32_t length)
{
    if (!q->fifo.n || q->pace.bps || q->next != q || q->job->held) {
        job_queue_end_other(jq, q, now, length);
    }
}

#endif /* shim/queue/job-queue.h */
