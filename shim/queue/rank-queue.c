/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/queue/rank-queue.h"

#include <stdlib.h>

#include "shim/clock/counter.h"
#include "shim/queue/job-queue.h"
#include "shim/queue/long-queue.h"
#include "shim/queue/pace.h"
#include "shim/queue/place-order.h"

#define CONTROL_FRAMES 64
#define LARGE_PART 4            /* 1/4 of the uplink is. */

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
count_removed(struct rank_queues *rq, struct job_queue *q, uint32_t n,
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

/* Each queue has at most two chunks that are not full. */
static uint32_t
chunks_for(uint32_t max_packets)
{
    return max_packets / PACKET_CHUNK_ITEMS
           + 2 * (max_packets < JOB_QUEUES_N ? max_packets : JOB_QUEUES_N);
}

/* Creates queues for frames of at most 'max_frame' bytes.  Returns NULL
 * without memory. */
struct rank_queues *
rank_queues_create(uint32_t max_packets, uint32_t max_frame)
{
    struct rank_queues *rq = calloc(1, sizeof *rq);

    if (!rq) {
        return NULL;
    }
    rq->control = &rq->jq.jobs[JOB_QUEUES_CONTROL];
    rq->max_packets = max_packets;
    rq->max_job_bytes = UINT64_MAX;
    rq->control_bytes = (uint64_t) CONTROL_FRAMES * max_frame;
    place_order_init(&rq->order, max_frame);
    if (!packet_pool_init(&rq->pool, chunks_for(max_packets))
        | !job_queues_init(&rq->jq, &rq->order)) {
        rank_queues_destroy(rq);
        return NULL;
    }
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

/* See place_order_set_guard(). */
void
rank_queues_set_guard(struct rank_queues *rq, uint32_t share)
{
    place_order_set_guard(&rq->order, share);
}

/* Tells what the uplink carries, of which control has its share, and how many
 * bytes a job may have here.  What is here already stays. */
void
rank_queues_set_rate(struct rank_queues *rq, uint64_t now, uint64_t bps,
                     uint64_t max_job_bytes)
{
    rq->bps = bps;
    pace_set_rate(&rq->police, now, bps / RANK_QUEUE_CONTROL,
                  (RANK_QUEUE_CONTROL_FRAMES - 1) * rq->order.quantum);
    rq->max_job_bytes = max_job_bytes;
}

/* A queue that is paced loses nothing of its rate if rank_queues_take() comes
 * up to 'ns' late. */
void
rank_queues_set_late(struct rank_queues *rq, uint64_t ns)
{
    rq->jq.late = ns;
}

/* Gives each slot its place, the last if 'places' is NULL, also where packets
 * of it wait already. */
void
rank_queues_set_places(struct rank_queues *rq,
                       const job_place places[SHIM_MAX_SLOTS])
{
    uint64_t credit[SHIM_N_LEVELS];

    place_order_begin_change(&rq->order, credit);
    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        if (rq->jq.jobs[i].member.waits) {
            place_order_leave(&rq->order, &rq->jq.jobs[i].member);
        }
    }
    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        struct job *job = &rq->jq.jobs[i];

        job->member.place = places ? places[i] : JOB_PLACE_LAST;
        if (job->head) {
            place_order_enter(&rq->order, &job->member);
        }
    }
    place_order_end_change(&rq->order, credit);
}

/* Removes the first packet of 'q'. */
static inline void
pop(struct rank_queues *rq, struct job_queue *q, struct queue_item *item)
{
    packet_fifo_pop(&q->fifo, &rq->pool, item);
    count_removed(rq, q, 1, item->length);
}

/* A packet of control has left. */
static void
uncount_control(struct rank_queues *rq, uint16_t slot)
{
    rq->jq.jobs[slot].n_control -= slot != 0;
}

/* Makes room by removing a packet of the longest queue.  Returns false if that
 * is 'q', or all are short. */
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
    pop(rq, victim, dropped);
    job_queues_release(&rq->jq, victim->job);
    if (victim->job == rq->control) {
        uncount_control(rq, dropped->slot);
    }
    rq->n_packets--;
    counter_add(&rq->bytes, -(uint64_t) dropped->length);
    return true;
}

