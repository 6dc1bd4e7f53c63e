/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/rank-queue.h"

#include <stdlib.h>
#include <string.h>

#include "shim/pipeline/counter.h"
#include "shim/pipeline/due-heap.h"
#include "shim/pipeline/pace.h"
#include "shim/pipeline/place-map.h"

/* Credits are in bytes times this. */
#define CREDIT_SHIFT 24

#define N_JOBS (SHIM_MAX_SLOTS + 1)
#define CONTROL_JOB SHIM_MAX_SLOTS      /* Behind all slots. */
#define N_QUEUES (N_JOBS + RANK_QUEUE_FLOWS)

#define LONG_SHIFT 6            /* A queue of 2^6 packets may be the longest. */
#define N_LENGTHS (32 - LONG_SHIFT)

enum queue_state {
    QUEUE_IDLE,                 /* Empty, or held. */
    QUEUE_PACED,                /* In the heap until it is due. */
    QUEUE_READY,                /* In its job's ring. */
};

/* queues[SLOT] are the common ones of the jobs. */
struct queue {
    struct packet_fifo fifo;
    struct job *job;
    struct queue *next, *prev;  /* In its job's ring.  'next' also in 'held' of
                                 * the job and 'free' of all. */
    uint32_t n_left;            /* Packets, ever; runs over. */
    int32_t deficit;            /* Bytes that it may send in its turn. */
    uint8_t state;              /* enum queue_state. */
    bool fresh;                 /* It was empty before it became paced. */
    bool held;                  /* Until 'n_left' of the common queue is
                                 * 'after'. */
    bool freed;                 /* Its flow has gone. */
    uint32_t after;
    struct pace pace;           /* 'bps' 0: not paced. */

    int length;                 /* Index of 'lengths', -1 if it is short. */
    struct queue *longer_next, *longer_prev;
};

struct job {
    struct queue *head;         /* Ring of the queues that may send. */
    struct job *next, *prev;    /* In its place's ring, while it has one. */
    struct queue *held;         /* In the order in which they are let go. */
    uint64_t bytes;             /* In all its queues. */
    int32_t deficit;
    job_place place;
    bool waits;                 /* It is in its place's ring. */
    uint32_t n_control;         /* Its packets in the control queue. */
};

struct place {
    struct job *head;           /* Ring. */
    uint8_t level;              /* While it has jobs. */
};

struct level {
    struct place_map places;    /* Those that have jobs... */
    uint32_t n;                 /* ...and how many there are. */
    uint32_t turn;              /* The last place that its floor served. */
    uint64_t credit;            /* Of its floor, while it waits. */
};

struct rank_queues {
    struct place_map places;    /* Those that have jobs. */
    uint32_t some, several;     /* Bit N: level N has places, or two. */
    uint64_t gain[SHIM_N_LEVELS];       /* Credit that a byte of the first
                                         * place gives to each level that
                                         * waits, if so many do. */
    struct pace police;         /* Of control. */
    uint32_t n_packets, max_packets;
    uint32_t quantum;           /* Bytes of a turn: the longest frame's. */
    uint64_t max_job_bytes;
    uint64_t late;              /* See pace_forget(). */
    uint64_t bytes;             /* Of all queues. */
    uint64_t n_policed;         /* Packets of control beyond its share. */
    struct queue *free;         /* Of flows. */
    uint32_t lengths_used;      /* Bit N: lengths[N] is not empty. */
    struct queue *lengths[N_LENGTHS];   /* Queues of 2^(N + LONG_SHIFT) packets
                                         * and more, up to twice as many. */
    struct packet_pool pool;
    struct due_heap heap;
    struct level levels[SHIM_N_LEVELS];
    struct place place[SHIM_MAX_SLOTS];
    struct job jobs[N_JOBS];
    struct queue queues[N_QUEUES];
};

