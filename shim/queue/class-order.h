/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_CLASS_ORDER_H
#define SHIM_CLASS_ORDER_H 1

/* The scheduler of the uplink: strict priority between classes, equal shares
 * within a class, and a minimum share for each level.
 *
 * The first class that has packets sends; the members of a class share by
 * bytes (deficit round robin).
 *
 * A TCP connection that sends nothing for seconds doubles its retransmission
 * timeout again and again, and then stays idle for as long after the link has
 * become free.  So each waiting level has a minimum share: while the first
 * class sends, the other classes of a level send in turn until the level has
 * its share of the bytes.  A level waits if it has a non-empty class other
 * than the first.  At most seven levels can wait, so the sum of the minimum
 * shares is bounded for any number of classes.  By default all waiting levels
 * together send one byte for each CLASS_ORDER_SPARE bytes of the first class.
 * With a configured minimum share each waiting level gets that share of all
 * bytes, or equal shares if the sum would exceed 1.
 *
 *    class_order_enter(co, &member);
 *    while (class_order_pick(co, length_of, &d)) {
 *        most = class_order_max_run(co, &d, queued);     // Bytes.
 *        ...send a packet of d.member, and more until 'most' bytes are sent...
 *        class_order_end(co, &d, bytes, last, has_more);
 *    }
 *
 * The members stay the caller's.  One thread.  The functions of the packet
 * path are inline. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/classify/job-slot.h"
#include "wire/shim-protocol.h"

#define CLASS_ORDER_SPARE 20    /* The default minimum share is 1/21. */
#define CLASS_ORDER_SHIFT 24    /* Credits are in bytes << this. */

/* A set of class numbers. */
#define CLASS_MAP_SIZE 1024

struct class_map {
    uint32_t summary;           /* Bit N: words[N] is not 0. */
    uint64_t words[CLASS_MAP_SIZE / 64];
};

/* A queue of the order.  All zeros except 'class' initially. */
struct class_member {
    struct class_member *next, *prev;   /* Ring of its class, if 'waits'. */
    int32_t deficit;            /* Bytes left of the current dispatch. */
    job_class class;
    bool waits;                 /* It has something to send. */
};

struct class_level {
    struct class_map classes;   /* Those that have members. */
    uint32_t n;                 /* Number of 'classes'. */
    uint32_t last_served;       /* Class of this level that was last served
                                 * from its minimum share. */
    uint64_t base;              /* 'given' minus the credit of this level. */
};

struct class_order {
    struct class_map map;       /* Classes that have members. */
    uint32_t some, several;     /* Bit N: level N has >= 1, >= 2 classes. */
    uint32_t quantum;           /* Bytes of a round of deficit round robin. */
    uint64_t gain[SHIM_N_LEVELS];       /* Credit of each waiting level for a
                                         * byte of the first class, by the
                                         * number of waiting levels. */
    uint64_t given;             /* Credit given to each waiting level. */
    uint64_t due;               /* While 'given' is less, no level has enough
                                 * credit to send. */
    struct class_level levels[SHIM_N_LEVELS];
    struct class_ring {
        struct class_member *head;      /* The next to send. */
        uint8_t level;          /* Level of the members, if any. */
    } classes[CLASS_MAP_SIZE];
};

/* A decision of the scheduler. */
struct dispatch {
    struct class_member *member;        /* Sends. */
    uint32_t class;             /* Its class. */
    uint32_t waiting;           /* Bit N: level N waits. */
    struct class_level *served; /* The level with the minimum share that this
                                 * uses; NULL: the first class sends. */
};

/* Returns the bytes of the next packet of a member. */
typedef uint32_t class_length(const struct class_member *);

void class_order_init(struct class_order *, uint32_t quantum);
void class_order_set_min_share(struct class_order *, uint32_t share);
void class_order_enter(struct class_order *, struct class_member *);
void class_order_leave(struct class_order *, struct class_member *);
struct class_level *class_order_pick_min_share(struct class_order *,
                                               uint32_t first,
                                               uint32_t waiting,
                                               class_length *);

/* All members may leave and enter again between these two. */
void class_order_begin_change(struct class_order *,
                              uint64_t credit[SHIM_N_LEVELS]);
void class_order_end_change(struct class_order *,
                            const uint64_t credit[SHIM_N_LEVELS]);

static inline void
class_map_add(struct class_map *map, uint32_t class)
{
    map->words[class / 64] |= UINT64_C(1) << class % 64;
    map->summary |= 1u << class / 64;
}

static inline void
class_map_remove(struct class_map *map, uint32_t class)
{
    map->words[class / 64] &= ~(UINT64_C(1) << class % 64);
    if (!map->words[class / 64]) {
        map->summary &= ~(1u << class / 64);
    }
}

