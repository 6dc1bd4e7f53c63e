/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/queue/place-order.h"

#include <string.h>

/* 'quantum' must be no less than the longest frame. */
void
place_order_init(struct place_order *po, uint32_t quantum)
{
    memset(po, 0, sizeof *po);
    po->quantum = quantum;
    place_order_set_guard(po, SHIM_MIN_SHARE_DEFAULT);
}

/* Lets each level that waits have 'share' of what is sent, in millionths, or
 * SHIM_MIN_SHARE_DEFAULT.  A gain is rounded up: a floor is at least that. */
void
place_order_set_guard(struct place_order *po, uint32_t share)
{
    for (uint64_t n = 1; n < SHIM_N_LEVELS; n++) {
        uint64_t floor = 1, rest = n * PLACE_ORDER_FLOOR;

        if (share != SHIM_MIN_SHARE_DEFAULT) {
            uint64_t equal = SHIM_MIN_SHARE_UNIT / (n + 1);

            floor = share < equal ? share : equal;
            rest = SHIM_MIN_SHARE_UNIT - n * floor;
        }
        po->gain[n] = ((floor << PLACE_ORDER_CREDIT) + rest - 1) / rest;
    }
}

static void
update_level(struct place_order *po, int i)
{
    po->some &= ~(1u << i);
    po->several &= ~(1u << i);
    po->some |= (po->levels[i].n > 0) << i;
    po->several |= (po->levels[i].n > 1) << i;
}

/* Counts the place 'at', which got its first member.  A level that did not
 * wait has saved nothing up. */
static void
open_place(struct place_order *po, uint32_t at, uint8_t level)
{
    if (!po->levels[level].n) {
        po->levels[level].base = po->given;
    }
    po->floor_due = po->given;
    po->places[at].level = level;
    place_map_add(&po->map, at);
    place_map_add(&po->levels[level].places, at);
    po->levels[level].n++;
    update_level(po, level);
}

static void
close_place(struct place_order *po, uint32_t at)
{
    uint8_t level = po->places[at].level;

    place_map_remove(&po->map, at);
    place_map_remove(&po->levels[level].places, at);
    po->levels[level].n--;
    update_level(po, level);
}

/* Puts 'm' last in its place.  The level of a place is that of its first
 * member: while the order changes they may differ. */
void
place_order_enter(struct place_order *po, struct place_member *m)
{
    uint32_t at = JOB_PLACE_OF(m->place);
    struct place *place = &po->places[at];

    m->waits = true;
    if (!place->head) {
        place->head = m->next = m->prev = m;
        open_place(po, at, JOB_LEVEL_OF(m->place));
    } else {
        m->next = place->head;
        m->prev = place->head->prev;
        m->prev->next = m->next->prev = m;
    }
}

void
place_order_leave(struct place_order *po, struct place_member *m)
{
    uint32_t at = JOB_PLACE_OF(m->place);
    struct place *place = &po->places[at];

    m->waits = false;
    if (m->next == m) {
        place->head = NULL;
        close_place(po, at);
    } else {
        m->next->prev = m->prev;
        m->prev->next = m->next;
        place->head = place->head == m ? m->next : place->head;
    }
}

/* Keeps what the levels have saved up while members leave and enter. */
void
place_order_begin_change(struct place_order *po,
                         uint64_t credit[SHIM_N_LEVELS])
{
    for (int i = 0; i < SHIM_N_LEVELS; i++) {
        credit[i] = po->levels[i].n ? po->given - po->levels[i].base : 0;
    }
}

void
place_order_end_change(struct place_order *po,
                       const uint64_t credit[SHIM_N_LEVELS])
{
    for (int i = 0; i < SHIM_N_LEVELS; i++) {
        po->levels[i].base = po->given - credit[i];
    }
}

/* Returns the level of those 'waiting' that has saved enough up to send from
 * its 'turn', which is not the place 'first', or NULL. */
struct place_level *
place_order_floor(struct place_order *po, uint32_t first, uint32_t waiting,
                  place_length *length_of)
{
    uint64_t least = UINT64_MAX;

    po->floor_due = po->given;
    for (; waiting; waiting &= waiting - 1) {
        struct place_level *level = &po->levels[__builtin_ctz(waiting)];
        uint32_t at = place_map_after(&level->places, level->turn);
        uint64_t cost, credit = po->given - level->base;

        at = at == first ? place_map_after(&level->places, at) : at;
        cost = (uint64_t) length_of(po->places[at].head)
               << PLACE_ORDER_CREDIT;
        if (credit >= cost) {
            level->turn = at;
            return level;
        }
        least = cost - credit < least ? cost - credit : least;
    }
    po->floor_due += least;
    return NULL;
}
