/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LEADERSHIP_H
#define LEADERSHIP_H 1

/* Decides whether this controller is active.
 *
 *
 * Motivation
 * ==========
 *
 * One controller is active, the others are standby.  An OVSDB lock selects it,
 * but a lock does not stop a controller that has not noticed that it lost the
 * lock.  So the transaction that takes the leadership also increments
 * Leader.generation, and agents ignore orders of older generations.
 *
 * The hosts database may have a newer generation than the intent database: the
 * intent database may have been restored from an older copy, or another
 * controller may lead while this one is disconnected.  Agents would ignore the
 * orders of this controller, so it steps down and takes a newer generation.
 *
 * An active controller that loses the connection to the intent database stays
 * active: if another one takes over, agents follow its newer generation.
 *
 *
 * Usage
 * =====
 *
 *    switch (leadership_run(&l, &view)) {
 *    case LEADERSHIP_REQUEST:
 *        ...write l.requested and this controller's address...
 *    }
 *
 * Pure computation on the caller's data. */

#include <stdbool.h>
#include <stdint.h>

struct leadership {
    bool active;                /* This controller leads. */
    int64_t generation;         /* Last one that it took, 0 if none. */
    int64_t newest;             /* Newest one in the hosts database. */
    int64_t requested;          /* Written to take the leadership, 0 if none
                                 * is. */
};

/* What this controller sees of the intent database. */
struct leadership_view {
    bool connected;
    bool loaded;                /* The contents have been received once. */
    bool has_lock;
    bool lock_contended;        /* Another client has the lock. */
    bool has_txn;               /* A transaction may be made now. */
    int64_t generation;         /* Of the Leader row, 0 without a row. */
    bool is_own_row;            /* The row has this controller's address. */
};

enum leadership_action {
    LEADERSHIP_KEEP,            /* No change. */
    LEADERSHIP_REQUEST,         /* Write 'requested' in the transaction. */
    LEADERSHIP_BEGIN,           /* This controller leads from now on. */
    LEADERSHIP_END_REPLACED,    /* Another controller leads. */
    LEADERSHIP_END_FENCED,      /* Hosts have orders of a newer generation. */
};

enum leadership_action leadership_run(struct leadership *,
                                      const struct leadership_view *);

/* Returns true if this controller may write decisions now. */
bool leadership_may_write(const struct leadership *,
                          const struct leadership_view *);

#endif /* controller/intent/leadership.h */
