/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/queue/job-queue.h"

/* 'jq' must be zeros.  Returns false without memory; then it may be
 * uninitialised all the same. */
bool
job_queues_init(struct job_queues *jq, struct place_order *order)
{
    jq->order = order;
    for (int i = 0; i < JOB_QUEUES_JOBS; i++) {
        jq->queues[i].job = &jq->jobs[i];
        jq->jobs[i].member.place = JOB_PLACE_LAST;
    }
    for (int i = JOB_QUEUES_N - 1; i >= JOB_QUEUES_JOBS; i--) {
        jq->queues[i].next = jq->free;
        jq->free = &jq->queues[i];
    }
    return due_heap_init(&jq->heap, JOB_QUEUES_N);
}

void
job_queues_uninit(struct job_queues *jq)
{
    due_heap_uninit(&jq->heap);
}

/* Puts 'q' before 'at' into the ring of its job. */
static void
insert(struct job_queue *q, struct job_queue *at)
{
    q->next = at;
    q->prev = at->prev;
    q->prev->next = q->next->prev = q;
}

/* Puts 'q', whose flow has gone, behind others of that kind and before all
 * else. */
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
    insert(q, at);
}

/* Puts 'q' into its job's ring. */
static void
make_ready(struct job_queues *jq, struct job_queue *q)
{
    struct job *job = q->job;

    q->state = JOB_QUEUE_READY;
    q->deficit = place_order_deficit(jq->order, q->deficit);
    if (!job->head) {
        job->head = q->next = q->prev = q;
    } else if (q->freed) {
        insert_freed(job, q);
    } else {
        insert(q, job->head);
    }
    if (!job->member.waits) {
        job->member.deficit = place_order_deficit(jq->order,
                                                  job->member.deficit);
        place_order_enter(jq->order, &job->member);
    }
}

/* The opposite.  Whether the job still waits is the caller's business. */
static void
unready(struct job_queue *q)
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

/* Lets 'q', which has packets and is idle, send when it may.  'fresh' if it
 * had none before. */
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
recycle(struct job_queues *jq, struct job_queue *q)
{
    q->next = jq->free;
    jq->free = q;
}

/* Lets those go that waited for what has now left the common queue. */
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
            recycle(jq, q);
        }
    }
}

/* job_queue_end() where there is more to do: 'q' has nothing more to send, or
 * not now, or another queue may have its turn. */
void
job_queue_end_other(struct job_queues *jq, struct job_queue *q, uint64_t now,
                    uint32_t length)
{
    struct job *job = q->job;

    if (q->pace.bps) {
        pace_take(&q->pace, length);
    }
    if (!q->fifo.n) {
        unready(q);
        if (q->freed) {
            recycle(jq, q);
        }
    } else if (q->pace.bps && pace_due(&q->pace) > now) {
        unready(q);
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

/* Returns a queue for a flow of 'slot', not paced yet, or 0 if none is
 * free. */
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

/* Takes 'q' out of where it waits to send. */
void
job_queue_stop(struct job_queues *jq, struct job_queue *q)
{
    if (q->state == JOB_QUEUE_PACED) {
        due_heap_remove(&jq->heap, q - jq->queues);
    } else if (q->state == JOB_QUEUE_READY) {
        unready(q);
        if (!q->job->head) {
            place_order_leave(jq->order, &q->job->member);
        }
    }
    q->state = JOB_QUEUE_IDLE;
}

/* Lets 'flow_queue' go.  What is in it leaves as soon as its job may send. */
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
        recycle(jq, q);
    }
}

/* Gives 'q' the pace 'bps', 0 for none, from 'now' on. */
static void
set_pace(struct job_queues *jq, uint64_t now, struct job_queue *q,
         uint64_t bps, uint32_t depth)
{
    bool waits = q->state != JOB_QUEUE_IDLE;

    /* Who waited before may still make up for a loop that comes late, or it
     * would lose a little with each change. */
    bool fresh = q->state == JOB_QUEUE_PACED ? q->fresh : !q->pace.bps;

    job_queue_stop(jq, q);
    if (bps) {
        pace_set_rate(&q->pace, now, bps, depth);
    } else {
        q->pace.bps = 0;
    }
    if (waits) {
        job_queue_start(jq, q, fresh);
    }
}

/* Paces 'flow_queue' to 'bps', but not slower than JOB_QUEUES_MIN_PACE; 0 is
 * no pace.  It sends at most 'depth' bytes, of which the last frame may go
 * beyond it, and one frame at once.  What it was given to start with is not
 * held against it. */
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

/* Lets 'bytes' of 'flow_queue' leave as its job may send, and hardly anything
 * more before it has a rate. */
void
job_queues_flow_start(struct job_queues *jq, uint64_t now,
                      uint16_t flow_queue, uint32_t bytes)
{
    struct job_queue *q = job_queues_flow(jq, flow_queue);

    q->starts = true;
    q->pace.full = 0;
    set_pace(jq, now, q, JOB_QUEUES_START_PACE, bytes);
}

/* Has 'flow_queue' sent what it was given to start with, and more to send? */
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
