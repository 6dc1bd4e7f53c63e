/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SHIM_PLACE_ORDER_H
#define SHIM_PLACE_ORDER_H 1

/* Whose turn it is: an order of places, equal shares in each, and a floor.
 *
 *
 * Motivation
 * ==========
 *
 * Of all that wait, whoever has the first place goes; those of one place share
 * it by bytes (deficit round robin).
 *
 * A TCP connection that nothing of leaves for seconds doubles its
 * retransmission time-out again and again, and then sleeps on for as long when
 * the link has long been idle.  So each level that waits has a floor: as many
 * bytes as it is guarded for go while those of the first place do, in turn
 * from its places that wait.  A level waits if a place of it does that is not
 * the first; at most seven can, so that the sum of the floors is bounded
 * however many places there are.  Unless told otherwise, one byte goes for
 * each PLACE_ORDER_FLOOR of the first place, and all levels that wait share
 * it.  With a guard, each has that share of all that goes, or all equal ones
 * if those would be more than all of it.
 *
 *
 * Usage
 * =====
 *
 *    place_order_enter(po, &member);
 *    while (place_order_pick(po, length_of, &turn)) {
 *        ...send what turn.member has first, and more until it has come to
 *           place_order_run(po, &turn, ...all of its bytes...)...
 *        place_order_end(po, &turn, bytes, ...those of the last one...,
 *                        ...has turn.member more?...);
 *    }
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * The members stay the caller's.  One thread.  What is called for each packet
 * is here. */

#include <stdbool.h>
#include <stdint.h>

#include "wire/shim-protocol.h"
#include "shim/classify/job-slot.h"
#include "shim/queue/place-map.h"

#define PLACE_ORDER_FLOOR 20    /* A floor of 1/21. */
#define PLACE_ORDER_CREDIT 24   /* Credits are in bytes << this. */

/* One that has something to send, or not.  Zeros and a place are a good
 * one. */
struct place_member {
    struct place_member *next, *prev;   /* Ring of its place, if it waits. */
    int32_t deficit;            /* Bytes that it may send in its turn. */
    job_place place;
    bool waits;
};

struct place_level {
    struct place_map places;    /* Those that have members... */
    uint32_t n;                 /* ...and how many there are. */
    uint32_t turn;              /* The last place that its floor served. */
    uint64_t base;              /* 'given' less its credit. */
};

struct place_order {
    struct place_map map;       /* Places that have members. */
    uint32_t some, several;     /* Bit N: level N has places, or two. */
    uint32_t quantum;           /* Bytes of a turn. */
    uint64_t gain[SHIM_N_LEVELS];       /* Credit that a byte of the first
                                         * place gives to each level that
                                         * waits, if so many do. */
    uint64_t given;             /* Credit that each level that waits got. */
    uint64_t floor_due;         /* No level has enough credit to send before
                                 * 'given' is that. */
    struct place_level levels[SHIM_N_LEVELS];
    struct place {
        struct place_member *head;      /* Ring; whose turn it is. */
        uint8_t level;          /* Of its members, while it has any. */
    } places[PLACE_MAP_SIZE];
};

struct place_turn {
    struct place_member *member;
    uint32_t at;                /* Its place. */
    uint32_t waiting;           /* Levels that wait meanwhile. */
    struct place_level *floor;  /* Whose floor this is, or NULL. */
};

/* Returns the bytes of what a member sends next. */
typedef uint32_t place_length(const struct place_member *);

void place_order_init(struct place_order *, uint32_t quantum);
void place_order_set_guard(struct place_order *, uint32_t share);
void place_order_enter(struct place_order *, struct place_member *);
void place_order_leave(struct place_order *, struct place_member *);
struct place_level *place_order_floor(struct place_order *, uint32_t first,
                                      uint32_t waiting, place_length *);

/* Members leave and enter again between these. */
void place_order_begin_change(struct place_order *,
                              uint64_t credit[SHIM_N_LEVELS]);
void place_order_end_change(struct place_order *,
                            const uint64_t credit[SHIM_N_LEVELS]);

/* A turn begins with a quantum; what was sent too much in one before is not
 * forgotten. */
static inline int32_t
place_order_deficit(const struct place_order *po, int32_t old)
{
    return (old < 0 ? old : 0) + (int32_t) po->quantum;
}

/* Stores whose turn it is in '*turn', if anybody waits. */
static inline bool
place_order_pick(struct place_order *po, place_length *length_of,
                 struct place_turn *turn)
{
    uint32_t level;

    if (place_map_is_empty(&po->map)) {
        return false;
    }
    turn->at = place_map_first(&po->map);
    level = 1u << po->places[turn->at].level;
    turn->waiting = (po->some & ~level) | (po->several & level);
    turn->floor = NULL;
    if (turn->waiting && (int64_t) (po->given - po->floor_due) >= 0) {
        turn->floor = place_order_floor(po, turn->at, turn->waiting,
                                        length_of);
        turn->at = turn->floor ? turn->floor->turn : turn->at;
    }
    turn->member = po->places[turn->at].head;
    return true;
}

/* Returns the credit of each of the levels 'waiting' for a byte of the first
 * place.  A table of the bits in four: few processors are sure to count. */
static inline uint64_t
place_order_gain(const struct place_order *po, uint32_t waiting)
{
    const uint64_t n = UINT64_C(0x4332322132212110);

    return po->gain[(n >> (waiting & 15) * 4 & 7)
                    + (n >> (waiting >> 4) * 4 & 7)];
}

/* Returns after how many bytes it may be another's turn: as long as less was
 * sent, it would be that of '*turn' again.  It has 'most' bytes at most. */
static inline uint64_t
place_order_run(const struct place_order *po, const struct place_turn *turn,
                uint64_t most)
{
    const struct place_member *member = turn->member;

    if (turn->floor) {
        return 0;
    }
    if (member->next != member && member->deficit < (int64_t) most) {
        most = member->deficit > 0 ? member->deficit : 0;
    }
    if (turn->waiting) {
        uint64_t gain = place_order_gain(po, turn->waiting);
        uint64_t left = po->floor_due - po->given;

        if (most * gain > left) {
            most = (left + gain - 1) / gain;
        }
    }
    return most;
}

/* Counts 'bytes', of which the 'last' packet has 'last', against what 'm' may
 * send.  Who is alone in his place has turn after turn. */
static inline void
place_order_spend(const struct place_order *po, struct place_member *m,
                  uint32_t bytes, uint32_t last)
{
    int32_t quantum = po->quantum;

    m->deficit -= bytes - last;
    if (bytes > last && m->deficit <= 0) {
        m->deficit = quantum - -m->deficit % quantum;
    }
    m->deficit -= last;
}

/* Ends the turn '*turn', in which 'bytes' were sent, 'last' of them in the
 * last packet. */
static inline void
place_order_end(struct place_order *po, const struct place_turn *turn,
                uint32_t bytes, uint32_t last, bool more)
{
    struct place *place = &po->places[turn->at];
    struct place_member *member = turn->member;

    if (turn->floor) {
        turn->floor->base += (uint64_t) bytes << PLACE_ORDER_CREDIT;
    } else {
        if (turn->waiting) {
            po->given += bytes * place_order_gain(po, turn->waiting);
        }
        if (!(turn->waiting >> place->level & 1)) {
            po->levels[place->level].base = po->given;
        }
    }
    place_order_spend(po, member, bytes, last);
    if (!more) {
        place_order_leave(po, member);
    } else if (member->deficit <= 0) {
        member->deficit += po->quantum;
        place->head = member->next;
    }
}

#endif /* shim/queue/place-order.h */