/* Each queue has at most two chunks that are not full. */
static uint32_t
chunks_for(uint32_t max_packets)
{
    return max_packets / PACKET_CHUNK_ITEMS
           + 2 * (max_packets < N_QUEUES ? max_packets : N_QUEUES);
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
    rq->max_packets = max_packets;
    rq->quantum = max_frame;
    rq->max_job_bytes = UINT64_MAX;
    rank_queues_set_guard(rq, SHIM_GUARD_UNTOLD);
    for (int i = 0; i < N_QUEUES; i++) {
        rq->queues[i].length = -1;
    }
    for (int i = 0; i < N_JOBS; i++) {
        rq->queues[i].job = &rq->jobs[i];
        rq->jobs[i].place = JOB_PLACE_LAST;
    }
    for (int i = N_QUEUES - 1; i >= N_JOBS; i--) {
        rq->queues[i].next = rq->free;
        rq->free = &rq->queues[i];
    }
    if (!packet_pool_init(&rq->pool, chunks_for(max_packets))
        | !due_heap_init(&rq->heap, N_QUEUES)) {
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
        due_heap_uninit(&rq->heap);
        free(rq);
    }
}

/* Lets each level that waits have 'share' of the uplink, in millionths, or
 * SHIM_GUARD_UNTOLD.  A gain is rounded up: a floor is at least that. */
void
rank_queues_set_guard(struct rank_queues *rq, uint32_t share)
{
    for (uint64_t n = 1; n < SHIM_N_LEVELS; n++) {
        uint64_t floor = 1, rest = n * RANK_QUEUE_FLOOR;

        if (share != SHIM_GUARD_UNTOLD) {
            uint64_t equal = SHIM_GUARD_UNIT / (n + 1);

            floor = share < equal ? share : equal;
            rest = SHIM_GUARD_UNIT - n * floor;
        }
        rq->gain[n] = ((floor << CREDIT_SHIFT) + rest - 1) / rest;
    }
}

/* Tells what the uplink carries, of which control has its share, and how many
 * bytes a job may have here.  What is here already stays. */
void
rank_queues_set_rate(struct rank_queues *rq, uint64_t now, uint64_t bps,
                     uint64_t max_job_bytes)
{
    pace_set_rate(&rq->police, now, bps / RANK_QUEUE_CONTROL,
                  (RANK_QUEUE_CONTROL_FRAMES - 1) * rq->quantum);
    rq->max_job_bytes = max_job_bytes;
}

/* A queue that is paced loses nothing of its rate if rank_queues_take() comes
 * up to 'ns' late. */
void
rank_queues_set_late(struct rank_queues *rq, uint64_t ns)
{
    rq->late = ns;
}

/* Returns whether 'place' had no job before. */
static bool
link_job(struct place *place, struct job *job)
{
    if (!place->head) {
        place->head = job->next = job->prev = job;
        return true;
    }
    job->next = place->head;
    job->prev = place->head->prev;
    job->prev->next = job->next->prev = job;
    return false;
}

static void
update_level(struct rank_queues *rq, int i)
{
    rq->some &= ~(1u << i);
    rq->several &= ~(1u << i);
    rq->some |= (rq->levels[i].n > 0) << i;
    rq->several |= (rq->levels[i].n > 1) << i;
}

/* Puts 'job' last in the ring of its place.  The level of a place is that of
 * its first job; while the order changes its jobs may differ. */
static void
enter_place(struct rank_queues *rq, struct job *job)
{
    uint32_t at = JOB_PLACE_OF(job->place);
    struct place *place = &rq->place[at];

    job->waits = true;
    if (link_job(place, job)) {
        struct level *level;

        place->level = JOB_LEVEL_OF(job->place);
        level = &rq->levels[place->level];
        place_map_add(&rq->places, at);
        place_map_add(&level->places, at);
        level->n++;
        update_level(rq, place->level);
    }
}

/* A level that does not wait saves nothing up. */
static void
leave_place(struct rank_queues *rq, struct job *job)
{
    uint32_t at = JOB_PLACE_OF(job->place);
    struct place *place = &rq->place[at];

    job->waits = false;
    if (job->next == job) {
        struct level *level = &rq->levels[place->level];

        place->head = NULL;
        place_map_remove(&rq->places, at);
        place_map_remove(&level->places, at);
        if (!--level->n) {
            level->credit = 0;
        }
        update_level(rq, place->level);
    } else {
        job->next->prev = job->prev;
        job->prev->next = job->next;
        place->head = place->head == job ? job->next : place->head;
    }
}

