/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/queue/rank-queue.h"

#include <stdlib.h>

#include "base/memory.h"
#include "shim/clock/counter.h"
#include "shim/queue/class-order.h"
#include "shim/queue/job-queue.h"
#include "shim/queue/long-queue.h"
#include "shim/queue/pace.h"

#define CONTROL_FRAMES 64       /* Longest control queue for other packets. */
#define LARGE_PART 4            /* A large flow has 1/4 of the uplink. */

struct rank_queues {
    struct job *control;        /* The queues of the control class... */
    struct job_queue *control_common;   /* ...and the common one of them. */
    uint64_t bps;               /* Rate of the uplink. */
    struct pace police;         /* The share of control. */
    uint32_t n_packets, max_packets;    /* In all queues. */
    uint64_t max_job_bytes;
    uint64_t control_bytes;     /* Above this, only control packets join the
                                 * control queue. */
    uint64_t bytes;             /* In all queues. */
    uint64_t n_policed;         /* Control packets sent in the last class. */
    struct long_queues lengths;
    struct packet_pool pool;
    struct class_order order;
    struct job_queues jq;
};

static inline void
count_removed(struct rank_queues *rq, struct job_queue *q, uint32_t n,
              uint64_t bytes)
{
    q->n_left += n;
    q->job->bytes -= bytes;
    if (long_queue_moves(q->fifo.n + n, q->fifo.n)) {
        long_queue_move(&rq->lengths, &q->length, q->fifo.n);
    }
}

static inline void
count_appended(struct rank_queues *rq, struct job_queue *q, uint32_t n,
               uint64_t bytes)
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

/* Returns how many chunks 'max_packets' need: each queue has at most two that
 * are not full. */
static uint32_t
chunks_for(uint32_t max_packets)
{
    return max_packets / PACKET_CHUNK_ITEMS
           + 2 * (max_packets < JOB_QUEUES_N ? max_packets : JOB_QUEUES_N);
}

/* Creates queues for frames of at most 'max_frame' bytes. */
struct rank_queues *
rank_queues_create(uint32_t max_packets, uint32_t max_frame)
{
    struct rank_queues *rq = allocate(1, sizeof *rq);

    rq->control = &rq->jq.jobs[JOB_QUEUES_CONTROL];
    rq->control_common = &rq->jq.queues[JOB_QUEUES_CONTROL];
    rq->max_packets = max_packets;
    rq->max_job_bytes = UINT64_MAX;
    rq->control_bytes = (uint64_t) CONTROL_FRAMES * max_frame;
    class_order_init(&rq->order, max_frame);
    packet_pool_init(&rq->pool, chunks_for(max_packets));
    job_queues_init(&rq->jq, &rq->order);
    return rq;
}

void
rank_queues_destroy(struct rank_queues *rq)
{
    if (rq) {
        packet_pool_uninit(&rq->pool);
        job_queues_uninit(&rq->jq);
        free(rq);
    }
}

/* See class_order_set_min_share(). */
void
rank_queues_set_min_share(struct rank_queues *rq, uint32_t share)
{
    class_order_set_min_share(&rq->order, share);
}

/* Sets the rate of the uplink, the share of control in it, and the limit of
 * each job in bytes.  Queued packets stay. */
void
rank_queues_set_rate(struct rank_queues *rq, uint64_t now, uint64_t bps,
                     uint64_t max_job_bytes)
{
    rq->bps = bps;
    pace_set_rate(&rq->police, now, bps / RANK_QUEUE_CONTROL,
                  (RANK_QUEUE_CONTROL_FRAMES - 1) * rq->order.quantum);
    rq->max_job_bytes = max_job_bytes;
}

/* Sets the class of each slot, including those with queued packets; all get
 * the last class if 'classes' is NULL. */
void
rank_queues_set_classes(struct rank_queues *rq,
                        const job_class classes[SHIM_MAX_SLOTS])
{
    uint64_t credit[SHIM_N_LEVELS];

    class_order_begin_change(&rq->order, credit);
    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        if (rq->jq.jobs[i].member.waits) {
            class_order_leave(&rq->order, &rq->jq.jobs[i].member);
        }
    }
    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        struct job *job = &rq->jq.jobs[i];

        job->member.class = classes ? classes[i] : JOB_CLASS_LAST;
        if (job->head) {
            class_order_enter(&rq->order, &job->member);
        }
    }
    class_order_end_change(&rq->order, credit);
}

static inline void
pop_packet(struct rank_queues *rq, struct job_queue *q,
           struct queue_item *item)
{
    packet_fifo_pop(&q->fifo, &rq->pool, item);
    count_removed(rq, q, 1, item->length);
}

/* Counts a packet of 'slot' that has left 'q', if that is the common control
 * queue. */
static void
uncount_control(struct rank_queues *rq, const struct job_queue *q,
                uint16_t slot)
{
    rq->jq.jobs[slot].n_control -= slot && q == rq->control_common;
}

/* Removes a packet of the longest queue.  Returns false if that is 'q', or all
 * queues are short. */
