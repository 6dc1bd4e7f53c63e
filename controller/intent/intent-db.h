/* SPDX-License-Identifier: Apache-2.0 */

#ifndef INTENT_DB_H
#define INTENT_DB_H 1

/* Connection of the controller to the intent database.
 *
 * Copies the intent and the overrides to memory, takes the leadership, and
 * writes events, overrides and the name of the policy.  Transactions are at
 * least 200 ms apart, so that many events become one transaction; overrides
 * are written at once.
 *
 * One controller is active, the others are standby.  An OVSDB lock selects it,
 * but a lock does not stop a controller that has not noticed that it lost the
 * lock.  So the transaction that takes the leadership also increments
 * Leader.generation, and agents ignore orders of older generations.  A new
 * generation is at least the milliseconds since 1970: if both databases are
 * lost, it is above those that agents and switches remember, unless the clock
 * went back.  Then an operator raises it; the word of a host alone does not,
 * because one that claims the largest number would end all orders for good.
 *
 * The hosts database may have a newer generation than the intent database: the
 * intent database may have been restored from an older copy, or another
 * controller may lead while this one is disconnected.  Agents would ignore the
 * orders of this controller, so it steps down and takes a newer generation.
 *
 * An active controller that loses the connection to the intent database stays
 * active: if another one takes over, agents follow its newer generation.  But
 * it pushes orders to agents only while the database replies: its last message
 * is then at most ANSWERS_MS old, 3 s with the time that an iteration takes.
 *
 * A search announces its end, but not when its rows are no longer needed, and
 * a search that is killed announces nothing.  So cojobs are deleted
 * INTENT_GC_MS after their end, or if more than INTENT_GC_MAX have ended.
 * Stages and cojobs that are inactive (inactive.h) are ended.  The
 * measurements of their stages stay in the controller's memory, see
 * stage-history.h.
 *
 *    intent_db_run(idb, lease_ms, generation);  // May change the cluster.
 *    if (intent_db_is_active(idb)) {
 *        intent_db_event(idb, DECISION_POLICY, NULL, "stage", "x", "...");
 *    }
 *    intent_db_commit(idb);            // Last in each iteration.
 *
 * Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler.h"
#include "controller/decide/decision-log.h"

#define INTENT_GC_MS 600000
#define INTENT_GC_MAX 1000      /* Finished cojobs. */
#define INTENT_GC_EVENTS 1000   /* Rows of the Event table. */

struct cluster;
struct intent_db;
struct intentrec_cojob;
struct overrides;
struct policy;

/* Copies the database at 'remote' to the cluster and the overrides.  'address'
 * is what agents connect to; it is written to the Leader table.  Events are
 * added to the log, too. */
struct intent_db *intent_db_create(const char *remote, const char *address,
                                   struct cluster *, struct overrides *,
                                   struct decision_log *);
void intent_db_destroy(struct intent_db *);

/* Sets the addresses of the database's members. */
void intent_db_set_remote(struct intent_db *, const char *remote);

/* Accepts a database that is older than what was read before, and reconnects:
 * the library refuses it otherwise, because another member could have newer
 * rows. */
void intent_db_accept_older(struct intent_db *);

/* 'lease_ms' is written to the Leader table.  The hosts database has orders of
 * 'generation'. */
void intent_db_run(struct intent_db *, int64_t lease_ms, int64_t generation);
void intent_db_commit(struct intent_db *);

bool intent_db_answers(const struct intent_db *);
bool intent_db_is_active(const struct intent_db *);
bool intent_db_may_push(const struct intent_db *);
int64_t intent_db_generation(const struct intent_db *);

/* Has this controller, which leads, take a generation above 'newest'. */
void intent_db_raise(struct intent_db *, int64_t newest);

/* "active", "standby" (another controller leads), "starting" or
 * "disconnected". */
const char *intent_db_state(const struct intent_db *);

/* Writes the name and text of the policy in force to the database.  The policy
 * must live until the next call. */
void intent_db_set_policy(struct intent_db *, const struct policy *);

/* Adds an event to the Event table and the logs: 'what' happened to 'subject',
 * by 'operator' or, if that is null, by this controller.  A standby controller
 * adds none, because the active one does. */
void intent_db_event(struct intent_db *, enum decision_kind,
                     const char *operator, const char *subject,
                     const char *what, const char *why, ...)
    OVS_PRINTF_FORMAT(6, 7);

/* Decides whether this controller is active: pure computation on the caller's
 * data. */
struct leadership {
    bool active;                /* This controller leads. */
    int64_t generation;         /* Last one that it took, 0 if none. */
    int64_t newest;             /* Newest one in the hosts database. */
    int64_t requested;          /* Written to take the leadership, 0 if none
                                 * is. */
    bool confirmed;             /* The database has lately shown that it still
                                 * leads. */
    long long ran_at;           /* Time of the last iteration. */
    long long doubted_until;    /* Time by which the connection shows whether
                                 * it lives, after a late iteration. */
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
    int64_t now;                /* Milliseconds since 1970. */
    bool answers;               /* See answers.h. */
    long long msec;             /* time_msec(). */
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

/* A finished cojob. */
struct intent_gc_cojob {
    const struct intentrec_cojob *row;
    long long done_at;          /* time_msec() when it was first seen as
                                 * done. */
    int64_t ended;              /* Epoch ms, for those of one 'done_at'. */
};

/* Returns when the last known job or stage of 'row' ended, epoch ms. */
int64_t intent_gc_end_time(const struct intentrec_cojob *row);

/* Sorts 'cojobs' by their end, the latest first.  Returns the number of
 * cojobs, from the first one, that must be kept at 'now', time_msec(). */
size_t intent_gc_keep(struct intent_gc_cojob *cojobs, size_t n, long long now);

#endif /* controller/intent/intent-db.h */