/* Gives each slot its place, the last if 'places' is NULL, also where packets
 * of it wait already. */
void
rank_queues_set_places(struct rank_queues *rq,
                       const job_place places[SHIM_MAX_SLOTS])
{
    uint64_t credit[SHIM_N_LEVELS];

    for (int i = 0; i < SHIM_N_LEVELS; i++) {
        credit[i] = rq->levels[i].credit;
    }
    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        if (rq->jobs[i].waits) {
            leave_place(rq, &rq->jobs[i]);
        }
    }
    for (int i = 0; i < SHIM_MAX_SLOTS; i++) {
        rq->jobs[i].place = places ? places[i] : JOB_PLACE_LAST;
        if (rq->jobs[i].head) {
            enter_place(rq, &rq->jobs[i]);
        }
    }
    for (int i = 0; i < SHIM_N_LEVELS; i++) {
        rq->levels[i].credit = rq->levels[i].n ? credit[i] : 0;
    }
}

/* A turn begins with a quantum; what was sent too much in one before is not
 * forgotten. */
static int32_t
new_deficit(const struct rank_queues *rq, int32_t old)
{
    return (old < 0 ? old : 0) + (int32_t) rq->quantum;
}

/* Puts 'q' into its job's ring: at the end, or if its flow has gone, before
 * all that is not of such a flow. */
static void
make_ready(struct rank_queues *rq, struct queue *q)
{
    struct job *job = q->job;
    struct queue *at = job->head;

    q->state = QUEUE_READY;
    q->deficit = new_deficit(rq, q->deficit);
    if (!at) {
        job->head = q->next = q->prev = q;
        if (!job->waits) {
            job->deficit = new_deficit(rq, job->deficit);
            enter_place(rq, job);
        }
        return;
    }
    if (q->freed) {
        while (at->freed && at->next != job->head) {
            at = at->next;
        }
        if (at->freed) {
            at = at->next;      /* All are: at the end. */
        } else if (at == job->head) {
            job->head = q;
        }
    }
    q->next = at;
    q->prev = at->prev;
    q->prev->next = q->next->prev = q;
}

static void
unready(struct queue *q)
{
    struct job *job = q->job;

    q->state = QUEUE_IDLE;
    if (q->next == q) {
        job->head = NULL;
    } else {
        q->next->prev = q->prev;
        q->prev->next = q->next;
        job->head = job->head == q ? q->next : job->head;
    }
}

/* Lets 'q', which has packets, send when it may. */
static void
start(struct rank_queues *rq, struct queue *q, bool fresh)
{
    if (q->held) {
        return;
    }
    if (q->pace.bps) {
        q->state = QUEUE_PACED;
        q->fresh = fresh;
        due_heap_add(&rq->heap, pace_due(&q->pace), q - rq->queues);
    } else {
        make_ready(rq, q);
    }
}

static void
wake_due(struct rank_queues *rq, uint64_t now)
{
    while (rq->heap.n && due_heap_first(&rq->heap) <= now) {
        struct queue *q = &rq->queues[due_heap_pop(&rq->heap)];

        pace_forget(&q->pace, now, q->fresh ? 0 : rq->late);
        make_ready(rq, q);
    }
}

static void
recycle(struct rank_queues *rq, struct queue *q)
{
    q->next = rq->free;
    rq->free = q;
}

/* Lets those go that waited for what has now left the common queue. */
static void
release_held(struct rank_queues *rq, struct job *job)
{
    uint32_t n_left = rq->queues[job - rq->jobs].n_left;

    while (job->held && (int32_t) (n_left - job->held->after) >= 0) {
        struct queue *q = job->held;

        job->held = q->next;
        q->held = false;
        if (q->fifo.n) {
            start(rq, q, true);
        } else if (q->freed) {
            recycle(rq, q);
        }
    }
}