static bool
push_out(struct rank_queues *rq, const struct job_queue *q,
         struct queue_item *dropped)
{
    struct long_queue_node *node = long_queue_longest(&rq->lengths);
    struct job_queue *victim;

    if (!node || node->list == q->length.list) {
        return false;
    }
    victim = (struct job_queue *) ((char *) node
                                   - offsetof(struct job_queue, length));
    pop_packet(rq, victim, dropped);
    job_queues_release(&rq->jq, victim->job);
    uncount_control(rq, victim, dropped->slot);
    rq->n_packets--;
    counter_add(&rq->bytes, -(uint64_t) dropped->length);
    return true;
}

/* Returns the queue for a packet of 'slot'.  When a job as a whole enters or
 * leaves the control class, it keeps its old queue until that is empty of its
 * packets, so that its flows stay in order.  Non-control packets no longer
 * join the common control queue once it holds 'control_bytes'. */
static struct job_queue *
find_queue(struct rank_queues *rq, uint16_t slot, uint16_t flow_queue,
           bool control)
{
    struct job *job = &rq->jq.jobs[slot];

    if (control && flow_queue) {
        struct job_queue *q = job_queues_flow(&rq->jq, flow_queue);

        if (q->job == rq->control) {
            return q;
        }
    }
    if (control ? !slot || !job->bytes
        : job->n_control && rq->control->bytes < rq->control_bytes) {
        return rq->control_common;
    }
    if (flow_queue) {
        struct job_queue *q = job_queues_flow(&rq->jq, flow_queue);

        if (q->job == job && !q->freed) {
            return q;
        }
    }
    return &rq->jq.queues[slot];
}

/* Appends '*item' to a control queue, to 'flow_queue' of its slot, or if that
 * is 0 to the slot's common queue.  Returns false if a packet must be
 * dropped, which is stored in '*dropped' and may be another one. */
bool
rank_queues_push(struct rank_queues *rq, uint16_t flow_queue, bool control,
                 const struct queue_item *item, struct queue_item *dropped)
{
    struct job_queue *q = find_queue(rq, item->slot, flow_queue, control);
    struct job *job = q->job;
    bool full = rq->n_packets == rq->max_packets;

    if (job->bytes + item->length > rq->max_job_bytes
        || (full && !push_out(rq, q, dropped))
        || !packet_fifo_push(&q->fifo, &rq->pool, item)) {
        *dropped = *item;
        return false;
    }
    if (q == rq->control_common) {
        rq->jq.jobs[item->slot].n_control += item->slot != 0;
    }
    count_appended(rq, q, 1, item->length);
    return !full;
}

/* Appends 'n' items of one slot to 'q' if that is not the control queue and
 * all fit.  Returns how many were appended. */
static inline uint32_t
push_all(struct rank_queues *rq, struct job_queue *q,
         const struct queue_item *items, uint32_t n)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < n; i++) {
        bytes += items[i].length;
    }
    if (q->job == rq->control || rq->n_packets + n > rq->max_packets
        || q->job->bytes + bytes > rq->max_job_bytes) {
        return 0;
    }
    n = packet_fifo_push_run(&q->fifo, &rq->pool, items, n);
    count_appended(rq, q, n, bytes);
    return n;
}

/* rank_queues_push() for each of 'n' items of one slot.  Stores the packets to
 * be dropped in 'dropped' and returns their number. */
uint32_t
rank_queues_push_run(struct rank_queues *rq, uint16_t flow_queue,
                     bool control, const struct queue_item *items, uint32_t n,
                     struct queue_item *dropped)
{
    struct job_queue *q = find_queue(rq, items->slot, flow_queue, control);
    uint32_t n_dropped = 0;

    for (uint32_t i = push_all(rq, q, items, n); i < n; i++) {
        n_dropped += !rank_queues_push(rq, flow_queue, control, &items[i],
                                       &dropped[n_dropped]);
    }
    return n_dropped;
}

/* Takes a control packet unless control has used its share.  Returns false if
 * it has: its packets then wait in the last class. */
static bool
take_control(struct rank_queues *rq, uint64_t now, struct queue_item *item)
{
    struct job_queue *q = rq->control->head;

    pace_forget(&rq->police, now, 0);
    if (pace_due(&rq->police) > now) {
        return false;
    }
    pop_packet(rq, q, item);
    uncount_control(rq, q, item->slot);
    pace_take(&rq->police, item->length);
    job_queue_end(&rq->jq, q, now, item->length);
    if (!rq->control->head) {
        class_order_leave(&rq->order, &rq->control->member);
    }
    return true;
}

static uint32_t
first_length(const struct class_member *member)
{
    return packet_fifo_first(&job_of_member(member)->head->fifo)->length;
}

/* Returns how many bytes 'q', chosen by '*d', may send before another queue
 * may be the next. */
static inline uint64_t
max_run(const struct rank_queues *rq, const struct dispatch *d,
        const struct job_queue *q)
{
    uint64_t by_class = class_order_max_run(&rq->order, d, q->job->bytes);
    uint64_t by_job = job_queue_run(q);

    return by_class < by_job ? by_class : by_job;
}

