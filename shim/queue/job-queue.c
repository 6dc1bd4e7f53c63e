/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/queue/job-queue.h"

/* 'jq' must be zeroed. */
void
job_queues_init(struct job_queues *jq, struct class_order *order)
{
    jq->order = order;
    for (int i = 0; i < JOB_QUEUES_JOBS; i++) {
        jq->queues[i].job = &jq->jobs[i];
        jq->jobs[i].member.class = JOB_CLASS_LAST;
    }
    for (int i = JOB_QUEUES_N - 1; i >= JOB_QUEUES_JOBS; i--) {
        jq->queues[i].next = jq->free;
        jq->free = &jq->queues[i];
    }
    due_heap_init(&jq->heap, JOB_QUEUES_N);
}

void
job_queues_uninit(struct job_queues *jq)
{
    due_heap_uninit(&jq->heap);
}

static void
insert_before(struct job_queue *q, struct job_queue *at)
{
    q->next = at;
    q->prev = at->prev;
    q->prev->next = q->next->prev = q;
}

/* Inserts 'q', which is freed, after the other freed queues and before all
 * others. */
static void
insert_freed(struct job *job, struct job_queue *q)
{
    struct job_queue *at = job->head;

    do {
        if (!at->freed) {
            job->head = at == job->head ? q : job->head;
            break;
        }
        at = at->next;
    } while (at != job->head);
    insert_before(q, at);
}

/* Adds 'q' to its job's ring, and the job to the order. */
static void
make_ready(struct job_queues *jq, struct job_queue *q)
{
    struct job *job = q->job;

    q->state = JOB_QUEUE_READY;
    q->deficit = class_order_deficit(jq->order, q->deficit);
    if (!job->head) {
        job->head = q->next = q->prev = q;
    } else if (q->freed) {
        insert_freed(job, q);
    } else {
        insert_before(q, job->head);
    }
    if (!job->member.waits) {
        job->member.deficit = class_order_deficit(jq->order,
                                                  job->member.deficit);
        class_order_enter(jq->order, &job->member);
    }
}

/* Removes 'q' from its job's ring.  The caller removes a job without ready
 * queues from the order. */
static void
leave_ring(struct job_queue *q)
{
    struct job *job = q->job;

    q->state = JOB_QUEUE_IDLE;
    if (q->next == q) {
        job->head = NULL;
    } else {
        q->next->prev = q->prev;
        q->prev->next = q->next;
        job->head = job->head == q ? q->next : job->head;
    }
}

/* Makes 'q', which is idle and has packets, ready or paced unless it is held.
 * 'fresh': it was empty before. */
void
job_queue_start(struct job_queues *jq, struct job_queue *q, bool fresh)
{
    if (q->held) {
        return;
    }
    if (q->pace.bps) {
        q->state = JOB_QUEUE_PACED;
        q->fresh = fresh;
        due_heap_add(&jq->heap, pace_due(&q->pace), q - jq->queues);
    } else {
        make_ready(jq, q);
    }
}

void
job_queues_wake_due(struct job_queues *jq, uint64_t now)
{
    while (jq->heap.n && due_heap_first(&jq->heap) <= now) {
        struct job_queue *q = &jq->queues[due_heap_pop(&jq->heap)];

        pace_forget(&q->pace, now, q->fresh ? 0 : jq->late);
        make_ready(jq, q);
    }
}

static void
free_queue(struct job_queues *jq, struct job_queue *q)
{
    q->next = jq->free;
    jq->free = q;
}

/* Starts the queues of 'job' that are no longer held. */
void
job_queues_release(struct job_queues *jq, struct job *job)
{
    uint32_t n_left = jq->queues[job - jq->jobs].n_left;

    while (job->held && (int32_t) (n_left - job->held->after) >= 0) {
        struct job_queue *q = job->held;

        job->held = q->next;
        q->held = false;
        if (q->fifo.n) {
            job_queue_start(jq, q, true);
        } else if (q->freed) {
            free_queue(jq, q);
        }
    }
}

/* The slow path of job_queue_end(). */
void
job_queue_end_other(struct job_queues *jq, struct job_queue *q, uint64_t now,
                    uint32_t length)
{
    struct job *job = q->job;

    if (q->pace.bps) {
        pace_take(&q->pace, length);
    }
    if (!q->fifo.n) {
        leave_ring(q);
        if (q->freed) {
            free_queue(jq, q);
        }
    } else if (q->pace.bps && pace_due(&q->pace) > now) {
        leave_ring(q);
        job_queue_start(jq, q, false);
    } else if (q->next != q && !q->freed) {
        q->deficit -= length;
        if (q->deficit <= 0) {
            q->deficit += jq->order->quantum;
            job->head = q->next;
        }
    }
    job_queues_release(jq, job);
}