/* Moves 'q' to where queues of its length are. */
static void
measure(struct rank_queues *rq, struct queue *q)
{
    int length = 31 - __builtin_clz(q->fifo.n | 1) - LONG_SHIFT;
    struct queue **head;

    length = length < 0 ? -1 : length;
    if (q->length >= 0) {
        head = &rq->lengths[q->length];
        *(q->longer_prev ? &q->longer_prev->longer_next : head)
            = q->longer_next;
        if (q->longer_next) {
            q->longer_next->longer_prev = q->longer_prev;
        }
        rq->lengths_used &= ~(!*head << q->length);
    }
    q->length = length;
    if (length >= 0) {
        head = &rq->lengths[length];
        q->longer_prev = NULL;
        q->longer_next = *head;
        if (*head) {
            (*head)->longer_prev = q;
        }
        *head = q;
        rq->lengths_used |= 1u << length;
    }
}

static bool
is_power_of_two(uint32_t n)
{
    return !(n & (n - 1));
}

/* Removes the first packet of 'q'. */
static inline void
pop(struct rank_queues *rq, struct queue *q, struct queue_item *item)
{
    struct job *job = q->job;

    packet_fifo_pop(&q->fifo, &rq->pool, item);
    job->bytes -= item->length;
    q->n_left++;
    if (q->length >= 0 && is_power_of_two(q->fifo.n + 1)) {
        measure(rq, q);
    }
}

/* Makes room by removing a packet of the longest queue.  Returns false if that
 * is 'q', or all are short. */
static bool
push_out(struct rank_queues *rq, const struct queue *q,
         struct queue_item *dropped)
{
    struct queue *victim;

    if (!rq->lengths_used) {
        return false;
    }
    victim = rq->lengths[31 - __builtin_clz(rq->lengths_used)];
    if (victim->length == q->length) {
        return false;
    }
    pop(rq, victim, dropped);
    if (victim->job->held) {
        release_held(rq, victim->job);
    }
    if (dropped->slot && victim->job == &rq->jobs[CONTROL_JOB]) {
        rq->jobs[dropped->slot].n_control--;
    }
    rq->n_packets--;
    counter_add(&rq->bytes, -(uint64_t) dropped->length);
    return true;
}

/* Returns where a packet of 'slot' goes.  A job that becomes control, or is it
 * no longer, changes its queue when nothing of it is left in the other. */
static struct queue *
find_queue(struct rank_queues *rq, uint16_t slot, uint16_t flow_queue,
           bool control)
{
    struct job *job = &rq->jobs[slot];

    if ((control && (!slot || !job->bytes)) || job->n_control) {
        job->n_control += slot != 0;
        return &rq->queues[CONTROL_JOB];
    }
    if (flow_queue) {
        struct queue *q = &rq->queues[N_JOBS - 1 + flow_queue];

        if (q->job == job && !q->freed) {
            return q;
        }
    }
    return &rq->queues[slot];
}

/* Appends '*item' to the queue of its slot, to 'flow_queue' of it unless that
 * is 0, or to that of control.  Returns false if a packet must be dropped; it
 * is stored in '*dropped' and may be another one. */
bool
rank_queues_push(struct rank_queues *rq, uint16_t flow_queue, bool control,
                 const struct queue_item *item, struct queue_item *dropped)
{
    struct queue *q = find_queue(rq, item->slot, flow_queue, control);
    struct job *job = q->job;
    bool full = rq->n_packets == rq->max_packets;

    if (job->bytes + item->length > rq->max_job_bytes
        || (full && !push_out(rq, q, dropped))
        || !packet_fifo_push(&q->fifo, &rq->pool, item)) {
        if (item->slot && job == &rq->jobs[CONTROL_JOB]) {
            rq->jobs[item->slot].n_control--;
        }
        *dropped = *item;
        return false;
    }
    job->bytes += item->length;
    rq->n_packets++;
    counter_add(&rq->bytes, item->length);
    if (q->fifo.n >> LONG_SHIFT && is_power_of_two(q->fifo.n)) {
        measure(rq, q);
    }
    if (q->state == QUEUE_IDLE && q->fifo.n == 1) {
        start(rq, q, true);
    }
    return !full;
}

/* After a packet of 'length' bytes has left 'q', which was in its job's ring.
 * Its turn ends when it has nothing more to send now, or has sent enough. */
