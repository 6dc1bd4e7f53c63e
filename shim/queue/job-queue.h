/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_JOB_QUEUE_H
#define SHIM_JOB_QUEUE_H 1

/* The queues of each job: a common one, and one for each paced flow.
 *
 * A job is one member of the order for any number of queues; they share by
 * bytes what the job sends.  A paced flow has a queue of its own, so that it
 * delays no other flow while it is not due.
 *
 * A flow stays in order when it gets or loses a queue: a new queue is held
 * until the packets that were in the job's common queue have left, and a freed
 * queue sends its packets before all others of its job.
 *
 *    packet_fifo_push(&q->fifo, ...);
 *    job_queue_start(jq, q, true);           (if it was empty)
 *
 *    job_queues_wake(jq, now);
 *    q = job->head;
 *    packet_fifo_pop(&q->fifo, ...);
 *    job_queue_end(jq, q, now, length);
 *
 * The order that jobs enter stays the caller's.  One thread.  Nothing is
 * allocated after the start. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/queue/class-order.h"
#include "shim/queue/due-heap.h"
#include "shim/queue/long-queue.h"
#include "shim/queue/pace.h"
#include "shim/queue/packet-fifo.h"
#include "wire/shim-protocol.h"

#define JOB_QUEUES_CONTROL SHIM_MAX_SLOTS       /* The control class. */
#define JOB_QUEUES_JOBS (SHIM_MAX_SLOTS + 1)
#define JOB_QUEUES_FLOWS 4096
#define JOB_QUEUES_N (JOB_QUEUES_JOBS + JOB_QUEUES_FLOWS)
#define JOB_QUEUES_MIN_PACE UINT64_C(10000)     /* Bits per second. */
#define JOB_QUEUES_START_PACE UINT64_C(100000)

enum job_queue_state {
    JOB_QUEUE_IDLE,             /* Empty, or held. */
    JOB_QUEUE_PACED,            /* In the heap until due. */
    JOB_QUEUE_READY,            /* In its job's ring. */
};

struct job_queue {
    struct packet_fifo fifo;
    struct job *job;
    struct job_queue *next, *prev;      /* Job's ring of ready queues.  'next'
                                         * also links 'held' and 'free'. */
    int32_t deficit;            /* Bytes left of the current round. */
    uint32_t n_left;            /* Packets that have left; wraps around. */
    uint8_t state;              /* enum job_queue_state. */
    bool fresh;                 /* Was empty before JOB_QUEUE_PACED. */
    bool starts;                /* See job_queues_flow_start(). */
    bool held;                  /* Waits for 'after'. */
    bool freed;                 /* Its flow has ended. */
    uint32_t after;             /* The common 'n_left' that ends 'held'. */
    struct pace pace;           /* 'bps' 0: not paced. */
    struct long_queue_node length;
};

struct job {
    struct class_member member; /* Must be first. */
    struct job_queue *head;     /* Ring of ready queues: the next to send. */
    struct job_queue *held;     /* Held queues, by 'after'. */
    uint64_t bytes;             /* In all queues of this job. */
    uint32_t n_control;         /* Its packets in the control queue. */
};

struct job_queues {
    struct class_order *order;
    struct job_queue *free;     /* Unused queues of flows. */
    uint64_t late;              /* Nanoseconds that a paced queue may be served
                                 * too late without loss of its rate. */
    struct due_heap heap;
    struct job jobs[JOB_QUEUES_JOBS];
    struct job_queue queues[JOB_QUEUES_N];      /* By slot the common queues,
                                                 * then those of flows. */
};

void job_queues_init(struct job_queues *, struct class_order *);
void job_queues_uninit(struct job_queues *);

void job_queue_start(struct job_queues *, struct job_queue *, bool fresh);
void job_queues_wake_due(struct job_queues *, uint64_t now);
void job_queues_release(struct job_queues *, struct job *);
void job_queue_end_other(struct job_queues *, struct job_queue *,
                         uint64_t now, uint32_t length);

/* Queues of flows have numbers from 1 on. */
uint16_t job_queues_flow_new(struct job_queues *, uint16_t slot);
void job_queues_flow_free(struct job_queues *, uint16_t flow_queue);
void job_queues_flow_rate(struct job_queues *, uint64_t now,
                          uint16_t flow_queue, uint64_t bps, uint32_t depth);
void job_queues_flow_start(struct job_queues *, uint64_t now,
                           uint16_t flow_queue, uint32_t bytes);
bool job_queues_flow_started(const struct job_queues *, uint64_t now,
                             uint16_t flow_queue);
bool job_queues_flow_empty(const struct job_queues *, uint16_t flow_queue);
uint64_t job_queues_flow_late(const struct job_queues *, uint64_t now,
                              uint16_t flow_queue);

static inline struct job_queue *
job_queues_flow(struct job_queues *jq, uint16_t flow_queue)
{
    return &jq->queues[JOB_QUEUES_JOBS - 1 + flow_queue];
}

static inline struct job *
job_of_member(const struct class_member *member)
{
    return (struct job *) member;
}

/* Makes the queues ready that are due at 'now'. */
static inline void
job_queues_wake(struct job_queues *jq, uint64_t now)
{
    if (jq->heap.n && due_heap_first(&jq->heap) <= now) {
        job_queues_wake_due(jq, now);
    }
}

/* Returns how many bytes 'q', the head of its job, may send before another
 * queue of the job may be the head. */
static inline uint64_t
job_queue_run(const struct job_queue *q)
{
    if (q->pace.bps || q->job->held) {
        return 0;
    }
    return q->next == q || q->freed ? UINT64_MAX
           : q->deficit > 0 ? q->deficit : 0;
}

/* Updates 'q', the head of its job, after packets of 'length' bytes have left
 * it: less than job_queue_run() without the last packet. */
static inline void
job_queue_end(struct job_queues *jq, struct job_queue *q, uint64_t now,
              uint32_t length)
{
    if (!q->fifo.n || q->pace.bps || q->next != q || q->job->held) {
        job_queue_end_other(jq, q, now, length);
    }
}

#endif /* shim/queue/job-queue.h */