/* Returns where a packet of 'slot' goes.  A job that becomes control, or is it
 * no longer, changes its queue when nothing of it is left in the other, so
 * that its flows keep their order; but what is not control shall not fill the
 * queue of control. */
static struct job_queue *
find_queue(struct rank_queues *rq, uint16_t slot, uint16_t flow_queue,
           bool control)
{
    struct job *job = &rq->jq.jobs[slot];

    if (control ? !slot || !job->bytes
        : job->n_control && rq->control->bytes < rq->control_bytes) {
        return &rq->jq.queues[JOB_QUEUES_CONTROL];
    }
    if (flow_queue) {
        struct job_queue *q = job_queues_flow(&rq->jq, flow_queue);

        if (q->job == job && !q->freed) {
            return q;
        }
    }
    return &rq->jq.queues[slot];
}

/* Appends '*item' to the queue of its slot, to 'flow_queue' of it unless that
 * is 0, or to that of control.  Returns false if a packet must be dropped; it
 * is stored in '*dropped' and may be another one. */
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
    if (job == rq->control) {
        rq->jq.jobs[item->slot].n_control += item->slot != 0;
    }
    count_appended(rq, q, 1, item->length);
    return !full;
}

/* Appends as many as there is room for of 'n' items of one slot, to a queue
 * that is not that of control.  Returns how many. */