static inline void
end_turn(struct rank_queues *rq, struct queue *q, uint64_t now,
         uint32_t length)
{
    struct job *job = q->job;

    if (q->pace.bps) {
        pace_take(&q->pace, length);
    }
    if (!q->fifo.n) {
        unready(q);
        if (q->freed) {
            recycle(rq, q);
        }
    } else if (q->pace.bps && pace_due(&q->pace) > now) {
        unready(q);
        start(rq, q, false);
    } else if (q->next != q && !q->freed) {
        q->deficit -= length;
        if (q->deficit <= 0) {
            q->deficit += rq->quantum;
            job->head = q->next;
        }
    }
    if (job->held) {
        release_held(rq, job);
    }
}

/* Takes a packet of the job whose turn it is at 'at'. */
static inline void
take_from(struct rank_queues *rq, uint32_t at, uint64_t now,
          struct queue_item *item)
{
    struct place *place = &rq->place[at];
    struct job *job = place->head;
    struct queue *q = job->head;

    pop(rq, q, item);
    job->deficit -= item->length;
    end_turn(rq, q, now, item->length);
    if (job == &rq->jobs[CONTROL_JOB]) {
        rq->jobs[item->slot].n_control -= item->slot != 0;
        counter_add(&rq->n_policed, 1);
    }
    if (!job->head) {
        leave_place(rq, job);
    } else if (job->deficit <= 0) {
        job->deficit += rq->quantum;
        place->head = job->next;
    }
}

/* Takes a packet of control if it has not had its share.  Otherwise it has to
 * wait for its turn in the last place. */
static bool
take_control(struct rank_queues *rq, uint64_t now, struct queue_item *item)
{
    struct job *job = &rq->jobs[CONTROL_JOB];

    pace_forget(&rq->police, now, 0);
    if (pace_due(&rq->police) > now) {
        return false;
    }
    pop(rq, job->head, item);
    rq->jobs[item->slot].n_control -= item->slot != 0;
    pace_take(&rq->police, item->length);
    if (!job->head->fifo.n) {
        unready(job->head);
        leave_place(rq, job);
    }
    return true;
}

/* Returns the levels that wait while the place 'first' is served. */
static uint32_t
waiting(const struct rank_queues *rq, uint32_t first)
{
    uint32_t level = 1u << rq->place[first].level;

    return (rq->some & ~level) | (rq->several & level);
}

/* Serves the floor of a level of 'levels', if one has saved enough up. */
static bool
take_floor(struct rank_queues *rq, uint32_t first, uint32_t levels,
           uint64_t now, struct queue_item *item)
{
    for (; levels; levels &= levels - 1) {
        struct level *level = &rq->levels[__builtin_ctz(levels)];
        uint32_t at = place_map_after(&level->places, level->turn);
        uint64_t cost;

        at = at == first ? place_map_after(&level->places, at) : at;
        cost = (uint64_t) packet_fifo_first(
            &rq->place[at].head->head->fifo)->length << CREDIT_SHIFT;
        if (level->credit >= cost) {
            level->credit -= cost;
            level->turn = at;
            take_from(rq, at, now, item);
            return true;
        }
    }
    return false;
}

/* The 'levels' waited while 'length' bytes of the place 'first' went. */
static void
give_credit(struct rank_queues *rq, uint32_t levels, uint32_t length)
{
    uint64_t credit = length * rq->gain[__builtin_popcount(levels)];

    for (; levels; levels &= levels - 1) {
        rq->levels[__builtin_ctz(levels)].credit += credit;
    }
}

/* Takes the packet that goes next, if there is one. */
static inline bool
take_one(struct rank_queues *rq, uint64_t now, struct queue_item *item)
{
    uint32_t first, levels;

    if (place_map_is_empty(&rq->places)) {
        return false;
    }
    if (rq->jobs[CONTROL_JOB].head && take_control(rq, now, item)) {
        return true;
    }
    first = place_map_first(&rq->places);
    levels = waiting(rq, first);
    if (levels && take_floor(rq, first, levels, now, item)) {
        return true;
    }
    if (!(levels >> rq->place[first].level & 1)) {
        rq->levels[rq->place[first].level].credit = 0;
    }
    take_from(rq, first, now, item);
    if (levels) {
        give_credit(rq, levels, item->length);
    }
    return true;
}