/* Returns an unpaced queue for a flow of 'slot', or 0 if none is free. */
uint16_t
job_queues_flow_new(struct job_queues *jq, uint16_t slot)
{
    const struct job_queue *common = &jq->queues[slot];
    struct job_queue *q = jq->free, **tail;

    if (!q) {
        return 0;
    }
    jq->free = q->next;
    q->job = &jq->jobs[slot];
    q->freed = q->starts = false;
    q->deficit = 0;
    q->pace = (struct pace) { .bps = 0 };
    q->held = common->fifo.n > 0;
    if (q->held) {
        q->after = common->n_left + common->fifo.n;
        q->next = NULL;
        for (tail = &q->job->held; *tail; tail = &(*tail)->next) {
            continue;
        }
        *tail = q;
    }
    return q - job_queues_flow(jq, 0);
}

/* Makes 'q' idle. */
static void
job_queue_stop(struct job_queues *jq, struct job_queue *q)
{
    if (q->state == JOB_QUEUE_PACED) {
        due_heap_remove(&jq->heap, q - jq->queues);
    } else if (q->state == JOB_QUEUE_READY) {
        leave_ring(q);
        if (!q->job->head) {
            class_order_leave(jq->order, &q->job->member);
        }
    }
    q->state = JOB_QUEUE_IDLE;
}

/* Frees 'flow_queue' when its packets have left, which are no longer paced. */
void
job_queues_flow_free(struct job_queues *jq, uint16_t flow_queue)
{
    struct job_queue *q = job_queues_flow(jq, flow_queue);

    job_queue_stop(jq, q);
    q->pace.bps = 0;
    q->freed = true;
    if (q->fifo.n) {
        job_queue_start(jq, q, true);
    } else if (!q->held) {
        free_queue(jq, q);
    }
}

/* Sets the pace of 'q' from 'now' on; 0 is unpaced.  A paced queue that is
 * still due keeps its turn, and its level the credit of its minimum share. */
static void
set_pace(struct job_queues *jq, uint64_t now, struct job_queue *q,
         uint64_t bps, uint32_t depth)
{
    bool waits = q->state != JOB_QUEUE_IDLE;

    /* A queue that was paced keeps its compensation for a late loop, so that
     * it loses nothing with each change. */
    bool fresh = q->state == JOB_QUEUE_PACED ? q->fresh : !q->pace.bps;
    bool is_due = q->state == JOB_QUEUE_READY && q->pace.bps && bps;

    if (bps) {
        pace_set_rate(&q->pace, now, bps, depth);
    } else {
        q->pace.bps = 0;
    }
    if (is_due) {
        pace_forget(&q->pace, now, jq->late);
        if (pace_due(&q->pace) <= now) {
            return;
        }
    }
    job_queue_stop(jq, q);
    if (waits) {
        job_queue_start(jq, q, fresh);
    }
}

/* Paces 'flow_queue' to 'bps', at least JOB_QUEUES_MIN_PACE; 0 is unpaced.  A
 * burst is 'depth' bytes, which its last frame may exceed, or one frame.  The
 * bytes of job_queues_flow_start() do not count. */
void
job_queues_flow_rate(struct job_queues *jq, uint64_t now, uint16_t flow_queue,
                     uint64_t bps, uint32_t depth)
{
    struct job_queue *q = job_queues_flow(jq, flow_queue);

    if (bps && bps < JOB_QUEUES_MIN_PACE) {
        bps = JOB_QUEUES_MIN_PACE;
    }
    if (bps == q->pace.bps && !q->starts) {
        return;
    }
    if (q->starts) {
        q->starts = false;
        q->pace.full = 0;
    }
    set_pace(jq, now, q, bps, depth);
}

/* Lets 'bytes' of 'flow_queue' leave unpaced, and then paces it to
 * JOB_QUEUES_START_PACE until it gets a rate. */
void
job_queues_flow_start(struct job_queues *jq, uint64_t now,
                      uint16_t flow_queue, uint32_t bytes)
{
    struct job_queue *q = job_queues_flow(jq, flow_queue);

    q->starts = true;
    q->pace.full = 0;
    set_pace(jq, now, q, JOB_QUEUES_START_PACE, bytes);
}

/* Returns true if 'flow_queue' has sent the bytes of job_queues_flow_start()
 * and has more. */
bool
job_queues_flow_started(const struct job_queues *jq, uint64_t now,
                        uint16_t flow_queue)
{
    const struct job_queue *q = &jq->queues[JOB_QUEUES_JOBS - 1 + flow_queue];

    return (q->starts && q->state == JOB_QUEUE_PACED
            && pace_due(&q->pace) > now);
}

bool
job_queues_flow_empty(const struct job_queues *jq, uint16_t flow_queue)
{
    return !jq->queues[JOB_QUEUES_JOBS - 1 + flow_queue].fifo.n;
}

/* Returns for how many nanoseconds 'flow_queue' has waited since its pace
 * allowed it to send a whole burst; 0 if it is not paced.  A new pace limits
 * that to 'late'. */
uint64_t
job_queues_flow_late(const struct job_queues *jq, uint64_t now,
                     uint16_t flow_queue)
{
    const struct job_queue *q = &jq->queues[JOB_QUEUES_JOBS - 1 + flow_queue];

    return (q->state == JOB_QUEUE_READY && q->pace.bps && q->pace.full < now
            ? now - q->pace.full : 0);
}
