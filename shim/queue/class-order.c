/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/queue/class-order.h"

#include <string.h>

/* 'quantum' must be at least the longest frame. */
void
class_order_init(struct class_order *co, uint32_t quantum)
{
    memset(co, 0, sizeof *co);
    co->quantum = quantum;
    class_order_set_min_share(co, SHIM_MIN_SHARE_DEFAULT);
}

/* Sets the minimum share of each waiting level, in millionths of all bytes, or
 * SHIM_MIN_SHARE_DEFAULT for the default.  Gains are rounded up. */
void
class_order_set_min_share(struct class_order *co, uint32_t share)
{
    for (uint64_t n = 1; n < SHIM_N_LEVELS; n++) {
        uint64_t min = 1, rest = n * CLASS_ORDER_SPARE;

        if (share != SHIM_MIN_SHARE_DEFAULT) {
            uint64_t equal = SHIM_MIN_SHARE_UNIT / (n + 1);

            min = share < equal ? share : equal;
            rest = SHIM_MIN_SHARE_UNIT - n * min;
        }
        co->gain[n] = ((min << CLASS_ORDER_SHIFT) + rest - 1) / rest;
    }
}

static void
update_level(struct class_order *co, int i)
{
    co->some &= ~(1u << i);
    co->several &= ~(1u << i);
    co->some |= (co->levels[i].n > 0) << i;
    co->several |= (co->levels[i].n > 1) << i;
}

/* Adds a class that got its first member.  A level starts without credit. */
static void
open_class(struct class_order *co, uint32_t class, uint8_t level)
{
    if (!co->levels[level].n) {
        co->levels[level].base = co->given;
    }
    co->due = co->given;
    co->classes[class].level = level;
    class_map_add(&co->map, class);
    class_map_add(&co->levels[level].classes, class);
    co->levels[level].n++;
    update_level(co, level);
}

static void
close_class(struct class_order *co, uint32_t class)
{
    uint8_t level = co->classes[class].level;

    class_map_remove(&co->map, class);
    class_map_remove(&co->levels[level].classes, class);
    co->levels[level].n--;
    update_level(co, level);
}

/* Puts 'm' last in its class.  The first member determines the level of the
 * class; members may differ while the order changes. */
void
class_order_enter(struct class_order *co, struct class_member *m)
{
    uint32_t class = JOB_CLASS_NUMBER(m->class);
    struct class_ring *ring = &co->classes[class];

    m->waits = true;
    if (!ring->head) {
        ring->head = m->next = m->prev = m;
        open_class(co, class, JOB_CLASS_LEVEL(m->class));
    } else {
        m->next = ring->head;
        m->prev = ring->head->prev;
        m->prev->next = m->next->prev = m;
    }
}

void
class_order_leave(struct class_order *co, struct class_member *m)
{
    uint32_t class = JOB_CLASS_NUMBER(m->class);
    struct class_ring *ring = &co->classes[class];

    m->waits = false;
    if (m->next == m) {
        ring->head = NULL;
        close_class(co, class);
    } else {
        m->next->prev = m->prev;
        m->prev->next = m->next;
        ring->head = ring->head == m ? m->next : ring->head;
    }
}

/* Saves the credit of each level. */
void
class_order_begin_change(struct class_order *co,
                         uint64_t credit[SHIM_N_LEVELS])
{
    for (int i = 0; i < SHIM_N_LEVELS; i++) {
        credit[i] = co->levels[i].n ? co->given - co->levels[i].base : 0;
    }
}

/* Restores the credit of each level. */
void
class_order_end_change(struct class_order *co,
                       const uint64_t credit[SHIM_N_LEVELS])
{
    for (int i = 0; i < SHIM_N_LEVELS; i++) {
        co->levels[i].base = co->given - credit[i];
    }
}

/* Returns a level of those 'waiting' that has the credit for the next packet
 * of its next class other than 'first', which becomes its 'last_served'.
 * Returns NULL if no level is due, and updates 'due'. */
struct class_level *
class_order_pick_min_share(struct class_order *co, uint32_t first,
                           uint32_t waiting, class_length *length_of)
{
    uint64_t least = UINT64_MAX;

    co->due = co->given;
    for (; waiting; waiting &= waiting - 1) {
        struct class_level *level = &co->levels[__builtin_ctz(waiting)];
        uint32_t class = class_map_after(&level->classes, level->last_served);
        uint64_t cost, credit = co->given - level->base;

        class = (class == first ? class_map_after(&level->classes, class)
                 : class);
        cost = (uint64_t) length_of(co->classes[class].head)
               << CLASS_ORDER_SHIFT;
        if (credit >= cost) {
            level->last_served = class;
            return level;
        }
        least = cost - credit < least ? cost - credit : least;
    }
    co->due += least;
    return NULL;
}