/* Moves packets of 'q' to 'items': one, and more while they are less than
 * 'max' with less than 'max_bytes'.  Returns their number, and stores their
 * bytes in '*bytesp'. */
static inline uint32_t
move_run(struct rank_queues *rq, struct job_queue *q, struct queue_item *items,
         uint32_t max, uint64_t max_bytes, uint64_t *bytesp)
{
    uint64_t bytes = 0;
    uint32_t n = 0;

    do {
        const struct queue_item *from = packet_fifo_first(&q->fifo);
        uint32_t span = packet_fifo_span(&q->fifo), i = 0;

        span = span < max - n ? span : max - n;
        do {
            items[n++] = from[i];
            bytes += from[i++].length;
        } while (i < span && bytes < max_bytes);
        packet_fifo_remove(&q->fifo, &rq->pool, i);
    } while (q->fifo.n && n < max && bytes < max_bytes);
    *bytesp = bytes;
    return n;
}

/* Takes the next packets of one queue, at most 'max', with less than
 * 'max_bytes' without the last one.  Returns their number, 0 if none may
 * leave. */
static inline uint32_t
take_run(struct rank_queues *rq, uint64_t now, struct queue_item *items,
         uint32_t max, uint64_t max_bytes, uint64_t *bytesp)
{
    struct dispatch d;
    struct job_queue *q;
    struct job *job;
    uint64_t run;
    uint32_t n;

    job_queues_wake(&rq->jq, now);
    if (!class_order_pick(&rq->order, first_length, &d)) {
        return 0;
    }
    job = job_of_member(d.member);
    q = job->head;
    run = max_run(rq, &d, q);
    n = move_run(rq, q, items, max, run < max_bytes ? run : max_bytes, bytesp);
    count_removed(rq, q, n, *bytesp);
    if (job == rq->control) {
        counter_add(&rq->n_policed, n);
        for (uint32_t i = 0; i < n; i++) {
            uncount_control(rq, q, items[i].slot);
        }
    }
    job_queue_end(&rq->jq, q, now, *bytesp);
    class_order_end(&rq->order, &d, *bytesp, items[n - 1].length,
                    job->head != NULL);
    return n;
}

/* Moves up to 'max' packets to 'items' in the order in which they leave, as
 * far as 'pace' allows at 'now'.  Returns their number. */
uint32_t
rank_queues_take(struct rank_queues *rq, uint64_t now, struct pace *pace,
                 struct queue_item *items, uint32_t max)
{
    uint64_t max_bytes = pace_allowance(pace, now), bytes = 0, more;
    uint32_t n = 0, run;

    while (n < max && bytes < max_bytes && rq->control->head
           && take_control(rq, now, &items[n])) {
        bytes += items[n++].length;
    }
    while (n < max && bytes < max_bytes
           && (run = take_run(rq, now, &items[n], max - n,
                              max_bytes - bytes, &more))) {
        bytes += more;
        n += run;
    }
    if (n) {
        pace_take(pace, bytes);
        rq->n_packets -= n;
        counter_add(&rq->bytes, -bytes);
    }
    return n;
}

/* Removes any packet, for the end of the process.  Returns false if there is
 * none. */
bool
rank_queues_drain(struct rank_queues *rq, struct queue_item *item)
{
    for (int i = 0; rq->n_packets && i < JOB_QUEUES_N; i++) {
        struct packet_fifo *fifo = &rq->jq.queues[i].fifo;

        if (fifo->n) {
            packet_fifo_pop(fifo, &rq->pool, item);
            rq->n_packets--;
            return true;
        }
    }
    return false;
}

/* Returns when the first packet may leave: 0 is now, UINT64_MAX if there is no
 * packet. */
uint64_t
rank_queues_due(const struct rank_queues *rq)
{
    return !class_map_is_empty(&rq->order.map) ? 0
           : rq->jq.heap.n ? due_heap_first(&rq->jq.heap) : UINT64_MAX;
}

void
rank_queues_count(const struct rank_queues *rq, uint16_t slot,
                  uint32_t *joined, uint32_t *left)
{
    const struct job_queue *q = &rq->jq.queues[slot];

    *left = q->n_left;
    *joined = q->n_left + q->fifo.n;
}

struct job_queues *
rank_queues_jobs(struct rank_queues *rq)
{
    return &rq->jq;
}

/* See job_queues_flow_rate(). */
void
rank_queues_flow_rate(struct rank_queues *rq, uint64_t now,
                      uint16_t flow_queue, uint64_t bps)
{
    bool is_large = bps >= rq->bps / LARGE_PART;

    job_queues_flow_rate(&rq->jq, now, flow_queue, bps,
                         is_large ? rq->order.quantum : 0);
}

uint64_t
rank_queues_bytes(const struct rank_queues *rq)
{
    return counter_get(&rq->bytes);
}

/* Returns how many control packets were sent in the last class. */
uint64_t
rank_queues_policed(const struct rank_queues *rq)
{
    return counter_get(&rq->n_policed);
}