static inline bool
class_map_is_empty(const struct class_map *map)
{
    return !map->summary;
}

/* Returns the smallest class of 'map', which must not be empty. */
static inline uint32_t
class_map_first(const struct class_map *map)
{
    uint32_t word = __builtin_ctz(map->summary);

    return word * 64 + __builtin_ctzll(map->words[word]);
}

/* Returns the smallest class after 'class', or else the smallest. */
static inline uint32_t
class_map_after(const struct class_map *map, uint32_t class)
{
    uint32_t word = class / 64;
    uint64_t bits = map->words[word] & ~UINT64_C(1) << class % 64;
    uint32_t later = map->summary & ~UINT32_C(1) << word;

    if (bits) {
        return word * 64 + __builtin_ctzll(bits);
    }
    if (later) {
        word = __builtin_ctz(later);
        return word * 64 + __builtin_ctzll(map->words[word]);
    }
    return class_map_first(map);
}

/* Returns the deficit for a new round: the quantum less what the last one
 * exceeded. */
static inline int32_t
class_order_deficit(const struct class_order *co, int32_t old)
{
    return (old < 0 ? old : 0) + (int32_t) co->quantum;
}

/* Stores in '*d' which member sends next.  Returns false if none waits. */
static inline bool
class_order_pick(struct class_order *co, class_length *length_of,
                 struct dispatch *d)
{
    uint32_t level;

    if (class_map_is_empty(&co->map)) {
        return false;
    }
    d->class = class_map_first(&co->map);
    level = 1u << co->classes[d->class].level;
    d->waiting = (co->some & ~level) | (co->several & level);
    d->served = NULL;
    if (d->waiting && (int64_t) (co->given - co->due) >= 0) {
        d->served = class_order_pick_min_share(co, d->class, d->waiting,
                                               length_of);
        d->class = d->served ? d->served->last_served : d->class;
    }
    d->member = co->classes[d->class].head;
    return true;
}

/* Returns the credit of each of the levels 'waiting' for a byte of the first
 * class.  The constant has the number of bits of each 4-bit value: not every
 * processor has an instruction for it. */
static inline uint64_t
class_order_gain(const struct class_order *co, uint32_t waiting)
{
    const uint64_t n = UINT64_C(0x4332322132212110);

    return co->gain[(n >> (waiting & 15) * 4 & 7)
                    + (n >> (waiting >> 4) * 4 & 7)];
}

/* Returns how many bytes '*d' may send before the scheduler must decide again.
 * 'most' is all that its member has. */
static inline uint64_t
class_order_max_run(const struct class_order *co, const struct dispatch *d,
                    uint64_t most)
{
    const struct class_member *member = d->member;

    if (d->served) {
        return 0;
    }
    if (member->next != member && member->deficit < (int64_t) most) {
        most = member->deficit > 0 ? member->deficit : 0;
    }
    if (d->waiting) {
        uint64_t gain = class_order_gain(co, d->waiting);
        uint64_t left = co->due - co->given;

        if (most * gain > left) {
            most = (left + gain - 1) / gain;
        }
    }
    return most;
}

/* Subtracts 'bytes' from the deficit of 'm'; the last packet has 'last' of
 * these.  A member alone in its class may have used several rounds. */
static inline void
class_order_spend(const struct class_order *co, struct class_member *m,
                  uint32_t bytes, uint32_t last)
{
    int32_t quantum = co->quantum;

    m->deficit -= bytes - last;
    if (bytes > last && m->deficit <= 0) {
        m->deficit = quantum - -m->deficit % quantum;
    }
    m->deficit -= last;
}

/* Ends '*d', which sent 'bytes', the last packet being of 'last' bytes. */
static inline void
class_order_end(struct class_order *co, const struct dispatch *d,
                uint32_t bytes, uint32_t last, bool more)
{
    struct class_ring *ring = &co->classes[d->class];
    struct class_member *member = d->member;

    if (d->served) {
        d->served->base += (uint64_t) bytes << CLASS_ORDER_SHIFT;
    } else {
        if (d->waiting) {
            co->given += bytes * class_order_gain(co, d->waiting);
        }
        if (!(d->waiting >> ring->level & 1)) {
            co->levels[ring->level].base = co->given;
        }
    }
    class_order_spend(co, member, bytes, last);
    if (!more) {
        class_order_leave(co, member);
    } else if (member->deficit <= 0) {
        member->deficit += co->quantum;
        ring->head = member->next;
    }
}

#endif /* shim/queue/class-order.h */