/* Moves up to 'max' packets that may go at 'now', in their order and as
 * 'pace' allows, to 'items'.  Returns how many. */
uint32_t
rank_queues_take(struct rank_queues *rq, uint64_t now, struct pace *pace,
                 struct queue_item *items, uint32_t max)
{
    struct pace p = *pace;
    uint64_t bytes = 0;
    uint32_t n = 0;

    wake_due(rq, now);
    while (n < max && pace_due(&p) <= now && take_one(rq, now, &items[n])) {
        bytes += items[n].length;
        pace_take(&p, items[n++].length);
    }
    *pace = p;
    rq->n_packets -= n;
    counter_add(&rq->bytes, -bytes);
    return n;
}

/* Removes any packet, also one that may not go yet, when all is to end.
 * Returns false if there is none. */
bool
rank_queues_drain(struct rank_queues *rq, struct queue_item *item)
{
    for (int i = 0; rq->n_packets && i < N_QUEUES; i++) {
        if (rq->queues[i].fifo.n) {
            packet_fifo_pop(&rq->queues[i].fifo, &rq->pool, item);
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
    return !place_map_is_empty(&rq->places) ? 0
           : rq->heap.n ? due_heap_first(&rq->heap) : UINT64_MAX;
}

/* Returns a queue for a flow of 'slot', not paced yet, or 0 if none is
 * free. */
uint16_t
rank_queues_flow_new(struct rank_queues *rq, uint16_t slot)
{
    const struct queue *common = &rq->queues[slot];
    struct job *job = &rq->jobs[slot];
    struct queue *q = rq->free;

    if (!q) {
        return 0;
    }
    rq->free = q->next;
    q->job = job;
    q->freed = false;
    q->deficit = 0;
    q->pace = (struct pace) { .bps = 0 };
    q->held = common->fifo.n > 0;
    if (q->held) {
        struct queue **tail = &job->held;

        while (*tail) {
            tail = &(*tail)->next;
        }
        *tail = q;
        q->next = NULL;
        q->after = common->n_left + common->fifo.n;
    }
    return q - &rq->queues[N_JOBS - 1];
}

/* Stops 'q' from being paced, and takes it out of where it waits. */
static void
stop(struct rank_queues *rq, struct queue *q)
{
    if (q->state == QUEUE_PACED) {
        due_heap_remove(&rq->heap, q - rq->queues);
    } else if (q->state == QUEUE_READY) {
        unready(q);
        if (!q->job->head) {
            leave_place(rq, q->job);
        }
    }
    q->state = QUEUE_IDLE;
}

/* Lets 'flow_queue' go.  What is in it leaves as soon as its job may send. */
void
rank_queues_flow_free(struct rank_queues *rq, uint16_t flow_queue)
{
    struct queue *q = &rq->queues[N_JOBS - 1 + flow_queue];

    stop(rq, q);
    q->pace.bps = 0;
    q->freed = true;
    if (q->fifo.n) {
        start(rq, q, true);
    } else if (!q->held) {
        recycle(rq, q);
    }
}

/* Paces 'flow_queue' to 'bps', but not slower than RANK_QUEUE_MIN_PACE, with
 * at most two frames at once; 0 is no pace. */
void
rank_queues_flow_rate(struct rank_queues *rq, uint64_t now,
                      uint16_t flow_queue, uint64_t bps)
{
    struct queue *q = &rq->queues[N_JOBS - 1 + flow_queue];

    if (bps && bps < RANK_QUEUE_MIN_PACE) {
        bps = RANK_QUEUE_MIN_PACE;
    }
    if (bps == q->pace.bps) {
        return;
    }
    stop(rq, q);
    if (bps) {
        pace_set_rate(&q->pace, now, bps, rq->quantum);
    } else {
        q->pace.bps = 0;
    }
    if (q->fifo.n) {
        start(rq, q, false);
    }
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
