/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PACKET_FIFO_H
#define SHIM_PACKET_FIFO_H 1

/* FIFOs of packets that share a pool of memory.
 *
 * A thousand jobs and thousands of paced flows have a queue each, nearly all
 * of them empty: a ring for each would take hundreds of megabytes.  So queues
 * are chains of chunks of four cache lines.  An empty chunk goes back to the
 * pool's stack, from which the next queue takes it while it is still in the
 * cache.  A chunk has what the scheduler needs of a packet, so that packet
 * buffers are not read before they leave.
 *
 *    packet_pool_init(&pool, n_chunks);
 *    if (!packet_fifo_push(&fifo, &pool, &item)) {
 *        ...the pool is used up...
 *    }
 *    while (fifo.n) {
 *        packet_fifo_pop(&fifo, &pool, &item);
 *    }
 *
 * Several at once:
 *
 *    n = packet_fifo_push_run(&fifo, &pool, items, n);
 *    n = packet_fifo_span(&fifo);
 *    ...packet_fifo_first(&fifo)[0 .. n - 1]...
 *    packet_fifo_remove(&fifo, &pool, n);
 *
 *    packet_pool_uninit(&pool);
 *
 * The packets stay the caller's.  A FIFO of zeros is empty.  One thread for a
 * pool and all its FIFOs. */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"

/* Bits of 'marks'. */
#define QUEUE_ITEM_IP 1
#define QUEUE_ITEM_DEFAULT 2    /* See struct treatment. */
#define QUEUE_ITEM_CONTROL 4    /* Its DSCP differs from its slot's. */

struct queue_item {
    void *packet;
    uint32_t length;            /* Bytes of the frame. */
    uint16_t slot;              /* Slot of the job, 0 if none. */
    uint8_t marks;
    uint8_t order;              /* 'n_orders' of struct egress when queued. */
};

#define PACKET_CHUNK_ITEMS 15

struct packet_chunk {
    struct packet_chunk *next;  /* In the FIFO, or in the pool's stack. */
    uint64_t pad;
    struct queue_item items[PACKET_CHUNK_ITEMS];
};

struct packet_pool {
    struct packet_chunk *chunks;
    struct packet_chunk *free;  /* Stack of chunks that were used. */
    uint32_t n, n_fresh;        /* The last 'n_fresh' of 'n' chunks were never
                                 * used: the kernel has not yet allocated their
                                 * memory. */
};

struct packet_fifo {
    struct packet_chunk *head, *tail;   /* Undefined while 'n' is 0. */
    uint16_t first;             /* Index in 'head' of the oldest item. */
    uint16_t end;               /* Index in 'tail' of the next free item. */
    uint32_t n;                 /* Packets. */
};

static inline void
packet_pool_init(struct packet_pool *pool, uint32_t n_chunks)
{
    pool->chunks = allocate_lines(n_chunks * sizeof *pool->chunks);
    pool->free = NULL;
    pool->n = pool->n_fresh = n_chunks;
}

static inline void
packet_pool_uninit(struct packet_pool *pool)
{
    free(pool->chunks);
}

static inline struct packet_chunk *
packet_pool_get(struct packet_pool *pool)
{
    struct packet_chunk *chunk = pool->free;

    if (chunk) {
        pool->free = chunk->next;
    } else if (pool->n_fresh) {
        chunk = &pool->chunks[pool->n - pool->n_fresh--];
    }
    return chunk;
}

static inline void
packet_pool_put(struct packet_pool *pool, struct packet_chunk *chunk)
{
    chunk->next = pool->free;
    pool->free = chunk;
}

/* Reserves space for an item at the end.  Returns false if the pool is used
 * up. */
static inline bool
packet_fifo_extend(struct packet_fifo *fifo, struct packet_pool *pool)
{
    if (!fifo->n || fifo->end == PACKET_CHUNK_ITEMS) {
        struct packet_chunk *chunk = packet_pool_get(pool);

        if (!chunk) {
            return false;
        }
        if (fifo->n) {
            fifo->tail->next = chunk;
        } else {
            fifo->head = chunk;
            fifo->first = 0;
        }
        fifo->tail = chunk;
        fifo->end = 0;
    }
    return true;
}

/* Returns false if the pool is used up. */
static inline bool
packet_fifo_push(struct packet_fifo *fifo, struct packet_pool *pool,
                 const struct queue_item *item)
{
    if (!packet_fifo_extend(fifo, pool)) {
        return false;
    }
    fifo->tail->items[fifo->end++] = *item;
    fifo->n++;
    return true;
}

/* Returns how many of the 'n' items were appended: all, unless the pool is
 * used up. */
static inline uint32_t
packet_fifo_push_run(struct packet_fifo *fifo, struct packet_pool *pool,
                     const struct queue_item *items, uint32_t n)
{
    uint32_t done = 0;

    while (done < n && packet_fifo_extend(fifo, pool)) {
        uint32_t space = PACKET_CHUNK_ITEMS - fifo->end;

        space = space < n - done ? space : n - done;
        for (uint32_t i = 0; i < space; i++) {
            fifo->tail->items[fifo->end + i] = items[done + i];
        }
        fifo->end += space;
        fifo->n += space;
        done += space;
    }
    return done;
}

/* Returns the oldest item of 'fifo', which must not be empty. */
static inline const struct queue_item *
packet_fifo_first(const struct packet_fifo *fifo)
{
    return &fifo->head->items[fifo->first];
}

/* Returns the number of contiguous items at packet_fifo_first(). */
static inline uint32_t
packet_fifo_span(const struct packet_fifo *fifo)
{
    uint32_t n = PACKET_CHUNK_ITEMS - fifo->first;

    return n < fifo->n ? n : fifo->n;
}

/* Removes the first 'n' items, at most packet_fifo_span(). */
static inline void
packet_fifo_remove(struct packet_fifo *fifo, struct packet_pool *pool,
                   uint32_t n)
{
    struct packet_chunk *head = fifo->head;

    fifo->first += n;
    fifo->n -= n;
    if (!fifo->n || fifo->first == PACKET_CHUNK_ITEMS) {
        fifo->head = head->next;
        fifo->first = 0;
        packet_pool_put(pool, head);
    }
}

static inline void
packet_fifo_pop(struct packet_fifo *fifo, struct packet_pool *pool,
                struct queue_item *item)
{
    *item = *packet_fifo_first(fifo);
    packet_fifo_remove(fifo, pool, 1);
}

#endif /* shim/queue/packet-fifo.h */