static inline uint32_t
push_together(struct rank_queues *rq, struct job_queue *q,
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

/* rank_queues_push() for each of 'n' items of one slot.  Stores what must be
 * dropped in 'dropped' and returns how many that are. */
uint32_t
rank_queues_push_run(struct rank_queues *rq, uint16_t flow_queue,
                     bool control, const struct queue_item *items, uint32_t n,
                     struct queue_item *dropped)
{
    struct job_queue *q = find_queue(rq, items->slot, flow_queue, control);
    uint32_t n_dropped = 0;

    for (uint32_t i = push_together(rq, q, items, n); i < n; i++) {
        n_dropped += !rank_queues_push(rq, flow_queue, control, &items[i],
                                       &dropped[n_dropped]);
    }
    return n_dropped;
}

/* Takes a packet of control if it has not had its share.  Otherwise it has to
 * wait for its turn in the last place. */
static bool
take_control(struct rank_queues *rq, uint64_t now, struct queue_item *item)
{
    struct job_queue *q = rq->control->head;

    pace_forget(&rq->police, now, 0);
    if (pace_due(&rq->police) > now) {
        return false;
    }
    pop(rq, q, item);
    uncount_control(rq, item->slot);
    pace_take(&rq->police, item->length);
    job_queue_end(&rq->jq, q, now, item->length);
    if (!rq->control->head) {
        place_order_leave(&rq->order, &rq->control->member);
    }
    return true;
}

/* Returns the bytes of the packet that goes next if it is the turn of
 * 'member'. */
static uint32_t
first_length(const struct place_member *member)
{
    return packet_fifo_first(&job_of_member(member)->head->fifo)->length;
}

/* Returns after how many bytes another queue than 'q', whose turn 'turn' is,
 * may be the next. */
static inline uint64_t
run_of(const struct rank_queues *rq, const struct place_turn *turn,
       const struct job_queue *q)
{
    uint64_t of_place = place_order_run(&rq->order, turn, q->job->bytes);
    uint64_t of_job = job_queue_run(q);

    return of_place < of_job ? of_place : of_job;
}

/* Moves packets of 'q' to 'items': one, and more while there are less than
 * 'max' with less than 'max_bytes'.  Returns how many, and their bytes in
 * '*bytesp'. */
static inline uint32_t
move_run(struct rank_queues *rq, struct job_queue *q,
         struct queue_item *items, uint32_t max, uint64_t max_bytes,
         uint64_t *bytesp)
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

/* Takes the packets that go next, with less than 'room' bytes but for the
 * last: those of one queue, for as long as it is its turn.  Returns how
 * many. */
static inline uint32_t
take_run(struct rank_queues *rq, uint64_t now, struct queue_item *items,
         uint32_t max, uint64_t room, uint64_t *bytesp)
{
    struct place_turn turn;
    struct job_queue *q;
    struct job *job;
    uint64_t run;
    uint32_t n;

    job_queues_wake(&rq->jq, now);
    if (!place_order_pick(&rq->order, first_length, &turn)) {
        return 0;
    }
    job = job_of_member(turn.member);
    q = job->head;
    run = run_of(rq, &turn, q);
    n = move_run(rq, q, items, max, run < room ? run : room, bytesp);
    count_removed(rq, q, n, *bytesp);
    if (job == rq->control) {
        counter_add(&rq->n_policed, n);
        for (uint32_t i = 0; i < n; i++) {
            uncount_control(rq, items[i].slot);
        }
    }
    job_queue_end(&rq->jq, q, now, *bytesp);
    place_order_end(&rq->order, &turn, *bytesp, items[n - 1].length,
                    job->head != NULL);
    return n;
}

/* Moves up to 'max' packets that may go at 'now', in their order and as
 * 'pace' allows, to 'items'.  Returns how many. */
uint32_t
rank_queues_take(struct rank_queues *rq, uint64_t now, struct pace *pace,
                 struct queue_item *items, uint32_t max)
{
    uint64_t room = pace_room(pace, now), bytes = 0, more;
    uint32_t n = 0, run;

    while (n < max && bytes < room && rq->control->head
           && take_control(rq, now, &items[n])) {
        bytes += items[n++].length;
    }
    while (n < max && bytes < room
           && (run = take_run(rq, now, &items[n], max - n, room - bytes,
                              &more))) {
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

/* Removes any packet, also one that may not go yet, when all is to end.
 * Returns false if there is none. */
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

/* Returns when there is, or will be, a packet that may go: 0 for now,
 * UINT64_MAX if there is none at all. */
uint64_t
rank_queues_due(const struct rank_queues *rq)
{
    return !place_map_is_empty(&rq->order.map) ? 0
           : rq->jq.heap.n ? due_heap_first(&rq->jq.heap) : UINT64_MAX;
}

/* See job_queues_flow_new(), job_queues_flow_free(), job_queues_flow_rate(),
 * job_queues_flow_start(), job_queues_flow_started(),
 * job_queues_flow_empty(). */
uint16_t
rank_queues_flow_new(struct rank_queues *rq, uint16_t slot)
{
    return job_queues_flow_new(&rq->jq, slot);
}

void
rank_queues_flow_free(struct rank_queues *rq, uint16_t flow_queue)
{
    job_queues_flow_free(&rq->jq, flow_queue);
}

void
rank_queues_flow_rate(struct rank_queues *rq, uint64_t now,
                      uint16_t flow_queue, uint64_t bps)
{
    bool is_large = bps >= rq->bps / LARGE_PART;

    job_queues_flow_rate(&rq->jq, now, flow_queue, bps,
                         is_large ? rq->order.quantum : 0);
}

void
rank_queues_flow_start(struct rank_queues *rq, uint64_t now,
                       uint16_t flow_queue, uint32_t bytes)
{
    job_queues_flow_start(&rq->jq, now, flow_queue, bytes);
}

bool
rank_queues_flow_started(const struct rank_queues *rq, uint64_t now,
                         uint16_t flow_queue)
{
    return job_queues_flow_started(&rq->jq, now, flow_queue);
}

bool
rank_queues_flow_empty(const struct rank_queues *rq, uint16_t flow_queue)
{
    return job_queues_flow_empty(&rq->jq, flow_queue);
}

uint64_t
rank_queues_bytes(const struct rank_queues *rq)
{
    return counter_get(&rq->bytes);
}

/* Returns how many packets of control went in the last place. */
uint64_t
rank_queues_policed(const struct rank_queues *rq)
{
    return counter_get(&rq->n_policed);
}

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
    count_removed(rq, q, n, bytes);
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
    count_appended(rq, q, n, bytes);
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
