/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/pipeline/level-queue.h"

#include <stdlib.h>

#include "shim/pipeline/counter.h"

/* Credits are in bytes times this. */
#define CREDIT_SHIFT 24

struct level {
    struct queue_item *ring;    /* 'mask' + 1 items. */
    uint32_t head, tail;        /* Next to leave, next free; both run on. */
    uint64_t bytes, max_bytes;
    uint64_t credit;            /* Of its floor, while it waits. */
};

struct level_queues {
    struct level levels[SHIM_N_LEVELS];
    uint32_t mask;
    uint32_t max_packets;       /* In each level. */
    uint32_t nonempty;          /* Bit N: level N has packets. */
    uint64_t gain[SHIM_N_LEVELS];       /* Credit that a byte of the highest
                                         * level gives to each that waits, if
                                         * so many do. */
    uint64_t bytes;             /* Of all levels. */
};

/* Creates queues that hold at most 'max_packets' and 'max_bytes' each.
 * Returns NULL without memory. */
struct level_queues *
level_queues_create(uint32_t max_packets, uint64_t max_bytes)
{
    struct level_queues *lq = calloc(1, sizeof *lq);
    uint32_t n = 1;

    if (!lq) {
        return NULL;
    }
    while (n < max_packets) {
        n *= 2;
    }
    lq->mask = n - 1;
    lq->max_packets = max_packets;
    level_queues_set_guard(lq, SHIM_GUARD_UNTOLD);
    for (int i = 0; i < SHIM_N_LEVELS; i++) {
        lq->levels[i].max_bytes = max_bytes;
        lq->levels[i].ring = calloc(n, sizeof *lq->levels[i].ring);
        if (!lq->levels[i].ring) {
            level_queues_destroy(lq);
            return NULL;
        }
    }
    return lq;
}

void
level_queues_destroy(struct level_queues *lq)
{
    if (lq) {
        for (int i = 0; i < SHIM_N_LEVELS; i++) {
            free(lq->levels[i].ring);
        }
        free(lq);
    }
}

/* Lets each level that waits have 'share' of the uplink, in millionths, or
 * SHIM_GUARD_UNTOLD.  A gain is rounded up: a floor is at least that. */
void
level_queues_set_guard(struct level_queues *lq, uint32_t share)
{
    for (uint64_t n = 1; n < SHIM_N_LEVELS; n++) {
        uint64_t floor = 1, rest = n * LEVEL_QUEUE_FLOOR;

        if (share != SHIM_GUARD_UNTOLD) {
            uint64_t equal = SHIM_GUARD_UNIT / (n + 1);

            floor = share < equal ? share : equal;
            rest = SHIM_GUARD_UNIT - n * floor;
        }
        lq->gain[n] = ((floor << CREDIT_SHIFT) + rest - 1) / rest;
    }
}

/* What is in the queue already stays, even above a lower limit. */
void
level_queues_set_limit(struct level_queues *lq, uint8_t level,
                       uint64_t max_bytes)
{
    lq->levels[level].max_bytes = max_bytes;
}

/* Appends '*item' to 'level'.  Returns false if it must be dropped. */
bool
level_queues_push(struct level_queues *lq, uint8_t level,
                  const struct queue_item *item)
{
    struct level *l = &lq->levels[level];

    if (l->bytes + item->length > l->max_bytes
        || l->tail - l->head >= lq->max_packets) {
        return false;
    }
    l->ring[l->tail++ & lq->mask] = *item;
    l->bytes += item->length;
    counter_add(&lq->bytes, item->length);
    lq->nonempty |= 1u << level;
    return true;
}

static const struct queue_item *
first_of(const struct level_queues *lq, int level)
{
    const struct level *l = &lq->levels[level];

    return &l->ring[l->head & lq->mask];
}

/* Returns the levels that have packets but for the highest of them. */
static uint32_t
waiting(const struct level_queues *lq)
{
    return lq->nonempty & (lq->nonempty - 1);
}

static uint64_t
cost_of(const struct queue_item *item)
{
    return (uint64_t) item->length << CREDIT_SHIFT;
}

/* Returns the level that goes next; there must be one. */
static int
next_level(const struct level_queues *lq)
{
    for (uint32_t rest = waiting(lq); rest; rest &= rest - 1) {
        int level = __builtin_ctz(rest);

        if (lq->levels[level].credit >= cost_of(first_of(lq, level))) {
            return level;
        }
    }
    return __builtin_ctz(lq->nonempty);
}

/* Those that wait while 'length' bytes of 'level', the highest, go. */
static void
give_credit(struct level_queues *lq, int level, uint32_t length)
{
    uint32_t rest = waiting(lq);
    uint64_t credit = length * lq->gain[__builtin_popcount(rest)];

    lq->levels[level].credit = 0;
    for (; rest; rest &= rest - 1) {
        lq->levels[__builtin_ctz(rest)].credit += credit;
    }
}

/* Returns the packet that goes next, NULL if there is none. */
const struct queue_item *
level_queues_first(const struct level_queues *lq)
{
    return lq->nonempty ? first_of(lq, next_level(lq)) : NULL;
}

/* Removes the packet that level_queues_first() returns. */
void
level_queues_pop(struct level_queues *lq)
{
    int level = next_level(lq);
    struct level *l = &lq->levels[level];
    uint32_t length = l->ring[l->head++ & lq->mask].length;

    if (level != __builtin_ctz(lq->nonempty)) {
        l->credit -= (uint64_t) length << CREDIT_SHIFT;
    } else {
        give_credit(lq, level, length);
    }
    l->bytes -= length;
    counter_add(&lq->bytes, -(uint64_t) length);
    if (l->head == l->tail) {
        lq->nonempty &= ~(1u << level);
        l->credit = 0;
    }
}

uint64_t
level_queues_bytes(const struct level_queues *lq)
{
    return counter_get(&lq->bytes);
}
